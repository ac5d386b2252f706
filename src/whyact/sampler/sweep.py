"""One sweep of the exact sampler: every conditional in order (Sec. 4.1).

A sweep is a step (rng, state) -> (state, info). It does not change its input; the state and the rng are all that the
next one needs.
"""

from typing import NamedTuple

import numpy as np

from whyact.model import Demonstrations, State, Target
from whyact.sampler.births import draw_births_and_deaths, draw_empty_features
from whyact.sampler.combining import find_votes, is_plain, log_likelihood_of_rows
from whyact.sampler.compiling import kernel
from whyact.sampler.decisive import draw_decisive_policies, draw_decisiveness
from whyact.sampler.features import draw_features
from whyact.sampler.hyperparameters import draw_ibp, draw_noise, draw_weight_scale
from whyact.sampler.policies import draw_policies
from whyact.sampler.product import draw_product_policies
from whyact.sampler.rescaling import draw_size
from whyact.sampler.substates import draw_substates
from whyact.sampler.whole_features import draw_whole_features

# One in two changes which features there are, the others the size of one.
SHARE_OF_WHOLE_MOVES = 0.5


class SweepInfo(NamedTuple):
    """What a person may want to know about a sweep; the next sweep does not need it."""

    n_births: int  # accepted births of features
    n_deaths: int  # accepted deaths
    log_action_likelihood: float  # log P(u | S, Phi), without the weight omega


@kernel
def draw_all_policies(rng, substates, policies, state, data, target):
    """Draw the policies and all that belongs to them, in the way that they are combined.

    Returns policies, base policy, concentration, scale, decisiveness and log P(u | S, Phi), without the weight omega.
    """
    concentration, policy_scale, decisiveness = state.policy_concentration, state.policy_scale, state.decisiveness
    base_policy = state.base_policy
    if is_plain(data, target):
        policies, concentration, log_likelihood = draw_policies(rng, substates, policies, concentration, data, target)
        return policies, base_policy, concentration, policy_scale, decisiveness, log_likelihood
    votes = find_votes(policies, base_policy, decisiveness, target)
    if votes.is_product:
        policies, base_policy, policy_scale, log_likelihood = draw_product_policies(
            rng, substates, policy_scale, votes, data, target
        )
        return policies, base_policy, concentration, policy_scale, decisiveness, log_likelihood
    policies, concentration, tallies = draw_decisive_policies(
        rng, substates, policies, concentration, votes, data, target
    )
    decisiveness = draw_decisiveness(rng, decisiveness, tallies, data, target)
    votes = find_votes(policies, base_policy, decisiveness, target)
    log_likelihood = log_likelihood_of_rows(tallies, votes, data)
    return policies, base_policy, concentration, policy_scale, decisiveness, log_likelihood


@kernel
def run_sweeps(rng, state, observation_weights, data, target):
    """Draw every variable from its conditional, once for each observation weight (one call is cheaper than many)."""
    info = SweepInfo(0, 0, 0.0)
    for observation_weight in observation_weights:
        substates = state.substates.copy()
        features = state.features.copy()
        scale = observation_weight / state.noise_variance
        votes = find_votes(state.policies, state.base_policy, state.decisiveness, target)
        squares = draw_substates(rng, substates, features, votes, scale, data, target)
        squares = draw_features(
            rng, substates, features, squares, scale, state.weight_scale, state.ibp_concentration, data, target
        )
        noise_variance, noise_shape, noise_rate = draw_noise(
            rng, squares, state.noise_variance, state.noise_shape, observation_weight, data, target
        )
        scale = observation_weight / noise_variance
        birth_rate = state.ibp_mass * state.ibp_concentration / (state.ibp_concentration + features.shape[1] - 1)
        substates, features, policies, n_births, n_deaths = draw_births_and_deaths(
            rng, substates, features, scale, birth_rate, state, data, target
        )
        for _ in range(target.n_whole_moves):
            if rng.random() < SHARE_OF_WHOLE_MOVES:
                substates, features, policies, change = draw_whole_features(
                    rng, substates, features, policies, scale, state, data, target
                )
                n_births += max(change, 0)
                n_deaths += max(-change, 0)
            else:
                draw_size(rng, substates, features, policies, scale, state, data, target)
        substates, features, policies = draw_empty_features(rng, substates, features, policies, state, target)
        policies, base_policy, policy_concentration, policy_scale, decisiveness, log_action_likelihood = (
            draw_all_policies(rng, substates, policies, state, data, target)
        )
        weight_scale = draw_weight_scale(rng, features, target)
        ibp_mass, ibp_concentration = draw_ibp(rng, features, state.ibp_concentration, target)
        state = State(
            substates, features, policies, noise_variance, noise_shape, noise_rate,
            weight_scale, ibp_mass, ibp_concentration, policy_concentration, policy_scale, decisiveness, base_policy,
        )  # fmt: skip
        info = SweepInfo(n_births, n_deaths, log_action_likelihood)
    return state, info


def sweep(rng: np.random.Generator, state: State, data: Demonstrations, target: Target) -> tuple[State, SweepInfo]:
    """One step (rng, state) -> (state, info)."""
    state, info = run_sweeps(rng, state, np.array([target.observation_weight]), data, target)
    return state, info
