"""How policies are combined, and what a row's action says about a change of its substates.

Every feature has a vote for each action, and a row's tally adds up the votes of its features, each times its substate:

    mixture   votes phi_k(u)              P(u | s) = t(u)^tau / sum_v t(v)^tau     (tau = 1: Eq. (mixture) of the paper)
    product   votes eta_k(u), log odds    P(u | s) = exp t(u) / sum_v exp t(v),    t(u) = eta_0(u) + sum_k s_k eta_k(u)

The sums run over the actions that are available in the row. A tally is linear in the substates, so a change of one
costs O(U), and all that substates, births and policies ask is the log probability of the action that was taken.

For the plain mixture (tau = 1, all actions available) substates and births are drawn with the action inside their
conditionals. Everywhere else they are proposed from the conditional without the action, and accepted by the action.
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.model import MIXTURE, PRODUCT
from whyact.sampler.compiling import inlined, kernel

# Smallest probability of an action, so that no product of a substate and a policy underflows to zero.
SMALLEST = 1e-290
# An action whose log weight is this far below the largest does not change a sum in double precision.
LOG_NEGLIGIBLE = -42.0
HUGE = 1e280  # an inverse probability that is close to overflowing
UNKNOWN = 0.0  # in place of an inverse probability


class Votes(NamedTuple):
    """What each feature says for each action."""

    is_product: bool
    power: float  # tau; 1 for a product
    smallest_share: float  # of the largest tally: smaller ones to the power of tau do not count
    of_features: np.ndarray  # (K, U)
    of_base: np.ndarray  # what is said where no feature is present, (U,)


@inlined
def is_plain(data, target):
    """Whether the conditionals can hold the action: the paper's mixture, with all actions available."""
    return target.combination == MIXTURE and target.decisiveness == 1.0 and len(data.available) == 0


@kernel
def center_logs(probabilities):
    """Log odds: the logarithms of probabilities, centred over the actions."""
    logs = np.log(probabilities)
    return logs - logs.mean()


@kernel
def find_votes(policies, base_policy, decisiveness, target):
    """The votes by the policies."""
    if target.combination == PRODUCT:
        of_features = np.empty_like(policies)
        for k in range(len(policies)):
            of_features[k] = center_logs(policies[k])
        return Votes(True, 1.0, 0.0, of_features, center_logs(base_policy))
    smallest_share = math.exp(LOG_NEGLIGIBLE / decisiveness)
    return Votes(False, decisiveness, smallest_share, policies, np.zeros(policies.shape[1]))


@inlined
def is_available(n, u, data):
    """Whether action u is available in row n."""
    return len(data.available) == 0 or data.available[n, u]


@inlined
def inverse_probability(tally, n, action, votes, data):
    """1 / P(action | s) of row n by its tally: the sum over all actions, relative to the one that was taken."""
    inverse = 1.0
    own = tally[action]
    if votes.is_product:
        for u in range(len(tally)):
            if u != action and tally[u] - own > LOG_NEGLIGIBLE and is_available(n, u, data):
                inverse += math.exp(tally[u] - own)
        return inverse
    largest = 0.0
    for u in range(len(tally)):
        if is_available(n, u, data):
            largest = max(largest, tally[u])
    if not largest > 0.0:  # no feature is present: all that are available are equally probable
        for u in range(len(tally)):
            if u != action and is_available(n, u, data):
                inverse += 1.0
        return inverse
    own = max(own, SMALLEST * largest)
    for u in range(len(tally)):
        if u != action and tally[u] > votes.smallest_share * own and is_available(n, u, data):
            share = tally[u] / own
            inverse += share if votes.power == 1.0 else math.exp(votes.power * math.log(share))
    return inverse


@kernel
def log_probability(tally, n, action, votes, data):
    """Log P(action | s) of row n by its tally, also where its inverse overflows."""
    inverse = inverse_probability(tally, n, action, votes, data)
    if inverse < HUGE:
        return 0.0 if inverse == 1.0 else -math.log(inverse)
    largest = -math.inf
    for u in range(len(tally)):
        if is_available(n, u, data):
            largest = max(largest, tally[u])
    total = 0.0
    for u in range(len(tally)):
        if is_available(n, u, data):
            total += math.exp(log_share(tally[u], largest, votes))
    return log_share(tally[action], largest, votes) - math.log(total)


@kernel
def log_share(tally, largest, votes):
    """Log weight of an action, relative to that of the largest tally."""
    return tally - largest if votes.is_product else votes.power * math.log(max(tally / largest, SMALLEST))


@inlined
def bound_inverse_probability(tally, n, action, votes, data):
    """An upper bound on 1 / P(action | s), infinity where there is none as cheap: no exponential, no logarithm."""
    own = tally[action]
    largest = -math.inf
    n_others = 0
    for u in range(len(tally)):
        if u != action and is_available(n, u, data):
            largest = max(largest, tally[u])
            n_others += 1
    if n_others == 0:
        return 1.0
    if not largest < own:
        return math.inf
    if votes.is_product:
        lead = own - largest
        return 1.0 + n_others / (1.0 + lead * (1.0 + lead * (0.5 + lead / 6.0)))  # exp(x) is above its first terms
    if votes.power < 1.0:
        return math.inf
    # a share below one to the power of tau is below that to the power of 2, 4, 8, ... up to tau
    share = largest / own
    power = 2.0
    while power <= votes.power and share > 0.0:
        share *= share
        power *= 2.0
    return 1.0 + n_others * share


@inlined
def is_accepted(rng, inverse, tally, changed, n, action, votes, data, action_weight):
    """Accept a proposal for row n by its tallies before and after it; return this, and 1 / P(action | s) after it.

    `inverse` is that of the row as it is. It is UNKNOWN as long as it is not needed: where the action is nearly sure, a
    bound is enough to accept.
    """
    if action_weight == 0.0:
        return True, UNKNOWN
    uniform = rng.random()
    if action_weight == 1.0 and uniform * bound_inverse_probability(changed, n, action, votes, data) < 1.0:
        return True, UNKNOWN
    if inverse == UNKNOWN:
        inverse = inverse_probability(tally, n, action, votes, data)
    after = inverse_probability(changed, n, action, votes, data)
    if inverse >= HUGE and after >= HUGE:  # close to overflowing: infinities could not be compared
        gain = log_probability(changed, n, action, votes, data) - log_probability(tally, n, action, votes, data)
        accepted = math.log(max(uniform, SMALLEST)) < action_weight * gain
    elif action_weight == 1.0:
        accepted = uniform * after < inverse
    else:
        accepted = math.log(max(uniform, SMALLEST)) < action_weight * (math.log(inverse) - math.log(after))
    return accepted, after if accepted else inverse


@inlined
def fill_tally(tally, levels, step, left_out, votes):
    """Fill in the tally of a row by the levels of its substates; one feature may be left out, -1 means none is."""
    for u in range(len(tally)):
        tally[u] = votes.of_base[u]
    for k in range(len(levels)):
        if k != left_out and levels[k] > 0:
            for u in range(len(tally)):
                tally[u] += levels[k] * step * votes.of_features[k, u]


@inlined
def change_tally(tally, changed, levels, k, new, step, votes):
    """Fill in `changed`, the tally with feature k at another level."""
    if new < levels[k] and not votes.is_product:
        # summed again, not subtracted: what a mixture leaves for an action may be smaller than the rounding
        fill_tally(changed, levels, step, k, votes)
        for u in range(len(tally)):
            changed[u] += new * step * votes.of_features[k, u]
    else:
        change = (new - levels[k]) * step
        for u in range(len(tally)):
            changed[u] = tally[u] + change * votes.of_features[k, u]


@kernel
def tally_rows(substates, left_out, votes):
    """The tallies of all rows, (N, U); one feature may be left out, -1 means none is."""
    tallies = np.empty((substates.shape[1], votes.of_features.shape[1]))
    for n in range(len(tallies)):
        tallies[n] = votes.of_base
    for k in range(len(substates)):
        if k != left_out:
            for n in range(len(tallies)):
                if substates[k, n] > 0.0:
                    for u in range(tallies.shape[1]):
                        tallies[n, u] += substates[k, n] * votes.of_features[k, u]
    return tallies


@kernel
def log_likelihood_of_rows(tallies, votes, data):
    """Sum over the rows of log P(u | s), without the weight omega."""
    log_likelihood = 0.0
    for n in range(len(tallies)):
        if data.actions[n] >= 0:
            log_likelihood += log_probability(tallies[n], n, data.actions[n], votes, data)
    return log_likelihood


@kernel
def log_gain_of_column(tallies, column, vote, votes, data, target):
    """What the actions say about one more feature: omega times the gain in log-likelihood by it.

    `tallies` are those without it, `vote` (U,) is its own.
    """
    gain = 0.0
    tally = np.empty(tallies.shape[1])
    for n in range(len(column)):
        action = data.actions[n]
        if action >= 0 and column[n] > 0.0:
            for u in range(len(tally)):
                tally[u] = tallies[n, u] + column[n] * vote[u]
            gain += log_probability(tally, n, action, votes, data)
            gain -= log_probability(tallies[n], n, action, votes, data)
    return target.action_weight * gain


@kernel
def fill_bounds(tallies, votes, data, expected, lacks):
    """Fill in what bounds the gain of each row by one more feature (see `bound_gain`), before any is proposed.

    `lacks` (N,) is what the log probability of the action lacks to zero. For a product, `expected` (N, U) is P(u | s).
    """
    for n in range(len(tallies)):
        lacks[n] = 0.0
        if data.actions[n] >= 0:
            own = log_probability(tallies[n], n, data.actions[n], votes, data)
            lacks[n] = -own
            if votes.is_product:
                log_total = tallies[n, data.actions[n]] - own
                for u in range(tallies.shape[1]):
                    expected[n, u] = math.exp(tallies[n, u] - log_total) if is_available(n, u, data) else 0.0


@kernel
def bound_gain(tallies, vote, votes, data, target, expected, lacks):
    """An upper bound on what the actions can say for one more feature with this vote, whatever its substates are.

    A row gains at most what it lacks. The log probability of a product is concave in the substate, so it gains at
    most the slope at zero. In a mixture one more feature cannot take from the tally of any action, so the row gains at
    most what the tally of its own action does: tau log(1 + vote / tally), and the logarithm is below vote / tally.
    """
    most = 0.0
    for n in range(len(tallies)):
        action = data.actions[n]
        if action < 0:
            continue
        if votes.is_product:
            slope = vote[action]
            for u in range(len(vote)):
                slope -= expected[n, u] * vote[u]
            most += max(min(slope, lacks[n]), 0.0)
        elif votes.power * vote[action] < lacks[n] * tallies[n, action]:
            most += votes.power * vote[action] / tallies[n, action]
        else:
            most += lacks[n]
    return target.action_weight * most
