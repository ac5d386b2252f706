"""The clustering approach: its sampler against enumeration and Geweke's test, and what it learns."""

import itertools
import math

import numba
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.geweke import compare
from tests.support.statistics import Z_LIMIT, batch_z
from whyact.alternatives.cluster.estimator import ClusterPolicyClassifier, ClusterPriors, make_cluster_target
from whyact.alternatives.cluster.evidence import collect_sums, sum_up_cluster
from whyact.alternatives.cluster.posterior import ClusterPosterior
from whyact.alternatives.cluster.sampler import (
    ClusterState,
    draw_clusters,
    draw_parameters,
    find_clusters,
    level_of,
    log_density_cluster_shape,
    log_density_cluster_variance,
    log_density_crp,
    log_density_mean_precision,
    log_joint_of_clusters,
    run_sweeps_of_clusters,
    try_split_or_merge,
)
from whyact.model import Demonstrations, log_gamma, make_demonstrations
from whyact.sampler.draws import ChainDraws
from whyact.sampler.policies import log_density_concentration

PRIORS = ClusterPriors(
    noise_variance=(5.0, 6.0),
    noise_shape=(8.0, 2.0),
    mean_precision=(6.0, 9.0),
    concentration=(6.0, 5.0),
    policy_concentration=(5.0, 6.0),
)
HYPER = {
    "noise_variance": 0.4,
    "noise_shape": 3.0,
    "mean_precision": 0.5,
    "concentration": 1.3,
    "policy_concentration": 0.6,
}


def make_state(clusters, n_dimensions=2, n_actions=2, **hyper):
    clusters = np.asarray(clusters)
    n_clusters = clusters.max() + 1
    return ClusterState(
        (np.arange(n_clusters)[:, None] == clusters).astype(float), np.zeros((n_clusters, n_dimensions)),
        np.full((n_clusters, n_actions), 1 / n_actions), **(HYPER | hyper),
    )  # fmt: skip


def make_problem(n_rows=5, missing=False, seed=0, **options):
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(n_rows, 2)) + np.array([[1.5, 0.0], [-1.0, 0.5]])[rng.integers(0, 2, n_rows)]
    actions = rng.integers(0, 2, n_rows)
    if missing:
        observations[0, 1] = observations[2, 0] = np.nan
        actions[1] = -1
    return make_demonstrations(observations, actions), make_cluster_target(PRIORS, n_actions=2, **options)


def partitions(n):
    """All ways to cluster n rows, clusters numbered in order of their first row."""
    for clusters in itertools.product(*(range(i + 1) for i in range(n))):
        if all(c <= max(clusters[:i], default=-1) + 1 for i, c in enumerate(clusters)):
            yield clusters


def rename(clusters):
    """The same partition, clusters numbered in order of their first row."""
    names = {}
    return tuple(names.setdefault(c, len(names)) for c in clusters)


# --- evidence -------------------------------------------------------------------------------------------------------


def log_evidence_by_integration(rows, weight=1.0):
    """Log density of a cluster's rows: per dimension Gaussian given the variance, integrated over it numerically."""
    a, v, kappa = HYPER["noise_shape"], HYPER["noise_variance"], HYPER["mean_precision"]

    def integrand(log_variance):
        variance = math.exp(log_variance)
        log_density = stats.invgamma.logpdf(variance, a, scale=a * v) + log_variance
        for column in rows.T:
            z = column[~np.isnan(column)]
            # the mean is integrated on a fine grid: nothing of the closed form is used
            mean = np.linspace(-12, 12, 4001) * math.sqrt(variance / kappa)
            log_mean = -0.5 * mean**2 * kappa / variance - 0.5 * math.log(2 * math.pi * variance / kappa)
            log_likelihood = -0.5 * ((z[:, None] - mean) ** 2 / variance + math.log(2 * math.pi * variance)).sum(axis=0)
            log_density += logsumexp(log_mean + weight * log_likelihood) + math.log(mean[1] - mean[0])
        return math.exp(log_density)

    return math.log(integrate.quad(integrand, -6, 6, epsabs=1e-12, limit=200)[0])


@pytest.mark.parametrize(("missing", "weight"), [(False, 1.0), (True, 1.0), (True, 0.3)])
def test_evidence_is_the_integral_over_mean_and_variance(missing, weight):
    data, target = make_problem(missing=missing, observation_weight=weight)
    state = make_state([0, 0, 1, 0, 1])
    sums = collect_sums(find_clusters(state.substates), 2, level_of(state, data, target), data, target)
    rows = data.observations.copy()
    for n in range(5):
        rows[n, data.row_gaps[data.row_splits[n] : data.row_splits[n + 1]]] = np.nan
    for c in range(2):
        own = rows[state.substates[c] > 0]
        constant = 0.5 * weight * np.sum(~np.isnan(own)) * math.log(2 * math.pi)
        assert sums.log_evidence[c] - constant == pytest.approx(log_evidence_by_integration(own, weight), abs=1e-5)


def test_joint_density_is_the_product_of_its_parts():
    data, target = make_problem()
    state = make_state([0, 0, 1, 0, 1])
    alpha = HYPER["concentration"]
    # rows sit down one after the other
    log_partition = math.log(alpha / alpha * 1 / (alpha + 1) * alpha / (alpha + 2) * 2 / (alpha + 3) * 1 / (alpha + 4))
    log_actions = 0.0
    for c in range(2):
        counts = np.bincount(data.actions[state.substates[c] > 0], minlength=2)
        log_actions += gammaln(1.2) - gammaln(1.2 + counts.sum()) + (gammaln(0.6 + counts) - gammaln(0.6)).sum()
    log_observations = sum(log_evidence_by_integration(data.observations[state.substates[c] > 0]) for c in range(2))
    log_hyper = sum(log_gamma(HYPER[name], *getattr(PRIORS, name)) for name in HYPER)
    expected = log_partition + log_actions + log_observations + log_hyper
    assert log_joint_of_clusters(state, data, target) == pytest.approx(expected, abs=1e-5)


# --- clusters against enumeration -----------------------------------------------------------------------------------


@numba.njit
def visit_partitions(rng, clusters, n_clusters, concentration, n_steps, gibbs, sums, level, data):
    visited = np.empty((n_steps, len(clusters)), np.int64)
    for i in range(n_steps):
        if gibbs:
            n_clusters = draw_clusters(rng, clusters, n_clusters, concentration, sums, level, data)
        else:
            n_clusters = try_split_or_merge(rng, clusters, n_clusters, concentration, sums, level, data)
        visited[i] = clusters
    return visited


@pytest.mark.parametrize("gibbs", [True, False], ids=["one row at a time", "split and merge"])
@pytest.mark.parametrize(
    "options",
    [{}, {"missing": True}, {"action_weight": 2.5, "observation_weight": 0.4}],
    ids=["plain", "missing", "weights"],
)
def test_partitions_are_drawn_from_the_enumerated_posterior(gibbs, options):
    data, target = make_problem(**options)
    everything = list(partitions(5))
    assert len(everything) == 52
    log_weights = [log_joint_of_clusters(make_state(clusters), data, target) for clusters in everything]
    probabilities = np.exp(log_weights - logsumexp(log_weights))
    state = make_state([0] * 5)
    level = level_of(state, data, target)
    clusters = find_clusters(state.substates)
    sums = collect_sums(clusters, 1, level, data, target)
    visited = visit_partitions(
        np.random.default_rng(0), clusters, 1, HYPER["concentration"], 200_000, gibbs, sums, level, data
    )
    index = {partition: i for i, partition in enumerate(everything)}
    codes = np.array([index[rename(row)] for row in visited.tolist()])
    for code, probability in enumerate(probabilities):
        if probability > 1e-3:
            assert abs(batch_z((codes == code).astype(float), probability)) < Z_LIMIT
    # the sums that are carried along are those of the rows
    n_clusters = clusters.max() + 1
    fresh = collect_sums(clusters, n_clusters, level, data, target)
    np.testing.assert_allclose(sums.totals, fresh.totals, atol=1e-9)
    np.testing.assert_allclose(sums.log_evidence, fresh.log_evidence, atol=1e-6)
    assert np.array_equal(sums.counts, fresh.counts)


def test_densities_of_the_hyperparameters_are_those_of_the_joint():
    """Each slice step's log density differs between two values as the log joint does (with the Jacobian of the log)."""
    data, target = make_problem(missing=True, observation_weight=0.3, action_weight=2.5)
    clusters = [0, 0, 1, 0, 2]
    state = make_state(clusters)
    level = level_of(state, data, target)
    sums = collect_sums(find_clusters(state.substates), 3, level, data, target)
    n_entries, qs = (
        np.array(v, dtype=float) for v in zip(*(sum_up_cluster(c, sums, level)[:2] for c in range(3)), strict=True)
    )
    densities = {
        "mean_precision": lambda v: log_density_mean_precision(v, (3, sums, level, *PRIORS.mean_precision)),
        "noise_variance": lambda v: log_density_cluster_variance(
            v, (HYPER["noise_shape"], n_entries, qs, 0.3, *PRIORS.noise_variance)
        ),
        "noise_shape": lambda v: log_density_cluster_shape(
            v, (HYPER["noise_variance"], n_entries, qs, 0.3, *PRIORS.noise_shape)
        ),
        "concentration": lambda v: log_density_crp(v, (3, 5, *PRIORS.concentration)),
        "policy_concentration": lambda v: log_density_concentration(
            v, (2.5 * sums.actions[:3], *PRIORS.policy_concentration)
        ),
    }
    for name, density in densities.items():
        old, new = HYPER[name], 1.7
        joint = [
            log_joint_of_clusters(make_state(clusters, **{name: v}), data, target) + math.log(v) for v in (old, new)
        ]
        assert density(new) - density(old) == pytest.approx(joint[1] - joint[0], abs=1e-9)


@numba.njit
def draw_many_parameters(rng, n, n_clusters, sums, level, target):
    means = np.empty((n, n_clusters, sums.totals.shape[1]))
    policies = np.empty((n, n_clusters, target.n_actions))
    for i in range(n):
        means[i], policies[i] = draw_parameters(rng, n_clusters, sums, level, target)
    return means, policies


def test_means_and_policies_follow_their_conjugate_posterior():
    data, target = make_problem()
    state = make_state([0, 0, 1, 0, 1])
    level = level_of(state, data, target)
    sums = collect_sums(find_clusters(state.substates), 2, level, data, target)
    means, policies = draw_many_parameters(np.random.default_rng(0), 50_000, 2, sums, level, target)
    a, v, kappa = HYPER["noise_shape"], HYPER["noise_variance"], HYPER["mean_precision"]
    for c in range(2):
        rows = data.observations[state.substates[c] > 0]
        n = len(rows)
        rate = a * v + 0.5 * (np.sum(rows**2) - np.sum(rows.sum(axis=0) ** 2) / (kappa + n))
        scale = math.sqrt(rate / (a + n) / (kappa + n))
        for d in range(2):
            t = stats.t(2 * (a + n), rows[:, d].sum() / (kappa + n), scale)
            assert stats.kstest(means[:, c, d], t.cdf).pvalue > 1e-5
        counts = np.bincount(data.actions[state.substates[c] > 0], minlength=2)
        beta = stats.beta(0.6 + counts[0], 0.6 + counts[1])
        assert stats.kstest(policies[:, c, 0], beta.cdf).pvalue > 1e-5


# --- Geweke ---------------------------------------------------------------------------------------------------------

QUANTITIES = (
    "n_clusters",
    "largest",
    "noise_variance",
    "noise_shape",
    "mean_precision",
    "concentration",
    "policy_concentration",
    "n_agreeing",
    "squares",
    "first_with_second",
    "mean_of_means",
    "policy_spread",
)


@numba.njit
def measure(state, data):
    values = np.zeros(12)
    sizes = state.substates.sum(axis=1)
    values[0] = len(sizes)
    values[1] = sizes.max()
    values[2] = math.log(state.noise_variance)
    values[3] = math.log(state.noise_shape)
    values[4] = math.log(state.mean_precision)
    values[5] = math.log(state.concentration)
    values[6] = math.log(state.policy_concentration)
    clusters = find_clusters(state.substates)
    for n in range(len(clusters)):
        for m in range(n):
            values[7] += clusters[n] == clusters[m] and data.actions[n] == data.actions[m]
    values[8] = math.log(np.sum(data.observations**2))
    values[9] = clusters[0] == clusters[1]
    values[10] = np.mean(np.abs(state.features))
    values[11] = np.mean(state.policies**2)
    return values


@numba.njit
def redraw_data(rng, state, data):
    """Draw means, variances and policies from the prior, then the data: what was integrated out."""
    n_rows, n_dimensions = data.observations.shape
    n_actions = state.policies.shape[1]
    squares = 0.0
    for c in range(len(state.substates)):
        shape = state.noise_shape
        variance = shape * state.noise_variance / rng.standard_gamma(shape)
        mean = np.empty(n_dimensions)
        for d in range(n_dimensions):
            mean[d] = math.sqrt(variance / state.mean_precision) * rng.standard_normal()
        policy = np.empty(n_actions)
        for u in range(n_actions):
            policy[u] = rng.standard_gamma(state.policy_concentration)
        for n in range(n_rows):
            if state.substates[c, n] == 0.0:
                continue
            for d in range(n_dimensions):
                data.observations[n, d] = mean[d] + math.sqrt(variance) * rng.standard_normal()
            for i in range(data.row_splits[n], data.row_splits[n + 1]):
                data.observations[n, data.row_gaps[i]] = 0.0
            squares += np.sum(data.observations[n] ** 2)
            if data.actions[n] >= 0:
                left = rng.random() * policy.sum()
                action = 0
                while action < n_actions - 1 and left >= policy[action]:
                    left -= policy[action]
                    action += 1
                data.actions[n] = action
    return Demonstrations(
        data.observations, data.actions, data.row_splits, data.row_gaps, data.column_splits, data.column_gaps,
        squares, data.n_observed, data.available,
    )  # fmt: skip


@numba.njit
def run_joint_chain(rng, state, data, sweep_target, n_steps):
    drawn = np.empty((n_steps, 12))
    observation_weights = np.array([1.0])
    for i in range(n_steps):
        data = redraw_data(rng, state, data)
        state = run_sweeps_of_clusters(rng, state, observation_weights, data, sweep_target)[0]
        drawn[i] = measure(state, data)
    return drawn


def draw_partition(rng, n_rows, alpha):
    clusters = [0]
    for n in range(1, n_rows):
        sizes = np.bincount(clusters)
        weights = np.append(sizes, alpha)
        clusters.append(int(rng.choice(len(weights), p=weights / (n + alpha))))
    return clusters


def run_geweke(seed, n_steps, n_prior, missing=False, wrong=None):
    rng = np.random.default_rng(seed)
    data, target = make_problem(n_rows=5, missing=missing, n_tries=2)

    def draw():
        nonlocal data
        hyper = {name: rng.gamma(shape) / rate for name, (shape, rate) in vars(PRIORS).items()}
        state = make_state(draw_partition(rng, 5, hyper["concentration"]), **hyper)
        data = redraw_data(rng, state, data)
        level = level_of(state, data, target)
        sums = collect_sums(find_clusters(state.substates), len(state.substates), level, data, target)
        means, policies = draw_parameters(rng, len(state.substates), sums, level, target)
        return state._replace(features=means, policies=policies)

    prior = np.array([measure(draw(), data) for _ in range(n_prior)])
    chain = run_joint_chain(rng, draw(), data, target._replace(**(wrong or {})), n_steps)
    return compare(chain, prior, QUANTITIES)


@pytest.mark.long
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_sweep_leaves_the_joint_distribution_invariant(missing):
    """About 100 z scores, |t| > 4.5 has probability 2e-5: a correct sampler fails with probability below 0.2%."""
    scores = run_geweke(seed=5, n_steps=400_000, n_prior=40_000, missing=missing)
    worst = max(scores, key=lambda key: abs(scores[key]))
    assert abs(scores[worst]) < Z_LIMIT, f"{worst}: z = {scores[worst]:.1f}"
    assert len({name for name, _ in scores}) == len(QUANTITIES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "quantity"),
    [
        ({"mean_precision_rate": 10.0}, "mean_precision"),
        ({"action_weight": 1.4}, "policy_concentration"),
        ({"concentration_rate": 6.0}, "n_clusters"),
    ],
    ids=["means", "actions", "restaurant"],
)
def test_a_wrong_conditional_is_caught(wrong, quantity):
    scores = run_geweke(seed=6, n_steps=200_000, n_prior=20_000, wrong=wrong)
    assert max(abs(score) for (name, _), score in scores.items() if name == quantity) > 1.5 * Z_LIMIT


# --- the estimator --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
@parametrize_with_checks(
    [
        ClusterPolicyClassifier(n_burn_in=20, n_draws=20, n_chains=2),
        ClusterPolicyClassifier(n_burn_in=20, n_draws=20, n_chains=1, prediction="map"),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def make_clusters(seed, n_clusters=5, n_rows=120, offset=0.0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_clusters, 10)) + offset
    clusters = rng.integers(0, n_clusters, n_rows)
    X = means[clusters] + 0.2 * rng.standard_normal((n_rows, 10))
    return X, np.array(["left", "right", "stay"])[clusters % 3], clusters, means


@pytest.fixture(scope="module")
def fitted():
    X, y, clusters, means = make_clusters(0, offset=100.0)
    model = ClusterPolicyClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
    return model.fit(X[:80], y[:80]), X, y, clusters, means


def test_clusters_means_and_policies_are_found(fitted):
    model, X, y, clusters, means = fitted
    assert model.n_components_ == 5
    assert model.score(X[80:], y[80:]) == 1.0
    assert len(set(zip(model.labels_.tolist(), clusters[:80].tolist(), strict=True))) == 5
    own = [model.labels_[clusters[:80] == c][0] for c in range(5)]
    assert np.abs(model.components_[own] - means).max() < 0.4
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.2, rel=0.2)
    assert model.predict_cluster(X[80:]).argmax(axis=1).tolist() == [own[c] for c in clusters[80:]]
    assert "5 clusters explain 80 demonstrations" in str(model)
    np.testing.assert_allclose(model.posterior_.aligned.features.value[own], means, atol=0.4)


def test_observation_far_from_all_clusters_has_the_priors_policy(fitted):
    model, X, *_ = fitted
    far = X[:1] + 50.0
    np.testing.assert_allclose(model.predict_proba(far), 1 / 3, atol=1e-6)
    assert model.familiarity(far)[0] < 1e-6
    assert model.familiarity(X[80:]).min() > 0.99


@pytest.mark.parametrize(
    ("missing", "rate"), [(False, 1.0), (True, 1.0), (False, 1e4)], ids=["complete", "missing", "one cluster"]
)
def test_prediction_is_the_exact_predictive_of_each_draw(missing, rate):
    """P(action | row) from the joint density with the row appended, over all clusters it could join."""
    X, y, *_ = make_clusters(3, n_clusters=3, n_rows=12)
    if missing:
        X[3, 2] = np.nan
    if rate > 1:
        X = np.random.default_rng(0).standard_normal(X.shape)
    priors = ClusterPriors(concentration=(1.0, rate))
    model = ClusterPolicyClassifier(n_burn_in=50, n_draws=5, n_chains=1, priors=priors, random_state=0)
    model.fit(X[:10], y[:10])
    assert (len(model.posterior_.chains[0].state(0).features) == 1) == (rate > 1)
    state = model.posterior_.chains[0].state(0)
    new = X[10:11] + 0.7
    data, target = model._data, model._result.target
    observations = np.vstack([data.observations, (new - model.posterior_.center) / model.posterior_.unit])
    if missing:
        observations[3, 2] = np.nan
    log_joint = np.empty((3, len(state.features) + 1))
    for u, c in np.ndindex(log_joint.shape):
        substates = np.hstack([state.substates, np.zeros((len(state.substates), 1))])
        if c == len(state.features):
            substates = np.vstack([substates, np.zeros(11)])
        substates[c, 10] = 1.0
        grown = make_demonstrations(observations, np.append(data.actions, u))
        log_joint[u, c] = log_joint_of_clusters(state._replace(substates=substates), grown, target)
    joint = np.exp(log_joint - logsumexp(log_joint))
    np.testing.assert_allclose(model.predict_proba(new)[0], joint.sum(axis=1), rtol=1e-9)
    assert model.familiarity(new)[0] == pytest.approx(1 - joint[:, -1].sum(), rel=1e-9)


def test_chosen_draw_is_the_best_of_the_modal_ones(fitted):
    posterior = fitted[0].posterior_
    modal = posterior.traces["n_features"] == posterior.modal_n_features
    assert posterior.traces["log_joint"][posterior.best_draw()] == posterior.traces["log_joint"][modal].max()


def fill_chain(clusters, seed):
    """Draws of one partition, with means that say nothing about it."""
    rng = np.random.default_rng(seed)
    state = make_state(clusters)
    chain = ChainDraws(state, 2)
    for _ in range(20):
        chain.append(state._replace(features=rng.standard_normal(state.features.shape)), rng.random(), -1.0)
    return chain


def test_clusters_are_matched_by_their_rows_and_centred_back():
    center = np.array([10.0, 20.0])
    posterior = ClusterPosterior([fill_chain([0, 0, 1, 1, 1], 0), fill_chain([1, 1, 0, 0, 0], 1)], 2.0, center)
    aligned = posterior.aligned
    assert aligned.presence.tolist() == [1.0, 1.0]
    assert aligned.substates.value.tolist() == [[0, 0, 1, 1, 1], [1, 1, 0, 0, 0]]
    means = np.concatenate([chain.features[chain.levels[:, 2] == 1] for chain in posterior.chains])
    np.testing.assert_allclose(aligned.features.value[0], 2.0 * means.mean(axis=0) + center)
    # nothing of the policies is in the density that the best draw is chosen by
    assert posterior.traces["log_joint"][posterior.best_draw()] == posterior.traces["log_joint"].max()


def test_chains_that_disagree_name_their_numbers_of_clusters():
    posterior = ClusterPosterior([fill_chain([0, 0, 1, 1, 1], 0), fill_chain([0] * 5, 1)], 1.0, np.zeros(2))
    assert "most frequent numbers of clusters are 2, 1" in posterior.agreement()


def test_policies_are_the_counts_with_the_prior(fitted):
    model, _, y, *_ = fitted
    chosen = model.posterior_.chosen
    for c in range(5):
        counts = np.array([np.sum(y[:80][model.labels_ == c] == label) for label in model.classes_])
        weights = counts + chosen.policy_concentration
        np.testing.assert_allclose(model.policies_[c], weights / weights.sum())


def test_map_takes_the_most_probable_cluster_or_a_new_one(fitted):
    model, X, y, *_ = fitted
    by_map = clone(model).set_params(prediction="map").fit(X[:80], y[:80])
    assert by_map.score(X[80:], y[80:]) == 1.0
    np.testing.assert_allclose(by_map.predict_proba(X[:1] + 50.0), 1 / 3)


def test_cluster_near_the_mean_of_all_is_found_in_all_draws():
    rng = np.random.default_rng(0)
    clusters = np.repeat([-3.0, 0.0, 3.0], 20)
    X = clusters[:, None] + 0.3 * rng.standard_normal((60, 4))
    model = ClusterPolicyClassifier(n_burn_in=100, n_draws=100, n_chains=2, random_state=0).fit(X, clusters > 0)
    np.testing.assert_allclose(model.posterior_.aligned.presence, 1.0)


@pytest.mark.filterwarnings("ignore:X. all rows are equal")
@pytest.mark.parametrize("value", [0.1, 0.5, 3e5])
def test_equal_rows_have_no_unit(value):
    model = ClusterPolicyClassifier(n_burn_in=20, n_draws=20, n_chains=1, random_state=0)
    model.fit(np.full((20, 3), value), np.arange(20) % 2)
    assert model.unit_ == 1.0


def test_unit_and_origin_of_the_observations_change_nothing():
    X, y, *_ = make_clusters(1)
    options = {"n_burn_in": 20, "n_draws": 20, "n_chains": 1, "random_state": 0}
    one = ClusterPolicyClassifier(**options).fit(X, y)
    other = ClusterPolicyClassifier(**options).fit(1024.0 * X + 4096.0, y)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.components_ * 1024.0 + 4096.0, other.components_, rtol=1e-6)


def test_equal_rows_are_no_obstacle():
    X = np.repeat(np.eye(3), 8, axis=0)
    y = np.repeat([0, 1, 0], 8)
    model = ClusterPolicyClassifier(n_burn_in=100, n_draws=100, n_chains=2, random_state=0).fit(X, y)
    assert model.n_components_ == 3
    assert model.score(X, y) == 1.0


def test_priors_are_checked():
    with pytest.raises(ValueError, match=r"ClusterPriors.concentration must be a pair of positive numbers"):
        ClusterPriors(concentration=(0, 1))
