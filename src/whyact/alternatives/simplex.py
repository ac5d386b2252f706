"""Observations as mixtures of non-negative features, with coefficients that sum to one."""

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.alternatives.rank import count_by_bicrossvalidation

# Weight of the equation "the coefficients sum to one", relative to the size of the features.
HEAVY = 1e3


def project_to_mixtures(X, features) -> np.ndarray:
    """Least squares coefficients, (N, K), non-negative and with the sum one."""
    heavy = HEAVY * max(float(np.abs(features).max()), 1e-300)
    equations = np.vstack([features.T, np.full(len(features), heavy)])
    return np.array([nnls(equations, np.append(row, heavy))[0] for row in X])


def fit_features(X, mixtures) -> np.ndarray:
    """Least squares features, (K, D), non-negative."""
    return np.array([nnls(mixtures, column)[0] for column in X.T]).T


def find_pure_rows(X, n_features: int) -> np.ndarray:
    """Successive projection (Araujo et al., 2001): rows far from the span of those found before."""
    # the noise outside the leading singular vectors would lead astray
    u, values, _ = np.linalg.svd(X, full_matrices=False)
    remaining = u[:, :n_features] * values[:n_features]
    chosen = []
    for _ in range(min(n_features, remaining.shape[1])):
        row = int(np.argmax(np.sum(remaining**2, axis=1)))
        chosen.append(row)
        direction = remaining[row] / max(float(np.linalg.norm(remaining[row])), 1e-300)
        remaining = remaining - np.outer(remaining @ direction, direction)
    return np.array(chosen)


class SimplexFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """X = S F with non-negative features F and rows of S on the simplex.

    Successive projection finds observations that hold one feature only; from there, S and F are fitted in turn.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of features; "bicv" chooses it by bi-cross-validation of the SVD.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop once an iteration lowers the squared error by less than this share.

    Attributes
    ----------
    components_ : ndarray (K, D)
    n_components_ : int
    n_iter_ : int
    """

    def __init__(self, n_components="bicv", max_iter=100, tol=1e-4):
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X, y=None):
        """Fit the features; y is not looked at."""
        X = validate_data(self, X, dtype=np.float64)
        self.n_components_ = count_by_bicrossvalidation(X) if self.n_components == "bicv" else int(self.n_components)
        features = np.maximum(X[find_pure_rows(X, self.n_components_)], 0.0)
        before = np.inf
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            mixtures = project_to_mixtures(X, features)
            features = fit_features(X, mixtures)
            error = float(np.sum((X - mixtures @ features) ** 2))
            if error >= (1 - self.tol) * before:
                break
            before = error
        self.components_ = features
        self._n_features_out = len(features)
        return self

    def transform(self, X):
        """Coefficients of each row, (N, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return project_to_mixtures(X, self.components_)
