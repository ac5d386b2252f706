"""The scikit-learn interface of the model."""
