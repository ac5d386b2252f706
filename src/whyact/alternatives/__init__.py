"""Other ways to learn from demonstrations, with scikit-learn's interface."""
