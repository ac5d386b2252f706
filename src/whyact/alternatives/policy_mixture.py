"""The mixture of feature policies, Eq. (model::mixture), fitted by EM to given coefficients."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.model import action_probabilities


class PolicyMixtureClassifier(ClassifierMixin, BaseEstimator):
    """P(u | s) = sum_k s_k phi_k(u) / sum_k s_k for non-negative s: one policy for each column of X.

    Its log-likelihood is concave in the policies, so that EM finds the one optimum from anywhere.

    Parameters
    ----------
    pseudo_count : float, default=0.05
        What each action of each policy is counted in advance; keeps policies of rare columns away from certainty.
    max_iter : int, default=500
    tol : float, default=1e-4
        Stop once no probability changes by more.

    Attributes
    ----------
    policies_ : ndarray (K, U)
    classes_ : ndarray (U,)
    n_iter_ : int
    """

    def __init__(self, pseudo_count=0.05, max_iter=500, tol=1e-4):
        self.pseudo_count = pseudo_count
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X, y):
        """Fit the policies to coefficients X (N, K) and actions y (N,)."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        X = check_non_negative(X)
        self.classes_, actions = np.unique(y, return_inverse=True)
        taken = np.eye(len(self.classes_))[actions]
        policies = np.full((X.shape[1], len(self.classes_)), 1.0 / len(self.classes_))
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            spoken = X * policies[:, actions].T
            shares = spoken / np.maximum(spoken.sum(axis=1, keepdims=True), 1e-300)
            counts = shares.T @ taken + self.pseudo_count
            before, policies = policies, counts / counts.sum(axis=1, keepdims=True)
            if np.abs(policies - before).max() < self.tol:
                break
        self.policies_ = policies
        return self

    def predict_proba(self, X):
        """Probability of each action; uniform for a row without any feature."""
        check_is_fitted(self)
        X = check_non_negative(validate_data(self, X, dtype=np.float64, reset=False))
        return action_probabilities(X.T, self.policies_)

    def predict(self, X):
        """The most probable action."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # A mixture of policies cannot tell two classes apart that lie in one direction from the origin.
        tags.classifier_tags.poor_score = True
        return tags


def check_non_negative(X):
    if X.min(initial=0.0) < 0:
        raise ValueError(
            "Negative values in data passed to X in PolicyMixtureClassifier: coefficients are not negative."
        )
    return X
