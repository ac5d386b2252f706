"""What comes in: observations and actions, checked, as a value."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from whyact.errors import warn_user

# Beyond this the noise variance would not be a floating point number.
LARGEST = 1e150


class CheckedInput(NamedTuple):
    """Demonstrations as they were given, checked."""

    observations: np.ndarray  # X, (N, D), NaN where missing
    columns: np.ndarray | None  # names of the columns, if they have any, (D,)
    classes: np.ndarray  # the actions, sorted, (U,); none if no action is known
    actions: np.ndarray  # index of `classes`, -1 where missing, (N,)
    available: np.ndarray | None = None  # which actions there are in each row, (N, U); None: all

    @property
    def n_actions(self) -> int:
        """Number of actions that the kernels see: at least one."""
        return max(len(self.classes), 1)

    @property
    def available_or_all(self) -> np.ndarray:
        """Which actions there are in each row, (N, U)."""
        return np.ones((len(self.actions), self.n_actions), bool) if self.available is None else self.available

    def take(self, rows: np.ndarray) -> "CheckedInput":
        """Some rows."""
        return self._replace(
            observations=self.observations[rows], actions=self.actions[rows], available=self.available_in(rows)
        )

    def available_in(self, rows: np.ndarray) -> np.ndarray | None:
        """Which actions there are in some rows; None: all."""
        return None if self.available is None else self.available[rows]


def check_available(available: Any, n_rows: int, classes: np.ndarray) -> np.ndarray | None:
    """Which actions there are in each row, (N, U), as an array of truth values; None if all are in all rows."""
    if available is None:
        return None
    mask = available.to_numpy() if hasattr(available, "to_numpy") else np.asarray(available)
    if mask.shape != (n_rows, len(classes)):
        names = ", ".join(str(label) for label in classes[:5])
        raise ValueError(
            f"available must have {n_rows} rows and {len(classes)} columns, one for each action in sorted order "
            f"({names}{', ...' if len(classes) > 5 else ''}); its shape is {mask.shape}."
        )
    if mask.dtype != bool and not np.isin(mask, (0, 1)).all():
        raise ValueError("available must hold truth values: True where an action can be taken.")
    mask = mask.astype(bool)
    without = np.nonzero(~mask.any(axis=1))[0]
    if len(without):
        raise ValueError(f"available: row {without[0]} has no action that can be taken.")
    return None if mask.all() else mask


def check_taken(available: np.ndarray | None, actions: np.ndarray, classes: np.ndarray) -> None:
    """Nobody can have taken an action that is not available."""
    if available is None:
        return
    known = np.nonzero(actions >= 0)[0]
    wrong = known[~available[known, actions[known]]]
    if len(wrong):
        label = classes[actions[wrong[0]]]
        more = f" ({len(wrong)} rows are like that)" if len(wrong) > 1 else ""
        raise ValueError(f"available: the action {str(label)!r} of row {wrong[0]} is not available there{more}.")


def check_observations(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """X as an array of numbers; with `reset`, its columns become those of the estimator."""
    try:
        checked: np.ndarray = validate_data(
            estimator, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan", ensure_min_samples=1
        )
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"X must hold numbers: {error}.") from None
        raise
    return checked


def find_largest(X: np.ndarray) -> float:
    """The largest absolute value, NaN aside, without a copy."""
    return max(float(np.fmax.reduce(X, axis=None, initial=0)), -float(np.fmin.reduce(X, axis=None, initial=0)))


def refuse_overflow(largest: float) -> None:
    """Say that values cannot be squared."""
    raise ValueError(f"X holds values as large as {largest:.0e}, whose squares overflow; rescale X.")


def check_new_rows(X: np.ndarray, unit: float) -> None:
    """Rows to predict must have squares in the sampler's unit."""
    largest = find_largest(X)
    if largest / unit > LARGEST:
        refuse_overflow(largest)


def check_rows_to_learn_from(
    X: np.ndarray, columns: np.ndarray | None, *, least_rows: int, needs_all_columns: bool
) -> None:
    """There must be rows enough, a number in each column, and squares of all of them."""
    largest = find_largest(X)
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        refuse_overflow(largest)
    if len(X) < least_rows:
        raise ValueError(f"X holds 1 sample (one row); at least {least_rows} are needed to learn from.")
    empty = np.nonzero(np.isnan(X).all(axis=0))[0]
    if len(empty) and needs_all_columns:
        names = np.arange(X.shape[1]) if columns is None else columns
        raise ValueError(f"X: column {names[empty[0]]!s} holds no number (all NaN); leave it out.")
    if np.array_equal(X, np.broadcast_to(X[0], X.shape), equal_nan=True):
        warn_user("X: all rows are equal, so nothing in them can explain the actions.")


def code_actions(y: Any, n_rows: int, missing_action: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The sorted actions, and their index for each row (-1 where missing).

    Parameters
    ----------
    y : array-like (N,) or None
        Labels of any sortable type; None: no action is known.
    n_rows : int
        Number of rows that `y` must have.
    missing_action : label, default=None
        Marks an action that is not known.

    Returns
    -------
    classes : ndarray (U,)
        Empty if no action is known.
    actions : ndarray (N,)
    """
    if y is None:
        return np.array([]), np.full(n_rows, -1)
    labels, known = split_missing(y, missing_action)
    if len(labels) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} actions; inconsistent numbers of samples.")
    actions = np.full(n_rows, -1)
    if not known.any():
        return np.array([]), actions
    observed = labels[known]
    try:
        sorted(set(observed.tolist()))
    except TypeError as error:
        raise ValueError(f"y must hold labels of one sortable type: {error}.") from None
    if labels.dtype == object:  # None among strings or numbers made it an object array
        observed = np.array(observed.tolist())
    check_classification_targets(observed)
    classes, indices = np.unique(observed, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(f"y holds one class only ({str(classes[0])!r}); at least two different actions are needed.")
    actions[known] = indices
    return classes, actions


def split_missing(y: Any, missing_action: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The labels, and where they are known."""
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    labels: np.ndarray = column_or_1d(np.asarray(y) if not isinstance(y, list) else to_array(y), warn=True)
    missing = find_missing(labels, missing_action)
    if labels.dtype.kind == "f" and not np.isfinite(labels[~missing]).all():
        raise ValueError("y contains NaN or infinity; mark missing actions with missing_action.")
    return labels, ~missing


def find_missing(labels: np.ndarray, marker: Any) -> np.ndarray:
    """Where labels equal the marker of a missing action, which may be None or NaN."""
    if marker is None:
        is_object = labels.dtype == object
        return np.array([label is None for label in labels]) if is_object else np.zeros(len(labels), bool)
    if isinstance(marker, float) and np.isnan(marker):
        return np.array([isinstance(label, (float, np.floating)) and np.isnan(label) for label in labels], bool)
    return np.array([label == marker for label in labels], bool)


def to_array(y: list[Any]) -> np.ndarray:
    """Turn a list into an array; one that mixes None with labels keeps its labels as they are."""
    if any(label is None for label in y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)
