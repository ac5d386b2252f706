"""What a data set of decisions is, whatever it was loaded from."""

import importlib
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pandas


class DecisionTable(NamedTuple):
    """Decisions to learn from, all of them: splits take their rows from here."""

    X: np.ndarray  # (N, D), NaN where an entry is missing or belongs to an action that could not be taken
    y: np.ndarray  # (N,), the labels of the actions
    columns: list[str]
    about: str  # a sentence on what it is
    groups: np.ndarray | None = None  # (N,), rows that must not be split, such as those of a person or an episode
    available: np.ndarray | None = None  # (N, U), which of the sorted actions could be taken; None: all of them

    @property
    def classes(self) -> np.ndarray:
        """The actions, sorted."""
        return np.unique(self.y)

    @property
    def actions(self) -> np.ndarray:
        """Index of each row's action in `classes`."""
        return np.unique(self.y, return_inverse=True)[1]


def make_table(
    observed: pandas.DataFrame,
    y: np.ndarray,
    about: str,
    groups: np.ndarray | None = None,
    available: np.ndarray | None = None,
) -> DecisionTable:
    """A table from a data frame, without the columns that are the same in all rows: they tell nothing."""
    varying = observed.loc[:, observed.nunique() > 1]
    return DecisionTable(varying.to_numpy(float), y, [str(name) for name in varying], about, groups, available)


def import_extra(module: str, extra: str) -> ModuleType:
    """A module of an extra; without it, a sentence that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{module.split('.')[0]} is not installed; install whyact[{extra}].") from None
