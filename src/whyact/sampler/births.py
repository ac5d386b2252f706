"""Births and deaths of features, with the new column of substates integrated out.

A feature is born as a singleton, active in one dimension. In the IBP the number of singletons of a dimension is
Poisson with mean lambda = alpha beta / (beta + D - 1). For a random dimension, a birth draws weight, sparsity and
policy from their priors; summing each row over its levels gives the likelihood ratio R; the birth is accepted with
R lambda / (kappa + 1), where kappa counts the singletons already there, and then the column is drawn from its exact
conditional. A death is the mirror image.

Features that no row holds say nothing about the data: given the rest, their number is Poisson and they follow the
prior. They are all redrawn in one block; left to births and deaths, one with many active entries would linger.

A new feature goes to a random place among the others. If it were appended, the order would reveal the age and young
features would be updated last; a sweep in an order that depends on the state is not invariant (Geweke's test sees it).
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.model import PRODUCT
from whyact.sampler.combining import (
    bound_gain,
    center_logs,
    fill_bounds,
    find_votes,
    is_plain,
    log_gain_of_column,
    tally_rows,
)
from whyact.sampler.compiling import inlined, kernel
from whyact.sampler.hyperparameters import expected_features_per_mass
from whyact.sampler.limits import draw_beta, draw_number_of_births
from whyact.sampler.policies import draw_dirichlet
from whyact.sampler.product import draw_policy_of_product
from whyact.sampler.substates import ActionTerm, bound_number, draw_level, log_least_of_levels, log_sum_of_levels

# Cells of levels in the coarse sum that rejects most proposals.
CELLS_FOR_BOUND = 24


class Newcomer(NamedTuple):
    """A feature that may be born or die, and what the rows are without it."""

    zero_prior: float  # theta
    policy: np.ndarray  # (U,)
    # of the Gaussian part of each substate, (N,): zeta / sigma^2 f . r_n over what is observed of the row's residual,
    # and zeta / sigma^2 f . f
    slopes: np.ndarray
    precisions: np.ndarray
    # sums of s_k phi_k(u) and of s_k over the other features, (N,); of no use unless the mixture is plain
    contributions: np.ndarray
    totals: np.ndarray


@inlined
def action_term_of_row(n, newcomer, data, target):
    """What row n's action says about the substate of a newcomer."""
    action = data.actions[n]
    if action < 0 or not is_plain(data, target):
        return ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)
    contributions, total = newcomer.contributions[n], newcomer.totals[n]
    at_zero = contributions / total if total > 0.0 else 1.0 / target.n_actions
    return ActionTerm(target.action_weight, at_zero, contributions, total, newcomer.policy[action])


@kernel
def sum_contributions(substates, policies, left_out, contributions, totals, data):
    """Fill in the sums of s_k phi_k(u) and of s_k over the features; one may be left out, -1 means none is."""
    contributions[:] = 0.0
    totals[:] = 0.0
    for k in range(len(substates)):
        if k != left_out:
            for n in range(len(totals)):
                if substates[k, n] > 0.0:
                    totals[n] += substates[k, n]
                    if data.actions[n] >= 0:
                        contributions[n] += substates[k, n] * policies[k, data.actions[n]]


@kernel
def draw_policy_from_prior(rng, policies, policy_concentration, policy_scale, target):
    """Draw the policy of a new feature."""
    if target.combination == PRODUCT:
        return draw_policy_of_product(rng, policies.shape[1], policy_scale)
    return draw_dirichlet(rng, np.full(policies.shape[1], policy_concentration))


@kernel
def draw_sparsity(rng, alpha_zero, alpha_nonzero):
    """Draw theta = P(s = 0); it stays inside the open interval where rounding would put it on the border."""
    return min(max(draw_beta(rng, alpha_zero, alpha_nonzero), 1e-300), 1.0 - 1e-16)


@kernel
def least_evidence(newcomer, data, target):
    """A lower bound on the evidence (see `refine_evidence`), which mostly shows at once that a feature must not die."""
    level_prior = (1.0 - newcomer.zero_prior) / (target.n_levels - 1)
    least = 0.0
    for n in range(len(newcomer.slopes)):
        action_term = action_term_of_row(n, newcomer, data, target)
        linear, precision = newcomer.slopes[n], newcomer.precisions[n]
        least += log_least_of_levels(linear, precision, target.n_levels, newcomer.zero_prior, level_prior, action_term)
    return least


@kernel
def bound_evidence(bounds, newcomer, data, target):
    """An upper bound on the evidence: fill in that of each row, by its largest likelihood ratio over s; return the sum.

    So most proposals are rejected after a look at each row, at a cost that does not depend on the number of levels.
    """
    zero_prior = newcomer.zero_prior
    bound = 0.0
    for n in range(len(bounds)):
        best = 0.0
        share = 1.0  # of the levels that matter
        linear, precision = newcomer.slopes[n], newcomer.precisions[n]
        if precision > 0.0:
            share = bound_number(linear, precision, 1, target.n_levels) / (target.n_levels - 1)
            if linear > 0.0:
                s = min(linear / precision, 1.0)
                best = s * (linear - 0.5 * precision * s)
        action_term = action_term_of_row(n, newcomer, data, target)
        if action_term.power != 0.0:
            if action_term.total == 0.0:
                gain = action_term.policy / action_term.at_zero
            else:
                gain = (action_term.contributions + action_term.policy) / (
                    (action_term.total + 1.0) * action_term.at_zero
                )
            if gain > 1.0:
                best += action_term.power * math.log(gain)
        bounds[n] = math.log(zero_prior + (1.0 - zero_prior) * share * math.exp(best)) if best < 700.0 else best
        bound += bounds[n]
    return bound


@kernel
def refine_evidence(bounds, bound, cells, newcomer, data, target, stop_below):
    """The evidence: log likelihood ratio of a newcomer with its substates summed out, from bounds on it.

    Stops early once it is certain to be below `stop_below`; what is returned is then an upper bound. Rows are refined
    one after the other, first by a coarse sum with many levels in one cell, whose weight is bounded from above, then
    exactly. So the decision is exact.
    """
    level_prior = (1.0 - newcomer.zero_prior) / (target.n_levels - 1)
    for width in (max(1, (target.n_levels - 1) // CELLS_FOR_BOUND), 1):
        for n in range(len(bounds)):
            if bound < stop_below:
                return bound
            action_term = action_term_of_row(n, newcomer, data, target)
            linear, precision = newcomer.slopes[n], newcomer.precisions[n]
            finer = log_sum_of_levels(
                cells, linear, precision, target.n_levels, newcomer.zero_prior, level_prior, action_term, width
            )
            bound += finer - bounds[n]
            bounds[n] = finer
        if width == 1:
            break
    return bound


@kernel
def is_evidence_below(bounds, cells, newcomer, data, target, limit):
    """Whether the evidence of a newcomer is below a limit."""
    if least_evidence(newcomer, data, target) > limit:
        return False
    bound = bound_evidence(bounds, newcomer, data, target)
    return refine_evidence(bounds, bound, cells, newcomer, data, target, limit) < limit


@kernel
def draw_column(rng, cells, column, newcomer, data, target):
    """Draw the substates of a newcomer, given its sparsity."""
    level_prior = (1.0 - newcomer.zero_prior) / (target.n_levels - 1)
    for n in range(len(column)):
        action_term = action_term_of_row(n, newcomer, data, target)
        linear, precision = newcomer.slopes[n], newcomer.precisions[n]
        level = draw_level(
            rng, cells, linear, precision, target.n_levels, newcomer.zero_prior, level_prior, action_term
        )
        column[n] = level / (target.n_levels - 1)


@kernel
def insert_row(matrix, row, place):
    """Return the matrix with `row` at `place`; the row that was there moves to the end."""
    grown = np.empty((len(matrix) + 1, matrix.shape[1]))
    grown[:-1] = matrix
    grown[-1] = row
    if place < len(matrix):
        grown[-1] = matrix[place]
        grown[place] = row
    return grown


@kernel
def remove_row(matrix, place):
    """Return the matrix without the row at `place`; the last one moves there."""
    shrunk = matrix[:-1].copy()
    if place < len(shrunk):
        shrunk[place] = matrix[-1]
    return shrunk


@kernel
def draw_weight(rng, weight_scale, positive):
    """Draw a weight from its prior."""
    if positive:
        return weight_scale * rng.standard_exponential()
    return math.sqrt(weight_scale) * rng.standard_normal()


@kernel
def draw_feature_from_buffet(rng, n_dimensions, concentration, weight_scale, positive):
    """Draw one feature of the IBP: the dimension that takes the dish first, then those that follow."""
    feature = np.zeros(n_dimensions)
    left = rng.random() * expected_features_per_mass(concentration, n_dimensions)
    first = 0
    while first < n_dimensions - 1:
        left -= concentration / (concentration + first)
        if left < 0.0:
            break
        first += 1
    n_active = 0
    for d in range(first, n_dimensions):
        if d == first or rng.random() < n_active / (concentration + d):
            feature[d] = draw_weight(rng, weight_scale, positive)
            n_active += 1
    return feature


@kernel
def draw_number_of_empty(rng, expected, least, room):
    """Draw a Poisson number, given that it is at least `least` and at most `room`."""
    number = draw_number_of_births(rng, expected)
    if least <= number <= room:
        return number
    # another try may have little chance, so the number is drawn from the truncated sum; terms are relative to the first
    total = 0.0
    term = 1.0
    number = least
    while number < room and term > 1e-18 * total:
        total += term
        number += 1
        term *= expected / number
    left = rng.random() * (total + term)
    term = 1.0
    number = least
    while number < room and left >= term:
        left -= term
        number += 1
        term *= expected / number
    return number


@kernel
def draw_empty_features(rng, substates, features, policies, state, target):
    """Replace the features that no row holds by new ones from the prior; their number is Poisson."""
    n_rows = substates.shape[1]
    k = 0
    while k < len(features):
        if np.any(substates[k] > 0.0):
            k += 1
        else:
            features = remove_row(features, k)
            substates = remove_row(substates, k)
            policies = remove_row(policies, k)
    a, b = target.sparsity_zero, target.sparsity_nonzero
    log_all_zero = math.lgamma(a + n_rows) - math.lgamma(a) + math.lgamma(a + b) - math.lgamma(a + b + n_rows)
    n_dimensions = features.shape[1]
    expected = state.ibp_mass * expected_features_per_mass(state.ibp_concentration, n_dimensions)
    least, room = max(target.min_features - len(features), 0), target.max_features - len(features)
    for _ in range(draw_number_of_empty(rng, expected * math.exp(log_all_zero), least, room)):
        feature = draw_feature_from_buffet(
            rng, n_dimensions, state.ibp_concentration, state.weight_scale, target.positive
        )
        policy = draw_policy_from_prior(rng, policies, state.policy_concentration, state.policy_scale, target)
        place = int(rng.random() * (len(features) + 1))
        features = insert_row(features, feature, place)
        substates = insert_row(substates, np.zeros(n_rows), place)
        policies = insert_row(policies, policy, place)
    return substates, features, policies


@kernel
def fill_residual(d, residual, substates, features, data):
    """Fill in the residual of dimension d after all features."""
    residual[:] = data.observations[:, d]
    for k in range(len(features)):
        if features[k, d] != 0.0:
            for n in range(len(residual)):
                residual[n] -= substates[k, n] * features[k, d]


@kernel
def weigh_singleton(d, weight, residual, slopes, precisions, scale, data):
    """Fill in what the rows say about a feature that is active in dimension d alone; nothing where it is missing."""
    for n in range(len(residual)):
        slopes[n] = scale * weight * residual[n]
        precisions[n] = scale * weight * weight
    for i in range(data.column_splits[d], data.column_splits[d + 1]):
        slopes[data.column_gaps[i]] = 0.0
        precisions[data.column_gaps[i]] = 0.0


@kernel
def find_singleton(d, number, features, n_active):
    """Place of the singleton with this number (from 0) in dimension d."""
    for k in range(len(features)):
        if n_active[k] == 1 and features[k, d] != 0.0:
            if number == 0:
                return k
            number -= 1
    return -1


@kernel
def draw_births_and_deaths(rng, substates, features, scale, birth_rate, state, data, target):
    """Try births and deaths in random dimensions; return substates, features, policies, and how many of each."""
    policies, weight_scale = state.policies, state.weight_scale
    n_rows, n_dimensions = data.observations.shape
    cells = np.empty(target.n_levels + 1)
    n_births = 0
    n_deaths = 0
    residual = np.empty(n_rows)
    slopes = np.empty(n_rows)
    precisions = np.empty(n_rows)
    column = np.empty(n_rows)
    contributions = np.zeros(n_rows)
    totals = np.zeros(n_rows)
    n_active = np.zeros(len(features), np.int64)
    # unless the mixture is plain, actions take no part in the sums, but in the acceptance of the column that is drawn
    decides = not is_plain(data, target)
    votes = find_votes(policies, state.base_policy, state.decisiveness, target)
    tallies = np.zeros((0, policies.shape[1]))
    expected = np.zeros((n_rows if decides else 0, policies.shape[1]))
    lacks = np.zeros(n_rows)
    bounds = np.empty(n_rows)
    changed = True
    for _ in range(target.n_birth_tries):
        if changed:  # sums over the features that are there now
            n_active = np.zeros(len(features), np.int64)
            for k in range(len(features)):
                for d in range(n_dimensions):
                    n_active[k] += features[k, d] != 0.0
            if decides:
                votes = find_votes(policies, state.base_policy, state.decisiveness, target)
                tallies = tally_rows(substates, -1, votes)
                fill_bounds(tallies, votes, data, expected, lacks)
            else:
                sum_contributions(substates, policies, -1, contributions, totals, data)
            changed = False
        d = int(rng.random() * n_dimensions)
        n_singletons = 0
        for k in range(len(features)):
            n_singletons += n_active[k] == 1 and features[k, d] != 0.0
        log_uniform = -rng.standard_exponential()
        is_birth = rng.random() < 0.5
        if is_birth and len(features) >= target.max_features:
            continue
        if not is_birth and (n_singletons == 0 or len(features) <= target.min_features):
            continue
        fill_residual(d, residual, substates, features, data)
        if is_birth:
            weight = draw_weight(rng, weight_scale, target.positive)
            zero_prior = draw_sparsity(rng, target.sparsity_zero, target.sparsity_nonzero)
            policy = draw_policy_from_prior(rng, policies, state.policy_concentration, state.policy_scale, target)
            vote = center_logs(policy) if votes.is_product else policy
            weigh_singleton(d, weight, residual, slopes, precisions, scale, data)
            newcomer = Newcomer(zero_prior, policy, slopes, precisions, contributions, totals)
            needed = log_uniform - math.log(birth_rate / (n_singletons + 1))
            bound = bound_evidence(bounds, newcomer, data, target)
            if decides:
                if bound + bound_gain(tallies, vote, votes, data, target, expected, lacks) < needed:
                    continue
                # the column comes first: what its actions lose mostly rejects it before anything has to be summed
                draw_column(rng, cells, column, newcomer, data, target)
                needed -= log_gain_of_column(tallies, column, vote, votes, data, target)
            if refine_evidence(bounds, bound, cells, newcomer, data, target, needed) < needed:
                continue
            if not decides:
                draw_column(rng, cells, column, newcomer, data, target)
            newborn = np.zeros(n_dimensions)
            newborn[d] = weight
            place = int(rng.random() * (len(features) + 1))
            features = insert_row(features, newborn, place)
            substates = insert_row(substates, column, place)
            policies = insert_row(policies, policy, place)
            n_births += 1
            changed = True
        else:
            dying = find_singleton(d, int(rng.random() * n_singletons), features, n_active)
            n_nonzero = 0
            for n in range(n_rows):
                s = substates[dying, n]
                n_nonzero += s > 0.0
                residual[n] += s * features[dying, d]
            if not decides:
                sum_contributions(substates, policies, dying, contributions, totals, data)
                changed = True
            zero_prior = draw_sparsity(
                rng, target.sparsity_zero + n_rows - n_nonzero, target.sparsity_nonzero + n_nonzero
            )
            # accepted if u < kappa / (lambda R), that is log R < log(kappa / lambda) - log u
            allowed = math.log(n_singletons / birth_rate) - log_uniform
            if decides:
                others = tally_rows(substates, dying, votes)
                allowed -= log_gain_of_column(others, substates[dying], votes.of_features[dying], votes, data, target)
            weigh_singleton(d, features[dying, d], residual, slopes, precisions, scale, data)
            newcomer = Newcomer(zero_prior, policies[dying].copy(), slopes, precisions, contributions, totals)
            if is_evidence_below(bounds, cells, newcomer, data, target, allowed):
                features = remove_row(features, dying)
                substates = remove_row(substates, dying)
                policies = remove_row(policies, dying)
                n_deaths += 1
                changed = True
    return substates, features, policies, n_births, n_deaths
