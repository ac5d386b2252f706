"""The product of policies: P(u | s) proportional to phi_0(u) prod_k phi_k(u)^(s_k).

With the log odds eta_k, the logarithms of phi_k centred over the actions, this is a softmax of eta_0 + sum_k s_k eta_k.
Their prior is Gaussian with one learned variance v on the centred space, which is the projection of independent
N(0, v) entries. So a common shift of the entries of eta_k, which no action sees, can be drawn from its prior
N(0, v / U), and then each action's entries of all features have a logistic likelihood given those of the others: with
one Polya-Gamma variable for each row they are jointly Gaussian. For an action weight other than one, which Polya-Gamma
variables do not allow for, each eta_k is drawn by an elliptical slice step (Murray, Adams & MacKay, 2010).
"""

import math

import numpy as np

from whyact.sampler.combining import LOG_NEGLIGIBLE, SMALLEST, is_available, log_likelihood_of_rows
from whyact.sampler.compiling import inlined, kernel
from whyact.sampler.limits import draw_gamma
from whyact.sampler.polya_gamma import draw_polya_gamma


@kernel
def to_policy(log_odds):
    """Probabilities by log odds."""
    probabilities = np.exp(log_odds - log_odds.max())
    return np.maximum(probabilities / probabilities.sum(), SMALLEST)


@kernel
def draw_policy_of_product(rng, n_actions, policy_scale):
    """Draw a policy from its prior."""
    log_odds = np.empty(n_actions)
    for u in range(n_actions):
        log_odds[u] = math.sqrt(policy_scale) * rng.standard_normal()
    return to_policy(log_odds)


@kernel
def draw_policy_scale(rng, log_odds, target):
    """Draw the variance v of the log odds (K + 1, U), which are centred: an inverse Gamma."""
    n_free = len(log_odds) * (log_odds.shape[1] - 1)
    squares = 0.0
    for entry in log_odds.flat:
        squares += entry * entry
    return (target.policy_scale_rate + 0.5 * squares) / draw_gamma(rng, target.policy_scale_shape + 0.5 * n_free)


@inlined
def log_sum_of_others(tally, n, action, data):
    """Log of the sum of exp t(u) over the available actions but one; minus infinity if there is no other."""
    largest = -math.inf
    for u in range(len(tally)):
        if u != action and is_available(n, u, data):
            largest = max(largest, tally[u])
    if largest == -math.inf:
        return largest
    total = 0.0
    for u in range(len(tally)):
        if u != action and tally[u] - largest > LOG_NEGLIGIBLE and is_available(n, u, data):
            total += math.exp(tally[u] - largest)
    return largest + math.log(total)


@kernel
def draw_log_odds_of_action(rng, action, columns, log_odds, tallies, policy_scale, data):
    """Draw what all features say about one action, in place, and bring the tallies up to date.

    `columns` (K + 1, N) are the substates, with a row of ones for the base policy.
    """
    n_columns, n_rows = columns.shape
    precision = np.zeros((n_columns, n_columns))
    slope = np.zeros(n_columns)
    for n in range(n_rows):
        if data.actions[n] < 0 or not is_available(n, action, data):
            continue
        others = log_sum_of_others(tallies[n], n, action, data)
        if others == -math.inf:
            continue
        weight = draw_polya_gamma(rng, tallies[n, action] - others)
        pull = (0.5 if data.actions[n] == action else -0.5) + weight * others
        for k in range(n_columns):
            if columns[k, n] > 0.0:
                slope[k] += pull * columns[k, n]
                for j in range(k + 1):
                    precision[k, j] += weight * columns[k, n] * columns[j, n]
    for k in range(n_columns):
        precision[k, k] += 1.0 / policy_scale
        for j in range(k):
            precision[j, k] = precision[k, j]
    root = np.linalg.cholesky(precision)
    noise = np.empty(n_columns)
    for k in range(n_columns):
        noise[k] = rng.standard_normal()
    drawn = np.linalg.solve(root.T, np.linalg.solve(root, slope) + noise)
    for k in range(n_columns):
        for n in range(n_rows):
            tallies[n, action] += columns[k, n] * (drawn[k] - log_odds[k, action])
        log_odds[k, action] = drawn[k]


@kernel
def draw_log_odds_by_ellipse(rng, k, columns, log_odds, tallies, policy_scale, votes, data, target):
    """Draw what one feature says about all actions by an elliptical slice step, in place."""
    n_actions = log_odds.shape[1]
    old = log_odds[k].copy()
    other = np.empty(n_actions)
    for u in range(n_actions):
        other[u] = math.sqrt(policy_scale) * rng.standard_normal()
    floor = target.action_weight * log_likelihood_of_rows(tallies, votes, data) - rng.standard_exponential()
    angle = 2.0 * math.pi * rng.random()
    low, high = angle - 2.0 * math.pi, angle
    while True:
        new = old * math.cos(angle) + other * math.sin(angle)
        for n in range(len(tallies)):
            if columns[k, n] > 0.0:
                for u in range(n_actions):
                    tallies[n, u] += columns[k, n] * (new[u] - log_odds[k, u])
        log_odds[k] = new
        if target.action_weight * log_likelihood_of_rows(tallies, votes, data) >= floor or high - low < 1e-12:
            return
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + rng.random() * (high - low)


@kernel
def draw_product_policies(rng, substates, policy_scale, votes, data, target):
    """Draw all policies, the base policy and their scale; return them and the log-likelihood without omega."""
    n_features, n_actions = votes.of_features.shape
    n_rows = substates.shape[1]
    columns = np.ones((n_features + 1, n_rows))
    columns[:-1] = substates
    log_odds = np.empty((n_features + 1, n_actions))
    log_odds[:-1] = votes.of_features
    log_odds[-1] = votes.of_base
    for k in range(n_features + 1):  # the common shift that no action sees
        log_odds[k] += math.sqrt(policy_scale / n_actions) * rng.standard_normal()
    tallies = np.dot(columns.T, log_odds)
    if target.action_weight == 1.0:
        # A quarter of the actions in each sweep, from a random one on: with two actions, one says it all.
        action = int(rng.random() * n_actions)
        for _ in range((n_actions + 3) // 4):
            draw_log_odds_of_action(rng, action, columns, log_odds, tallies, policy_scale, data)
            action = (action + 1) % n_actions
    else:
        for k in range(n_features + 1):
            draw_log_odds_by_ellipse(rng, k, columns, log_odds, tallies, policy_scale, votes, data, target)
    policies = np.empty((n_features, n_actions))
    for k in range(n_features + 1):
        log_odds[k] -= log_odds[k].mean()
    for k in range(n_features):
        policies[k] = to_policy(log_odds[k])
    policy_scale = draw_policy_scale(rng, log_odds, target)
    return policies, to_policy(log_odds[-1]), policy_scale, log_likelihood_of_rows(tallies, votes, data)
