"""The paper's conditionals (Sec. 4.1), written literally with NumPy: the yardstick for speed, not a sampler to use.

Each line is the formula, vectorised over one axis as a careful reader would; the misprints that cannot be meant are
corrected. One pass draws every variable once, as one sweep does.
"""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from whyact.model import State


def sweep(
    rng: np.random.Generator,
    state: State,
    Z: np.ndarray,
    actions: np.ndarray,
    n_levels: int,
    sparsity: tuple[float, float] = (1.0, 1.0),
    weight_prior: tuple[float, float] = (1.0, 1.0),
    noise: tuple[float, float] = (1000.0, 1.0),
) -> State:
    """One sweep through all conditionals."""
    substates, features, policies = state.substates.T.copy(), state.features.copy(), state.policies.copy()
    variance, gamma = state.noise_variance, state.weight_scale
    n_rows, n_features = substates.shape
    n_dimensions = Z.shape[1]
    levels = np.linspace(0.0, 1.0, n_levels)

    # substates, Eq. (inf::s): the likelihoods of all levels, and the Beta-Binomial prior
    for n in range(n_rows):
        for k in range(n_features):
            rest = Z[n] - substates[n] @ features + substates[n, k] * features[k]
            log_weight = -np.sum((rest - levels[:, None] * features[k]) ** 2, axis=1) / (2 * variance)
            total = substates[n].sum() - substates[n, k] + levels
            votes = substates[n] @ policies[:, actions[n]] + (levels - substates[n, k]) * policies[k, actions[n]]
            log_weight += np.log(np.where(total > 0, votes / np.where(total > 0, total, 1), 1 / policies.shape[1]))
            n_zero = np.sum(substates[:, k] == 0) - (substates[n, k] == 0)
            log_weight[0] += math.log(n_zero + sparsity[0])
            log_weight[1:] += math.log((n_rows - 1 - n_zero + sparsity[1]) / (n_levels - 1))
            weight = np.exp(log_weight - log_weight.max())
            substates[n, k] = levels[np.searchsorted(np.cumsum(weight), rng.random() * weight.sum())]

    # activations, Eq. (inf::activations), given their weights
    active = features != 0
    weights = np.where(active, features, rng.exponential(gamma, features.shape))
    for k in range(n_features):
        for d in range(n_dimensions):
            n_others = active[k].sum() - active[k, d]
            if n_others == 0:
                continue
            rest = Z[:, d] - substates @ features[:, d] + substates[:, k] * features[k, d]
            log_odds = math.log(n_others / (n_dimensions + state.ibp_concentration - 1 - n_others))
            log_odds -= np.sum((rest - substates[:, k] * weights[k, d]) ** 2 - rest**2) / (2 * variance)
            active[k, d] = math.log(rng.random()) < -np.logaddexp(0.0, -log_odds)
            features[k, d] = weights[k, d] * active[k, d]

    # weights: a truncated Gaussian for each feature
    for k in range(n_features):
        precision = np.sum(substates[:, k] ** 2) / variance
        if precision == 0:
            continue
        rest = Z - substates @ features + np.outer(substates[:, k], features[k])
        mean = (substates[:, k] @ rest / variance - 1 / gamma) / precision
        low = ndtr(-mean * math.sqrt(precision))
        drawn = mean + ndtri(low + (1 - low) * rng.random(n_dimensions)) / math.sqrt(precision)
        drawn = np.where(np.isfinite(drawn) & (drawn > 0), drawn, np.exp(log_ndtr(mean)))
        features[k] = np.where(active[k], drawn, 0.0)

    # births in each dimension: everything from the prior, accepted with the likelihood ratio
    rate = state.ibp_mass * state.ibp_concentration / (state.ibp_concentration + n_dimensions - 1)
    for d in range(n_dimensions):
        n_new = rng.poisson(rate)
        rest = Z[:, d] - substates @ features[:, d]
        if n_new:
            new = np.where(
                rng.random((n_rows, n_new)) < rng.beta(*sparsity, n_new), 0.0, rng.choice(levels, (n_rows, n_new))
            )
            gap = rest - new @ rng.exponential(gamma, n_new)
            math.log(rng.random()) < (np.sum(rest**2) - np.sum(gap**2)) / (2 * variance)  # noqa: B015

    # policies by indicators
    shares = substates * policies[:, actions].T
    chosen = (np.cumsum(shares, axis=1) < (rng.random(n_rows) * shares.sum(axis=1))[:, None]).sum(axis=1)
    counts = np.zeros_like(policies)
    np.add.at(counts, (np.minimum(chosen, n_features - 1), actions), 1)
    for k in range(n_features):
        policies[k] = rng.dirichlet(counts[k] + state.policy_concentration)

    residual = Z - substates @ features
    variance = (noise[1] + 0.5 * np.sum(residual**2)) / rng.gamma(noise[0] + 0.5 * Z.size)
    gamma = (weight_prior[1] + features.sum()) / rng.gamma(weight_prior[0] + active.sum())
    return state._replace(
        substates=substates.T, features=features, policies=policies, noise_variance=variance, weight_scale=gamma
    )
