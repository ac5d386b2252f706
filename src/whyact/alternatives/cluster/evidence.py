"""Sums over the rows of clusters, and what follows from them: the evidence of a cluster, and of a row that joins it.

Means, variances and policies are integrated out. With the sums over the rows of a cluster, dimension by dimension,
n_d = number of observed entries, t_d = their sum, and q = (sum of all squares) - sum_d t_d^2 / (kappa + n_d),

    log p(rows of c) = lgamma(a + n/2) - lgamma(a) + a log(a v) - (a + n/2) log(a v + q/2)
                       - 1/2 sum_d log(1 + n_d / kappa) - n/2 log(2 pi),   n = sum_d n_d.

An observation weight zeta multiplies all counts and sums. Missing entries are not counted, which integrates them out.
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.sampler.compiling import kernel
from whyact.sampler.policies import log_action_gain, log_marginal_of_actions

# Squared rounding of an entry; without it the density of clusters of equal rows would have no bound.
ROUNDING = 1e-12


class Sums(NamedTuple):
    """Sums over the rows of each cluster, with room for as many clusters as rows, and for two that are tried."""

    sizes: np.ndarray  # rows, (C,)
    counts: np.ndarray  # observed entries in each dimension, (C, D)
    totals: np.ndarray  # sum of the entries, (C, D)
    squares: np.ndarray  # sum of all squares, (C,)
    lengths: np.ndarray  # squared length of the totals, (C,)
    actions: np.ndarray  # how often each action was seen, (C, U)
    n_actions: np.ndarray  # number of known actions, (C,)
    log_evidence: np.ndarray  # log p(rows of the cluster) up to a constant for each entry, (C,)


class Level(NamedTuple):
    """The numbers that the evidence of a cluster depends on, and tables over the number n of rows."""

    observation_weight: float  # zeta
    shape: float  # a
    rate: float  # a v
    log_rate: float
    log_gamma_shape: float
    shrink: np.ndarray  # 1 / (kappa + zeta n)
    log_spread: np.ndarray  # log(1 + zeta n / kappa)
    action_weight: float
    policy_concentration: float


@kernel
def make_level(observation_weight, variance, shape, precision, policy_concentration, n_rows, action_weight):
    """Fill the tables for up to `n_rows` rows."""
    shrink = np.empty(n_rows + 1)
    log_spread = np.empty(n_rows + 1)
    for n in range(n_rows + 1):
        shrink[n] = 1.0 / (precision + observation_weight * n)
        log_spread[n] = math.log1p(observation_weight * n / precision)
    rate = shape * variance
    return Level(
        observation_weight, shape, rate, math.log(rate), math.lgamma(shape), shrink, log_spread, action_weight,
        policy_concentration,
    )  # fmt: skip


@kernel
def make_sums(n_rows, n_dimensions, n_actions):
    """Sums of clusters without rows."""
    room = n_rows + 2
    return Sums(
        np.zeros(room, np.int64),
        np.zeros((room, n_dimensions), np.int64),
        np.zeros((room, n_dimensions)),
        np.zeros(room),
        np.zeros(room),
        np.zeros((room, n_actions)),
        np.zeros(room),
        np.zeros(room),
    )


@kernel
def log_marginal(n_entries, q, shape, rate, log_rate, log_gamma, log_gamma_shape):
    """Log density of weighted entries with a variance from InvGamma(shape, rate), as far as it depends on these two."""
    q = max(q, 0.0) + ROUNDING * n_entries
    half = 0.5 * n_entries
    return log_gamma - log_gamma_shape - (shape + half) * math.log1p(0.5 * q / rate) - half * log_rate


@kernel
def log_gamma_of_entries(n_entries, level):
    """lgamma(a + zeta n / 2) for n entries."""
    return math.lgamma(level.shape + 0.5 * level.observation_weight * n_entries)


@kernel
def log_of_spread(n_entries, q, log_spreads, log_gamma, level):
    """Log evidence from the number of entries, q, the sum of log(1 + n_d / kappa) and `log_gamma_of_entries`."""
    n_weighted = level.observation_weight * n_entries
    log_density = log_marginal(n_weighted, q, level.shape, level.rate, level.log_rate, log_gamma, level.log_gamma_shape)
    return log_density - 0.5 * log_spreads


@kernel
def sum_up_cluster(c, sums, level):
    """Number of entries, q and the sum of log(1 + n_d / kappa) of a cluster."""
    n_entries = 0
    q = level.observation_weight * sums.squares[c]
    log_spreads = 0.0
    for d in range(sums.totals.shape[1]):
        n = sums.counts[c, d]
        total = level.observation_weight * sums.totals[c, d]
        n_entries += n
        q -= total * total * level.shrink[n]
        log_spreads += level.log_spread[n]
    return n_entries, q, log_spreads


@kernel
def refresh(c, sums, level):
    """Update the evidence of a cluster."""
    n_entries, q, log_spreads = sum_up_cluster(c, sums, level)
    sums.lengths[c] = np.dot(sums.totals[c], sums.totals[c])
    sums.log_evidence[c] = 0.0
    if sums.sizes[c] > 0:
        log_gamma = log_gamma_of_entries(n_entries, level)
        sums.log_evidence[c] = log_of_spread(n_entries, q, log_spreads, log_gamma, level)


@kernel
def change_row(n, c, sign, sums, data):
    """Put row n into cluster c (sign 1), or take it out (-1)."""
    sums.sizes[c] += sign
    for d in range(sums.totals.shape[1]):
        z = data.observations[n, d]  # zero where missing
        sums.counts[c, d] += sign
        sums.totals[c, d] += sign * z
        sums.squares[c] += sign * z * z
    for i in range(data.row_splits[n], data.row_splits[n + 1]):
        sums.counts[c, data.row_gaps[i]] -= sign
    if data.actions[n] >= 0:
        sums.actions[c, data.actions[n]] += sign
        sums.n_actions[c] += sign


@kernel
def clear(c, sums):
    """Make a cluster empty."""
    sums.sizes[c] = 0
    sums.counts[c] = 0
    sums.totals[c] = 0.0
    sums.squares[c] = 0.0
    sums.lengths[c] = 0.0
    sums.actions[c] = 0.0
    sums.n_actions[c] = 0.0
    sums.log_evidence[c] = 0.0


@kernel
def copy_cluster(source, goal, sums):
    """Give one cluster the sums of another."""
    sums.sizes[goal] = sums.sizes[source]
    sums.counts[goal] = sums.counts[source]
    sums.totals[goal] = sums.totals[source]
    sums.squares[goal] = sums.squares[source]
    sums.lengths[goal] = sums.lengths[source]
    sums.actions[goal] = sums.actions[source]
    sums.n_actions[goal] = sums.n_actions[source]
    sums.log_evidence[goal] = sums.log_evidence[source]


@kernel
def log_density_of_row(n, c, sums, level, observations, row_splits, row_gaps):
    """Log density of row n of `observations` given the rows of cluster c (which may be empty)."""
    n_dimensions = observations.shape[1]
    n_entries, q, log_spreads = 0, level.observation_weight * sums.squares[c], 0.0
    gap, last_gap = row_splits[n], row_splits[n + 1]
    for d in range(n_dimensions):
        count = sums.counts[c, d]
        total = sums.totals[c, d]
        if gap < last_gap and row_gaps[gap] == d:
            gap += 1
        else:
            z = observations[n, d]
            count += 1
            total += z
            q += level.observation_weight * z * z
        total *= level.observation_weight
        n_entries += count
        q -= total * total * level.shrink[count]
        log_spreads += level.log_spread[count]
    log_gamma = log_gamma_of_entries(n_entries, level)
    return log_of_spread(n_entries, q, log_spreads, log_gamma, level) - sums.log_evidence[c]


@kernel
def make_log_gammas(is_complete, n_rows, n_dimensions, level):
    """Table of `log_gamma_of_entries` over the number of rows; empty where entries are missing."""
    log_gammas = np.empty(n_rows + 2 if is_complete else 0)
    for n in range(len(log_gammas)):
        log_gammas[n] = log_gamma_of_entries(n * n_dimensions, level)
    return log_gammas


@kernel
def fill_log_densities(n, n_clusters, log_gammas, sums, level, observations, row_splits, row_gaps, log_densities):
    """Fill in the log density of row n given each cluster, and given none.

    Where nothing is missing, neither in the clusters nor in the row, one product with the totals serves all of them.
    """
    if len(log_gammas) == 0:
        for c in range(n_clusters + 1):
            log_densities[c] = log_density_of_row(n, c, sums, level, observations, row_splits, row_gaps)
        return
    n_dimensions = observations.shape[1]
    products = np.dot(sums.totals[: n_clusters + 1], observations[n])
    square = np.dot(observations[n], observations[n])
    for c in range(n_clusters + 1):
        size = sums.sizes[c] + 1
        length = sums.lengths[c] + 2.0 * products[c] + square
        q = level.observation_weight * (
            sums.squares[c] + square - level.observation_weight * level.shrink[size] * length
        )
        log_spreads = n_dimensions * level.log_spread[size]
        log_evidence = log_of_spread(size * n_dimensions, q, log_spreads, log_gammas[size], level)
        log_densities[c] = log_evidence - sums.log_evidence[c]


@kernel
def log_gain_of_row(n, c, sums, level, data):
    """Log probability of row n's action given the rows of cluster c."""
    action = data.actions[n]
    if action < 0:
        return 0.0
    return log_action_gain(
        sums.actions[c, action], sums.n_actions[c], level.action_weight, level.policy_concentration,
        sums.actions.shape[1],
    )  # fmt: skip


@kernel
def log_weight_of_row(n, c, sums, level, data):
    """Log density of a demonstration, observation and action, given the rows of cluster c."""
    log_density = log_density_of_row(n, c, sums, level, data.observations, data.row_splits, data.row_gaps)
    return log_density + log_gain_of_row(n, c, sums, level, data)


@kernel
def log_actions_of_cluster(c, sums, level):
    """Log probability of the actions of a cluster, its policy integrated out."""
    return log_marginal_of_actions(level.action_weight * sums.actions[c : c + 1], level.policy_concentration)


@kernel
def collect_sums(clusters, n_clusters, level, data, target):
    """Sums over the rows of each cluster, from scratch."""
    sums = make_sums(len(clusters), data.observations.shape[1], target.n_actions)
    for n in range(len(clusters)):
        change_row(n, clusters[n], 1, sums, data)
    for c in range(n_clusters):
        refresh(c, sums, level)
    return sums
