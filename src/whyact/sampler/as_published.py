"""The published algorithm (Sec. 4.1 and 4.2), as the authors describe it.

It shares the substates, the truncated normal, the indicators and the conjugate draws with the exact sampler. Everything
else is kept as published, even where it does not leave the posterior invariant:

- all weights are drawn given the activations, those of inactive entries from a truncated normal with the covariance of
  active ones (which makes them smaller than under the prior); then activations are drawn given the weights;
- births and deaths replace the features that only dimension d holds by a Poisson number of new ones from the prior, or
  with probability P+ by one; the acceptance compares the likelihoods of the observations, not of the actions;
- every action has N_t indicators, which makes the policies too certain;
- features whose entries correlate by more than T_corr are merged in every sweep;
- newborn features are appended.

Misprints that cannot be intended are corrected: the mean of the weights; the halves in the conditional of gamma_w, in
which only active weights count; the share of each level in the slab; the Dirichlet of the policies.

The paper leaves some choices open. We took: the order of its sections as the order of a sweep, with merging at the end;
Gamma proposals around the present value, with the shapes below; for merged features, substates that are summed (at most
one) and weights that are averaged where both are active; and, as in the exact sampler, uniform actions for a row
without features, a Beta(1, 1) prior of the sparsity, and Gamma distributions with shape and rate. beta_a is proposed
from its prior, as we remember Knowles & Ghahramani to do.
"""

import math
from functools import partial

import numpy as np

from whyact.model import Demonstrations, Priors, State, Target, log_joint
from whyact.sampler.algorithm import Algorithm
from whyact.sampler.births import draw_feature_from_buffet, draw_sparsity, draw_weight, remove_row
from whyact.sampler.combining import find_votes
from whyact.sampler.compiling import kernel
from whyact.sampler.exact import start_from_prior
from whyact.sampler.features import draw_entry, leave_out_feature, leave_out_gaps, reconstruct_gaps, update_gaps
from whyact.sampler.hyperparameters import (
    count_active,
    draw_ibp_mass,
    draw_weight_scale,
    expected_features_per_mass,
    floor_at_rounding,
)
from whyact.sampler.limits import draw_gamma, draw_number_of_births
from whyact.sampler.policies import (
    draw_dirichlet,
    draw_indicator_counts,
    log_action_likelihood,
    log_density_concentration_given_policies,
)
from whyact.sampler.settings import AsPublished
from whyact.sampler.substates import draw_substates
from whyact.sampler.sweep import SweepInfo

# Shapes of the Gamma proposals: steps of 3% for the noise, as narrow as its conditionals, and of 30% for alpha_phi.
NOISE_PROPOSAL_SHAPE = 1000.0
POLICY_PROPOSAL_SHAPE = 10.0


# --- features -------------------------------------------------------------------------------------------------------


@kernel
def draw_weights(rng, substates, features, scale, weight_scale, data, target):
    """Draw the weights W of all entries given the activations.

    `features` = A * W is updated in place. As in the paper, an inactive entry has no residual to fit, but the same
    covariance as an active one.
    """
    n_features, n_dimensions = features.shape
    projections = np.dot(substates, data.observations)  # S'Z
    gram = np.dot(substates, substates.T)  # S'S
    at_gaps = reconstruct_gaps(substates, features, data)
    weights = np.empty((n_features, n_dimensions))
    residual = np.empty(n_dimensions)
    for k in range(n_features):
        leave_out_feature(k, projections, gram, features, residual)
        for d in range(n_dimensions):
            old = features[k, d]
            own, product = leave_out_gaps(k, d, old, gram[k, k], residual[d], substates, at_gaps, data)
            linear = scale * product if old != 0.0 else 0.0
            new = draw_entry(rng, linear, scale * own, math.inf, weight_scale, target.positive)
            weights[k, d] = new
            if old != 0.0:
                features[k, d] = new
                update_gaps(k, d, new - old, substates, at_gaps, data)
    return weights


@kernel
def draw_activations_of_dimension(rng, d, substates, features, weights, n_active, column, scale, concentration, data):
    """Draw a_kd given w_kd for every feature that is active elsewhere, Eq. (inf::activations).

    `column` holds the residuals z_d - S f_d, zero where missing, and is updated.
    """
    n_rows = substates.shape[1]
    n_dimensions = features.shape[1]
    for k in range(len(features)):
        old = features[k, d]
        n_others = n_active[k] - (old != 0.0)
        if n_others == 0:
            continue
        product = 0.0
        own = 0.0
        for n in range(n_rows):
            product += substates[k, n] * column[n]
            own += substates[k, n] * substates[k, n]
        for i in range(data.column_splits[d], data.column_splits[d + 1]):
            own -= substates[k, data.column_gaps[i]] ** 2
        product += own * old
        w = weights[k, d]
        log_odds = math.log(n_others / (concentration + n_dimensions - 1 - n_others))
        log_odds += scale * w * (product - 0.5 * own * w)
        uniform = rng.random()
        new = w if math.log(uniform) - math.log1p(-uniform) < log_odds else 0.0
        if new != old:
            features[k, d] = new
            n_active[k] = n_others + (new != 0.0)
            add_to_column(d, old - new, substates[k], column, data)


@kernel
def add_to_column(d, factor, substates, column, data):
    """Add factor * s to the residuals of dimension d, which are zero where missing."""
    for n in range(len(column)):
        column[n] += factor * substates[n]
    for i in range(data.column_splits[d], data.column_splits[d + 1]):
        column[data.column_gaps[i]] = 0.0


@kernel
def residuals_of_dimension(d, substates, features, data):
    """z_d - S f_d, zero where missing."""
    column = data.observations[:, d].copy()
    for k in range(len(features)):
        if features[k, d] != 0.0:
            add_to_column(d, -features[k, d], substates[k], column, data)
    return column


# --- births and deaths ----------------------------------------------------------------------------------------------


@kernel
def log_poisson(count, rate):
    """Log probability of a Poisson count."""
    return count * math.log(rate) - rate - math.lgamma(count + 1.0)


@kernel
def log_proposal_over_prior(count, rate, birth_probability):
    """Log of J(count) / Poisson(count), with J the mixture of the Poisson and of one feature (Knowles & Ghahramani)."""
    ratio = 1.0 - birth_probability
    if count == 1:
        ratio += birth_probability * math.exp(-log_poisson(1, rate))
    return math.log(ratio)


@kernel
def propose_births(
    rng, d, substates, features, policies, weights, n_active, column, scale, weight_scale, state, data, target, moves
):
    """Propose to replace the features that only dimension d holds by new ones from the prior; return what may change.

    Accepted with the ratio of the observations' likelihoods, times that of the P+ mixture to the prior.
    """
    n_rows = substates.shape[1]
    n_dimensions = features.shape[1]
    concentration = state.ibp_concentration
    rate = state.ibp_mass * concentration / (concentration + n_dimensions - 1)
    n_new = 1 if rng.random() < moves.birth_probability else draw_number_of_births(rng, rate)
    n_old = 0
    for k in range(len(features)):
        n_old += n_active[k] == 1 and features[k, d] != 0.0
    if n_new == 0 and n_old == 0:
        return substates, features, policies, weights, n_active, column, 0, 0
    # without the old ones, then with the new ones
    changed = column.copy()
    for k in range(len(features)):
        if n_active[k] == 1 and features[k, d] != 0.0:
            add_to_column(d, features[k, d], substates[k], changed, data)
    new_weights = np.empty((n_new, n_dimensions))
    new_substates = np.zeros((n_new, n_rows))
    for i in range(n_new):
        for e in range(n_dimensions):
            new_weights[i, e] = draw_weight(rng, weight_scale, target.positive)
        sparsity = draw_sparsity(rng, target.sparsity_zero, target.sparsity_nonzero)
        for n in range(n_rows):
            if rng.random() >= sparsity:
                level = 1 + min(int(rng.random() * (target.n_levels - 1)), target.n_levels - 2)
                new_substates[i, n] = level / (target.n_levels - 1)
        add_to_column(d, -new_weights[i, d], new_substates[i], changed, data)
    log_ratio = -0.5 * scale * (np.dot(changed, changed) - np.dot(column, column))
    log_ratio += log_proposal_over_prior(n_old, rate, moves.birth_probability)
    log_ratio -= log_proposal_over_prior(n_new, rate, moves.birth_probability)
    if not -rng.standard_exponential() < log_ratio:
        return substates, features, policies, weights, n_active, column, 0, 0

    for k in range(len(features) - 1, -1, -1):
        if n_active[k] == 1 and features[k, d] != 0.0:
            substates = remove_row(substates, k)
            features = remove_row(features, k)
            policies = remove_row(policies, k)
            weights = remove_row(weights, k)
            n_active[k] = n_active[-1]
            n_active = n_active[:-1].copy()
    for i in range(n_new):
        newborn = np.zeros((1, n_dimensions))
        newborn[0, d] = new_weights[i, d]
        policy = draw_dirichlet(rng, np.full(target.n_actions, state.policy_concentration))
        substates = np.concatenate((substates, new_substates[i : i + 1]))
        features = np.concatenate((features, newborn))
        policies = np.concatenate((policies, policy.reshape(1, -1)))
        weights = np.concatenate((weights, new_weights[i : i + 1]))
        n_active = np.concatenate((n_active, np.ones(1)))
    return substates, features, policies, weights, n_active, changed, n_new, n_old


@kernel
def draw_activations_and_births(
    rng, substates, features, policies, weights, scale, weight_scale, state, data, target, moves
):
    """For each dimension, draw the activations, then propose new features."""
    n_active = count_active(features)
    n_births = 0
    n_deaths = 0
    for d in range(features.shape[1]):
        column = residuals_of_dimension(d, substates, features, data)
        draw_activations_of_dimension(
            rng, d, substates, features, weights, n_active, column, scale, state.ibp_concentration, data
        )
        substates, features, policies, weights, n_active, column, n_new, n_old = propose_births(
            rng, d, substates, features, policies, weights, n_active, column, scale, weight_scale, state, data, target,
            moves,
        )  # fmt: skip
        n_births += n_new
        n_deaths += n_old
    return substates, features, policies, n_births, n_deaths


# --- merging --------------------------------------------------------------------------------------------------------


@kernel
def correlation(first, second):
    """Sample correlation of two rows; zero if one of them is constant."""
    a = first - first.mean()
    b = second - second.mean()
    product = np.dot(a, a) * np.dot(b, b)
    return min(np.dot(a, b) / math.sqrt(product), 1.0) if product > 0.0 else 0.0


@kernel
def merge_similar(substates, features, policies, threshold, n_levels):
    """Merge pairs of features until none correlates by more than the threshold (Sec. 4.2).

    The activations of both are kept and the policies averaged, as the paper says.
    """
    i = 0
    while i < len(features):
        j = i + 1
        while j < len(features) and correlation(features[i], features[j]) <= threshold:
            j += 1
        if j == len(features):
            i += 1
            continue
        for d in range(features.shape[1]):
            both = features[i, d] != 0.0 and features[j, d] != 0.0
            features[i, d] = (features[i, d] + features[j, d]) * (0.5 if both else 1.0)
        for n in range(substates.shape[1]):
            level = int((substates[i, n] + substates[j, n]) * (n_levels - 1) + 0.5)
            substates[i, n] = min(level, n_levels - 1) / (n_levels - 1)
        policies[i] = 0.5 * (policies[i] + policies[j])
        features = remove_row(features, j)
        substates = remove_row(substates, j)
        policies = remove_row(policies, j)
        i = 0  # the merged feature may resemble any other
    return substates, features, policies


# --- Metropolis steps -----------------------------------------------------------------------------------------------


@kernel
def log_gamma_density(x, shape, rate):
    """Log density of Gamma(shape, rate)."""
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(x) - rate * x


@kernel
def propose_around(rng, value, shape):
    """Draw from the Gamma proposal with mean `value`; return it and the log of backward over forward density."""
    proposed = max(value * draw_gamma(rng, shape) / shape, 1e-300)
    backward = log_gamma_density(value, shape, shape / proposed)
    return proposed, backward - log_gamma_density(proposed, shape, shape / value)


@kernel
def log_density_noise_shape_given_rate(shape, variance, rate, target):
    """Log density of alpha_sigma given sigma^2 and beta_sigma."""
    log_prior = (target.noise_shape_shape - 1.0) * math.log(shape) - target.noise_shape_rate * shape
    return log_prior + shape * (math.log(rate) - math.log(variance)) - math.lgamma(shape)


@kernel
def log_density_noise_rate(rate, variance, shape, target):
    """Log density of beta_sigma given sigma^2 and alpha_sigma."""
    log_prior = (target.noise_rate_shape - 1.0) * math.log(rate) - target.noise_rate_rate * rate
    return log_prior + shape * math.log(rate) - rate / variance


@kernel
def draw_noise_as_published(rng, squares, shape, rate, observation_weight, data, target):
    """Draw sigma^2 from its inverse Gamma; move alpha_sigma and beta_sigma by a Metropolis step each."""
    half_weight = 0.5 * observation_weight
    squares = floor_at_rounding(squares, data)
    variance = (rate + half_weight * squares) / draw_gamma(rng, shape + half_weight * data.n_observed)
    proposed, log_ratio = propose_around(rng, shape, NOISE_PROPOSAL_SHAPE)
    log_ratio += log_density_noise_shape_given_rate(proposed, variance, rate, target)
    log_ratio -= log_density_noise_shape_given_rate(shape, variance, rate, target)
    if -rng.standard_exponential() < log_ratio:
        shape = proposed
    proposed, log_ratio = propose_around(rng, rate, NOISE_PROPOSAL_SHAPE)
    log_ratio += log_density_noise_rate(proposed, variance, shape, target)
    log_ratio -= log_density_noise_rate(rate, variance, shape, target)
    if -rng.standard_exponential() < log_ratio:
        rate = proposed
    return variance, shape, rate


@kernel
def draw_policy_concentration(rng, concentration, policies, target):
    """Move alpha_phi by a Metropolis step with a Gamma proposal."""
    proposed, log_ratio = propose_around(rng, concentration, POLICY_PROPOSAL_SHAPE)
    # the density of alpha itself, not of its logarithm
    arguments = (policies.shape[0], policies.shape[1], np.log(policies).sum(), target)
    log_ratio += log_density_concentration_given_policies(proposed, arguments) - math.log(proposed)
    log_ratio -= log_density_concentration_given_policies(concentration, arguments) - math.log(concentration)
    return proposed if -rng.standard_exponential() < log_ratio else concentration


@kernel
def log_likelihood_ibp_concentration(concentration, ibp_mass, n_active, n_dimensions):
    """Log P(A | alpha, beta) as a function of beta, Eq. (ibp::infinitemodel)."""
    log_likelihood = len(n_active) * math.log(concentration)
    log_likelihood -= ibp_mass * expected_features_per_mass(concentration, n_dimensions)
    for k in range(len(n_active)):
        log_likelihood += math.lgamma(n_dimensions - n_active[k] + concentration)
        log_likelihood -= math.lgamma(n_dimensions + concentration)
    return log_likelihood


@kernel
def draw_ibp_as_published(rng, features, concentration, target):
    """Draw alpha_a from its Gamma conditional, then beta_a by a Metropolis step that proposes from the prior."""
    n_dimensions = features.shape[1]
    n_active = count_active(features)
    ibp_mass = draw_ibp_mass(rng, len(features), n_dimensions, concentration, target)
    proposed = draw_gamma(rng, target.ibp_concentration_shape) / target.ibp_concentration_rate
    if proposed > 1e-300:
        log_ratio = log_likelihood_ibp_concentration(proposed, ibp_mass, n_active, n_dimensions)
        log_ratio -= log_likelihood_ibp_concentration(concentration, ibp_mass, n_active, n_dimensions)
        if -rng.standard_exponential() < log_ratio:
            concentration = proposed
    return ibp_mass, concentration


# --- the sweep ------------------------------------------------------------------------------------------------------


@kernel
def run_sweeps_as_published(rng, state, observation_weights, data, target, moves):
    """Go through Sec. 4.1 once for each observation weight, in the order of its subsections, then merge (Sec. 4.2)."""
    info = SweepInfo(0, 0, 0.0)
    n_dimensions = data.observations.shape[1]
    for observation_weight in observation_weights:
        substates = state.substates.copy()
        features = state.features.copy()
        squares = 0.0
        for d in range(n_dimensions):
            column = residuals_of_dimension(d, substates, features, data)
            squares += np.dot(column, column)
        noise_variance, noise_shape, noise_rate = draw_noise_as_published(
            rng, squares, state.noise_shape, state.noise_rate, observation_weight, data, target
        )
        scale = observation_weight / noise_variance
        votes = find_votes(state.policies, state.base_policy, state.decisiveness, target)
        draw_substates(rng, substates, features, votes, scale, data, target)
        weights = draw_weights(rng, substates, features, scale, state.weight_scale, data, target)
        weight_scale = draw_weight_scale(rng, features, target)
        substates, features, policies, n_births, n_deaths = draw_activations_and_births(
            rng, substates, features, state.policies, weights, scale, weight_scale, state, data, target, moves
        )
        ibp_mass, ibp_concentration = draw_ibp_as_published(rng, features, state.ibp_concentration, target)
        counts = draw_indicator_counts(rng, substates, policies, moves.n_indicators, data)
        policies = np.empty_like(policies)
        for k in range(len(policies)):
            policies[k] = draw_dirichlet(rng, counts[k] + state.policy_concentration)
        policy_concentration = draw_policy_concentration(rng, state.policy_concentration, policies, target)
        substates, features, policies = merge_similar(
            substates, features, policies, moves.merge_correlation, target.n_levels
        )
        state = State(
            substates, features, policies, noise_variance, noise_shape, noise_rate,
            weight_scale, ibp_mass, ibp_concentration, policy_concentration, state.policy_scale, state.decisiveness,
            state.base_policy,
        )  # fmt: skip
        info = SweepInfo(n_births, n_deaths, log_action_likelihood(substates, policies, data, target))
    return state, info


def start_as_published(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start with one feature whose activations, too, are drawn from the buffet."""
    state = start_from_prior(rng, data, target, priors)
    feature = draw_feature_from_buffet(
        rng, data.observations.shape[1], state.ibp_concentration, state.weight_scale, target.positive
    )
    return state._replace(features=feature[None])


def run(
    rng: np.random.Generator,
    state: State,
    observation_weights: np.ndarray,
    data: Demonstrations,
    target: Target,
    *,
    moves: AsPublished,
) -> tuple[State, SweepInfo]:
    """Run one sweep for each observation weight."""
    state, info = run_sweeps_as_published(rng, state, observation_weights, data, target, moves)
    return state, info


def make_published(settings: AsPublished) -> Algorithm:
    """The published algorithm with these settings; it has no annealing."""
    return Algorithm(
        "run_sweeps_as_published", start_as_published, partial(run, moves=settings), log_joint, anneals=False
    )
