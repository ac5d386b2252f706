"""Which rows to learn from, which to predict, and which of the first have an action on record."""

from typing import NamedTuple

import numpy as np

from experiments.decisions.decision_table import DecisionTable

TEST_SHARE = 0.3  # of the groups; without groups, of the rows
N_TRIES = 1000


class Split(NamedTuple):
    """A fresh random split, the same for all contestants."""

    train: np.ndarray  # rows to learn from
    test: np.ndarray  # rows to predict
    seed: int  # for whatever is random in a fit


def hold_out(name: str, table: DecisionTable, run: int, seed: int, n_train: int, n_test: int) -> Split:
    """Hold out whole groups; then take at most `n_train` of the other rows, and at most `n_test` of these.

    It depends on the data set, the run and the seed alone, not on which others are in the study. It is drawn again if
    there is only one action to learn from.
    """
    rng = np.random.default_rng([seed, run, *name.encode()])
    groups = np.arange(len(table.y)) if table.groups is None else table.groups
    names = np.unique(groups)
    n_held = max(1, round(TEST_SHARE * len(names)))
    for _ in range(N_TRIES):
        held = np.isin(groups, rng.choice(names, n_held, replace=False))
        train, test = (take_some(np.flatnonzero(part), n, rng) for part, n in ((~held, n_train), (held, n_test)))
        if len(np.unique(table.y[train])) > 1:
            return Split(train, test, int(rng.integers(2**31 - 1)))
    raise ValueError(f"{name}: whichever rows are held out, only one action is left to learn from.")


def take_some(rows: np.ndarray, n_most: int, rng: np.random.Generator) -> np.ndarray:
    """At most so many of the rows, in their order."""
    return np.sort(rng.choice(rows, min(n_most, len(rows)), replace=False))


def hide_actions(actions: np.ndarray, n_labels: int, n_fewest: int, seed: int) -> np.ndarray:
    """The actions of some rows, -1 for all others; the few are among the many, and show two actions at least.

    Parameters
    ----------
    actions : ndarray (N,)
        Whole numbers.
    n_labels : int
        Number of actions to keep.
    n_fewest : int
        The smallest number of the study: rows are drawn until already so few show two actions.
    seed : int
    """
    rng = np.random.default_rng([seed, 1])
    for _ in range(N_TRIES):
        order = rng.permutation(len(actions))
        if len(np.unique(actions[order[:n_fewest]])) > 1:
            return np.where(np.isin(np.arange(len(actions)), order[:n_labels]), actions, -1)
    raise ValueError(f"whichever {n_fewest} rows have an action, it is the same one.")
