"""Policies by exact indicators: Eq. (inf::sample::t) of the paper.

An action that counts omega times has omega indicators, each naming the feature whose policy it came from. Given the
counts of indicators, the policies are Dirichlet, and their concentration is drawn with the policies integrated out. If
omega is not a whole number, the step for the nearest whole weight is a proposal: it is reversible for that weight, and
accepted with the likelihood ratio to the power of the difference.
"""

import math

import numpy as np

from whyact.sampler.combining import SMALLEST
from whyact.sampler.compiling import kernel
from whyact.sampler.limits import draw_binomial, draw_gamma
from whyact.sampler.slicing import make_slice_sampler


@kernel
def draw_dirichlet(rng, concentrations):
    """Draw from a Dirichlet in logs, because Gamma draws of a small shape underflow."""
    logs = np.empty(len(concentrations))
    if len(logs) == 0:  # a model that integrates its policies out has none
        return logs
    for u in range(len(logs)):
        # Gamma(a) = Gamma(a + 1) * U^(1 / a)
        logs[u] = math.log(draw_gamma(rng, concentrations[u] + 1.0)) - rng.standard_exponential() / concentrations[u]
    probabilities = np.exp(logs - logs.max())
    return np.maximum(probabilities / probabilities.sum(), SMALLEST)


@kernel
def log_density_concentration(concentration, arguments):
    """Log density of log alpha_phi given the indicator counts, with the policies integrated out."""
    counts, shape, rate = arguments
    n_features, n_actions = counts.shape
    log_density = shape * math.log(concentration) - rate * concentration
    log_gamma_one = math.lgamma(concentration)
    log_gamma_all = math.lgamma(n_actions * concentration)
    for k in range(n_features):
        total = 0.0
        for u in range(n_actions):
            if counts[k, u] > 0.0:
                total += counts[k, u]
                log_density += math.lgamma(concentration + counts[k, u]) - log_gamma_one
        if total > 0.0:
            log_density += log_gamma_all - math.lgamma(n_actions * concentration + total)
    return log_density


@kernel
def log_density_concentration_given_policies(concentration, arguments):
    """Log density of log alpha_phi given the policies themselves, by the sum of their logarithms."""
    n_features, n_actions, sum_of_logs, target = arguments
    log_density = target.policy_concentration_shape * math.log(concentration)
    log_density -= target.policy_concentration_rate * concentration
    log_density += n_features * (math.lgamma(n_actions * concentration) - n_actions * math.lgamma(concentration))
    return log_density + (concentration - 1.0) * sum_of_logs


draw_slice_concentration = make_slice_sampler(log_density_concentration)


@kernel
def log_action_gain(count, total, action_weight, concentration, n_actions):
    """Log probability of an action seen `count` times among `total` with the same policy, the policy integrated out.

    With an action weight omega, this action and the earlier ones count omega times each: the result is the factor by
    which the action changes the integral of the policy's likelihood to the power of omega.
    """
    if action_weight == 1.0:
        return math.log((count + concentration) / (total + n_actions * concentration))
    if action_weight == 0.0:
        return 0.0
    before = concentration + action_weight * count
    before_all = n_actions * concentration + action_weight * total
    return (
        math.lgamma(before + action_weight)
        - math.lgamma(before)
        - math.lgamma(before_all + action_weight)
        + math.lgamma(before_all)
    )


@kernel
def log_marginal_of_actions(counts, concentration):
    """Log probability of actions, counted by policy and action (policies, U), with the policies integrated out."""
    # under a flat prior of its logarithm, the density of the concentration is this likelihood
    return log_density_concentration(concentration, (counts, 0.0, 0.0))


@kernel
def draw_indicator_counts(rng, substates, policies, n_indicators, data):
    """Draw Multinomial(n_indicators, s_nk phi_k(u_n)) for each row with a known action; count by feature and action."""
    n_features, n_rows = substates.shape
    counts = np.zeros(policies.shape)
    shares = np.empty(n_features)
    for n in range(n_rows):
        action = data.actions[n]
        if action < 0:
            continue
        total = 0.0
        last = -1
        for k in range(n_features):
            shares[k] = substates[k, n] * policies[k, action]
            total += shares[k]
            if shares[k] > 0.0:
                last = k
        if last < 0:  # no feature in this row: its action is uniform, and says nothing about the policies
            continue
        if n_indicators == 1:
            left = rng.random() * total
            k = 0
            while k < last and left >= shares[k]:
                left -= shares[k]
                k += 1
            counts[k, action] += 1.0
            continue
        remaining = n_indicators
        for k in range(last):
            if remaining > 0 and shares[k] > 0.0:
                drawn = draw_binomial(rng, remaining, min(shares[k] / total, 1.0))
                counts[k, action] += drawn
                remaining -= drawn
                total -= shares[k]
                if not total > 0.0:
                    total = shares[last]
        counts[last, action] += remaining
    return counts


@kernel
def log_action_likelihood(substates, policies, data, target):
    """Log P(u | S, Phi), the sum over rows of the log of Eq. (model::mixture), without the weight omega."""
    n_features, n_rows = substates.shape
    log_likelihood = 0.0
    for n in range(n_rows):
        action = data.actions[n]
        if action < 0:
            continue
        contributions = 0.0
        total = 0.0
        for k in range(n_features):
            contributions += substates[k, n] * policies[k, action]
            total += substates[k, n]
        log_likelihood += math.log(contributions / total if total > 0.0 else 1.0 / target.n_actions)
    return log_likelihood


@kernel
def draw_policies(rng, substates, policies, concentration, data, target):
    """Draw the policies and their concentration; return both, and the action log-likelihood."""
    action_weight = target.action_weight
    n_indicators = int(action_weight + 0.5)
    if action_weight > 0.0:
        n_indicators = max(n_indicators, 1)
    counts = draw_indicator_counts(rng, substates, policies, n_indicators, data)
    new_concentration = draw_slice_concentration(
        rng, concentration,
        (counts, target.policy_concentration_shape, target.policy_concentration_rate),
    )  # fmt: skip
    new_policies = np.empty_like(policies)
    for k in range(len(policies)):
        new_policies[k] = draw_dirichlet(rng, counts[k] + new_concentration)
    log_likelihood = log_action_likelihood(substates, new_policies, data, target)
    if action_weight != n_indicators:
        old_log_likelihood = log_action_likelihood(substates, policies, data, target)
        if -rng.standard_exponential() > (action_weight - n_indicators) * (log_likelihood - old_log_likelihood):
            return policies, concentration, old_log_likelihood
    return new_policies, new_concentration, log_likelihood
