"""The ground truth of the paper's simulation study (Sec. 5)."""

from typing import NamedTuple

import numpy as np

N_FEATURES = (5, 7, 9, 12, 15, 18)
SNR_DB = (10, 15, 20, 25, 30)
# The paper says that one action has high probability, and that policies are deterministic; how high is left open.
PEAK = 0.95


class GroundTruth(NamedTuple):
    """One simulated data set and what it was made of."""

    observations: np.ndarray  # (N, D)
    actions: np.ndarray  # (N,)
    substates: np.ndarray  # (N, K)
    features: np.ndarray  # (K, D)
    policies: np.ndarray  # (K, U)
    noise_variance: float


def draw_ground_truth(
    rng: np.random.Generator, n_features: int, snr_db: float, *, n_rows=100, n_dimensions=30, n_actions=4
) -> GroundTruth:
    """Draw features, substates, noise and peaked policies as Sec. 5 does; actions are the most probable ones."""
    weight_scale = 100.0 / rng.gamma(100.0)
    weights = rng.exponential(weight_scale, (n_features, n_dimensions))
    features = np.where(rng.random((n_features, n_dimensions)) < 0.5, weights, 0.0)
    substates = rng.dirichlet(np.full(n_features, 1.0 / n_features), n_rows)
    states = substates @ features
    noise_variance = float(np.mean(states**2) / 10 ** (snr_db / 10))
    observations = states + np.sqrt(noise_variance) * rng.standard_normal(states.shape)
    policies = np.full((n_features, n_actions), (1 - PEAK) / (n_actions - 1))
    policies[np.arange(n_features), rng.integers(n_actions, size=n_features)] = PEAK
    actions = (substates @ policies).argmax(axis=1)
    return GroundTruth(observations, actions, substates, features, policies, noise_variance)
