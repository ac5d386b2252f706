"""How many features there are, from the observations alone and without a model of the actions."""

import numpy as np
from sklearn.decomposition import PCA


def count_by_minka(X) -> int:
    """Minka's Bayesian choice for PCA, plus one.

    PCA centres the observations. Mixtures of K features that sum to one lie in a flat of dimension K - 1.
    """
    return int(PCA(n_components="mle", svd_solver="full").fit(X).n_components_) + 1


def bicrossvalidate(X, *, n_row_folds: int = 4, n_column_folds: int = 5, n_repeats: int = 4, random_state: int = 0):
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


def errors_of_block(X, rows, columns, largest):
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


def count_by_bicrossvalidation(X, **options) -> int:
    """The rank of least error, at least one."""
    errors = bicrossvalidate(X, **options)
    return max(1, int(np.argmin(errors)))
