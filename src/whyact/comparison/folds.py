"""Which rows to learn from and which to predict."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from whyact.errors import ArgumentError, suggest

SPLITS = ("random", "blocked")
Parts = list[tuple[np.ndarray, np.ndarray]]  # rows to learn from and rows to predict, fold by fold


class Fold(NamedTuple):
    """One part of the rows to predict from the others."""

    split: str
    repeat: int
    fold: int
    train: np.ndarray  # rows to learn from
    test: np.ndarray  # rows to predict
    groups: np.ndarray | None  # of the rows to learn from, for models that choose settings
    seed: int


def make_folds(
    actions: np.ndarray,
    groups: np.ndarray | None,
    splits: Sequence[str],
    n_folds: int,
    n_repeats: int,
    random: np.random.RandomState,
) -> list[Fold]:
    """All folds of all splits; see `compare`."""
    check_folds(actions, groups, splits, n_folds, n_repeats)
    folds = []
    with warnings.catch_warnings():
        # a note says the same, with the names of the actions
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for split in dict.fromkeys(splits):
            for repeat in range(n_repeats if split == "random" else 1):
                if split == "random":
                    blocks, parts = None, split_randomly(actions, n_folds, random)
                else:
                    blocks, parts = split_by_blocks(actions, groups, n_folds)
                for i, (train, test) in enumerate(parts):
                    seed = int(random.randint(2**31 - 1))
                    folds.append(Fold(split, repeat, i, train, test, None if blocks is None else blocks[train], seed))
    return folds


def split_randomly(actions: np.ndarray, n_folds: int, random: np.random.RandomState) -> Parts:
    """Stratified folds of shuffled rows."""
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=random).split(actions, actions))


def split_by_blocks(actions: np.ndarray, groups: np.ndarray | None, n_folds: int) -> tuple[np.ndarray, Parts]:
    """The block of each row, and folds of whole blocks: the groups or, without any, consecutive rows."""
    if groups is not None:
        return groups, list(StratifiedGroupKFold(n_folds).split(actions, actions, groups))
    blocks = np.arange(len(actions)) * n_folds // len(actions)
    return blocks, [(np.flatnonzero(blocks != i), np.flatnonzero(blocks == i)) for i in range(n_folds)]


def check_folds(
    actions: np.ndarray, groups: np.ndarray | None, splits: Sequence[str], n_folds: int, n_repeats: int
) -> None:
    """Refuse splits and numbers of folds that these rows do not allow."""
    if isinstance(splits, str) or not len(splits):
        raise ArgumentError("splits", f"splits must be a list with some of {', '.join(SPLITS)}, got {splits!r}.")
    for split in splits:
        if split not in SPLITS:
            raise ArgumentError("splits", f"splits: {split!r} is not known{suggest(str(split), SPLITS)}")
    for argument, number, least in (("n_folds", n_folds, 2), ("n_repeats", n_repeats, 1)):
        if not isinstance(number, int | np.integer) or number < least:
            raise ArgumentError(argument, f"{argument} must be a whole number of at least {least}, got {number!r}.")
    if n_folds > len(actions):
        raise ArgumentError("n_folds", f"n_folds={n_folds} is more than the {len(actions)} rows that have an action.")
    largest = np.bincount(actions).max()
    if n_folds > largest:
        raise ArgumentError(
            "n_folds",
            f"n_folds={n_folds} is more than the {largest} rows of the most frequent action; choose a smaller number.",
        )
    if groups is not None and "blocked" in splits and (n_groups := len(np.unique(groups))) < n_folds:
        raise ArgumentError("groups", f"groups holds {n_groups} different groups, fewer than n_folds={n_folds}.")


def keep_learnable(folds: list[Fold], actions: np.ndarray) -> tuple[list[Fold], list[str]]:
    """Leave out folds with only one action to learn from or nothing to predict; return the others, and notes."""
    kept = [fold for fold in folds if len(fold.test) and len(np.unique(actions[fold.train])) > 1]
    if not kept:
        raise ArgumentError(
            "n_folds",
            "no fold is left: in each one the rows to learn from hold only one action; choose more folds (n_folds) "
            "or the random split.",
        )
    notes = []
    for split in dict.fromkeys(fold.split for fold in folds):
        n_all, n_kept = (sum(fold.split == split for fold in some) for some in (folds, kept))
        if n_kept < n_all:
            notes.append(
                f"{split}: {n_all - n_kept} of {n_all} folds left out for all models, because the rows to learn from "
                "hold only one action, or there is nothing to predict."
            )
    return kept, notes


def note_absent(folds: list[Fold], actions: np.ndarray, classes: np.ndarray) -> list[str]:
    """Notes about actions that have to be predicted but are missing from the rows to learn from."""
    notes = []
    for split in dict.fromkeys(fold.split for fold in folds):
        absent: dict[int, int] = {}
        for fold in folds:
            if fold.split == split:
                for action in np.setdiff1d(actions[fold.test], actions[fold.train]):
                    absent[int(action)] = absent.get(int(action), 0) + 1
        if absent:
            names = ", ".join(f"{str(classes[a])!r} in {n} of them" for a, n in sorted(absent.items()))
            notes.append(
                f"{split}: some folds test actions that are missing from their rows to learn from ({names}); "
                "there they count as wrong."
            )
    return notes


def describe_splits(folds: list[Fold], has_groups: bool, n_folds: int) -> dict[str, str]:
    """How the rows were split, in words."""
    words = {}
    for split in dict.fromkeys(fold.split for fold in folds):
        n_repeats = 1 + max(fold.repeat for fold in folds if fold.split == split)
        if split == "random":
            words[split] = f"{n_folds} stratified folds of shuffled rows" + f", {n_repeats} times" * (n_repeats > 1)
        else:
            words[split] = f"{n_folds} folds of whole groups" if has_groups else f"{n_folds} blocks of consecutive rows"
    return words
