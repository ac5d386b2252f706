"""Other ways to learn from demonstrations, with the face of scikit-learn."""
