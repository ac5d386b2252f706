"""The exact sampler of the paper's model, as a chain runs it."""

from collections.abc import Callable

import numpy as np

from whyact.model import LEARNED, PRODUCT, Demonstrations, Priors, State, Target, log_joint
from whyact.sampler.algorithm import Algorithm
from whyact.sampler.merging import merge_features
from whyact.sampler.sweep import SweepInfo, run_sweeps
from whyact.simulation import draw_policies_from_prior, draw_substates_from_prior, simulate


def start_from_prior(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start as the paper does: one feature, everything drawn from the prior; as many as there must be, if that is more.

    They are active everywhere, because a single entry drawn from the buffet hardly ever survives.
    """
    n_rows, n_dimensions = data.observations.shape
    n_features = max(1, target.min_features)
    values = "positive" if target.positive else "real"
    hyper = simulate(rng, 1, 1, 2, priors=priors, feature_values=values, features=np.ones((1, 1))).state
    weights = (
        rng.exponential(size=(n_features, n_dimensions))
        if target.positive
        else rng.standard_normal((n_features, n_dimensions))
    )
    scale = hyper.weight_scale if target.positive else np.sqrt(hyper.weight_scale)
    state = hyper._replace(
        features=scale * weights,
        substates=draw_substates_from_prior(rng, n_features, n_rows, target.n_levels, priors.sparsity),
        policies=draw_policies_from_prior(rng, n_features, target.n_actions, hyper.policy_concentration),
    )
    return start_combining(state, target)


def start_combining(state: State, target: Target) -> State:
    """Start from the middle of what is not in the paper: log odds of unit variance, the mean decisiveness."""
    if target.combination == PRODUCT:
        uniform = np.full(target.n_actions, 1.0 / target.n_actions)
        return state._replace(policies=np.tile(uniform, (len(state.policies), 1)), base_policy=uniform)
    if target.decisiveness == LEARNED:
        return state._replace(decisiveness=target.decisiveness_shape / target.decisiveness_rate)
    return state._replace(decisiveness=target.decisiveness)


def run(
    rng: np.random.Generator, state: State, observation_weights: np.ndarray, data: Demonstrations, target: Target
) -> tuple[State, SweepInfo]:
    """Run one sweep for each observation weight."""
    state, info = run_sweeps(rng, state, observation_weights, data, target)
    return state, info


def merge(
    rng: np.random.Generator,
    state: State,
    data: Demonstrations,
    target: Target,
    between_kernels: Callable[[], None],
) -> State:
    """Merge features that say the same, unless their number is given."""
    if target.min_features:
        return state
    return merge_features(rng, state, data, target, run, log_joint, between_kernels)


EXACT = Algorithm("run_sweeps", start_from_prior, run, log_joint, merge)
