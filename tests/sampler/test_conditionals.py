"""Every conditional against brute force, on models small enough to enumerate or to integrate on a grid."""

import math

import numba
import numpy as np
import pytest
from scipy import special, stats

from tests.support.statistics import P_LIMIT, Z_LIMIT, batch_z, chi_square_p
from whyact.model import (
    Priors,
    State,
    action_probabilities,
    log_gamma,
    log_ibp,
    log_inverse_gamma,
    log_joint,
    make_demonstrations,
    make_target,
)
from whyact.sampler.births import draw_births_and_deaths, draw_empty_features
from whyact.sampler.decisive import draw_decisive_policies, log_decisive_probability
from whyact.sampler.features import draw_features, draw_positive_normal, mills_ratio
from whyact.sampler.hyperparameters import draw_ibp, draw_noise, draw_weight_scale
from whyact.sampler.policies import draw_dirichlet, draw_policies
from whyact.sampler.substates import ActionTerm, draw_level, draw_substates, log_sum_of_levels

# --- one substate --------------------------------------------------------------------------------------------

LEVEL_CASES = [
    # linear, precision, n_levels, zero_prior, level_prior, action term (power, at_zero, contributions, total, policy)
    (3.0, 8.0, 5, 2.0, 1.0, ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)),
    (40.0, 90.0, 100, 3.0, 0.05, ActionTerm(1.0, 0.3, 0.15, 0.5, 0.8)),
    (40.0, 90.0, 100, 3.0, 0.05, ActionTerm(1.0, 0.9, 0.45, 0.5, 0.05)),
    (-5.0, 10.0, 100, 1.0, 0.5, ActionTerm(1.0, 0.25, 0.0, 0.0, 0.4)),
    (900.0, 1200.0, 1000, 30.0, 0.01, ActionTerm(1.0, 0.2, 0.04, 0.2, 0.7)),
    (4.0, 9.0, 1000, 1.0, 0.002, ActionTerm(1.0, 0.9, 0.0009, 0.001, 0.01)),
    (30.0, 70.0, 100, 1.0, 0.02, ActionTerm(50.0, 0.4, 0.2, 0.5, 0.6)),
    (300.0, 700.0, 1000, 1.0, 0.002, ActionTerm(2730.0, 0.4, 0.2, 0.5, 0.41)),
    (2.0, 7.0, 7, 1.0, 0.4, ActionTerm(0.5, 0.1, 0.05, 0.5, 0.9)),
    (0.0, 0.0, 100, 1.0, 0.02, ActionTerm(1.0, 0.25, 0.0, 0.0, 0.6)),
    (1500.0, 100.0, 100, 1.0, 0.01, ActionTerm(1.0, 0.25, 0.2, 0.6, 0.6)),
    (-2000.0, 5000.0, 100, 1.0, 0.01, ActionTerm(1.0, 1e-200, 1e-200, 1.0, 0.99)),
    (-685.0 * 99, 5.0, 100, 1.0, 1e-12, ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)),
    (-700.0 * 99, 5.0, 100, 1e-300, 1.0, ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)),
    (120.0, 300.0, 500, 1.0, 0.002, ActionTerm(2730.0, 0.1, 0.001, 0.01, 0.9)),
]
NO_ACTION = ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)


def balance(linear, precision, n_levels, action_term):
    """A case in which zero is as probable as all other levels together: where a wrong shortcut to zero shows most."""
    log_weights = enumerate_levels(linear, precision, n_levels, 1.0, 1.0, action_term)
    return (
        linear,
        precision,
        n_levels,
        float(np.exp(special.logsumexp(log_weights[1:]) - log_weights[0])),
        1.0,
        action_term,
    )


def enumerate_levels(linear, precision, n_levels, zero_prior, level_prior, action_term):
    s = np.arange(n_levels) / (n_levels - 1)
    action = np.full(n_levels, action_term.at_zero)
    action[1:] = (action_term.contributions + s[1:] * action_term.policy) / (action_term.total + s[1:])
    prior = np.where(s == 0, zero_prior, level_prior)
    return linear * s - precision * s**2 / 2 + action_term.power * np.log(action) + np.log(prior)


LEVEL_CASES += [
    balance(linear, precision, n_levels, action_term)
    for linear, precision, n_levels in [
        (40.0, 80.0, 100), (200.0, 400.0, 100), (-20.0, 5.0, 100), (-20.0, 5.0, 1000), (75.0, 100.0, 3),
        (40.0, 80.0, 1000), (5.0, 2.0, 100), (300.0, 250.0, 100), (555.6, 10000.0, 100), (0.0, 0.0, 1000),
        (7.0, 3.0, 2), (410.0, 900.0, 11),
    ]
    for action_term in (NO_ACTION, ActionTerm(1.0, 0.3, 0.3, 1.0, 0.35))
]  # fmt: skip


@numba.njit
def count_levels(rng, n, linear, precision, n_levels, zero_prior, level_prior, action_term):
    cells = np.empty(n_levels + 1)
    counts = np.zeros(n_levels)
    for _ in range(n):
        counts[draw_level(rng, cells, linear, precision, n_levels, zero_prior, level_prior, action_term)] += 1
    return counts


@pytest.mark.parametrize("case", LEVEL_CASES)
def test_level_is_drawn_from_its_enumerated_conditional(case):
    log_weights = enumerate_levels(*case)
    probabilities = special.softmax(log_weights)
    counts = count_levels(np.random.default_rng(0), 200_000, *case)
    assert chi_square_p(counts, probabilities) > P_LIMIT


@pytest.mark.parametrize("case", LEVEL_CASES)
def test_log_sum_is_the_sum_over_levels(case):
    n_levels, action_term = case[2], case[5]
    exact = special.logsumexp(enumerate_levels(*case)) - action_term.power * np.log(action_term.at_zero)
    assert log_sum_of_levels(np.empty(n_levels + 1), *case, 1) == pytest.approx(exact, abs=1e-9)
    for width in (2, 7, 40):
        assert log_sum_of_levels(np.empty(n_levels + 1), *case, width) >= exact - 1e-9


# --- all substates -------------------------------------------------------------------------------------------


def make_tiny(missing=False, **options):
    """Two rows, two features, three levels: 81 sets of substates."""
    rng = np.random.default_rng(3)
    observations = rng.normal(0.6, 0.5, (2, 3))
    actions = np.array([0, 1])
    if missing:
        observations[0, 1] = observations[1, 0] = np.nan
        actions[1] = -1
    options = {"n_levels": 3, **options}
    target = make_target(Priors(sparsity=(1.5, 0.7)), n_actions=2, n_dimensions=3, **options)
    state = State(
        substates=np.zeros((2, 2)),
        features=np.array([[0.9, 0.0, 0.7], [0.4, 0.8, 0.0]]),
        policies=np.array([[0.8, 0.2], [0.3, 0.7]]),
        noise_variance=0.3,
        noise_shape=2.0,
        noise_rate=1.0,
        weight_scale=1.0,
        ibp_mass=1.0,
        ibp_concentration=1.0,
        policy_concentration=1.0,
    )
    return state, make_demonstrations(observations, actions), target


@numba.njit
def visit_substates(rng, n, substates, state, scale, data, target):
    """Run the kernel n times; return the sum of squared residuals that it kept."""
    squares = 0.0
    for _ in range(n):
        squares = draw_substates(rng, substates, state.features, state.policies, scale, data, target)
    return squares


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"missing": True},
        {"action_weight": 3.0},
        {"action_weight": 0.4, "observation_weight": 0.5},
        {"action_weight": 0.0},
        {"decisiveness": 4.0},
        {"decisiveness": 0.5, "action_weight": 3.0, "missing": True},
    ],
)
def test_substates_follow_their_enumerated_joint(options):
    state, data, target = make_tiny(**options)
    grid = np.array(np.meshgrid(*[np.arange(3) / 2] * 4, indexing="ij")).reshape(4, -1).T.reshape(-1, 2, 2)
    probabilities = special.softmax([log_joint(state._replace(substates=s), data, target) for s in grid])
    scale = target.observation_weight / state.noise_variance
    rng = np.random.default_rng(1)
    # many short chains, so that the counts are nearly independent
    counts = np.zeros(81)
    substates = state.substates.copy()
    visit_substates(rng, 100, substates, state, scale, data, target)
    for _ in range(20_000):
        squares = visit_substates(rng, 10, substates, state, scale, data, target)
        counts[np.ravel_multi_index(tuple(np.rint(substates.ravel() * 2).astype(int)), (3,) * 4)] += 1
    assert chi_square_p(counts, probabilities) > P_LIMIT
    residual = data.observations - substates.T @ state.features
    residual[np.repeat(np.arange(2), np.diff(data.row_splits)), data.row_gaps] = 0.0
    assert squares == pytest.approx(np.sum(residual**2))


# --- features ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.0, 0.3, 3.0, 9.99, 10.0, 30.0, 1e3, 1e8])
def test_mills_ratio_is_accurate_into_the_tail(x):
    assert mills_ratio(x) == pytest.approx(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)), rel=1e-13)


@pytest.mark.parametrize("t", [-40.0, -5.0, -0.41, -0.39, 0.0, 2.0, 20.0])
def test_positive_normal_has_its_distribution(t):
    rng = np.random.default_rng(0)
    drawn = np.array([draw_positive_normal(rng, t) for _ in range(20_000)])
    assert drawn.min() > 0
    assert stats.kstest(drawn, lambda x: -np.expm1(special.log_ndtr(t - x) - special.log_ndtr(t))).pvalue > P_LIMIT


@numba.njit
def visit_features(rng, n, features, substates, scale, weight_scale, concentration, data, target):
    patterns = np.zeros(n, np.int64)
    sums = np.zeros((n, features.size))
    squares = 0.0
    for i in range(n):
        residual = data.observations - np.dot(substates.T, features)
        squares = 0.0
        for j in range(residual.shape[0]):
            for d in range(residual.shape[1]):
                if not (data.row_splits[j + 1] > data.row_splits[j] and d == data.row_gaps[data.row_splits[j]]):
                    squares += residual[j, d] ** 2
        squares = draw_features(rng, substates, features, squares, scale, weight_scale, concentration, data, target)
        for j, f in enumerate(features.flat):
            patterns[i] = 2 * patterns[i] + (f != 0.0)
            sums[i, j] = f
    return patterns, sums, squares


@pytest.mark.parametrize("feature_values", ["positive", "real"])
@pytest.mark.parametrize("missing", [False, True])
def test_features_follow_their_integrated_joint(feature_values, missing):
    """Two features, two dimensions: patterns of activation and the mean weights, against integrals on a grid."""
    observations = np.array([[0.9, 0.2], [0.5, 1.1], [0.1, 0.4]])
    if missing:
        observations[0, 1] = observations[2, 0] = np.nan
    data = make_demonstrations(observations, np.full(3, -1))
    target = make_target(Priors(), n_actions=2, n_dimensions=2, feature_values=feature_values, observation_weight=0.8)
    substates = np.array([[0.9, 0.3, 0.0], [0.4, 0.0, 0.8]])
    variance, weight_scale, concentration = 0.25, 0.8, 1.7
    step = 0.01
    edges = np.arange(step / 2, 6, step) if feature_values == "positive" else np.arange(-5 + step / 2, 5, step)
    prior = np.exp(-edges / weight_scale) / weight_scale
    if feature_values == "real":
        prior = stats.norm.pdf(edges, 0, math.sqrt(weight_scale))

    def integrate(d, active):
        """Integral over the weights of dimension d, and of each weight times the same."""
        grids = [edges if a else np.zeros(1) for a in active]
        densities = [prior * step if a else np.ones(1) for a in active]
        f0, f1 = np.meshgrid(*grids, indexing="ij")
        log_likelihood = np.zeros_like(f0)
        for n in range(3):
            if not np.isnan(observations[n, d]):
                gap = observations[n, d] - substates[0, n] * f0 - substates[1, n] * f1
                log_likelihood -= 0.8 * gap**2 / (2 * variance)
        weight = np.exp(log_likelihood) * densities[0][:, None] * densities[1][None, :]
        return weight.sum(), (weight * f0).sum(), (weight * f1).sum()

    probabilities = np.zeros(16)
    means = np.zeros(4)
    for code in range(16):
        pattern = np.array([int(bit) for bit in f"{code:04b}"]).reshape(2, 2)
        n_active = pattern.sum(axis=1)
        if n_active.min() == 0:
            continue
        prior_weight = math.exp(special.betaln(n_active, 2 - n_active + concentration).sum())
        parts = [integrate(d, pattern[:, d]) for d in range(2)]
        probabilities[code] = prior_weight * parts[0][0] * parts[1][0]
        means[[0, 2]] += prior_weight * np.array(parts[0][1:]) * parts[1][0]
        means[[1, 3]] += prior_weight * np.array(parts[1][1:]) * parts[0][0]
    means /= probabilities.sum()
    probabilities /= probabilities.sum()

    rng = np.random.default_rng(5)
    patterns, drawn, squares = visit_features(
        rng, 400_000, np.ones((2, 2)), substates, 0.8 / variance, weight_scale, concentration, data, target
    )
    scores = [batch_z((patterns == code).astype(float), p) for code, p in enumerate(probabilities) if p > 0]
    scores += [batch_z(drawn[:, j], mean) for j, mean in enumerate(means)]
    assert np.abs(scores).max() < Z_LIMIT
    residual = np.where(np.isnan(observations), 0.0, observations - substates.T @ drawn[-1].reshape(2, 2))
    assert squares == pytest.approx(np.sum(residual**2))


# --- births and deaths ---------------------------------------------------------------------------------------


@numba.njit
def visit_births(rng, n, state, data, target):
    substates, features, policies = state.substates, state.features, state.policies
    rate = state.ibp_mass  # one dimension: alpha beta / beta
    drawn = np.empty((n, 4))
    for i in range(n):
        for _ in range(5):
            substates, features, policies, _, _ = draw_births_and_deaths(
                rng, substates, features, policies, target.observation_weight / state.noise_variance,
                state.weight_scale, rate, state.policy_concentration, data, target,
            )  # fmt: skip
        drawn[i, 0] = len(features)
        drawn[i, 1] = features.sum()
        drawn[i, 2] = np.mean(substates > 0.0) if len(features) else 0.0
        drawn[i, 3] = np.sum(policies[:, 0])
    return drawn


@pytest.mark.parametrize(
    ("action_weight", "feature_values", "decisiveness", "max_features"),
    [
        (1.0, "positive", 1.0, None),
        (2.5, "positive", 1.0, None),
        (1.0, "real", 1.0, None),
        (2.5, "real", 1.0, 2),
        (1.5, "positive", 6.0, None),
        (1.0, "real", 0.4, 2),
    ],
)
def test_births_and_deaths_alone_reach_the_posterior(action_weight, feature_values, decisiveness, max_features):
    """In one dimension all features are singletons; the yardstick is the prior, weighted by the likelihood."""
    priors = Priors(sparsity=(2.0, 1.0))
    target = make_target(
        priors, n_actions=2, n_dimensions=1, n_levels=4, action_weight=action_weight, feature_values=feature_values,
        decisiveness=decisiveness, max_features=max_features,
    )  # fmt: skip
    observations = np.array([[1.0], [0.2], [np.nan]])
    actions = np.array([0, 1, 0])
    data = make_demonstrations(observations, actions)
    state = make_tiny()[0]._replace(
        features=np.ones((1, 1)), substates=np.ones((1, 3)), policies=np.full((1, 2), 0.5), ibp_mass=1.3
    )
    drawn = visit_births(np.random.default_rng(2), 150_000, state, data, target)

    rng = np.random.default_rng(3)
    n_prior = 800_000
    n_features = rng.poisson(1.3, n_prior)
    most = n_features.max()
    present = np.arange(most) < n_features[:, None]
    weights = rng.exponential(size=present.shape) if feature_values == "positive" else rng.normal(size=present.shape)
    weights = np.where(present, weights, 0.0)
    policies = np.where(present, rng.beta(1.0, 1.0, present.shape), 0.0)
    theta = rng.beta(2.0, 1.0, present.shape)
    log_likelihood = np.zeros(n_prior)
    nonzero = np.zeros(n_prior)
    for n in range(3):
        s = np.where(rng.random(present.shape) < theta, 0, rng.integers(1, 4, present.shape)) / 3 * present
        nonzero += (s > 0).sum(axis=1)
        if not np.isnan(observations[n, 0]):
            log_likelihood -= (observations[n, 0] - (s * weights).sum(axis=1)) ** 2 / (2 * state.noise_variance)
        total = s.sum(axis=1)
        first = np.where(total > 0, (s * policies).sum(axis=1) / np.where(total > 0, total, 1), 0.5)
        taken, other = (first, 1 - first) if actions[n] == 0 else (1 - first, first)
        log_likelihood -= action_weight * np.log1p((other / taken) ** decisiveness)
    likelihood = np.exp(log_likelihood) * (n_features <= target.max_features)
    share = np.where(n_features > 0, nonzero / np.maximum(3 * n_features, 1), 0.0)
    yardsticks = [n_features, weights.sum(axis=1), share, policies.sum(axis=1)]
    columns = [drawn[:, 0], drawn[:, 1], drawn[:, 2], drawn[:, 3]]
    assert drawn[:, 0].max() <= target.max_features
    for k in range(min(5, target.max_features + 1)):
        yardsticks.append(n_features == k)
        columns.append((drawn[:, 0] == k).astype(float))
    for column, values in zip(columns, yardsticks, strict=True):
        mean = np.average(values, weights=likelihood)
        error = math.sqrt(np.sum(likelihood**2 * (values - mean) ** 2)) / likelihood.sum()
        batches = column[: len(column) // 100 * 100].reshape(100, -1).mean(axis=1)
        z = (batches.mean() - mean) / math.hypot(error, batches.std(ddof=1) / 10)
        assert abs(z) < Z_LIMIT


@numba.njit
def visit_empty_features(rng, n, state, target):
    drawn = np.zeros((n, 3))
    substates, features, policies = state.substates, state.features, state.policies
    for i in range(n):
        substates, features, policies = draw_empty_features(rng, substates, features, policies, state, target)
        drawn[i, 0] = len(features)
        for k in range(len(features)):
            if not np.any(substates[k] > 0.0):
                drawn[i, 1] += np.sum(features[k] != 0.0)
                drawn[i, 2] += features[k].sum()
    return drawn


@pytest.mark.parametrize("max_features", [None, 3])
def test_empty_features_are_a_thinned_buffet(max_features):
    state, _, target = make_tiny(max_features=max_features)
    state = state._replace(substates=np.array([[0.5, 0.0], [0.0, 0.0]]), ibp_mass=2.0, ibp_concentration=1.5)
    drawn = visit_empty_features(np.random.default_rng(0), 200_000, state, target)
    a, b = 1.5, 0.7
    all_zero = math.exp(special.betaln(a + 2, b) - special.betaln(a, b))
    expected = 2.0 * sum(1.5 / (1.5 + d) for d in range(3)) * all_zero
    n_empty = drawn[:, 0] - 1  # one feature is held by a row, and stays
    counts = np.bincount(n_empty.astype(int), minlength=12)[:12]
    probabilities = stats.poisson.pmf(np.arange(12), expected)
    if max_features is not None:  # one of them is taken
        probabilities = np.where(np.arange(12) < max_features, probabilities, 0.0)
        assert chi_square_p(counts, probabilities / probabilities.sum()) > P_LIMIT
        assert counts[max_features:].sum() == 0
        return
    assert chi_square_p(counts, probabilities) > P_LIMIT
    # the buffet has alpha D active entries and alpha D gamma weight, thinned by the same factor
    assert abs(batch_z(drawn[:, 1], 6.0 * all_zero)) < Z_LIMIT
    assert abs(batch_z(drawn[:, 2], 6.0 * all_zero)) < Z_LIMIT


# --- policies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.005, 0.3, 4.0])
def test_dirichlet_has_beta_margins(alpha):
    rng = np.random.default_rng(0)
    concentrations = np.array([alpha, 2 * alpha, alpha])
    drawn = np.array([draw_dirichlet(rng, concentrations) for _ in range(20_000)])
    assert np.allclose(drawn.sum(axis=1), 1.0)
    inside = drawn[:, 1] > 1e-280
    p = stats.kstest(drawn[inside, 1], lambda x: np.clip(special.betainc(2 * alpha, 2 * alpha, x), 0, 1)).pvalue
    assert p > P_LIMIT or alpha < 0.01  # far below 1e-16 the distance to one is lost
    assert drawn[:, 1].mean() == pytest.approx(0.5, abs=4.5 * 0.5 / math.sqrt(20_000))


@numba.njit
def visit_policies(rng, n, substates, policies, concentration, data, target):
    drawn = np.empty((n, 5))
    for i in range(n):
        if target.decisiveness == 1.0:
            policies, concentration, _ = draw_policies(rng, substates, policies, concentration, data, target)
        else:
            policies, concentration, _ = draw_decisive_policies(rng, substates, policies, concentration, data, target)
        drawn[i, 0] = policies[0, 0]
        drawn[i, 1] = policies[1, 0]
        drawn[i, 2] = policies[0, 0] * policies[1, 0]
        drawn[i, 3] = math.log(concentration)
        drawn[i, 4] = math.log(concentration) ** 2
    return drawn


@pytest.mark.parametrize(
    ("action_weight", "decisiveness"),
    [(0.0, 1.0), (0.4, 1.0), (1.0, 1.0), (1.5, 1.0), (6.0, 1.0), (1.0, 5.0), (2.5, 0.6)],
)
def test_policies_and_their_concentration_follow_the_posterior(action_weight, decisiveness):
    substates = np.array([[1.0, 0.4, 0.2, 0.0, 0.0], [0.0, 0.6, 0.9, 0.3, 0.0]])
    actions = np.array([0, 0, 1, 1, 0])
    data = make_demonstrations(np.zeros((5, 1)), actions)
    target = make_target(
        Priors(policy_concentration=(3.0, 2.0)), n_actions=2, n_dimensions=1, action_weight=action_weight,
        decisiveness=decisiveness,
    )  # fmt: skip
    drawn = visit_policies(np.random.default_rng(4), 300_000, substates, np.full((2, 2), 0.5), 1.0, data, target)
    rng = np.random.default_rng(5)
    alpha = rng.gamma(3.0, 0.5, 2_000_000)
    first = rng.beta(alpha, alpha)
    second = rng.beta(alpha, alpha)
    log_likelihood = np.zeros(len(alpha))
    for (s0, s1), action in zip(substates.T, actions, strict=True):
        if s0 + s1 > 0:
            p = (s0 * first + s1 * second) / (s0 + s1)
            odds = np.maximum(p if action == 0 else 1 - p, 1e-300) / np.maximum(1 - p if action == 0 else p, 1e-300)
            log_likelihood -= action_weight * np.log1p(odds ** (-decisiveness))
    likelihood = np.exp(log_likelihood)
    for j, values in enumerate([first, second, first * second, np.log(alpha), np.log(alpha) ** 2]):
        mean = np.average(values, weights=likelihood)
        error = math.sqrt(np.sum(likelihood**2 * (values - mean) ** 2)) / likelihood.sum()
        batches = drawn[:, j].reshape(100, -1).mean(axis=1)
        assert abs(batches.mean() - mean) < Z_LIMIT * math.hypot(error, batches.std(ddof=1) / 10)


@pytest.mark.parametrize("decisiveness", [0.3, 1.0, 12.0])
def test_decisive_probability_is_that_of_the_model(decisiveness):
    rng = np.random.default_rng(1)
    substates, policies = rng.random((3, 4)) * (rng.random((3, 4)) < 0.6), rng.dirichlet(np.full(4, 0.3), 3)
    substates[:, 0] = 0.0
    expected = np.log(action_probabilities(substates, policies, decisiveness))
    for n, u in np.ndindex(4, 4):
        others = substates[1:, n] @ policies[1:]
        log_probability = log_decisive_probability(others, policies[0], substates[0, n], u, decisiveness)
        assert log_probability == pytest.approx(expected[n, u], abs=1e-9)
    assert expected[0] == pytest.approx(-math.log(4))


# --- hyperparameters -----------------------------------------------------------------------------------------


def grid_moments(log_density, *axes):
    """Means and mean squares of the coordinates under a density on a grid."""
    weights = special.softmax(log_density.ravel()).reshape(log_density.shape)
    mesh = np.meshgrid(*axes, indexing="ij")
    return [(np.sum(weights * m), np.sum(weights * m**2)) for m in mesh]


def test_noise_and_its_hyperparameters_follow_their_joint():
    """Against the whole density of Eq. (posterior) on a grid of three logarithms, nothing integrated out."""
    priors = Priors(noise_shape=(6.0, 2.0), noise_rate=(2.0, 1.5))
    target = make_target(priors, n_actions=2, n_dimensions=2)
    data = make_demonstrations(np.array([[0.5, np.nan], [0.1, 0.9]]), np.full(2, -1))
    squares, weight = 1.4, 0.7
    log_v, log_a, log_b = np.linspace(-5, 4, 90), np.linspace(-3, 4, 80), np.linspace(-6, 4, 80)
    v, a, b = np.meshgrid(np.exp(log_v), np.exp(log_a), np.exp(log_b), indexing="ij")
    log_density = (
        -weight * 0.5 * (3 * np.log(v) + squares / v)
        + a * np.log(b) - special.gammaln(a) - (a + 1) * np.log(v) - b / v
        + 5.0 * np.log(a) - 2.0 * a + 1.0 * np.log(b) - 1.5 * b
        + np.log(v) + np.log(a) + np.log(b)
    )  # fmt: skip
    moments = grid_moments(log_density, log_v, log_a, log_b)
    rng = np.random.default_rng(0)
    drawn = np.empty((100_000, 3))
    variance, shape = 1.0, 1.0
    for i in range(len(drawn)):
        variance, shape, rate = draw_noise(rng, squares, variance, shape, weight, data, target)
        drawn[i] = np.log([variance, shape, rate])
    for j, (mean, square) in enumerate(moments):
        assert abs(batch_z(drawn[:, j], mean)) < Z_LIMIT
        assert abs(batch_z(drawn[:, j] ** 2, square)) < Z_LIMIT


@pytest.mark.parametrize("feature_values", ["positive", "real"])
def test_weight_scale_is_inverse_gamma(feature_values):
    target = make_target(Priors(weight_scale=(2.5, 1.5)), n_actions=2, n_dimensions=3, feature_values=feature_values)
    features = np.array([[0.5, 0.0, 1.5], [0.0, 2.0, 0.7]])
    rng = np.random.default_rng(0)
    drawn = [draw_weight_scale(rng, features, target) for _ in range(20_000)]
    if feature_values == "positive":
        exact = stats.invgamma(2.5 + 4, scale=1.5 + features.sum())
    else:
        exact = stats.invgamma(2.5 + 2, scale=1.5 + 0.5 * np.sum(features**2))
    assert stats.kstest(drawn, exact.cdf).pvalue > P_LIMIT


def test_buffet_parameters_follow_their_joint():
    """Against log P(A | alpha, beta) plus the priors on a grid of two logarithms."""
    priors = Priors(ibp_mass=(2.0, 1.5), ibp_concentration=(3.0, 2.0))
    target = make_target(priors, n_actions=2, n_dimensions=3)
    features = np.array([[0.5, 0.0, 1.5], [0.0, 2.0, 0.0]])
    active = features != 0
    log_mass, log_concentration = np.linspace(-6, 3, 150), np.linspace(-6, 4, 150)
    log_density = np.array(
        [
            [
                log_ibp(active.sum(axis=1), active, 3, math.exp(m), math.exp(c))
                + log_gamma(math.exp(m), 2.0, 1.5)
                + log_gamma(math.exp(c), 3.0, 2.0)
                + m
                + c
                for c in log_concentration
            ]
            for m in log_mass
        ]
    )
    moments = grid_moments(log_density, log_mass, log_concentration)
    rng = np.random.default_rng(0)
    drawn = np.empty((100_000, 2))
    concentration = 1.0
    for i in range(len(drawn)):
        mass, concentration = draw_ibp(rng, features, concentration, target)
        drawn[i] = math.log(mass), math.log(concentration)
    for j, (mean, square) in enumerate(moments):
        assert abs(batch_z(drawn[:, j], mean)) < Z_LIMIT
        assert abs(batch_z(drawn[:, j] ** 2, square)) < Z_LIMIT


def test_log_densities_integrate_to_one():
    x = np.exp(np.linspace(-12, 12, 20_001))
    for density in (log_gamma, log_inverse_gamma):
        values = [math.exp(density(value, 2.5, 1.5)) * value for value in x]
        assert np.trapezoid(values, np.log(x)) == pytest.approx(1.0, abs=1e-4)
