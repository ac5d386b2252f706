"""A decisive teacher: the mixture of policies to the power of tau, normalised again.

The paper mixes, P(u | s) = sum_k s_k phi_k(u) / sum_k s_k, and then assumes that the teacher takes the most probable
action (Sec. 4.3). A mixture is never more certain than its most certain part, so it cannot express that; to the power
of tau it can:

    P(u | s) = m(u)^tau / sum_v m(v)^tau,   m(u) = sum_k s_k phi_k(u).

tau = 1 is the paper's mixture, tau = infinity its assumption. This is not the weight omega, under which each action
counts more often but the mixture is as blunt as before. For tau other than one, substates and births are proposed
without the action and accepted according to the action. The policies, which no longer have a conjugate conditional, are
drawn by slice sampling.
"""

import math

import numpy as np

from whyact.sampler.compiling import kernel
from whyact.sampler.policies import SMALLEST, log_density_concentration_given_policies
from whyact.sampler.slicing import make_slice_sampler


@kernel
def log_decisive_probability(mixture, policy, substate, action, decisiveness):
    """Log P(u | s) with m(u) = mixture(u) + substate * policy(u); uniform where no feature is present."""
    largest = 0.0
    for u in range(len(mixture)):
        largest = max(largest, mixture[u] + substate * policy[u])
    if not largest > 0.0:
        return -math.log(len(mixture))
    total = 0.0
    for u in range(len(mixture)):
        share = (mixture[u] + substate * policy[u]) / largest
        if share > 0.0:
            total += math.exp(decisiveness * math.log(share))
    own = (mixture[action] + substate * policy[action]) / largest
    return decisiveness * math.log(max(own, SMALLEST)) - math.log(total)


@kernel
def mix_rows(substates, policies, left_out):
    """m(u) of every row, (N, U); one feature may be left out, -1 means none is."""
    mixtures = np.zeros((substates.shape[1], policies.shape[1]))
    for k in range(len(substates)):
        if k != left_out:
            for n in range(len(mixtures)):
                if substates[k, n] > 0.0:
                    for u in range(policies.shape[1]):
                        mixtures[n, u] += substates[k, n] * policies[k, u]
    return mixtures


@kernel
def log_likelihood_of_mixtures(mixtures, data, target):
    """Sum over the rows of log P(u | s), without the weight omega."""
    log_likelihood = 0.0
    for n in range(len(mixtures)):
        if data.actions[n] >= 0:
            log_likelihood += log_decisive_probability(
                mixtures[n], mixtures[n], 0.0, data.actions[n], target.decisiveness
            )
    return log_likelihood


@kernel
def log_gain_of_column(mixtures, column, policy, data, target):
    """What the actions say about one more feature: omega times the gain in log-likelihood by it."""
    gain = 0.0
    for n in range(len(column)):
        action = data.actions[n]
        if action >= 0 and column[n] > 0.0:
            gain += log_decisive_probability(mixtures[n], policy, column[n], action, target.decisiveness)
            gain -= log_decisive_probability(mixtures[n], policy, 0.0, action, target.decisiveness)
    return target.action_weight * gain


@kernel
def is_accepted(rng, levels, k, new, policies, action, mixture, target):
    """Whether the action accepts a level of substate k proposed without it; `mixture` is scratch memory for m(u)."""
    step = 1.0 / (target.n_levels - 1)
    mixture[:] = 0.0
    for j in range(len(levels)):
        if j != k and levels[j] > 0:
            for u in range(len(mixture)):
                mixture[u] += levels[j] * step * policies[j, u]
    before = log_decisive_probability(mixture, policies[k], levels[k] * step, action, target.decisiveness)
    after = log_decisive_probability(mixture, policies[k], new * step, action, target.decisiveness)
    return -rng.standard_exponential() < target.action_weight * (after - before)


@kernel
def log_density_odds(odds, arguments):
    """Log density of the log odds between two actions of one policy, whose sum stays as it is."""
    first, second, together, others, column, actions, policy, concentration, action_weight, decisiveness = arguments
    policy[first] = together * (odds / (1.0 + odds))
    policy[second] = together / (1.0 + odds)
    if not (policy[first] >= SMALLEST and policy[second] >= SMALLEST):
        return -math.inf
    log_density = concentration * (math.log(policy[first]) + math.log(policy[second]))
    for i in range(len(column)):
        log_density += action_weight * log_decisive_probability(others[i], policy, column[i], actions[i], decisiveness)
    return log_density


draw_slice_odds = make_slice_sampler(log_density_odds)
draw_slice_concentration_given_policies = make_slice_sampler(log_density_concentration_given_policies)


@kernel
def draw_decisive_policies(rng, substates, policies, concentration, data, target):
    """Draw the policies by pairs of actions, then their concentration; return both and the log-likelihood."""
    policies = policies.copy()
    n_features, n_rows = substates.shape
    n_actions = policies.shape[1]
    mixtures = mix_rows(substates, policies, -1)
    rows = np.empty(n_rows, np.int64)
    for k in range(n_features):
        n_held = 0
        for n in range(n_rows):
            if substates[k, n] > 0.0 and data.actions[n] >= 0:
                rows[n_held] = n
                n_held += 1
        held = rows[:n_held]
        column = substates[k][held]
        actions = data.actions[held]
        others = mixtures[held]
        for i in range(n_held):
            for u in range(n_actions):
                others[i, u] = max(others[i, u] - column[i] * policies[k, u], 0.0)
        policy = policies[k].copy()
        for first in range(n_actions - 1):
            second = first + 1 + int(rng.random() * (n_actions - 1 - first))
            one, two = policies[k, first], policies[k, second]
            odds = draw_slice_odds(
                rng, one / two,
                (
                    first, second, one + two, others, column, actions, policy, concentration,
                    target.action_weight, target.decisiveness,
                ),
            )  # fmt: skip
            policies[k, first] = policy[first] = max((one + two) * (odds / (1.0 + odds)), SMALLEST)
            policies[k, second] = policy[second] = max((one + two) / (1.0 + odds), SMALLEST)
        for i in range(n_held):
            for u in range(n_actions):
                mixtures[held[i], u] = others[i, u] + column[i] * policies[k, u]
    concentration = draw_slice_concentration_given_policies(rng, concentration, (policies, target))
    return policies, concentration, log_likelihood_of_mixtures(mix_rows(substates, policies, -1), data, target)
