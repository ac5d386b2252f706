"""How many features there are, judged from the observations alone, without a model of the actions."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA


def count_by_minka(X: ArrayLike) -> int:
    """Count features by Minka's Bayesian choice for PCA, plus one.

    PCA centres the observations, and mixtures of K features that sum to one lie in an affine space of dimension K - 1.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Observations, at least as many as columns.

    Returns
    -------
    int
        The number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.alternatives.rank import count_by_minka
    >>> rng = np.random.default_rng(0)
    >>> mixtures = rng.dirichlet(np.ones(3), size=60)
    >>> X = mixtures @ rng.exponential(size=(3, 8)) + 0.01 * rng.standard_normal((60, 8))
    >>> count_by_minka(X)
    3
    """
    return int(PCA(n_components="mle", svd_solver="full").fit(X).n_components_) + 1


def bicrossvalidate(
    X: ArrayLike, *, n_row_folds: int = 4, n_column_folds: int = 5, n_repeats: int = 4, random_state: int = 0
) -> np.ndarray:
    """Squared error of each rank 0, 1, ... in bi-cross-validation of the SVD (Owen & Perry, 2009).

    A block A of some rows and some columns is left out of [[A, B], [C, D]] and predicted by B D_k^+ C, with D_k the
    best approximation of D of rank k. All blocks of a grid are left out in turn, for several random grids.
    """
    X = np.asarray(X, dtype=float)
    n_rows, n_columns = X.shape
    n_row_folds, n_column_folds = min(n_row_folds, n_rows), min(n_column_folds, n_columns)
    rng = np.random.default_rng(random_state)
    largest = min(n_rows - -(-n_rows // n_row_folds), n_columns - -(-n_columns // n_column_folds))
    errors = np.zeros(largest + 1)
    for _ in range(n_repeats):
        row_folds = np.array_split(rng.permutation(n_rows), n_row_folds)
        column_folds = np.array_split(rng.permutation(n_columns), n_column_folds)
        for rows in row_folds:
            for columns in column_folds:
                errors += errors_of_block(X, rows, columns, largest)
    return errors


def errors_of_block(X: np.ndarray, rows: np.ndarray, columns: np.ndarray, largest: int) -> np.ndarray:
    """Squared error of the left-out block for each rank."""
    kept_rows = np.delete(np.arange(len(X)), rows)
    kept_columns = np.delete(np.arange(X.shape[1]), columns)
    block = X[np.ix_(rows, columns)]
    u, values, v = np.linalg.svd(X[np.ix_(kept_rows, kept_columns)], full_matrices=False)
    left = X[np.ix_(rows, kept_columns)] @ v.T
    right = u.T @ X[np.ix_(kept_rows, columns)]
    errors = np.empty(largest + 1)
    predicted = np.zeros_like(block)
    errors[0] = np.sum(block**2)
    for k in range(largest):
        if values[k] > values[0] * 1e-12:
            predicted += np.outer(left[:, k] / values[k], right[k])
        errors[k + 1] = np.sum((block - predicted) ** 2)
    return errors


def count_by_bicrossvalidation(X: ArrayLike, **options: int) -> int:
    """Count features by bi-cross-validation of the SVD: the rank of least error, at least one.

    Parameters
    ----------
    X : array-like of shape (N, D)
        Observations.
    **options : int
        `n_row_folds` (4) and `n_column_folds` (5) make up the grid of blocks that are left out, `n_repeats` (4) is the
        number of grids, `random_state` (0) their seed.

    Returns
    -------
    int
        The number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.alternatives.rank import count_by_bicrossvalidation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((40, 3)) @ rng.exponential(size=(3, 12)) + 0.01 * rng.standard_normal((40, 12))
    >>> count_by_bicrossvalidation(X)
    3
    """
    errors = bicrossvalidate(X, **options)
    return max(1, int(np.argmin(errors)))
