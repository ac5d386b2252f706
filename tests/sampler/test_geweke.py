"""Geweke's joint test of the whole sweep, and proof that it can fail."""

import math

import numba
import numpy as np
import pytest

from tests.support.geweke import N_QUANTITIES, QUANTITIES, find_unused, measure, redraw_data, run_geweke
from whyact.model import State
from whyact.sampler.sweep import run_sweeps
from whyact.sampler.whole_features import draw_whole_features

pytestmark = pytest.mark.long

# About 130 correlated z scores a run, each Student-t with 99 degrees of freedom: |t| > 4.5 has probability 2e-5, so a
# correct sampler fails a run with probability below 0.3%. The seeds are fixed.
Z_LIMIT = 4.5


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"feature_values": "real", "n_whole_moves": 1},
        {"missing": True, "n_whole_moves": 1},
        {"n_levels": 2},
        {"n_levels": 100, "n_whole_moves": 1},
        # how the features of each action are learned in `PerActionFeaturesClassifier`
        {"silent": True, "n_whole_moves": 1},
        {"noise": 0.3, "missing": True, "n_whole_moves": 1},
        {"min_features": 2, "max_features": 2, "n_whole_moves": 1},
        {"decisiveness": 5.0},
        {"decisiveness": 0.5, "missing": True, "max_features": 2},
        {"decisiveness": "drawn", "missing": True, "n_whole_moves": 1},
        {"decisiveness": 1.0, "masked": True, "n_whole_moves": 1},
        {"combination": "product"},
        {"combination": "product", "noise": 0.4, "n_whole_moves": 2},
        {
            "combination": "product", "missing": True, "masked": True, "max_features": 2, "feature_values": "real",
            "n_whole_moves": 1,
        },
    ],
    ids=[
        "positive", "real", "missing", "binary", "cells", "no actions", "noise held", "number of features given",
        "decisive",
        "undecided, two features", "decisiveness learned",
        "some actions not available", "product", "product, noise held", "product of two, some not available",
    ],
)  # fmt: skip
def test_sweep_leaves_the_joint_distribution_invariant(model):
    scores, chain, prior = run_geweke(seed=1, n_steps=300_000, n_prior=60_000, **model)
    worst = max(scores, key=lambda key: abs(scores[key]))
    assert abs(scores[worst]) < Z_LIMIT, f"{worst}: z = {scores[worst]:.1f}"
    # sharp enough to see two percent in the number of features
    batches = chain[:, 0].reshape(100, -1).mean(axis=1)
    assert batches.std(ddof=1) / 10 < 0.02 * prior[:, 0].mean()
    assert {name for name, _ in scores} == set(QUANTITIES) - find_unused(model)


@numba.njit
def run_chain_with_the_papers_weight_scale(rng, state, data, target, n_steps, thin):
    """The paper's InvGamma(a + K D / 2, b + sum of w / 2), which belongs to a Gaussian, in place of the right one."""
    drawn = np.empty((n_steps, N_QUANTITIES))
    observation_weights = np.array([target.observation_weight])
    for i in range(n_steps):
        state = run_sweeps(rng, state, observation_weights, data, target)[0]
        shape = target.weight_scale_shape + 0.5 * state.features.size
        wrong = (target.weight_scale_rate + 0.5 * state.features.sum()) / rng.standard_gamma(shape)
        state = State(
            state.substates, state.features, state.policies, state.noise_variance, state.noise_shape, state.noise_rate,
            wrong, state.ibp_mass, state.ibp_concentration, state.policy_concentration, state.policy_scale,
            state.decisiveness, state.base_policy,
        )  # fmt: skip
        data = redraw_data(rng, state, data, target)
        drawn[i] = measure(state)
    return drawn


@numba.njit
def run_chain_with_sorted_features(rng, state, data, target, n_steps, thin):
    """Features in an order that depends on them, as when newborn ones are appended: the scan is not invariant then."""
    drawn = np.empty((n_steps, N_QUANTITIES))
    observation_weights = np.array([target.observation_weight])
    for i in range(n_steps):
        state = run_sweeps(rng, state, observation_weights, data, target)[0]
        n_active = np.zeros(len(state.features))
        for k in range(len(state.features)):
            n_active[k] = -np.sum(state.features[k] != 0.0)
        order = np.argsort(n_active)
        state = State(
            state.substates[order], state.features[order], state.policies[order], state.noise_variance,
            state.noise_shape, state.noise_rate, state.weight_scale, state.ibp_mass, state.ibp_concentration,
            state.policy_concentration, state.policy_scale, state.decisiveness, state.base_policy,
        )  # fmt: skip
        data = redraw_data(rng, state, data, target)
        drawn[i] = measure(state)
    return drawn


@numba.njit
def run_chain_with_overconfident_noise(rng, state, data, target, n_steps, thin):
    """A noise variance whose scatter is a little too small: right mean, wrong variance."""
    drawn = np.empty((n_steps, N_QUANTITIES))
    observation_weights = np.array([target.observation_weight])
    for i in range(n_steps):
        before = math.log(state.noise_variance)
        state = run_sweeps(rng, state, observation_weights, data, target)[0]
        shrunk = math.exp(0.9 * math.log(state.noise_variance) + 0.1 * before)
        state = State(
            state.substates, state.features, state.policies, shrunk, state.noise_shape, state.noise_rate,
            state.weight_scale, state.ibp_mass, state.ibp_concentration, state.policy_concentration, state.policy_scale,
            state.decisiveness, state.base_policy,
        )  # fmt: skip
        data = redraw_data(rng, state, data, target)
        drawn[i] = measure(state)
    return drawn


@numba.njit
def run_chain_with_too_many_births(rng, state, data, target, n_steps, thin):
    """Births of whole features that take the mass for twice what it is."""
    drawn = np.empty((n_steps, N_QUANTITIES))
    observation_weights = np.array([target.observation_weight])
    for i in range(n_steps):
        state = run_sweeps(rng, state, observation_weights, data, target)[0]
        wrong = State(
            state.substates, state.features, state.policies, state.noise_variance, state.noise_shape, state.noise_rate,
            state.weight_scale, 2.0 * state.ibp_mass, state.ibp_concentration, state.policy_concentration,
            state.policy_scale, state.decisiveness, state.base_policy,
        )  # fmt: skip
        substates, features, policies, _ = draw_whole_features(
            rng, state.substates, state.features, state.policies, 1.0 / state.noise_variance, wrong, data, target
        )
        state = State(
            substates, features, policies, state.noise_variance, state.noise_shape, state.noise_rate,
            state.weight_scale, state.ibp_mass, state.ibp_concentration, state.policy_concentration, state.policy_scale,
            state.decisiveness, state.base_policy,
        )  # fmt: skip
        data = redraw_data(rng, state, data, target)
        drawn[i] = measure(state)
    return drawn


@pytest.mark.parametrize(
    ("wrong_chain", "quantities"),
    [
        (run_chain_with_too_many_births, {"n_features", "ibp_mass"}),
        (run_chain_with_the_papers_weight_scale, {"weight_scale"}),
        (run_chain_with_sorted_features, {"n_features", "n_active", "weight_sum", "ibp_mass"}),
        (run_chain_with_overconfident_noise, {"noise_variance"}),
    ],
)
def test_a_wrong_conditional_is_caught(wrong_chain, quantities):
    scores, _, _ = run_geweke(seed=2, n_steps=300_000, n_prior=60_000, joint_chain=wrong_chain)
    assert max(abs(score) for (name, _), score in scores.items() if name in quantities) > 2 * Z_LIMIT
