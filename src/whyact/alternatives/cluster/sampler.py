"""The exact sampler of the clustering approach (Sec. 2.4): a Chinese restaurant process over the observations.

    cluster of row n: an old one with weight n_c, a new one with weight alpha,
    v_c ~ InvGamma(a, a v),  m_c ~ Normal(0, v_c / kappa),  z_n ~ Normal(m_c, v_c) in every dimension,
    phi_c ~ Dirichlet(alpha_phi),  u_n ~ phi_c.

Means, variances and policies are integrated out (`evidence.py`).
Rows move one at a time (Gibbs), and whole clusters are split and merged (Dahl, 2005): the rows of two clusters are
dealt out again, one after the other, each with its probability given those dealt before.
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.alternatives.cluster.evidence import (
    ROUNDING,
    Level,
    change_row,
    clear,
    collect_sums,
    copy_cluster,
    fill_log_densities,
    log_actions_of_cluster,
    log_gain_of_row,
    log_gamma_of_entries,
    log_marginal,
    log_of_spread,
    log_weight_of_row,
    make_level,
    make_log_gammas,
    refresh,
    sum_up_cluster,
)
from whyact.model import Demonstrations, log_gamma
from whyact.sampler.algorithm import Algorithm
from whyact.sampler.compiling import kernel
from whyact.sampler.limits import draw_gamma
from whyact.sampler.policies import (
    draw_dirichlet,
    draw_slice_concentration,
    log_marginal_of_actions,
)
from whyact.sampler.random_choice import draw_index
from whyact.sampler.slicing import make_slice_sampler


class ClusterState(NamedTuple):
    """All latent variables. The next sweep needs neither means nor policies: these are drawn to be kept."""

    substates: np.ndarray  # 1 where row n is in cluster k, (K, N)
    features: np.ndarray  # m_c, (K, D)
    policies: np.ndarray  # phi_c, (K, U)
    noise_variance: float  # v, the typical variance within a cluster
    noise_shape: float  # a; the larger, the more alike the clusters' variances
    mean_precision: float  # kappa: the variance within a cluster over that of the means
    concentration: float  # alpha of the Chinese restaurant process
    policy_concentration: float  # alpha_phi


class ClusterTarget(NamedTuple):
    """The distribution to sample from."""

    n_actions: int
    n_levels: int  # 2: a row is in a cluster or not
    observation_weight: float  # zeta
    action_weight: float  # omega
    n_tries: int  # splits and merges tried per sweep
    noise_variance_shape: float
    noise_variance_rate: float
    noise_shape_shape: float
    noise_shape_rate: float
    mean_precision_shape: float
    mean_precision_rate: float
    concentration_shape: float
    concentration_rate: float
    policy_concentration_shape: float
    policy_concentration_rate: float


class ClusterInfo(NamedTuple):
    """What a person may want to know about a sweep."""

    n_splits: int  # accepted splits
    n_merges: int  # accepted merges
    log_action_likelihood: float  # log P(u | clusters), the policies integrated out, without the weight omega


@kernel
def remove_cluster(c, n_clusters, clusters, sums):
    """Remove an empty cluster: the last one takes its number."""
    last = n_clusters - 1
    if c != last:
        copy_cluster(last, c, sums)
        for n in range(len(clusters)):
            if clusters[n] == last:
                clusters[n] = c
    clear(last, sums)
    return last


@kernel
def draw_clusters(rng, clusters, n_clusters, concentration, sums, level, data):
    """Draw the cluster of every row given all others (Neal, 2000, algorithm 3); return how many there are."""
    log_weights = np.empty(len(clusters) + 1)
    log_gammas = make_log_gammas(len(data.row_gaps) == 0, len(clusters), data.observations.shape[1], level)
    for n in range(len(clusters)):
        c = clusters[n]
        change_row(n, c, -1, sums, data)
        if sums.sizes[c] == 0:
            clusters[n] = -1
            n_clusters = remove_cluster(c, n_clusters, clusters, sums)
        else:
            refresh(c, sums, level)
        fill_log_densities(
            n, n_clusters, log_gammas, sums, level, data.observations, data.row_splits, data.row_gaps, log_weights
        )
        for c in range(n_clusters + 1):
            prior = concentration if c == n_clusters else float(sums.sizes[c])
            log_weights[c] += math.log(prior) + log_gain_of_row(n, c, sums, level, data)
        c = draw_index(rng, log_weights, n_clusters + 1)
        n_clusters += c == n_clusters
        clusters[n] = c
        change_row(n, c, 1, sums, data)
        refresh(c, sums, level)
    return n_clusters


@kernel
def deal_rows(rng, rows, first, second, choose, is_second, sums, level, data):
    """Deal `rows` in their order to the clusters `first` and `second`, which hold one row each already.

    Returns the log probability of the outcome. With `choose`, `is_second` is filled in; otherwise it is given.
    """
    log_probability = 0.0
    for i in range(len(rows)):
        log_first = math.log(sums.sizes[first]) + log_weight_of_row(rows[i], first, sums, level, data)
        log_second = math.log(sums.sizes[second]) + log_weight_of_row(rows[i], second, sums, level, data)
        largest = max(log_first, log_second)
        log_sum = largest + math.log(math.exp(log_first - largest) + math.exp(log_second - largest))
        if choose:
            is_second[i] = math.log(rng.random()) < log_second - log_sum
        chosen = second if is_second[i] else first
        log_probability += (log_second if is_second[i] else log_first) - log_sum
        change_row(rows[i], chosen, 1, sums, data)
        refresh(chosen, sums, level)
    return log_probability


@kernel
def try_split_or_merge(rng, clusters, n_clusters, concentration, sums, level, data):
    """Pick two random rows; propose to split their cluster, or to merge their two clusters (Dahl, 2005).

    The rows are dealt in a random order, which is the same for a move and for the one that undoes it. Returns the
    number of clusters.
    """
    n_rows = len(clusters)
    i = int(rng.random() * n_rows)
    j = int(rng.random() * (n_rows - 1))
    j += j >= i
    ci, cj = clusters[i], clusters[j]
    is_split = ci == cj
    # the other rows of both, in random order
    others = np.empty(sums.sizes[ci] + (0 if is_split else sums.sizes[cj]) - 2, np.int64)
    n_others = 0
    for n in range(n_rows):
        if n != i and n != j and (clusters[n] == ci or clusters[n] == cj):
            place = int(rng.random() * (n_others + 1))
            others[n_others] = others[place]
            others[place] = n
            n_others += 1
    is_second = np.empty(n_others, np.bool_)
    if not is_split:
        for k in range(n_others):
            is_second[k] = clusters[others[k]] == cj
    # deal them out in two spare places
    first, second = len(sums.sizes) - 2, len(sums.sizes) - 1
    clear(first, sums)
    clear(second, sums)
    change_row(i, first, 1, sums, data)
    change_row(j, second, 1, sums, data)
    refresh(first, sums, level)
    refresh(second, sums, level)
    log_proposal = deal_rows(rng, others, first, second, is_split, is_second, sums, level, data)
    log_apart = (
        math.log(concentration)
        + math.lgamma(sums.sizes[first])
        + math.lgamma(sums.sizes[second])
        + sums.log_evidence[first]
        + sums.log_evidence[second]
        + log_actions_of_cluster(first, sums, level)
        + log_actions_of_cluster(second, sums, level)
    )
    if is_split:
        log_together = math.lgamma(sums.sizes[ci]) + sums.log_evidence[ci] + log_actions_of_cluster(ci, sums, level)
        if -rng.standard_exponential() < log_apart - log_together - log_proposal:
            clusters[j] = n_clusters
            for k in range(n_others):
                if is_second[k]:
                    clusters[others[k]] = n_clusters
            copy_cluster(first, ci, sums)
            copy_cluster(second, n_clusters, sums)
            n_clusters += 1
    else:
        # all rows into one of the spare places
        change_row(j, first, 1, sums, data)
        for k in range(n_others):
            if is_second[k]:
                change_row(others[k], first, 1, sums, data)
        refresh(first, sums, level)
        log_together = (
            math.lgamma(sums.sizes[first]) + sums.log_evidence[first] + log_actions_of_cluster(first, sums, level)
        )
        if -rng.standard_exponential() < log_together + log_proposal - log_apart:
            clusters[j] = ci
            for k in range(n_others):
                clusters[others[k]] = ci
            copy_cluster(first, ci, sums)
            clear(cj, sums)
            n_clusters = remove_cluster(cj, n_clusters, clusters, sums)
    clear(first, sums)
    clear(second, sums)
    return n_clusters


@kernel
def log_density_mean_precision(precision, arguments):
    """Log density of log kappa given the clusters; their means and variances are integrated out."""
    n_clusters, sums, level, shape, rate = arguments
    log_density = shape * math.log(precision) - rate * precision
    variance = level.rate / level.shape
    own = make_level(
        level.observation_weight, variance, level.shape, precision, level.policy_concentration, len(level.shrink) - 1,
        level.action_weight,
    )  # fmt: skip
    for c in range(n_clusters):
        n_entries, q, log_spreads = sum_up_cluster(c, sums, own)
        log_density += log_of_spread(n_entries, q, log_spreads, log_gamma_of_entries(n_entries, own), own)
    return log_density


draw_slice_mean_precision = make_slice_sampler(log_density_mean_precision)


@kernel
def log_evidence_of_spreads(variance, shape, n_entries, qs, observation_weight):
    """Sum of the clusters' log evidence, as far as it depends on v and a."""
    rate = shape * variance
    log_rate = math.log(rate)
    log_gamma_shape = math.lgamma(shape)
    log_density = 0.0
    for c in range(len(qs)):
        n_weighted = observation_weight * n_entries[c]
        log_gamma = math.lgamma(shape + 0.5 * observation_weight * n_entries[c])
        log_density += log_marginal(n_weighted, qs[c], shape, rate, log_rate, log_gamma, log_gamma_shape)
    return log_density


@kernel
def log_density_cluster_variance(variance, arguments):
    """Log density of log v."""
    shape, n_entries, qs, observation_weight, prior_shape, prior_rate = arguments
    prior = prior_shape * math.log(variance) - prior_rate * variance
    return prior + log_evidence_of_spreads(variance, shape, n_entries, qs, observation_weight)


@kernel
def log_density_cluster_shape(shape, arguments):
    """Log density of log a."""
    variance, n_entries, qs, observation_weight, prior_shape, prior_rate = arguments
    prior = prior_shape * math.log(shape) - prior_rate * shape
    return prior + log_evidence_of_spreads(variance, shape, n_entries, qs, observation_weight)


draw_slice_cluster_variance = make_slice_sampler(log_density_cluster_variance)
draw_slice_cluster_shape = make_slice_sampler(log_density_cluster_shape)


@kernel
def log_density_crp(concentration, arguments):
    """Log density of log alpha given the number of clusters."""
    n_clusters, n_rows, shape, rate = arguments
    return (
        (shape + n_clusters) * math.log(concentration)
        - rate * concentration
        + math.lgamma(concentration)
        - math.lgamma(concentration + n_rows)
    )


draw_slice_crp = make_slice_sampler(log_density_crp)


@kernel
def draw_parameters(rng, n_clusters, sums, level, target):
    """Draw mean, variance and policy of each cluster given its rows; return means and policies."""
    n_dimensions = sums.totals.shape[1]
    means = np.empty((n_clusters, n_dimensions))
    policies = np.empty((n_clusters, target.n_actions))
    for c in range(n_clusters):
        n_entries, q, _ = sum_up_cluster(c, sums, level)
        half_count = 0.5 * level.observation_weight * n_entries
        rate = level.rate + 0.5 * (max(q, 0.0) + ROUNDING * level.observation_weight * n_entries)
        variance = rate / draw_gamma(rng, level.shape + half_count)
        for d in range(n_dimensions):
            shrink = level.shrink[sums.counts[c, d]]
            means[c, d] = level.observation_weight * sums.totals[c, d] * shrink
            means[c, d] += math.sqrt(variance * shrink) * rng.standard_normal()
        policies[c] = draw_dirichlet(rng, level.action_weight * sums.actions[c] + level.policy_concentration)
    return means, policies


@kernel
def find_clusters(substates):
    """The cluster of each row from the indicators."""
    clusters = np.zeros(substates.shape[1], np.int64)
    for k in range(len(substates)):
        for n in range(len(clusters)):
            if substates[k, n] > 0.0:
                clusters[n] = k
    return clusters


@kernel
def run_sweeps_of_clusters(rng, state, observation_weights, data, target):
    """Draw every variable from its conditional, once for each observation weight."""
    info = ClusterInfo(0, 0, 0.0)
    n_rows = len(data.observations)
    for observation_weight in observation_weights:
        clusters = find_clusters(state.substates)
        n_clusters = len(state.substates)
        level = make_level(
            observation_weight, state.noise_variance, state.noise_shape, state.mean_precision,
            state.policy_concentration, n_rows, target.action_weight,
        )  # fmt: skip
        sums = collect_sums(clusters, n_clusters, level, data, target)
        n_clusters = draw_clusters(rng, clusters, n_clusters, state.concentration, sums, level, data)
        n_splits = 0
        n_merges = 0
        for _ in range(target.n_tries if n_rows > 1 else 0):
            before = n_clusters
            n_clusters = try_split_or_merge(rng, clusters, n_clusters, state.concentration, sums, level, data)
            n_splits += n_clusters > before
            n_merges += n_clusters < before

        mean_precision = draw_slice_mean_precision(
            rng, state.mean_precision,
            (n_clusters, sums, level, target.mean_precision_shape, target.mean_precision_rate),
        )  # fmt: skip
        level = make_level(
            observation_weight, state.noise_variance, state.noise_shape, mean_precision, state.policy_concentration,
            n_rows, target.action_weight,
        )  # fmt: skip
        n_entries = np.empty(n_clusters)
        qs = np.empty(n_clusters)
        for c in range(n_clusters):
            n_entries[c], qs[c], _ = sum_up_cluster(c, sums, level)
        noise_variance = draw_slice_cluster_variance(
            rng, state.noise_variance,
            (
                state.noise_shape, n_entries, qs, observation_weight,
                target.noise_variance_shape, target.noise_variance_rate,
            ),
        )  # fmt: skip
        noise_shape = draw_slice_cluster_shape(
            rng, state.noise_shape,
            (noise_variance, n_entries, qs, observation_weight, target.noise_shape_shape, target.noise_shape_rate),
        )  # fmt: skip
        concentration = draw_slice_crp(
            rng, state.concentration, (n_clusters, n_rows, target.concentration_shape, target.concentration_rate)
        )
        counts = sums.actions[:n_clusters]
        policy_concentration = draw_slice_concentration(
            rng, state.policy_concentration,
            (target.action_weight * counts, target.policy_concentration_shape, target.policy_concentration_rate),
        )  # fmt: skip
        level = make_level(
            observation_weight, noise_variance, noise_shape, mean_precision, policy_concentration, n_rows,
            target.action_weight,
        )  # fmt: skip
        means, policies = draw_parameters(rng, n_clusters, sums, level, target)
        substates = np.zeros((n_clusters, n_rows))
        for n in range(n_rows):
            substates[clusters[n], n] = 1.0
        state = ClusterState(
            substates, means, policies, noise_variance, noise_shape, mean_precision, concentration,
            policy_concentration,
        )  # fmt: skip
        info = ClusterInfo(n_splits, n_merges, log_marginal_of_actions(counts, policy_concentration))
    return state, info


def level_of(state: ClusterState, data: Demonstrations, target: ClusterTarget) -> Level:
    """What the evidence of the clusters depends on, at the full observation weight; with room for a new row."""
    level: Level = make_level(
        target.observation_weight,
        state.noise_variance,
        state.noise_shape,
        state.mean_precision,
        state.policy_concentration,
        len(data.observations) + 1,
        target.action_weight,
    )
    return level


def log_joint_of_clusters(state: ClusterState, data: Demonstrations, target: ClusterTarget) -> float:
    """Log joint density of clusters, hyperparameters and data, with means, variances and policies integrated out."""
    n_rows, n_clusters = len(data.observations), len(state.substates)
    level = level_of(state, data, target)
    sums = collect_sums(find_clusters(state.substates), n_clusters, level, data, target)
    log_partition = (
        n_clusters * math.log(state.concentration)
        + sum(math.lgamma(size) for size in sums.sizes[:n_clusters])
        + math.lgamma(state.concentration)
        - math.lgamma(state.concentration + n_rows)
    )
    log_observations = sums.log_evidence[:n_clusters].sum() - 0.5 * target.observation_weight * data.n_observed * (
        math.log(2 * math.pi)
    )
    log_actions = log_marginal_of_actions(target.action_weight * sums.actions[:n_clusters], state.policy_concentration)
    log_hyper = sum(
        log_gamma(getattr(state, name), getattr(target, f"{name}_shape"), getattr(target, f"{name}_rate"))
        for name in ("noise_variance", "noise_shape", "mean_precision", "concentration", "policy_concentration")
    )
    return float(log_partition + log_observations + log_actions + log_hyper)


def start(rng: np.random.Generator, data: Demonstrations, target: ClusterTarget, priors: object) -> ClusterState:
    """Start with all rows in one cluster, and hyperparameters from the prior; the first sweep draws the rest."""
    n_rows, n_dimensions = data.observations.shape
    hyper = {
        name: rng.gamma(getattr(target, f"{name}_shape")) / getattr(target, f"{name}_rate")
        for name in ("noise_variance", "noise_shape", "mean_precision", "concentration", "policy_concentration")
    }
    return ClusterState(
        np.ones((1, n_rows)),
        np.zeros((1, n_dimensions)),
        np.full((1, target.n_actions), 1.0 / target.n_actions),
        **{name: max(float(value), 1e-300) for name, value in hyper.items()},
    )


def run(
    rng: np.random.Generator,
    state: ClusterState,
    observation_weights: np.ndarray,
    data: Demonstrations,
    target: ClusterTarget,
) -> tuple[ClusterState, ClusterInfo]:
    """Run one sweep for each observation weight."""
    state, info = run_sweeps_of_clusters(rng, state, observation_weights, data, target)
    return state, info


CLUSTERS = Algorithm("run_sweeps_of_clusters", start, run, log_joint_of_clusters, state=ClusterState)


@kernel
def mean_parameters(n_clusters, sums, level):
    """Posterior mean of each cluster's mean and policy, given its rows."""
    n_actions = sums.actions.shape[1]
    means = np.empty((n_clusters, sums.totals.shape[1]))
    policies = np.empty((n_clusters, n_actions))
    for c in range(n_clusters):
        for d in range(means.shape[1]):
            means[c, d] = level.observation_weight * sums.totals[c, d] * level.shrink[sums.counts[c, d]]
        for u in range(n_actions):
            policies[c, u] = level.policy_concentration + level.action_weight * sums.actions[c, u]
        policies[c] /= policies[c].sum()
    return means, policies


@kernel
def predict_from_draw(
    rows, row_splits, row_gaps, n_clusters, is_complete, concentration, sums, level, probabilities, shares
):
    """Fill in P(cluster | row) as `shares`, the last one for a new cluster, and add to each row's probabilities.

    The policy of a new cluster is the prior's, which is uniform.
    """
    n_actions = sums.actions.shape[1]
    log_gammas = make_log_gammas(is_complete, len(level.shrink) - 1, rows.shape[1], level)
    log_weights = np.empty(n_clusters + 1)
    policies = np.full((n_clusters + 1, n_actions), 1.0 / n_actions)
    policies[:n_clusters] = mean_parameters(n_clusters, sums, level)[1]
    for n in range(len(rows)):
        fill_log_densities(n, n_clusters, log_gammas, sums, level, rows, row_splits, row_gaps, log_weights)
        largest = -math.inf
        for c in range(n_clusters + 1):
            prior = concentration if c == n_clusters else float(sums.sizes[c])
            log_weights[c] += math.log(prior)
            largest = max(largest, log_weights[c])
        total = 0.0
        for c in range(n_clusters + 1):
            shares[n, c] = math.exp(log_weights[c] - largest)
            total += shares[n, c]
        for c in range(n_clusters + 1):
            shares[n, c] /= total
            for u in range(n_actions):
                probabilities[n, u] += shares[n, c] * policies[c, u]
