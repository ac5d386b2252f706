"""The scikit-learn face of the model."""
