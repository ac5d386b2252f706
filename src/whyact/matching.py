"""Which features of all draws are the same.

Features have no order, and every draw has them a little differently. Two are alike as far as both their entries and
their substates are: their likeness is the product of the two cosines, which does not depend on the scale of either. The
features of each draw are assigned one to one, so that the sum of the likenesses is as large as can be; pairs that are
less alike than `SAME_FEATURE` stay apart.

First they are assigned to the features of one draw. That draw is as noisy as any other, and two noisy draws of a
feature are less alike than either is to their mean. So draws are then assigned to the means of what was matched, until
nothing changes, as in k-means: a feature that drifts between draws and chains stays one feature.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyact.cut_policies import spread_out
from whyact.sampler.draws import ChainDraws

# Two features are taken for the same if the cosines of their entries and of their substates multiply to this.
SAME_FEATURE = 0.5
# Means are found by so many draws of each chain, in at most so many rounds.
N_DRAWS = 40
MAX_ROUNDS = 10

# How alike each feature of a draw (entries, substates) is to each prototype (entries, substates, of length one).
Compare = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Prototypes(NamedTuple):
    """What the features of draws are compared with; rows have length one."""

    features: np.ndarray  # (K, D)
    substates: np.ndarray  # (K, N)


def make_prototypes(features: np.ndarray, substates: np.ndarray) -> Prototypes:
    """Of features (K, D) and their substates (K, N), of any size."""
    return Prototypes(normalise(features), normalise(substates))


def compare(
    features: np.ndarray, substates: np.ndarray, unit_features: np.ndarray, unit_substates: np.ndarray
) -> np.ndarray:
    """How alike each feature (row) is to each prototype, by its entries and its substates."""
    likeness: np.ndarray = normalise(substates) @ unit_substates.T
    likeness *= np.abs(normalise(features) @ unit_features.T)
    return likeness


def match_chain(chain: ChainDraws, several: list[Prototypes], compare: Compare) -> list[np.ndarray]:
    """For each set of prototypes, which one each row of `features` is, -1 for none.

    Several sets cost hardly more than one.
    """
    borders = np.cumsum([0, *(len(prototypes.features) for prototypes in several)])
    together = Prototypes(*(np.concatenate(parts) for parts in zip(*several, strict=True)))
    labels = [np.full(len(chain.features), -1) for _ in several]
    for rows, features, levels in take_draws(chain, range(len(chain))):
        likeness = compare(features, levels, *together)
        for found, (first, last) in zip(labels, pairwise(borders), strict=True):
            found[rows] = assign(likeness[:, first:last])
    return labels


def refine(chains: list[ChainDraws], prototypes: Prototypes, compare: Compare) -> Prototypes:
    """The means of what is matched with the prototypes, and with these means, until nothing changes."""
    draws = [
        (features, levels)
        for chain in chains
        for _, features, levels in take_draws(chain, spread_out(len(chain), N_DRAWS))
    ]
    before: list[np.ndarray] = []
    for _ in range(MAX_ROUNDS):
        labels = [assign(compare(features, levels, *prototypes)) for features, levels in draws]
        if before and all(map(np.array_equal, labels, before)):
            break
        before = labels
        prototypes = find_means(draws, labels, prototypes)
    return prototypes


def find_means(
    draws: list[tuple[np.ndarray, np.ndarray]], labels: list[np.ndarray], prototypes: Prototypes
) -> Prototypes:
    """The mean of the features matched with each prototype; a prototype that none is matched with stays."""
    features, substates = (np.zeros_like(part) for part in prototypes)
    for (own_features, own_levels), found in zip(draws, labels, strict=True):
        held = found >= 0
        lengths = np.linalg.norm(own_features[held], axis=1, keepdims=True)
        features[found[held]] += own_features[held] / lengths
        substates[found[held]] += own_levels[held] * lengths  # only the product of the two sizes is seen
    none = ~features.any(axis=1)
    features[none], substates[none] = prototypes.features[none], prototypes.substates[none]
    return make_prototypes(features, substates)


def take_draws(chain: ChainDraws, which: Iterable[int]) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Rows, features and levels of these draws."""
    for draw in which:
        rows = slice(chain.row_splits[draw], chain.row_splits[draw + 1])
        yield rows, chain.features[rows], chain.levels[rows].astype(float)


def assign(likeness: np.ndarray) -> np.ndarray:
    """Which column each row is matched with, one to one; -1 for none."""
    from scipy.optimize import linear_sum_assignment

    labels = np.full(len(likeness), -1)
    rows, columns = linear_sum_assignment(likeness, maximize=True)
    alike = likeness[rows, columns] >= SAME_FEATURE
    labels[rows[alike]] = columns[alike]
    return labels


def normalise(rows: np.ndarray) -> np.ndarray:
    """Scale each row to length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
