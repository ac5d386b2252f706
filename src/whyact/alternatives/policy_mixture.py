"""The mixture of feature policies, Eq. (model::mixture), fitted by EM to given coefficients."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.model import action_probabilities


class PolicyMixtureClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Fit one policy for each column of non-negative coefficients X, so that their mixture explains the actions.

    The mixture is P(u | s) = sum_k s_k phi_k(u) / sum_k s_k for a row s. Its log-likelihood is concave in the policies,
    so EM finds the one optimum from any start.

    Parameters
    ----------
    pseudo_count : float, default=0.05
        Added to the count of each action of each policy; keeps the policies of rare columns away from certainty.
    max_iter : int, default=500
        EM stops after at most this many iterations.
    tol : float, default=1e-4
        EM stops once no probability changes by more than this.

    Attributes
    ----------
    policies_ : ndarray of shape (K, U)
        The policy of each column; columns as in `classes_`.
    classes_ : ndarray of shape (U,)
        The actions.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number K of columns of X (scikit-learn calls them features).
    feature_names_in_ : ndarray of shape (K,)
        Names of the columns, if X was a data frame.

    Examples
    --------
    >>> from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
    >>> model = PolicyMixtureClassifier().fit([[1, 0], [0, 1], [1, 0.2]], ["brake", "keep", "brake"])
    >>> model.predict([[0.9, 0.1], [0.1, 0.9]]).tolist()
    ['brake', 'keep']
    """

    def __init__(self, pseudo_count: float = 0.05, max_iter: int = 500, tol: float = 1e-4) -> None:
        self.pseudo_count = pseudo_count
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike) -> "PolicyMixtureClassifier":
        """Fit the policies.

        Parameters
        ----------
        X : array-like of shape (N, K)
            Coefficients, not negative: how much of each feature is in each row.
        y : array-like of shape (N,)
            Actions.

        Returns
        -------
        PolicyMixtureClassifier
            The fitted classifier.

        Examples
        --------
        >>> from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
        >>> PolicyMixtureClassifier().fit([[1, 0], [0, 1]], ["brake", "keep"]).policies_.shape
        (2, 2)
        """
        coefficients, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        check_non_negative(coefficients)
        self.classes_, actions = np.unique(labels, return_inverse=True)
        taken = np.eye(len(self.classes_))[actions]
        policies = np.full((coefficients.shape[1], len(self.classes_)), 1.0 / len(self.classes_))
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            contributions = coefficients * policies[:, actions].T
            shares = contributions / np.maximum(contributions.sum(axis=1, keepdims=True), 1e-300)
            counts = shares.T @ taken + self.pseudo_count
            before, policies = policies, counts / counts.sum(axis=1, keepdims=True)
            if np.abs(policies - before).max() < self.tol:
                break
        self.policies_ = policies
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probability of each action; uniform for a row without any feature.

        Parameters
        ----------
        X : array-like of shape (N, K)
            Coefficients, not negative.

        Returns
        -------
        ndarray of shape (N, U)
            Rows sum to one; columns as in `classes_`.

        Examples
        --------
        >>> from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
        >>> model = PolicyMixtureClassifier().fit([[1, 0], [0, 1]], ["brake", "keep"])
        >>> model.predict_proba([[0, 0]]).tolist()
        [[0.5, 0.5]]
        """
        check_is_fitted(self)
        coefficients = validate_data(self, X, dtype=np.float64, reset=False)
        check_non_negative(coefficients)
        return action_probabilities(coefficients.T, self.policies_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable action for each row.

        Parameters
        ----------
        X : array-like of shape (N, K)
            Coefficients, not negative.

        Returns
        -------
        ndarray of shape (N,)
            Actions, as in `classes_`.

        Examples
        --------
        >>> from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
        >>> model = PolicyMixtureClassifier().fit([[1, 0], [0, 1]], ["brake", "keep"])
        >>> model.predict([[0.9, 0.1]]).tolist()
        ['brake']
        """
        probabilities = self.predict_proba(X)
        predicted: np.ndarray = self.classes_[probabilities.argmax(axis=1)]
        return predicted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # A mixture of policies cannot tell apart two classes that lie in the same direction from the origin.
        tags.classifier_tags.poor_score = True
        return tags


def check_non_negative(coefficients: np.ndarray) -> None:
    """Refuse negative coefficients."""
    if coefficients.min(initial=0.0) < 0:
        raise ValueError(
            "Negative values in data passed to X in PolicyMixtureClassifier: coefficients must not be negative."
        )
