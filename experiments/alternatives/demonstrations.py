"""Demonstrations as each model assumes them, and as the paper simulates them.

A data set is given by its kind, the SNR and the number of the run, whichever model learns from it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.harness.ground_truth import DataSet

N_TRAIN = 150
N_TEST = 60
N_TEST_OF_PAPER = 20
N_DIMENSIONS = 30
N_ACTIONS = 4
SNR_DB = 20.0

# Kinds of demonstrations, and the numbers of features (or clusters) that the runs go through.
KINDS = {
    "features": (4, 6, 8),
    "patterns": (3, 4, 5),
    "few-patterns": (6, 7, 8),
    "clusters": (5, 8, 12),
    "per-action": (4, 6, 8),
    "single": (4, 6, 8),
    "paper": (5, 9, 15),
}
# The model that assumes a kind.
OWN_MODEL = {
    "features": "features",
    "patterns": "patterns",
    "few-patterns": "patterns",
    "clusters": "clusters",
    "per-action": "per-action",
}
# Number of patterns that occur where they are few.
N_FEW = 20


class Demos(NamedTuple):
    """Demonstrations and what they were made of."""

    observations: np.ndarray
    actions: np.ndarray
    features: np.ndarray  # (K, D); the means of clusters
    substates: np.ndarray  # (N, K)

    @property
    def n_train(self) -> int:
        """Number of rows to learn from."""
        return len(self.actions) - (N_TEST if len(self.actions) > 100 else N_TEST_OF_PAPER)

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Observations and actions to learn from."""
        return self.observations[: self.n_train], self.actions[: self.n_train]

    @property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Observations and actions to predict."""
        return self.observations[self.n_train :], self.actions[self.n_train :]


def draw_demos(kind: str, n_features: int, snr_db: float, run: int, seed: int) -> Demos:
    """Draw a data set, again if the rows to learn from hold only one action."""
    if kind == "paper":
        truth = DataSet(n_features, snr_db, run, seed).draw()
        return Demos(truth.observations, truth.actions, truth.features, truth.substates)
    rng = np.random.default_rng([seed, list(KINDS).index(kind), round(1000 * snr_db), run])
    while True:
        substates, features, actions = DRAW[kind](rng, n_features, N_TRAIN + N_TEST)
        states = substates @ features
        noise = np.sqrt(np.mean(states**2) / 10 ** (snr_db / 10))
        demos = Demos(states + noise * rng.standard_normal(states.shape), actions, features, substates)
        if len(np.unique(demos.train[1])) > 1:
            return demos


# --- the parts ------------------------------------------------------------------------------------------------------

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]  # substates (N, K), features (K, D), actions (N,)


def draw_features(rng: np.random.Generator, n_features: int) -> np.ndarray:
    """Sparse positive features, as in Sec. 5."""
    weights = rng.exponential(size=(n_features, N_DIMENSIONS))
    return np.where(rng.random(weights.shape) < 0.5, weights, 0.0)


def draw_present(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    """Which features a row holds: each with probability 1/2, and at least one."""
    present = rng.random((n_rows, n_features)) < 0.5
    none = ~present.any(axis=1)
    present[none, rng.integers(n_features, size=none.sum())] = True
    return present


def draw_favourites(rng: np.random.Generator, n: int) -> np.ndarray:
    """A random action for each of n features, patterns or clusters; never the same one for all."""
    favourites = rng.integers(N_ACTIONS, size=n)
    if np.all(favourites == favourites[0]):
        favourites[0] = (favourites[0] + 1) % N_ACTIONS
    return favourites


# --- the kinds; their docstrings stand on the page ------------------------------------------------------------------


def draw_shared_features(rng: np.random.Generator, n_features: int, n_rows: int) -> Parts:
    """Our model's assumption: any amounts of shared features, each of which votes for its action by its amount."""
    substates = draw_present(rng, n_rows, n_features) * rng.uniform(0.2, 1.0, (n_rows, n_features))
    votes = substates @ np.eye(N_ACTIONS)[draw_favourites(rng, n_features)]
    return substates, draw_features(rng, n_features), votes.argmax(axis=1)


def draw_patterns(rng: np.random.Generator, n_features: int, n_rows: int) -> Parts:
    """Features that are present or absent, and an action for each pattern, independent of other patterns."""
    present = rng.random((n_rows, n_features)) < 0.5
    action_of_pattern = draw_favourites(rng, 2**n_features)
    return (
        present.astype(float),
        draw_features(rng, n_features),
        action_of_pattern[present @ 2 ** np.arange(n_features)],
    )


def draw_few_patterns(rng: np.random.Generator, n_features: int, n_rows: int) -> Parts:
    """As patterns, but only 20 of them occur: one wrong bit leads to a pattern that nobody has seen."""
    in_use = rng.choice(2**n_features, N_FEW, replace=False)
    which = rng.integers(N_FEW, size=n_rows)
    present = in_use[which, None] >> np.arange(n_features) & 1
    return present.astype(float), draw_features(rng, n_features), draw_favourites(rng, N_FEW)[which]


def draw_clusters(rng: np.random.Generator, n_clusters: int, n_rows: int) -> Parts:
    """One feature in each row, all of it: the means of the clusters are the features."""
    cluster = rng.integers(n_clusters, size=n_rows)
    return np.eye(n_clusters)[cluster], draw_features(rng, n_clusters), draw_favourites(rng, n_clusters)[cluster]


def draw_per_action(rng: np.random.Generator, n_features: int, n_rows: int) -> Parts:
    """Two actions, each with half of the features to itself."""
    actions = rng.integers(2, size=n_rows)
    amounts = draw_present(rng, n_rows, n_features // 2) * rng.uniform(0.2, 1.0, (n_rows, n_features // 2))
    substates = np.zeros((n_rows, n_features))
    for action in (0, 1):
        own = slice(action * (n_features // 2), (action + 1) * (n_features // 2))
        substates[actions == action, own] = amounts[actions == action]
    return substates, draw_features(rng, n_features), actions


def draw_single(rng: np.random.Generator, n_features: int, n_rows: int) -> Parts:
    """One feature in each row, but any amount of it."""
    indicators, features, actions = draw_clusters(rng, n_features, n_rows)
    return indicators * rng.uniform(0.2, 1.0, (n_rows, 1)), features, actions


DRAW: dict[str, Callable[[np.random.Generator, int, int], Parts]] = {
    "features": draw_shared_features,
    "patterns": draw_patterns,
    "few-patterns": draw_few_patterns,
    "clusters": draw_clusters,
    "per-action": draw_per_action,
    "single": draw_single,
}
