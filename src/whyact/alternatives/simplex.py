"""Observations as mixtures of non-negative features, whose coefficients sum to one."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.alternatives.rank import count_by_bicrossvalidation

# Weight of the equation "the coefficients sum to one", relative to the size of the features.
HEAVY = 1e3


def project_to_mixtures(X: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Least squares coefficients, (N, K), non-negative and summing to one."""
    heavy = HEAVY * max(float(np.abs(features).max()), 1e-300)
    equations = np.vstack([features.T, np.full(len(features), heavy)])
    return np.array([nnls(equations, np.append(row, heavy))[0] for row in X])


def fit_features(X: np.ndarray, mixtures: np.ndarray) -> np.ndarray:
    """Least squares features, (K, D), non-negative."""
    return np.array([nnls(mixtures, column)[0] for column in X.T]).T


def find_pure_rows(X: np.ndarray, n_features: int) -> np.ndarray:
    """Successive projection (Araujo et al., 2001): rows far from the span of those found before."""
    # noise outside the leading singular vectors would be mistaken for distance
    u, values, _ = np.linalg.svd(X, full_matrices=False)
    remaining = u[:, :n_features] * values[:n_features]
    chosen = []
    for _ in range(min(n_features, remaining.shape[1])):
        row = int(np.argmax(np.sum(remaining**2, axis=1)))
        chosen.append(row)
        direction = remaining[row] / max(float(np.linalg.norm(remaining[row])), 1e-300)
        remaining = remaining - np.outer(remaining @ direction, direction)
    return np.array(chosen)


class SimplexFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Factorise X = S F with non-negative features F and rows of S on the simplex.

    Successive projection finds observations that hold a single feature; from there, S and F are fitted in turn.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of features; "bicv" chooses it by bi-cross-validation of the SVD.
    max_iter : int, default=100
        Stop after at most this many iterations.
    tol : float, default=1e-4
        Stop once an iteration lowers the squared error by less than this share.

    Attributes
    ----------
    components_ : ndarray of shape (K, D)
        The features F.
    n_components_ : int
        Number K of features.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number D of columns of X (scikit-learn calls them features).
    feature_names_in_ : ndarray of shape (D,)
        Names of the columns, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.alternatives.simplex import SimplexFactorization
    >>> mixtures = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])
    >>> X = mixtures @ [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]
    >>> SimplexFactorization(n_components=2).fit(X).components_.round(1).tolist()
    [[0.0, 3.0, 1.0], [1.0, 0.0, 2.0]]
    """

    def __init__(self, n_components: int | str = "bicv", max_iter: int = 100, tol: float = 1e-4) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: object = None) -> "SimplexFactorization":
        """Fit the features.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations.
        y : object, default=None
            Ignored.

        Returns
        -------
        SimplexFactorization
            The fitted transformer.

        Examples
        --------
        >>> from whyact.alternatives.simplex import SimplexFactorization
        >>> SimplexFactorization(n_components=2).fit([[1, 0], [0, 2], [0.5, 1]]).components_.shape
        (2, 2)
        """
        rows: np.ndarray = validate_data(self, X, dtype=np.float64)
        self.n_components_ = count_by_bicrossvalidation(rows) if self.n_components == "bicv" else int(self.n_components)
        features = np.maximum(rows[find_pure_rows(rows, self.n_components_)], 0.0)
        before = np.inf
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            mixtures = project_to_mixtures(rows, features)
            features = fit_features(rows, mixtures)
            error = float(np.sum((rows - mixtures @ features) ** 2))
            if error >= (1 - self.tol) * before:
                break
            before = error
        self.components_ = features
        self._n_features_out = len(features)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Coefficients of each row.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations.

        Returns
        -------
        ndarray of shape (N, K)
            Not negative; rows sum to one.

        Examples
        --------
        >>> from whyact.alternatives.simplex import SimplexFactorization
        >>> model = SimplexFactorization(n_components=2).fit([[1, 0], [0, 2], [0.5, 1]])
        >>> model.transform([[0.5, 1]]).round(2).tolist()
        [[0.5, 0.5]]
        """
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, dtype=np.float64, reset=False)
        return project_to_mixtures(rows, self.components_)
