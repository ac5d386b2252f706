"""A decisive teacher: policies and decisiveness of the mixture to the power of tau, normalised again.

The paper mixes, P(u | s) = sum_k s_k phi_k(u) / sum_k s_k, and then assumes that the teacher takes the most probable
action (Sec. 4.3). A mixture is never more certain than its most certain part, so it cannot express that; to the power
of tau it can:

    P(u | s) = m(u)^tau / sum_v m(v)^tau,   m(u) = sum_k s_k phi_k(u).

tau = 1 is the paper's mixture, tau = infinity its assumption. This is not the weight omega, under which each action
counts more often but the mixture is as blunt as before. The policies no longer have a conjugate conditional: for each
feature, the odds between two of its actions, chosen at random, are drawn by a slice step. So is tau, whose
log-likelihood is concave.

To a decisive teacher it makes no difference whether an action has the probability 1e-10 or 1e-100, so the concentration
alpha_phi and the logarithms of such probabilities could only be found slowly, each given the other. They are also
stretched together (docs/sampler.md, "A decisive teacher", derives the step).
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.model import LEARNED
from whyact.sampler.combining import (
    LOG_NEGLIGIBLE,
    SMALLEST,
    Votes,
    is_available,
    log_likelihood_of_rows,
    tally_rows,
)
from whyact.sampler.compiling import inlined, kernel
from whyact.sampler.limits import draw_gamma
from whyact.sampler.policies import log_density_concentration_given_policies
from whyact.sampler.slicing import make_slice_sampler

FIRST, SECOND, OTHER = 0, 1, 2
STRETCH = 0.6  # standard deviation of log c


class Pair(NamedTuple):
    """Two actions of one policy, and all that the rows which hold its feature say about the odds between them."""

    together: float  # the sum of their probabilities, which stays as it is
    concentration: float  # alpha_phi
    power: float  # tau
    smallest_share: float  # of the largest tally: smaller ones to the power of tau do not count
    action_weight: float  # omega
    n_rows: int  # entries of the arrays below that are in use
    substates: np.ndarray
    of_first: np.ndarray  # m(first) of each row without the feature
    of_second: np.ndarray
    log_rest: np.ndarray  # log of the sum of m(u)^tau over the other actions
    top_of_rest: np.ndarray  # the largest m(u) of them
    log_taken: np.ndarray  # tau log m(u) of the action that was taken, if it is another one
    taken: np.ndarray  # FIRST, SECOND or OTHER
    has_first: np.ndarray  # whether the actions are available
    has_second: np.ndarray


@kernel
def share_of(log_share):
    """The exponential, where it counts; most actions of a decisive teacher need none."""
    return 1.0 if log_share == 0.0 else 0.0 if log_share < LOG_NEGLIGIBLE else math.exp(log_share)


@kernel
def log_density_odds(odds, pair):
    """Log density of the log odds between the two actions."""
    first = pair.together * (odds / (1.0 + odds))
    second = pair.together / (1.0 + odds)
    if not (first >= SMALLEST and second >= SMALLEST):
        return -math.inf
    log_density = 0.0
    for i in range(pair.n_rows):
        s, taken = pair.substates[i], pair.taken[i]
        of_first = pair.of_first[i] + s * first if pair.has_first[i] else 0.0
        of_second = pair.of_second[i] + s * second if pair.has_second[i] else 0.0
        counts_from = pair.smallest_share * max(of_first, of_second, pair.top_of_rest[i])
        log_first = pair.power * math.log(of_first) if of_first > counts_from or taken == FIRST else -math.inf
        log_second = pair.power * math.log(of_second) if of_second > counts_from or taken == SECOND else -math.inf
        largest = max(log_first, log_second, pair.log_rest[i])
        total = share_of(log_first - largest) + share_of(log_second - largest) + share_of(pair.log_rest[i] - largest)
        own = pair.log_taken[i]
        if taken == FIRST:
            own = log_first
        elif taken == SECOND:
            own = log_second
        log_density += own - largest - (0.0 if total == 1.0 else math.log(total))
    return pair.action_weight * log_density + pair.concentration * (math.log(first) + math.log(second))


# where a policy is sure, its odds are known to some powers of ten only
draw_slice_odds = make_slice_sampler(log_density_odds, width=6.0)
draw_slice_concentration_given_policies = make_slice_sampler(log_density_concentration_given_policies)


@kernel
def make_pair(n_rows, concentration, votes, target):
    """A pair without rows, with room for some."""
    return Pair(
        1.0, concentration, votes.power, votes.smallest_share, target.action_weight, 0, np.empty(n_rows),
        np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty(n_rows),
        np.empty(n_rows, np.int64), np.empty(n_rows, np.bool_), np.empty(n_rows, np.bool_),
    )  # fmt: skip


@kernel
def collect_rows(pair, first, second, substates, policy, tallies, data):
    """Fill in what the rows say that hold the feature and have an action; return the pair with their number."""
    together = policy[first] + policy[second]
    n_held = 0
    for n in range(len(substates)):
        s, action = substates[n], data.actions[n]
        if s == 0.0 or action < 0:
            continue
        log_rest, largest = log_sum_of_powers(tallies[n], n, first, second, pair.power, data)
        most = pair.smallest_share * largest - s * together
        if action != first and action != second and tallies[n, first] < most and tallies[n, second] < most:
            continue  # the row is decided, whatever the odds are
        pair.substates[n_held] = s
        # the tally holds the feature itself; what is left may be smaller than the rounding, but not below zero
        pair.of_first[n_held] = max(tallies[n, first] - s * policy[first], 0.0)
        pair.of_second[n_held] = max(tallies[n, second] - s * policy[second], 0.0)
        pair.has_first[n_held] = is_available(n, first, data)
        pair.has_second[n_held] = is_available(n, second, data)
        pair.taken[n_held] = FIRST if action == first else SECOND if action == second else OTHER
        pair.log_taken[n_held] = pair.power * math.log(max(tallies[n, action], SMALLEST))
        pair.log_rest[n_held] = log_rest
        pair.top_of_rest[n_held] = largest
        n_held += 1
    return Pair(
        together, pair.concentration, pair.power, pair.smallest_share, pair.action_weight, n_held, pair.substates,
        pair.of_first, pair.of_second, pair.log_rest, pair.top_of_rest, pair.log_taken, pair.taken, pair.has_first,
        pair.has_second,
    )  # fmt: skip


@inlined
def log_sum_of_powers(tally, n, first, second, power, data):
    """Log of the sum of m(u)^tau over the available actions but these two, and the largest m(u) of them.

    Minus infinity and zero if there is no other.
    """
    largest = 0.0
    for u in range(len(tally)):
        if u != first and u != second and is_available(n, u, data):
            largest = max(largest, tally[u])
    if largest == 0.0:
        return -math.inf, 0.0
    total = 0.0
    for u in range(len(tally)):
        if u != first and u != second and is_available(n, u, data) and tally[u] > 0.0:
            total += share_of(power * math.log(tally[u] / largest))
    return power * math.log(largest) + math.log(total), largest


@kernel
def draw_decisive_policies(rng, substates, policies, concentration, votes, data, target):
    """Draw one pair of odds of a fifth of the policies, then the concentration; return both, and the tallies."""
    policies = policies.copy()
    n_features, n_rows = substates.shape
    n_actions = policies.shape[1]
    tallies = tally_rows(substates, -1, votes)
    empty = make_pair(n_rows, concentration, votes, target)
    # a fifth of the features in each sweep, from a random one on: the others can wait
    k = int(rng.random() * n_features)
    for _ in range((n_features + 4) // 5 if n_actions > 1 else 0):
        k = (k + 1) % n_features
        first = int(rng.random() * n_actions)
        second = (first + 1 + int(rng.random() * (n_actions - 1))) % n_actions
        pair = collect_rows(empty, first, second, substates[k], policies[k], tallies, data)
        odds = draw_slice_odds(rng, policies[k, first] / policies[k, second], pair)
        new_first = max(pair.together * (odds / (1.0 + odds)), SMALLEST)
        new_second = max(pair.together / (1.0 + odds), SMALLEST)
        for n in range(n_rows):
            if substates[k, n] > 0.0:
                for u, new in ((first, new_first), (second, new_second)):
                    rest = max(tallies[n, u] - substates[k, n] * policies[k, u], 0.0)
                    tallies[n, u] = rest + substates[k, n] * new
        policies[k, first], policies[k, second] = new_first, new_second
    # with a fixed tau a chain keeps the draws that it had before there was this step
    if target.decisiveness == LEARNED and n_actions > 1 and n_features > 0:
        policies, concentration, tallies = stretch_policies(
            rng, substates, policies, concentration, tallies, votes, data, target
        )
    arguments = (n_features, n_actions, np.log(policies).sum(), target)
    return policies, draw_slice_concentration_given_policies(rng, concentration, arguments), tallies


@kernel
def stretch_policies(rng, substates, policies, concentration, tallies, votes, data, target):
    """Move the concentration and all policies together (docs/sampler.md); return both, and the tallies."""
    n_features, n_actions = policies.shape
    factor = math.exp(STRETCH * rng.standard_normal())
    new_concentration = factor * concentration
    gain = target.policy_concentration_shape * math.log(factor)
    gain -= target.policy_concentration_rate * (new_concentration - concentration)
    each = math.lgamma(concentration) - math.lgamma(new_concentration) - math.log(factor)
    gain += n_features * n_actions * each
    new_policies = np.empty_like(policies)
    for k in range(n_features):
        total = draw_gamma(rng, n_actions * concentration)
        if not total > SMALLEST:
            return policies, concentration, tallies
        logs = np.log(policies[k]) + math.log(total)
        new_logs = logs / factor
        gain += np.exp(logs).sum() - np.exp(new_logs).sum()
        new_policies[k] = np.exp(new_logs - new_logs.max())
        new_policies[k] /= new_policies[k].sum()
        if not new_policies[k].min() >= SMALLEST:
            return policies, concentration, tallies
    floor = target.action_weight * log_likelihood_of_rows(tallies, votes, data) - gain - rng.standard_exponential()
    if floor >= 0.0:  # no likelihood is as high
        return policies, concentration, tallies
    new_votes = Votes(False, votes.power, votes.smallest_share, new_policies, votes.of_base)
    new_tallies = tally_rows(substates, -1, new_votes)
    if target.action_weight * log_likelihood_of_rows(new_tallies, new_votes, data) > floor:
        return new_policies, new_concentration, new_tallies
    return policies, concentration, tallies


@kernel
def log_density_decisiveness(decisiveness, arguments):
    """Log density of log tau; `logs` (N, U) are log m(u), relative to the largest of the row, of known actions."""
    logs, actions, target = arguments
    log_density = target.decisiveness_shape * math.log(decisiveness) - target.decisiveness_rate * decisiveness
    for n in range(len(logs)):
        total = 0.0
        for u in range(logs.shape[1]):
            total += share_of(decisiveness * logs[n, u])
        log_density += target.action_weight * decisiveness * logs[n, actions[n]]
        if total != 1.0:  # most rows of a decisive teacher need no logarithm
            log_density -= target.action_weight * math.log(total)
    return log_density


draw_slice_decisiveness = make_slice_sampler(log_density_decisiveness)


@kernel
def draw_decisiveness(rng, decisiveness, tallies, data, target):
    """Draw tau given the tallies of the rows, if it is to be learned: in every other sweep, at random."""
    if target.decisiveness != LEARNED or rng.random() < 0.5:
        return decisiveness
    logs = np.empty(tallies.shape)
    actions = np.empty(len(tallies), np.int64)
    n_known = 0
    for n in range(len(tallies)):
        largest = 0.0
        for u in range(tallies.shape[1]):
            if is_available(n, u, data):
                largest = max(largest, tallies[n, u])
        if data.actions[n] >= 0 and largest > 0.0:  # without any feature the action is uniform, whatever tau is
            for u in range(tallies.shape[1]):
                share = tallies[n, u] / largest if is_available(n, u, data) else 0.0
                # what has no share has none for any tau; only the action that was taken must have some
                logs[n_known, u] = math.log(share) if share > 0.0 else -math.inf
            own = data.actions[n]
            logs[n_known, own] = max(logs[n_known, own], math.log(SMALLEST))
            actions[n_known] = data.actions[n]
            n_known += 1
    return draw_slice_decisiveness(rng, decisiveness, (logs[:n_known], actions[:n_known], target))
