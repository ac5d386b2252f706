"""Births and deaths of whole features, and moves made of them: split, merge, replace.

A feature that is born in one cell must pay for itself there before it can grow, and one that is no longer needed must
shrink to one cell before it can die. Here features come and go as a whole. A birth is guided by what the others leave
unexplained, the residual R: a row m is drawn that has much of it; a pilot column says how much of that row's residual
is in each row; given the pilot, the entries have the conditionals that they have in `features.py`, and are drawn from
them, so their density is known; so is the policy, from what the pilot's rows did. Then, as for singletons, the column
is summed out, and drawn from its exact conditional. With q the density of entries and policy,

    log A = log[alpha beta B(m_k, D - m_k + beta) p(w) p(phi) / ((K + 1) q(f, phi))] + log evidence
            + log P(m | column) - log P(m | R),

where the death of feature k, of K + 1, draws the row m from those that hold it, in proportion to their substates. Row
and number of rounds of the pilot are random numbers that both directions draw, and the pilot depends on nothing that
the newcomer has. A death is accepted with the inverse.

Moves made of several are accepted as one, by the sum of their log A, each in the state that the one before has left:
a split is a death and two births, a merge two deaths and a birth, a replacement a death and a birth.
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.model import PRODUCT
from whyact.sampler.births import (
    Newcomer,
    action_term_of_row,
    bound_evidence,
    draw_column,
    draw_sparsity,
    insert_row,
    least_evidence,
    refine_evidence,
    remove_row,
    sum_contributions,
)
from whyact.sampler.combining import (
    SMALLEST,
    center_logs,
    find_votes,
    is_available,
    is_plain,
    log_gain_of_column,
    log_probability,
    tally_rows,
)
from whyact.sampler.compiling import kernel
from whyact.sampler.features import draw_entry, mills_ratio
from whyact.sampler.policies import draw_dirichlet
from whyact.sampler.product import to_policy
from whyact.sampler.substates import log_sum_of_levels

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# A pilot goes so many times from the entries to the rows and back, or takes the row that it starts from alone.
N_ROUNDS = 2
# A row without much to explain may still be drawn: share of the chance of the row that has most.
LEAST_CHANCE = 1e-3
# Where a rule is sharp, a step of Newton's method has no end.
LARGEST_LOG_ODDS = 30.0
SQRT_HALF = math.sqrt(0.5)


class Guide(NamedTuple):
    """What both a birth and the death that undoes it draw entries and policy from."""

    linear: np.ndarray  # slope and precision of each entry's Gaussian part, given the pilot, (D,)
    precision: np.ndarray
    prior_odds: float  # of an active entry
    policy: np.ndarray  # mixture: what is added to the Dirichlet; product: the mean of the log odds; (U,)
    policy_precision: float  # product: of the log odds


class Parts(NamedTuple):
    """What births and deaths change."""

    substates: np.ndarray
    features: np.ndarray
    policies: np.ndarray


@kernel
def clear_gaps(residual, data):
    """Set what is missing to zero."""
    for n in range(len(residual)):
        for i in range(data.row_splits[n], data.row_splits[n + 1]):
            residual[n, data.row_gaps[i]] = 0.0


@kernel
def find_residual(parts, data):
    """What the features leave unexplained, zero where it is missing, (N, D)."""
    if len(parts.features) == 0:
        return data.observations.copy()
    residual = data.observations - np.dot(parts.substates.T, parts.features)
    clear_gaps(residual, data)
    return residual


@kernel
def add_part(residual, column, feature, sign, data):
    """Add a feature's part to the residual, or take it off."""
    for n in range(len(residual)):
        if column[n] > 0.0:
            for d in range(len(feature)):
                residual[n, d] += sign * column[n] * feature[d]
            for i in range(data.row_splits[n], data.row_splits[n + 1]):
                residual[n, data.row_gaps[i]] = 0.0


@kernel
def fill_row_chances(chances, residual):
    """Fill in the probability with which a birth starts from each row: the square of its sum of squares, nearly."""
    for n in range(len(chances)):
        chances[n] = 0.0
        for d in range(residual.shape[1]):
            chances[n] += residual[n, d] * residual[n, d]
    largest = chances.max()
    total = 0.0
    for n in range(len(chances)):
        share = chances[n] / largest if largest > 0.0 else 1.0
        chances[n] = share * share + LEAST_CHANCE
        total += chances[n]
    for n in range(len(chances)):
        chances[n] /= total


@kernel
def draw_row(rng, chances, total):
    """Draw a row in proportion to these numbers, which add up to `total`."""
    left = rng.random() * total
    drawn = 0
    for n in range(len(chances)):
        if chances[n] > 0.0:
            drawn = n
            left -= chances[n]
            if left < 0.0:
                break
    return drawn


@kernel
def find_pilot(row, n_rounds, residual, scale, target):
    """How much of what row `row` has left is in each row, (N,): a rank-one fit of the residual that starts there."""
    n_rows, n_dimensions = residual.shape
    pilot = np.zeros(n_rows)
    pilot[row] = 1.0
    feature = np.empty(n_dimensions)
    price = math.log(target.n_levels)  # what a substate must gain
    for _ in range(n_rounds):
        squares, total = 0.0, 0.0
        feature[:] = 0.0
        for n in range(n_rows):
            if pilot[n] > 0.0:
                total += pilot[n] * pilot[n]
                for d in range(n_dimensions):
                    feature[d] += pilot[n] * residual[n, d]
        for d in range(n_dimensions):
            feature[d] = max(feature[d] / total, 0.0) if target.positive else feature[d] / total
            squares += feature[d] * feature[d]
        if not squares > 0.0:
            break
        largest = 0.0
        for n in range(n_rows):
            product = 0.0
            for d in range(n_dimensions):
                product += feature[d] * residual[n, d]
            is_worth_it = product > 0.0 and 0.5 * scale * product * product > price * squares
            pilot[n] = product / squares if is_worth_it else 0.0
            largest = max(largest, pilot[n])
        if not largest > 0.0:
            pilot[row] = 1.0
            break
        for n in range(n_rows):
            pilot[n] = min(pilot[n] / largest, 1.0)
    return pilot


@kernel
def find_guide(row, n_rounds, parts, residual, votes, tallies, scale, state, data, target):
    """What to draw a newcomer from, given the other features and the row that it starts from."""
    n_rows, n_dimensions = residual.shape
    pilot = find_pilot(row, n_rounds, residual, scale, target)
    linear = np.zeros(n_dimensions)
    squares = 0.0
    for n in range(n_rows):
        if pilot[n] > 0.0:
            squares += pilot[n] * pilot[n]
            for d in range(n_dimensions):
                linear[d] += scale * pilot[n] * residual[n, d]
    precision = np.full(n_dimensions, scale * squares)
    for n in range(n_rows):
        if pilot[n] > 0.0:
            for i in range(data.row_splits[n], data.row_splits[n + 1]):
                precision[data.row_gaps[i]] -= scale * pilot[n] * pilot[n]
    for d in range(n_dimensions):
        precision[d] = max(precision[d], 0.0)
    n_active = 1.0
    for k in range(len(parts.features)):
        for d in range(n_dimensions):
            n_active += parts.features[k, d] != 0.0
    n_inactive = len(parts.features) * n_dimensions + 2.0 - n_active
    policy, policy_precision = guide_policy(pilot, parts, votes, tallies, state, data, target)
    return Guide(linear, precision, n_active / n_inactive, policy, policy_precision)


@kernel
def guide_policy(pilot, parts, votes, tallies, state, data, target):
    """What the actions of the pilot's rows say about the newcomer's policy: see `Guide`."""
    guide = np.zeros(parts.policies.shape[1])
    precision = 1.0 / state.policy_scale
    if target.combination != PRODUCT:
        for n in range(len(pilot)):
            if pilot[n] > 0.0 and data.actions[n] >= 0:
                total = pilot[n]
                for k in range(len(parts.substates)):
                    total += parts.substates[k, n]
                guide[data.actions[n]] += target.action_weight * pilot[n] / total
        return guide, precision
    # one step of Newton's method from no opinion, with the same precision for all actions
    for n in range(len(pilot)):
        action = data.actions[n]
        if pilot[n] > 0.0 and action >= 0:
            own = log_probability(tallies[n], n, action, votes, data)
            log_total = tallies[n, action] - own
            weight = target.action_weight * pilot[n]
            for u in range(len(guide)):
                if is_available(n, u, data):
                    expected = math.exp(tallies[n, u] - log_total)
                    guide[u] += weight * ((u == action) - expected)
                    precision += weight * pilot[n] * expected * (1.0 - expected) / len(guide)
    guide -= guide.mean()
    return guide * (1.0 / max(precision, np.abs(guide).max() / LARGEST_LOG_ODDS)), precision


@kernel
def draw_guided_policy(rng, guide, state, target):
    """Draw the newcomer's policy."""
    if target.combination != PRODUCT:
        return draw_dirichlet(rng, state.policy_concentration + guide.policy)
    log_odds = guide.policy.copy()
    for u in range(len(log_odds)):
        log_odds[u] += rng.standard_normal() / math.sqrt(guide.policy_precision)
    return to_policy(log_odds)


@kernel
def log_ratio_of_policy(policy, guide, state, target):
    """Log of the prior density of a policy over the density that it is proposed with; it has none at the border."""
    n_actions = len(policy)
    if n_actions > 0 and policy.min() <= SMALLEST:
        return math.nan
    if target.combination == PRODUCT:
        squares, off = 0.0, 0.0
        log_odds = center_logs(policy)
        for u in range(n_actions):
            squares += log_odds[u] * log_odds[u]
            off += (log_odds[u] - guide.policy[u]) ** 2
        log_ratio = -0.5 * (n_actions - 1) * math.log(state.policy_scale * guide.policy_precision)
        return log_ratio - 0.5 * squares / state.policy_scale + 0.5 * guide.policy_precision * off
    alpha = state.policy_concentration
    log_ratio = 0.0
    if n_actions > 0:
        total = guide.policy.sum()
        log_ratio = math.lgamma(n_actions * alpha) - math.lgamma(n_actions * alpha + total)
    for u in range(n_actions):
        if guide.policy[u] > 0.0:
            log_ratio += math.lgamma(alpha + guide.policy[u]) - math.lgamma(alpha)
            log_ratio -= guide.policy[u] * math.log(policy[u])
    return log_ratio


@kernel
def log_bayes_factor(linear, precision, weight_scale, positive):
    """Log of the integral of exp(linear w - precision w^2 / 2) p(w): what an active entry gains over none."""
    if positive:
        if precision <= 0.0:
            return 0.0
        root = math.sqrt(precision)
        t = (linear - 1.0 / weight_scale) / root
        if t < 0.0:
            log_tail = math.log(mills_ratio(-t))
        else:
            log_tail = HALF_LOG_TWO_PI + 0.5 * t * t + math.log(0.5 * math.erfc(-t * SQRT_HALF))
        return log_tail - math.log(weight_scale * root)
    posterior_precision = precision + 1.0 / weight_scale
    return 0.5 * (linear * linear / posterior_precision - math.log(weight_scale * posterior_precision))


@kernel
def draw_guided_feature(rng, guide, weight_scale, positive):
    """Draw the newcomer's entries."""
    feature = np.empty(len(guide.linear))
    for d in range(len(feature)):
        feature[d] = draw_entry(rng, guide.linear[d], guide.precision[d], guide.prior_odds, weight_scale, positive)
    return feature


@kernel
def log_ratio_of_feature(feature, guide, state, target):
    """Log of alpha beta B(m, D - m + beta) p(w) over the density that the entries are proposed with.

    The weights' prior is part of both and cancels.
    """
    log_prior_odds = math.log(guide.prior_odds)
    n_active = 0
    log_ratio = 0.0
    for d in range(len(feature)):
        log_odds = log_prior_odds + log_bayes_factor(
            guide.linear[d], guide.precision[d], state.weight_scale, target.positive
        )
        log_ratio += log_odds + math.log1p(math.exp(-log_odds)) if log_odds > 0.0 else math.log1p(math.exp(log_odds))
        if feature[d] != 0.0:
            n_active += 1
            log_ratio -= log_prior_odds + feature[d] * (guide.linear[d] - 0.5 * guide.precision[d] * feature[d])
    beta, n_dimensions = state.ibp_concentration, len(feature)
    log_ratio += math.log(state.ibp_mass * beta)
    log_ratio += math.lgamma(n_active) + math.lgamma(n_dimensions - n_active + beta) - math.lgamma(n_dimensions + beta)
    return log_ratio


@kernel
def make_newcomer(feature, policy, zero_prior, parts, residual, scale, data, target):
    """A feature that may be born or die, as the evidence needs it."""
    n_rows = len(residual)
    slopes, precisions = np.zeros(n_rows), np.zeros(n_rows)
    own = 0.0
    for d in range(len(feature)):
        own += feature[d] * feature[d]
    for n in range(n_rows):
        observed, product = own, 0.0
        for d in range(len(feature)):
            product += feature[d] * residual[n, d]
        for i in range(data.row_splits[n], data.row_splits[n + 1]):
            observed -= feature[data.row_gaps[i]] ** 2
        if observed > 1e-14 * own:  # otherwise all that it has is missing there
            slopes[n], precisions[n] = scale * product, scale * observed
    contributions, totals = np.zeros(n_rows), np.zeros(n_rows)
    if is_plain(data, target):
        sum_contributions(parts.substates, parts.policies, -1, contributions, totals, data)
    return Newcomer(zero_prior, policy, slopes, precisions, contributions, totals)


@kernel
def find_tallies(parts, state, data, target):
    """The votes of the features, and the tallies of all rows; none for the plain mixture, which needs no tallies."""
    votes = find_votes(parts.policies, state.base_policy, state.decisiveness, target)
    if is_plain(data, target):
        return votes, np.zeros((0, parts.policies.shape[1]))
    return votes, tally_rows(parts.substates, -1, votes)


@kernel
def log_gain(tallies, column, policy, votes, data, target):
    """What the actions say about the newcomer, where they are no part of the evidence."""
    if is_plain(data, target):
        return 0.0
    vote = center_logs(policy) if votes.is_product else policy
    return log_gain_of_column(tallies, column, vote, votes, data, target)


@kernel
def sum_evidence(cells, newcomer, data, target):
    """The evidence: log likelihood ratio of a newcomer with its substates summed out."""
    level_prior = (1.0 - newcomer.zero_prior) / (target.n_levels - 1)
    total = 0.0
    for n in range(len(newcomer.slopes)):
        action_term = action_term_of_row(n, newcomer, data, target)
        total += log_sum_of_levels(
            cells, newcomer.slopes[n], newcomer.precisions[n], target.n_levels, newcomer.zero_prior, level_prior,
            action_term, 1,
        )  # fmt: skip
    return total


@kernel
def bear(rng, parts, residual, needed, scale, state, data, target):
    """Propose a whole feature; return the parts with it, and log A, or minus infinity if log A is below `needed`.

    The residual is brought up to date unless log A is minus infinity.
    """
    n_rows = len(residual)
    votes, tallies = find_tallies(parts, state, data, target)
    chances = np.empty(n_rows)
    fill_row_chances(chances, residual)
    row = draw_row(rng, chances, 1.0)
    n_rounds = N_ROUNDS if rng.random() < 0.5 else 0
    guide = find_guide(row, n_rounds, parts, residual, votes, tallies, scale, state, data, target)
    feature = draw_guided_feature(rng, guide, state.weight_scale, target.positive)
    if not np.any(feature != 0.0):
        return parts, -math.inf
    policy = draw_guided_policy(rng, guide, state, target)
    zero_prior = draw_sparsity(rng, target.sparsity_zero, target.sparsity_nonzero)
    newcomer = make_newcomer(feature, policy, zero_prior, parts, residual, scale, data, target)
    log_ratio = log_ratio_of_feature(feature, guide, state, target) + log_ratio_of_policy(policy, guide, state, target)
    if math.isnan(log_ratio):
        return parts, -math.inf
    log_ratio -= math.log(len(parts.features) + 1) + math.log(chances[row])
    bounds = np.empty(n_rows)
    bound = bound_evidence(bounds, newcomer, data, target)
    if is_plain(data, target) and bound + log_ratio < needed:
        return parts, -math.inf
    cells = np.empty(target.n_levels + 1)
    column = np.empty(n_rows)
    draw_column(rng, cells, column, newcomer, data, target)
    if column[row] == 0.0:  # the death that would undo it starts from a row that holds the feature
        return parts, -math.inf
    log_ratio += math.log(column[row] / column.sum())
    log_ratio += log_gain(tallies, column, policy, votes, data, target)
    if bound + log_ratio < needed:
        return parts, -math.inf
    log_ratio += refine_evidence(bounds, bound, cells, newcomer, data, target, needed - log_ratio)
    if log_ratio < needed:
        return parts, -math.inf
    add_part(residual, column, feature, -1.0, data)
    place = int(rng.random() * (len(parts.features) + 1))
    grown = Parts(
        insert_row(parts.substates, column, place),
        insert_row(parts.features, feature, place),
        insert_row(parts.policies, policy, place),
    )
    return grown, log_ratio


@kernel
def bury(rng, parts, residual, most, scale, state, data, target):
    """Propose the death of a feature; return the parts without it, and log A of the birth that would undo it.

    Log A is infinite if it is above `most`, or if the feature cannot die in this way; otherwise the residual is brought
    up to date.
    """
    k = int(rng.random() * len(parts.features))
    column, feature, policy = parts.substates[k].copy(), parts.features[k].copy(), parts.policies[k].copy()
    n_rows = len(residual)
    total = column.sum()
    if not total > 0.0:
        return parts, math.inf
    rest = Parts(remove_row(parts.substates, k), remove_row(parts.features, k), remove_row(parts.policies, k))
    votes, tallies = find_tallies(rest, state, data, target)
    add_part(residual, column, feature, 1.0, data)
    row = draw_row(rng, column, total)
    n_rounds = N_ROUNDS if rng.random() < 0.5 else 0
    n_nonzero = 0
    for n in range(n_rows):
        n_nonzero += column[n] > 0.0
    zero_prior = draw_sparsity(rng, target.sparsity_zero + n_rows - n_nonzero, target.sparsity_nonzero + n_nonzero)
    newcomer = make_newcomer(feature, policy, zero_prior, rest, residual, scale, data, target)
    chances = np.empty(n_rows)
    fill_row_chances(chances, residual)
    log_ratio = math.log(column[row] / total) - math.log(chances[row]) - math.log(len(parts.features))
    guide = find_guide(row, n_rounds, rest, residual, votes, tallies, scale, state, data, target)
    log_ratio += log_ratio_of_feature(feature, guide, state, target)
    log_ratio += log_ratio_of_policy(policy, guide, state, target)
    log_ratio += log_gain(tallies, column, policy, votes, data, target)
    if math.isnan(log_ratio) or log_ratio + least_evidence(newcomer, data, target) > most:
        add_part(residual, column, feature, -1.0, data)
        return parts, math.inf
    log_ratio += sum_evidence(np.empty(target.n_levels + 1), newcomer, data, target)
    if log_ratio > most:
        add_part(residual, column, feature, -1.0, data)
        return parts, math.inf
    return rest, log_ratio


@kernel
def draw_whole_features(rng, substates, features, policies, scale, state, data, target):
    """Try one birth, death, split, merge or replacement; return substates, features, policies, and the change of K."""
    kind = rng.random()
    if kind < 0.25:
        n_deaths, n_births = 0, 1
    elif kind < 0.5:
        n_deaths, n_births = 1, 0
    elif kind < 0.6:
        n_deaths, n_births = 1, 2
    elif kind < 0.7:
        n_deaths, n_births = 2, 1
    else:
        n_deaths, n_births = 1, 1
    n_after = len(features) + n_births - n_deaths
    if len(features) < n_deaths or n_after > target.max_features or n_after < target.min_features:
        return substates, features, policies, 0
    parts = Parts(substates, features, policies)
    residual = find_residual(parts, data)
    log_uniform = -rng.standard_exponential()
    log_ratio = 0.0
    for i in range(n_deaths):
        # without a birth to come, the rest of the ratio is known
        most = log_ratio - log_uniform if n_births == 0 and i == n_deaths - 1 else math.inf
        parts, log_birth = bury(rng, parts, residual, most, scale, state, data, target)
        if log_birth == math.inf:
            return substates, features, policies, 0
        log_ratio -= log_birth
    for i in range(n_births):
        needed = log_uniform - log_ratio if i == n_births - 1 else -math.inf
        parts, log_birth = bear(rng, parts, residual, needed, scale, state, data, target)
        if log_birth == -math.inf:
            return substates, features, policies, 0
        log_ratio += log_birth
    if log_uniform < log_ratio:
        return parts.substates, parts.features, parts.policies, n_births - n_deaths
    return substates, features, policies, 0
