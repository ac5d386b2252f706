"""Merging of features during the burn-in."""

import numpy as np
import pytest

from whyact.alternatives.pattern.sampler import PATTERNS
from whyact.model import Priors, State, make_demonstrations, make_target
from whyact.sampler.exact import EXACT
from whyact.sampler.merging import drop_features, loss_of_dropping, loss_of_merging, merge_pair
from whyact.simulation import draw_ground_truth


def make_state(substates, features):
    n_features = len(features)
    return State(substates, features, np.full((n_features, 4), 0.25), 1e-3, 1000.0, 1.0, 0.3, 2.0, 1.0, 0.5)


def test_loss_is_what_one_feature_cannot_hold():
    rng = np.random.default_rng(0)
    substates, features = rng.random((4, 9)), rng.random((4, 6))
    loss = loss_of_merging(substates, features)
    for i in range(4):
        for j in range(4):
            if i != j:
                values = np.linalg.svd(substates[[i, j]].T @ features[[i, j]], compute_uv=False)
                assert loss[i, j] == pytest.approx(values[1] ** 2, rel=1e-9)


def test_merging_a_split_feature_restores_it():
    rng = np.random.default_rng(1)
    whole, column = rng.random(6), np.rint(rng.random(20) * 99) / 99
    column[3] = 1.0
    left = np.where(np.arange(6) < 3, whole, 0.0)
    state = make_state(np.stack([column, column]), np.stack([left, whole - left]))
    merged = merge_pair(state, 0, 1, 100)
    assert np.allclose(merged.features, whole)
    assert np.allclose(merged.substates, column)
    assert merged.policies.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_a_doubled_feature_is_merged_and_a_needed_one_is_kept(combination):
    truth = draw_ground_truth(np.random.default_rng(4), 4, 25, n_rows=60, n_dimensions=15)
    unit = 4 * np.sqrt(np.mean(truth.observations**2))
    data = make_demonstrations(truth.observations, truth.actions, unit)
    target = make_target(Priors(), n_actions=4, n_dimensions=15, combination=combination)
    grid = np.rint(truth.substates.T * 99) / 99
    features = truth.features / unit
    # the first feature is held by two: one for the upper half of its amounts, one for the lower
    high = np.where(grid[0] > 0.5, grid[0], 0.0)
    doubled = State(
        np.ascontiguousarray(np.vstack([high, grid[0] - high, grid[1:]])), np.vstack([features[:1], features]),
        np.vstack([truth.policies[:1], truth.policies]), truth.noise_variance / unit**2,
        1000.0, 1.0, 1.0 / unit, 2.0, 1.0, 0.1,
        base_policy=np.full(4, 0.25) if combination == "product" else np.zeros(0),
    )  # fmt: skip
    merged = EXACT.merge(np.random.default_rng(0), doubled, data, target, lambda: None)
    held = merged.substates.any(axis=1)
    assert held.sum() == 4


def test_a_feature_that_others_can_replace_is_dropped():
    """Rows that hold both of two features have a third one, their sum."""
    rng = np.random.default_rng(0)
    features = rng.exponential(size=(2, 15))
    present = (rng.random((2, 60)) < 0.5).astype(float)
    both = present.prod(axis=0)
    observations = present.T @ features + 0.05 * rng.standard_normal((60, 15))
    data = make_demonstrations(observations, np.zeros(60, dtype=int))
    target = make_target(Priors(), n_actions=1, n_dimensions=15, n_levels=2)
    state = State(
        np.vstack([present - both, both]), np.vstack([features, features.sum(axis=0)]), np.empty((3, 0)),
        0.0025, 1000.0, 1.0, 1.0, 2.0, 1.0, 0.5,
    )  # fmt: skip
    assert loss_of_dropping(state).argmin() == 2
    dropped = drop_features(rng, state, data, target, PATTERNS.run, PATTERNS.log_joint, lambda: None)
    held = dropped.substates.any(axis=1)
    assert held.sum() == 2
