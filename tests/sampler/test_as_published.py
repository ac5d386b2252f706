"""The published algorithm: each of its moves against brute force, or against that of the exact sampler.

The whole sweep is not exact, and is not meant to be.
"""

import itertools
import math

import numba
import numpy as np
import pytest
from scipy import integrate, special, stats
from sklearn.base import clone

from tests.support.statistics import P_LIMIT, Z_LIMIT, batch_z, chi_square_p
from whyact import AsPublished, FeaturePolicyClassifier
from whyact.model import Priors, State, log_ibp, make_demonstrations, make_target
from whyact.sampler.as_published import (
    draw_activations_of_dimension,
    draw_ibp_as_published,
    draw_noise_as_published,
    draw_policy_concentration,
    draw_weights,
    merge_similar,
    propose_births,
    residuals_of_dimension,
    run_sweeps_as_published,
)
from whyact.sampler.hyperparameters import draw_ibp, draw_noise, draw_weight_scale

PRIORS = Priors(
    noise_shape=(30.0, 2.0), noise_rate=(6.0, 4.0), ibp_mass=(6.0, 5.0), ibp_concentration=(5.0, 4.0),
    weight_scale=(9.0, 8.0), policy_concentration=(5.0, 5.0), sparsity=(1.5, 2.0),
)  # fmt: skip


def make_target_for_tests(**options):
    return make_target(PRIORS, n_actions=3, n_dimensions=3, n_levels=5, **options)


def make_data(missing=False):
    rng = np.random.default_rng(5)
    observations = rng.normal(0.6, 0.5, (4, 3))
    if missing:
        observations[0, 1] = observations[2, 1] = np.nan
    return make_demonstrations(observations, [0, 1, 2, 1])


SUBSTATES = np.array([[0.25, 0.0, 1.0, 0.5], [0.0, 0.75, 0.5, 0.25]])
FEATURES = np.array([[0.5, 0.4, 0.0], [0.0, 0.7, 0.3]])


# --- features -------------------------------------------------------------------------------------------------


@numba.njit
def draw_many_weights(rng, n, substates, features, scale, weight_scale, data, target):
    drawn = np.empty((n, features.shape[1]))
    for i in range(n):
        drawn[i] = draw_weights(rng, substates, features.copy(), scale, weight_scale, data, target)[0]
    return drawn


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("values", ["positive", "real"])
def test_weights_follow_their_conditional_with_the_mean_of_the_misprint_corrected(values, missing):
    """The first feature's weights, by integration: likelihood times prior where active; where inactive as published."""
    target = make_target_for_tests(feature_values=values)
    data = make_data(missing)
    scale, weight_scale = 7.0, 0.8
    drawn = draw_many_weights(np.random.default_rng(0), 60_000, SUBSTATES, FEATURES, scale, weight_scale, data, target)
    seen = np.ones((4, 3), dtype=bool)
    if missing:
        seen[0, 1] = seen[2, 1] = False
    for d in range(3):
        s = SUBSTATES[0] * seen[:, d]
        residual = data.observations[:, d] - SUBSTATES[1] * FEATURES[1, d] * seen[:, d]
        linear = scale * s @ residual if FEATURES[0, d] else 0.0

        def density(w, linear=linear, precision=scale * s @ s):
            log_prior = -w / weight_scale if values == "positive" else -0.5 * w**2 / weight_scale
            return math.exp(linear * w - 0.5 * precision * w**2 + log_prior)

        low = 0.0 if values == "positive" else -10.0
        total, mean, square = (integrate.quad(lambda w, p=p: w**p * density(w), low, 10.0)[0] for p in range(3))
        assert abs(batch_z(drawn[:, d], mean / total)) < Z_LIMIT
        assert abs(batch_z(drawn[:, d] ** 2, square / total)) < Z_LIMIT


@numba.njit
def count_columns(rng, n, starts, d, substates, features, weights, scale, concentration, data):
    """Start from given columns of activations, move once, and count where they end; check the bookkeeping."""
    counts = np.zeros(2 ** len(features))
    worst = 0.0
    for i in range(n):
        moved = features.copy()
        for k in range(len(features)):
            moved[k, d] = weights[k, d] if starts[i] >> k & 1 else 0.0
        n_active = np.zeros(len(features))
        for k in range(len(features)):
            n_active[k] = np.sum(moved[k] != 0.0)
        column = residuals_of_dimension(d, substates, moved, data)
        draw_activations_of_dimension(rng, d, substates, moved, weights, n_active, column, scale, concentration, data)
        end = 0
        for k in range(len(features)):
            end += (moved[k, d] != 0.0) << k
            worst = max(worst, abs(n_active[k] - np.sum(moved[k] != 0.0)))
        worst = max(worst, np.abs(column - residuals_of_dimension(d, substates, moved, data)).max())
        counts[end] += 1
    return counts, worst


@pytest.mark.parametrize("missing", [False, True])
def test_activations_given_weights_leave_their_enumerated_conditional_invariant(missing):
    data = make_data(missing)
    d, scale, concentration = 1, 4.0, 0.7
    rng = np.random.default_rng(1)
    substates = rng.integers(0, 5, (3, 4)) / 4
    features = rng.exponential(size=(3, 3)) * [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
    weights = np.where(features > 0, features, rng.exponential(size=(3, 3)))
    log_weights = []
    for bits in itertools.product([0, 1], repeat=3):
        moved = features.copy()
        moved[:, d] = weights[:, d] * bits[::-1]
        column = residuals_of_dimension(d, substates, moved, data)
        # features as labelled ones, so without the factorials of equal rows
        n_active = (moved > 0).sum(axis=1)
        log_prior = log_ibp(n_active, np.eye(3), 3, 1.0, concentration)
        log_weights.append(-0.5 * scale * column @ column + log_prior)
    probabilities = special.softmax(log_weights)
    starts = rng.choice(8, size=200_000, p=probabilities)
    counts, worst = count_columns(rng, len(starts), starts, d, substates, features, weights, scale, concentration, data)
    assert worst < 1e-12
    assert chi_square_p(counts, probabilities) > P_LIMIT


# --- births ---------------------------------------------------------------------------------------------------


@numba.njit
def run_births(rng, n, state, observations, scale, data, target, moves):
    """Births and deaths in dimension 1, and new observations there after each: Geweke's chain for this move alone."""
    substates, features, policies = state.substates, state.features, state.policies
    weights = features.copy()
    n_active = np.zeros(len(features))
    drawn = np.empty((n, 3))
    for i in range(n):
        for row in range(substates.shape[1]):
            mean = 0.0
            for k in range(len(features)):
                mean += substates[k, row] * features[k, 1]
            observations[row, 1] = mean + rng.standard_normal() / math.sqrt(scale) if scale > 0.0 else 0.0
        column = residuals_of_dimension(1, substates, features, data)
        substates, features, policies, weights, n_active, column, _, _ = propose_births(
            rng, 1, substates, features, policies, weights, n_active, column, scale, 0.8, state, data, target, moves
        )
        drawn[i, 0] = len(features)
        drawn[i, 1] = features.sum()
        drawn[i, 2] = substates.sum()
    return drawn


@pytest.mark.parametrize("birth_probability", [0.0, 0.3])
# with much more precise observations the chain sticks for thousands of steps, longer than a batch
@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_births_leave_the_prior_of_singletons_and_their_data_invariant(birth_probability, scale):
    """The ratio of the P+ mixture to the prior must be in the acceptance, or there would be too many features."""
    target = make_target_for_tests()
    data = make_data()
    state = State(np.empty((0, 4)), np.empty((0, 3)), np.empty((0, 3)), 1.0, 1.0, 1.0, 0.8, 1.5, 2.0, 1.0)
    rate = 1.5 * 2.0 / (2.0 + 3 - 1)
    moves = AsPublished(birth_probability)
    drawn = run_births(np.random.default_rng(2), 400_000, state, data.observations, scale, data, target, moves)
    assert abs(batch_z(drawn[:, 0], rate)) < Z_LIMIT
    assert abs(batch_z(drawn[:, 0] == 0, math.exp(-rate))) < Z_LIMIT
    assert abs(batch_z(drawn[:, 0] == 1, rate * math.exp(-rate))) < Z_LIMIT
    assert abs(batch_z(drawn[:, 1], rate * 0.8)) < Z_LIMIT
    # theta is Beta(1.5, 2), and a level above zero has mean 5/8
    assert abs(batch_z(drawn[:, 2], rate * 4 * (2.0 / 3.5) * 0.625)) < Z_LIMIT


# --- Metropolis steps, against the exact sampler's steps --------------------------------------------------------


@numba.njit
def run_both_noises(rng, n, squares, data, target):
    ours = np.empty((n, 3))
    exact = np.empty((n, 3))
    variance, shape, rate = 0.2, 15.0, 1.5
    for i in range(n):
        variance, shape, rate = draw_noise_as_published(rng, squares, shape, rate, 1.0, data, target)
        ours[i] = math.log(variance), math.log(shape), math.log(rate)
    variance, shape = 0.2, 15.0
    for i in range(n):
        variance, shape, rate = draw_noise(rng, squares, variance, shape, 1.0, data, target)
        exact[i] = math.log(variance), math.log(shape), math.log(rate)
    return ours, exact


def assert_same_distribution(ours, exact, n_batches=50):
    """Means, squares and quartiles of two chains; Student's t with about 100 degrees of freedom."""
    for i in range(ours.shape[1]):
        edges = np.quantile(exact[:, i], [0.05, 0.25, 0.5, 0.75, 0.95])
        center = exact[:, i].mean()
        statistics = [lambda v: v, lambda v, c=center: (v - c) ** 2, *(lambda v, e=e: v < e for e in edges)]
        for statistic in statistics:
            a, b = (statistic(v[:, i]).reshape(n_batches, -1).mean(axis=1) for v in (ours, exact))
            assert abs(stats.ttest_ind(a, b, equal_var=False).statistic) < Z_LIMIT + 0.5


def test_metropolis_steps_of_the_noise_reach_what_the_exact_sampler_reaches():
    ours, exact = run_both_noises(np.random.default_rng(3), 2_000_000, 2.5, make_data(), make_target_for_tests())
    assert_same_distribution(ours, exact)


@numba.njit
def run_both_ibps(rng, n, features, target):
    ours = np.empty((n, 2))
    exact = np.empty((n, 2))
    concentration = 1.0
    for i in range(n):
        mass, concentration = draw_ibp_as_published(rng, features, concentration, target)
        ours[i] = math.log(mass), math.log(concentration)
    for i in range(n):
        mass, concentration = draw_ibp(rng, features, concentration, target)
        exact[i] = math.log(mass), math.log(concentration)
    return ours, exact


def test_metropolis_step_of_the_buffet_reaches_what_the_exact_sampler_reaches():
    ours, exact = run_both_ibps(np.random.default_rng(4), 500_000, FEATURES, make_target_for_tests())
    assert_same_distribution(ours, exact)


@numba.njit
def run_concentrations(rng, n, policies, target):
    drawn = np.empty(n)
    concentration = 1.0
    for i in range(n):
        concentration = draw_policy_concentration(rng, concentration, policies, target)
        drawn[i] = concentration
    return drawn


def test_metropolis_step_of_the_policies_concentration_follows_the_integrated_density():
    policies = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05]])

    def density(alpha):
        return stats.gamma.pdf(alpha, 5, scale=1 / 5) * np.prod([stats.dirichlet.pdf(p, [alpha] * 3) for p in policies])

    drawn = run_concentrations(np.random.default_rng(6), 400_000, policies, make_target_for_tests())
    total = integrate.quad(density, 0, 20)[0]
    for edge in (0.4, 0.7, 1.0, 1.5):
        share = integrate.quad(density, 0, edge)[0] / total
        assert abs(batch_z(drawn < edge, share)) < Z_LIMIT


def test_weight_scale_has_no_halves():
    """The misprint that belongs to a Gaussian: InvGamma(a + number of active weights, b + their sum)."""
    rng = np.random.default_rng(7)
    drawn = np.array([draw_weight_scale(rng, FEATURES, make_target_for_tests()) for _ in range(20_000)])
    shape, rate = 9.0 + 4, 8.0 + FEATURES.sum()
    assert stats.kstest(drawn, stats.invgamma(shape, scale=rate).cdf).pvalue > P_LIMIT


# --- merging --------------------------------------------------------------------------------------------------


def test_features_that_correlate_are_merged_with_both_activations_and_the_mean_policy():
    features = np.array([[1.0, 2.0, 3.0, 0.0], [3.0, 0.5, 0.0, 1.0], [1.2, 2.0, 3.4, 0.1]])
    substates = np.array([[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]])
    policies = np.array([[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]])
    merged_substates, merged, merged_policies = merge_similar(substates, features, policies, 0.9, 5)
    np.testing.assert_allclose(merged, [[1.1, 2.0, 3.2, 0.1], [3.0, 0.5, 0.0, 1.0]])
    np.testing.assert_allclose(merged_substates, [[0.75, 1.0], [0.5, 0.5]])
    np.testing.assert_allclose(merged_policies, [[0.6, 0.4], [0.5, 0.5]])


def test_a_merged_feature_is_compared_with_all_others():
    rng = np.random.default_rng(0)
    for _ in range(300):
        features = np.abs(np.array([1.0, 2.0, 3.0, 4.0, 5.0]) + rng.normal(0, 0.7, (4, 5)))
        merged = merge_similar(np.full((4, 2), 0.25), features, np.full((4, 2), 0.5), 0.9, 5)[1]
        correlations = np.corrcoef(merged)
        assert len(merged) == 1 or correlations[np.triu_indices(len(merged), 1)].max() <= 0.9 + 1e-12


def test_a_threshold_of_one_never_merges():
    rng = np.random.default_rng(0)
    for _ in range(200):
        features = np.zeros((2, 5))
        features[:, 3] = rng.exponential(size=2)
        assert len(merge_similar(np.full((2, 2), 0.25), features, np.full((2, 2), 0.5), 1.0, 5)[1]) == 2


def test_features_below_the_threshold_stay():
    features = np.array([[1.0, 2.0, 3.0, 0.0], [3.0, 0.5, 0.0, 1.0], [1.2, 2.0, 3.4, 0.1]])
    substates, policies = np.full((3, 2), 0.5), np.full((3, 2), 0.5)
    assert len(merge_similar(substates, features, policies, 0.999, 5)[1]) == 3


# --- the whole --------------------------------------------------------------------------------------------------


def test_sweep_leaves_its_input_as_it_is_and_keeps_to_the_grid():
    data, target = make_data(missing=True), make_target_for_tests()
    policies = np.full((2, 3), 1 / 3)
    state = State(SUBSTATES.copy(), FEATURES.copy(), policies.copy(), 0.2, 15.0, 1.5, 0.8, 1.5, 2.0, 1.0)
    rng = np.random.default_rng(8)
    later, _ = run_sweeps_as_published(rng, state, np.ones(500), data, target, AsPublished(0.05))
    np.testing.assert_array_equal(state.substates, SUBSTATES)
    np.testing.assert_array_equal(state.features, FEATURES)
    np.testing.assert_array_equal(state.policies, policies)
    np.testing.assert_array_equal(later.substates * 4, np.rint(later.substates * 4))
    assert (later.features >= 0).all()
    assert (later.features > 0).any(axis=1).all()
    np.testing.assert_allclose(later.policies.sum(axis=1), 1.0)


@pytest.fixture(scope="module")
def published(demo):
    model = FeaturePolicyClassifier(sampler="as-published", n_burn_in=1000, n_draws=1000, random_state=0)
    return model.fit(demo.X[:80], demo.y[:80])


def test_estimator_learns_with_the_papers_algorithm(published, demo):
    assert abs(published.n_components_ - 5) <= 3
    assert published.score(demo.X[80:], demo.y[80:]) > 0.8
    assert published.posterior_.n_chains == 1
    assert published.unit_ == 1.0


def test_chosen_draw_is_the_one_of_highest_joint_density(published):
    posterior = published.posterior_
    chain, draw = posterior.best_draw()
    assert posterior.traces["log_joint"][chain, draw] == posterior.traces["log_joint"].max()
    assert published.n_components_ == posterior.traces["n_features"][chain, draw]


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
def test_as_published_draws_do_not_depend_on_processes(demo):
    fits = [
        FeaturePolicyClassifier(
            sampler="as-published", n_burn_in=30, n_draws=30, n_chains=2, n_jobs=n_jobs, random_state=3
        ).fit(demo.X[:80], demo.y[:80])
        for n_jobs in (1, 2)
    ]
    for name, trace in fits[0].posterior_.traces.items():
        np.testing.assert_array_equal(trace, fits[1].posterior_.traces[name])


def test_settings_of_table_1_can_be_given(demo):
    sure = FeaturePolicyClassifier(sampler=AsPublished(n_indicators=1000), n_burn_in=200, n_draws=200, random_state=0)
    unsure = clone(sure).set_params(sampler=AsPublished(n_indicators=1))
    spread = []
    for model in (sure, unsure):
        policies = np.sort(model.fit(demo.X[:80], demo.y[:80]).posterior_.chains[0].policies, axis=1)
        spread.append(policies[:, -1].mean())
    # a thousand indicators for each action leave little of the prior
    assert spread[0] > spread[1]


@pytest.mark.parametrize(
    ("sampler", "sentence"),
    [
        ("gibbs", "sampler"),
        (AsPublished(birth_probability=1.0), "birth_probability must be"),
        (AsPublished(merge_correlation=2.0), "merge_correlation must be"),
        (AsPublished(n_indicators=0), "n_indicators must be"),
    ],
)
def test_bad_settings_are_named(demo, sampler, sentence):
    with pytest.raises(ValueError, match=sentence):
        FeaturePolicyClassifier(sampler=sampler).fit(demo.X, demo.y)
