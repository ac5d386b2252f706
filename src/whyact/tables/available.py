"""Which actions can be taken in each row: columns of a file that say so, one for each action that is not always there.

A mapping goes from the name of an action to that of its column. Messages count rows from 1, without the header.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whyact.errors import ArgumentError, list_names

if TYPE_CHECKING:
    import pandas

TRUTH = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
COUNTED = "rows are counted from 1, without the header"


def read_truth(path: Path | str, column: str, entries: "pandas.Series", n_before: int = 0) -> np.ndarray:
    """Entries of a column as truth values (n,); `n_before` rows of the file come before them."""
    import pandas

    codes, words = pandas.factorize(entries)
    read = [TRUTH.get(str(word).strip().lower()) for word in words]
    known = np.array([truth is not None for truth in [*read, None]])  # code -1: an empty field
    wrong = np.nonzero(~known[codes])[0]
    if len(wrong):
        row = int(wrong[0])
        held = "nothing" if codes[row] < 0 else repr(str(words[codes[row]]))
        raise ArgumentError(
            "available", f"the column {column!r} of {path} holds {held} in row {n_before + row + 1}, not 0, 1, true or "
            f"false; {COUNTED}.",
        )  # fmt: skip
    return np.array(read, dtype=bool)[codes]


def make_mask(
    path: Path | str, named: Mapping[str, Any], classes: Sequence[Any] | np.ndarray, n_before: int = 0
) -> np.ndarray:
    """Which actions can be taken in each row, (n, U).

    Parameters
    ----------
    path : Path or str
        The file, for messages.
    named : mapping of str to array (n,) of bool
        Where each of the named actions can be taken; the others always can. There is at least one.
    classes : sequence of labels of length U
        All actions.
    n_before : int, default=0
        Rows of the file before these.

    Returns
    -------
    ndarray (n, U)
    """
    places = {str(label): place for place, label in enumerate(classes)}
    unknown = [name for name in named if name not in places]
    if unknown:
        raise ArgumentError(
            "available", f"there is no action {unknown[0]!r}; the actions are: {list_names(list(places))}."
        )
    mask = np.ones((len(next(iter(named.values()))), len(places)), dtype=bool)
    for name, can_be_taken in named.items():
        mask[:, places[name]] = can_be_taken
    empty = np.nonzero(~mask.any(axis=1))[0]
    if len(empty):
        raise ArgumentError(
            "available", f"no action is available in row {n_before + int(empty[0]) + 1} of {path}; {COUNTED}."
        )
    return mask


def mask_demonstrations(
    path: Path | str, named: Mapping[str, Any] | None, classes: Sequence[Any] | np.ndarray, actions: np.ndarray
) -> np.ndarray | None:
    """Which actions can be taken in each demonstration, checked against those that were; None: all in all rows."""
    if named is None:
        return None
    mask = make_mask(path, named, classes)
    check_taken(path, mask, actions, classes)
    return None if mask.all() else mask


def check_taken(path: Path | str, mask: np.ndarray, actions: np.ndarray, classes: Sequence[Any] | np.ndarray) -> None:
    """Nobody can have taken an action that was not available; `actions` (N,) index classes, negative if unknown."""
    known = np.nonzero(actions >= 0)[0]
    wrong = known[~mask[known, actions[known]]]
    if len(wrong):
        more = f" ({len(wrong)} rows are like that)" if len(wrong) > 1 else ""
        raise ArgumentError(
            "available", f"the action {str(classes[actions[wrong[0]]])!r} was taken in row {int(wrong[0]) + 1} of "
            f"{path}, where it is not available{more}; {COUNTED}.",
        )  # fmt: skip
