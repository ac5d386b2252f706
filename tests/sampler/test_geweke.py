"""Geweke's joint test of the whole sweep, and proof that it can fail."""

import math

import numba
import numpy as np
import pytest

from tests.support.geweke import (
    N_QUANTITIES,
    QUANTITIES,
    find_unused,
    make_joint_chain,
    make_small_model,
    measure,
    redraw_data,
    rewire,
    run_geweke,
    run_joint_chain,
)
from whyact.model import State
from whyact.sampler.combining import SMALLEST
from whyact.sampler.decisive import draw_decisiveness, log_density_decisiveness
from whyact.sampler.product import draw_policy_scale, draw_product_policies
from whyact.sampler.rescaling import draw_size, log_jacobian
from whyact.sampler.slicing import make_slice_sampler
from whyact.sampler.sweep import draw_all_policies, run_sweeps
from whyact.sampler.whole_features import bear, bury, draw_whole_features, log_ratio_of_policy

pytestmark = pytest.mark.long

# About 130 correlated z scores a run, each Student-t with 99 degrees of freedom: |t| > 4.5 has probability 2e-5, so a
# correct sampler fails a run with probability below 0.3%. The seeds are fixed.
Z_LIMIT = 4.5
N_WRONG = 100_000  # steps are enough to catch what is wrong


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


# --- wrong variants of what is beyond the paper: a sweep in which one function is another one ---------------


@numba.njit
def draw_scale_as_if_not_centred(rng, log_odds, target):
    """The variance of the log odds by U entries of each policy, where only U - 1 are free."""
    squares = np.sum(log_odds * log_odds)
    return (target.policy_scale_rate + 0.5 * squares) / rng.standard_gamma(
        target.policy_scale_shape + 0.5 * log_odds.size
    )


@numba.njit
def log_density_decisiveness_without_prior(decisiveness, arguments):
    """What the actions alone say, between bounds, because they do not say that tau is finite."""
    _, _, target = arguments
    if not 0.1 < decisiveness < 100.0:
        return -math.inf
    prior = target.decisiveness_shape * math.log(decisiveness) - target.decisiveness_rate * decisiveness
    return log_density_decisiveness(decisiveness, arguments) - prior


@numba.njit
def log_density_decisiveness_without_jacobian(decisiveness, arguments):
    """The density of tau, where that of its logarithm is asked for."""
    return log_density_decisiveness(decisiveness, arguments) - math.log(decisiveness)


@numba.njit
def leave_out_jacobian(feature, factor):
    """As if a feature of another size took no more room."""
    return 0.0


@numba.njit
def leave_out_ratio_of_policy(policy, guide, state, target):
    """As if the policy of a whole feature were drawn from its prior."""
    return math.nan if len(policy) > 0 and policy.min() <= SMALLEST else 0.0


def sweep_with_policies(**replaced):
    return rewire(run_sweeps, draw_all_policies=rewire(draw_all_policies, **replaced))


def sweep_with_decisiveness(log_density):
    drawn = rewire(draw_decisiveness, draw_slice_decisiveness=make_slice_sampler(log_density))
    return sweep_with_policies(draw_decisiveness=drawn)


def sweep_with_scale(draw_scale):
    return sweep_with_policies(draw_product_policies=rewire(draw_product_policies, draw_policy_scale=draw_scale))


def sweep_with_size(jacobian):
    return rewire(run_sweeps, draw_size=rewire(draw_size, log_jacobian=jacobian))


def sweep_with_guided_policies(ratio):
    born, buried = (rewire(move, log_ratio_of_policy=ratio) for move in (bear, bury))
    return rewire(run_sweeps, draw_whole_features=rewire(draw_whole_features, bear=born, bury=buried))


@pytest.mark.parametrize(
    ("make_sweep", "wrong", "model", "quantities"),
    [
        (sweep_with_scale, draw_scale_as_if_not_centred, {"combination": "product"}, {"policy_scale"}),
        (
            sweep_with_decisiveness, log_density_decisiveness_without_prior, {"decisiveness": "drawn"},
            {"decisiveness"},
        ),
        (
            sweep_with_decisiveness, log_density_decisiveness_without_jacobian, {"decisiveness": "drawn"},
            {"decisiveness"},
        ),
        (sweep_with_size, leave_out_jacobian, {"noise": 0.3, "n_whole_moves": 10}, {"weight_sum", "weight_scale"}),
        (sweep_with_guided_policies, leave_out_ratio_of_policy, {"n_whole_moves": 20}, {"n_features"}),
        (
            sweep_with_guided_policies, leave_out_ratio_of_policy, {"combination": "product", "n_whole_moves": 20},
            {"policy_spread"},
        ),
    ],
    ids=[
        "scale of a product", "decisiveness without prior", "decisiveness without Jacobian", "size",
        "whole feature of a mixture", "whole feature of a product",
    ],
)  # fmt: skip
def test_a_wrong_variant_of_what_is_beyond_the_paper_is_caught(make_sweep, wrong, model, quantities):
    chain = make_joint_chain(make_sweep(wrong))
    scores, _, _ = run_geweke(seed=3, n_steps=N_WRONG, n_prior=20_000, joint_chain=chain, **model)
    worst = max((key for key in scores if key[0] in quantities), key=lambda key: abs(scores[key]))
    print(f"{worst}: z = {scores[worst]:.1f}")
    assert abs(scores[worst]) > 2 * Z_LIMIT


def test_a_sweep_with_the_right_functions_in_their_places_is_the_sweep():
    """So it is not the rewiring that is caught."""
    right = rewire(
        sweep_with_scale(draw_policy_scale),
        draw_size=rewire(draw_size, log_jacobian=log_jacobian),
        draw_whole_features=rewire(
            draw_whole_features,
            bear=rewire(bear, log_ratio_of_policy=log_ratio_of_policy),
            bury=rewire(bury, log_ratio_of_policy=log_ratio_of_policy),
        ),
    )
    target, _, start = make_small_model(combination="product", n_whole_moves=5)
    chains = []
    for joint_chain in (run_joint_chain, make_joint_chain(right)):
        rng = np.random.default_rng(0)
        chains.append(joint_chain(rng, *start(rng), target, 500, 1))
    assert np.array_equal(*chains)
