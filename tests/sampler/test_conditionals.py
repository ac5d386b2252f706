"""Every conditional against brute force, on models small enough to enumerate or to integrate on a grid."""

import math

import numba
import numpy as np
import pytest
from scipy import special, stats

from tests.support.statistics import P_LIMIT, Z_LIMIT, batch_z, chi_square_p
from whyact.model import (
    LEARNED,
    PRODUCT,
    Priors,
    State,
    action_probabilities,
    log_gamma,
    log_ibp,
    log_inverse_gamma,
    log_joint,
    make_demonstrations,
    make_target,
    multiplied_probabilities,
)
from whyact.sampler.births import draw_births_and_deaths, draw_empty_features
from whyact.sampler.combining import find_votes, is_plain, tally_rows
from whyact.sampler.decisive import draw_decisive_policies, draw_decisiveness
from whyact.sampler.features import draw_features, draw_positive_normal, mills_ratio
from whyact.sampler.hyperparameters import draw_ibp, draw_noise, draw_weight_scale
from whyact.sampler.policies import draw_dirichlet, draw_policies
from whyact.sampler.product import draw_product_policies
from whyact.sampler.rescaling import draw_size
from whyact.sampler.substates import (
    ActionTerm,
    action_probability,
    bound_number,
    draw_level,
    draw_substates,
    find_peak,
    log_gauss,
    log_least_of_levels,
    log_sum_of_levels,
)
from whyact.sampler.whole_features import draw_whole_features

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


def draw_level_case(rng):
    """A random case of the kinds that births and deaths meet, flat, peaked, falling and rising ones."""
    n_levels = int(rng.choice([2, 3, 5, 30, 100, 1000]))
    precision = float(rng.choice([0.0, 10 ** rng.uniform(-3, 6)]))
    mode = rng.choice([rng.uniform(-1, 2), rng.integers(2 * n_levels) / (2 * (n_levels - 1))])  # also between levels
    linear = precision * float(mode) if precision else float(rng.normal(0, 20))
    zero_prior = float(rng.beta(0.5, 0.5) * (1 - 2e-12) + 1e-12)
    total = float(rng.choice([0.0, rng.uniform(0.001, 3)]))
    at_zero = float(rng.uniform(0.01, 1)) if total else 0.25
    power = float(rng.choice([0.0, 1.0, 1.0, 0.4, 2.5]))
    action_term = ActionTerm(power, at_zero, at_zero * total, total, float(10 ** rng.uniform(-4, 0)))
    return linear, precision, n_levels, zero_prior, (1 - zero_prior) / (n_levels - 1), action_term


def test_bounds_on_the_sum_over_levels_hold():
    """What lets births and deaths stop early, over random cases: least term <= sum <= number of levels times the top.

    The same number bounds the sum of cells of several levels, by which a draw sees that it is zero.
    """
    rng = np.random.default_rng(0)
    cells = np.empty(1001)
    n_close = 0
    for _ in range(20_000):
        case = linear, precision, n_levels, zero_prior, level_prior, action_term = draw_level_case(rng)
        step = 1 / (n_levels - 1)
        exact = log_sum_of_levels(cells, *case, 1)
        least = log_least_of_levels(*case)
        assert least <= exact + 1e-9
        peak = find_peak(linear, precision, step, n_levels)
        top = 0.0
        if action_term.power:
            best = max(action_probability(step, action_term), action_probability(1.0, action_term))
            top = action_term.power * (math.log(best) - math.log(action_term.at_zero))
        for width in (1, 3, 16):
            number = bound_number(linear, precision, width, n_levels)
            log_top = math.log(number) + math.log(level_prior) + log_gauss(peak, step, linear, precision) + top
            most = np.logaddexp(math.log(zero_prior), log_top)
            assert exact - 1e-9 <= log_sum_of_levels(cells, *case, width) <= most + 1e-9
        n_close += most - least < 3
    assert n_close > 5000  # the bounds are of use


# --- all substates -------------------------------------------------------------------------------------------


def make_tiny(missing=False, masked=False, **options):
    """Two rows, two features, three levels: 81 sets of substates; three actions, of which each row may lack one."""
    rng = np.random.default_rng(3)
    observations = rng.normal(0.6, 0.5, (2, 3))
    actions = np.array([0, 1])
    if missing:
        observations[0, 1] = observations[1, 0] = np.nan
        actions[1] = -1
    available = np.array([[True, True, False], [False, True, True]]) if masked else None
    options = {"n_levels": 3, **options}
    target = make_target(Priors(sparsity=(1.5, 0.7)), n_actions=3, n_dimensions=3, **options)
    state = State(
        substates=np.zeros((2, 2)),
        features=np.array([[0.9, 0.0, 0.7], [0.4, 0.8, 0.0]]),
        policies=np.array([[0.75, 0.2, 0.05], [0.2, 0.5, 0.3]]),
        noise_variance=0.3,
        noise_shape=2.0,
        noise_rate=1.0,
        weight_scale=1.0,
        ibp_mass=1.0,
        ibp_concentration=1.0,
        policy_concentration=1.0,
        decisiveness=2.5 if target.decisiveness == LEARNED else target.decisiveness,
        base_policy=np.array([0.2, 0.3, 0.5]) if target.combination == PRODUCT else np.zeros(0),
    )
    return state, make_demonstrations(observations, actions, available=available), target


@numba.njit
def visit_substates(rng, n, substates, state, scale, data, target):
    """Run the kernel n times; return the sum of squared residuals that it kept."""
    squares = 0.0
    votes = find_votes(state.policies, state.base_policy, state.decisiveness, target)
    for _ in range(n):
        squares = draw_substates(rng, substates, state.features, votes, scale, data, target)
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
        {"decisiveness": 1.0, "masked": True},
        {"decisiveness": 4.0, "masked": True},
        {"decisiveness": "drawn", "action_weight": 0.4, "masked": True},
        {"combination": "product"},
        {"combination": "product", "action_weight": 3.0, "missing": True},
        {"combination": "product", "action_weight": 0.4, "masked": True},
        {"combination": "product", "masked": True},
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
    # a proposal may be rejected, and then a chain forgets later
    n_between = 10 if is_plain(data, target) else 25
    for _ in range(20_000):
        squares = visit_substates(rng, n_between, substates, state, scale, data, target)
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
def visit_births(rng, n, whole, state, data, target):
    """Births and deaths of singletons, or moves of whole features; the latter leave empty features to their block."""
    rate = state.ibp_mass  # one dimension: alpha beta / beta
    scale = target.observation_weight / state.noise_variance
    drawn = np.empty((n, 4))
    for i in range(n):
        for _ in range(5):
            if whole:
                substates, features, policies, _ = draw_whole_features(
                    rng, state.substates.copy(), state.features.copy(), state.policies, scale, state, data, target
                )
                draw_size(rng, substates, features, policies, scale, state, data, target)
                substates, features, policies = draw_empty_features(rng, substates, features, policies, state, target)
            else:
                substates, features, policies, _, _ = draw_births_and_deaths(
                    rng, state.substates, state.features, scale, rate, state, data, target
                )
            state = State(
                substates, features, policies, state.noise_variance, state.noise_shape, state.noise_rate,
                state.weight_scale, state.ibp_mass, state.ibp_concentration, state.policy_concentration,
                state.policy_scale, state.decisiveness, state.base_policy,
            )  # fmt: skip
        drawn[i, 0] = len(state.features)
        drawn[i, 1] = state.features.sum()
        drawn[i, 2] = np.mean(state.substates > 0.0) if len(state.features) else 0.0
        drawn[i, 3] = np.sum(state.policies[:, 0])
    return drawn


def weigh_prior_of_births(rng, n_prior, state, observations, data, target):
    """Draws of the quantities of `visit_births` from the prior in one dimension, and their likelihood."""
    n_features = rng.poisson(state.ibp_mass, n_prior)
    n_rows = len(observations)
    weight_sum, nonzero, first_policy = np.zeros(n_prior), np.zeros(n_prior), np.zeros(n_prior)
    means, totals = np.zeros((n_rows, n_prior)), np.zeros((n_rows, n_prior))
    tallies = np.zeros((n_rows, n_prior, target.n_actions))
    for k in range(n_features.max()):
        present = n_features > k
        weights = present * (rng.exponential(size=n_prior) if target.positive else rng.normal(size=n_prior))
        if target.combination == PRODUCT:
            log_odds = math.sqrt(state.policy_scale) * rng.standard_normal((n_prior, target.n_actions))
            policies = special.softmax(log_odds, axis=1)
        else:
            log_odds = None
            policies = rng.dirichlet(np.ones(target.n_actions), n_prior)
        theta = rng.beta(2.0, 1.0, n_prior)
        weight_sum += weights
        first_policy += present * policies[:, 0]
        for n in range(n_rows):
            s = present * np.where(rng.random(n_prior) < theta, 0, rng.integers(1, 4, n_prior)) / 3
            nonzero += s > 0
            means[n] += s * weights
            totals[n] += s
            tallies[n] += s[:, None] * (policies if log_odds is None else log_odds)
    log_likelihood = np.where(n_features <= target.max_features, 0.0, -np.inf)
    for n in range(n_rows):
        if not np.isnan(observations[n, 0]):
            log_likelihood -= (observations[n, 0] - means[n]) ** 2 / (2 * state.noise_variance)
        if target.combination == PRODUCT:
            weights = state.base_policy * np.exp(tallies[n])
        else:
            weights = np.where(totals[n][:, None] > 0, tallies[n], 1.0) ** state.decisiveness
        if len(data.available):
            weights = weights * data.available[n]
        log_likelihood += target.action_weight * np.log(weights[:, data.actions[n]] / weights.sum(axis=1))
    share = np.where(n_features > 0, nonzero / np.maximum(n_rows * n_features, 1), 0.0)
    return np.stack([n_features, weight_sum, share, first_policy], axis=1), np.exp(log_likelihood)


@pytest.mark.parametrize("whole", [False, True], ids=["singletons", "whole features"])
@pytest.mark.parametrize(
    ("action_weight", "feature_values", "policies", "max_features", "masked"),
    [
        (1.0, "positive", {}, None, False),
        (2.5, "positive", {}, None, False),
        (1.0, "real", {}, None, False),
        (2.5, "real", {}, 2, False),
        (1.5, "positive", {"decisiveness": 6.0}, None, False),
        (1.0, "real", {"decisiveness": 0.4}, 2, False),
        (1.0, "positive", {}, None, True),
        (2.5, "positive", {"decisiveness": "drawn"}, None, True),
        (1.0, "positive", {"combination": "product"}, None, False),
        (2.5, "real", {"combination": "product"}, None, False),
        (1.0, "positive", {"combination": "product"}, 2, True),
    ],
)
def test_births_and_deaths_alone_reach_the_posterior(
    action_weight, feature_values, policies, max_features, masked, whole
):
    """In one dimension all features are singletons; the yardstick is the prior, weighted by the likelihood."""
    priors = Priors(sparsity=(2.0, 1.0))
    target = make_target(
        priors, n_actions=3, n_dimensions=1, n_levels=4, action_weight=action_weight, feature_values=feature_values,
        max_features=max_features, **policies,
    )  # fmt: skip
    observations = np.array([[1.0], [0.2], [np.nan]])
    available = np.array([[True, False, True], [False, True, True], [True, True, False]]) if masked else None
    data = make_demonstrations(observations, np.array([0, 1, 0]), available=available)
    state = make_tiny(**policies)[0]._replace(
        features=np.ones((1, 1)), substates=np.ones((1, 3)), policies=np.full((1, 3), 1 / 3), ibp_mass=1.3,
        policy_scale=2.0,
    )  # fmt: skip
    drawn = visit_births(np.random.default_rng(2), 150_000, whole, state, data, target)
    assert drawn[:, 0].max() <= target.max_features
    prior, likelihood = weigh_prior_of_births(np.random.default_rng(3), 500_000, state, observations, data, target)
    for k in range(min(5, target.max_features + 1)):
        prior = np.column_stack([prior, prior[:, 0] == k])
        drawn = np.column_stack([drawn, drawn[:, 0] == k])
    assert np.abs(compare_with_weighted(drawn, prior, likelihood)).max() < Z_LIMIT


def compare_with_weighted(drawn, prior, likelihood):
    """z scores of the means of a chain (steps, quantities) against those of weighted independent draws."""
    means = likelihood @ prior / likelihood.sum()
    errors = np.sqrt(likelihood**2 @ (prior - means) ** 2) / likelihood.sum()
    batches = drawn[: len(drawn) // 100 * 100].reshape(100, -1, drawn.shape[1]).mean(axis=1)
    return (batches.mean(axis=0) - means) / np.hypot(errors, batches.std(axis=0, ddof=1) / 10)


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
def visit_policies(rng, n, substates, state, data, target):
    """Policies and concentration of a mixture: two entries of each policy, a product, the concentration."""
    policies, concentration = state.policies, state.policy_concentration
    drawn = np.empty((n, 6))
    for i in range(n):
        if is_plain(data, target):
            policies, concentration, _ = draw_policies(rng, substates, policies, concentration, data, target)
        else:
            votes = find_votes(policies, state.base_policy, state.decisiveness, target)
            policies, concentration, _ = draw_decisive_policies(
                rng, substates, policies, concentration, votes, data, target
            )
        drawn[i, 0] = policies[0, 0]
        drawn[i, 1] = policies[1, 0]
        drawn[i, 2] = policies[0, 0] * policies[1, 0]
        drawn[i, 3] = policies[1, 2]
        drawn[i, 4] = math.log(concentration)
        drawn[i, 5] = math.log(concentration) ** 2
    return drawn


# five rows with two features; one of them holds none
ROWS = np.array([[1.0, 0.4, 0.2, 0.0, 0.0], [0.0, 0.6, 0.9, 0.0, 0.3]])


def make_acting(masked, n_actions=3):
    """Actions of the rows, one unknown; if masked, some are not available, and the first row has no choice."""
    available = np.ones((5, n_actions), dtype=bool)
    available[0, 1:] = available[1, 2] = available[2, 0] = available[3, 1] = False
    return make_demonstrations(np.zeros((5, 1)), [0, 0, 1, 2, -1], available=available if masked else None)


def sum_log_probabilities(log_weights, data):
    """Log-likelihood of the known actions by logarithms (rows, draws, U) of what the actions weigh."""
    log_likelihood = np.zeros(log_weights.shape[1])
    for n in np.flatnonzero(data.actions >= 0):
        logs = np.where(data.available[n], log_weights[n], -np.inf) if len(data.available) else log_weights[n]
        log_likelihood += logs[:, data.actions[n]] - special.logsumexp(logs, axis=1)
    return log_likelihood


@pytest.mark.parametrize(
    ("action_weight", "decisiveness", "masked", "stretched"),
    [
        (0.0, 1.0, False, False), (0.4, 1.0, False, False), (1.0, 1.0, False, False), (1.5, 1.0, False, False),
        (6.0, 1.0, False, False), (1.0, 5.0, False, False), (2.5, 0.6, False, False), (0.0, 5.0, False, False),
        (1.0, 1.0, True, False), (2.5, 4.0, True, False),
        (1.0, 5.0, False, True), (2.5, 0.6, True, True), (0.0, 5.0, False, True),
    ],
)  # fmt: skip
def test_policies_and_their_concentration_follow_the_posterior(action_weight, decisiveness, masked, stretched):
    """Where the decisiveness is learned, policies and concentration are stretched; here it stays as it is."""
    data = make_acting(masked)
    target = make_target(
        Priors(policy_concentration=(3.0, 2.0)), n_actions=3, n_dimensions=1, action_weight=action_weight,
        decisiveness="drawn" if stretched else decisiveness,
    )  # fmt: skip
    state = make_tiny()[0]._replace(policies=np.full((2, 3), 1 / 3), decisiveness=decisiveness)
    drawn = visit_policies(np.random.default_rng(4), 300_000, ROWS, state, data, target)
    rng = np.random.default_rng(5)
    alpha = rng.gamma(3.0, 0.5, 1_000_000)
    policies = np.maximum(rng.gamma(alpha[:, None, None], size=(len(alpha), 2, 3)), 1e-300)
    policies /= policies.sum(axis=2, keepdims=True)
    mixture = np.stack([s[0] * policies[:, 0] + s[1] * policies[:, 1] for s in ROWS.T])
    mixture[3] = 1.0
    likelihood = np.exp(action_weight * sum_log_probabilities(decisiveness * np.log(mixture), data))
    first, second = policies[:, 0], policies[:, 1]
    prior = np.column_stack(
        [first[:, 0], second[:, 0], first[:, 0] * second[:, 0], second[:, 2], np.log(alpha), np.log(alpha) ** 2]
    )
    assert np.abs(compare_with_weighted(drawn, prior, likelihood)).max() < Z_LIMIT


@numba.njit
def visit_decisiveness(rng, n, decisiveness, tallies, data, target):
    drawn = np.empty(n)
    for i in range(n):
        decisiveness = draw_decisiveness(rng, decisiveness, tallies, data, target)
        drawn[i] = math.log(decisiveness)
    return drawn


@pytest.mark.parametrize(
    ("action_weight", "prior", "masked"),
    [
        (1.0, (2.0, 0.5), False),
        (2.0, (2.0, 0.5), False),
        (0.0, (2.0, 0.5), False),
        (1.0, (2.0, 0.1), True),
        (2.0, (0.5, 1.0), True),  # much of it is near zero, where any action is as good as any other
    ],
)
def test_decisiveness_follows_its_integrated_posterior(action_weight, prior, masked):
    data = make_acting(masked)
    target = make_target(
        Priors(decisiveness=prior), n_actions=3, n_dimensions=1, action_weight=action_weight, decisiveness="drawn"
    )
    policies = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    votes = find_votes(policies, np.zeros(0), 3.0, target)
    drawn = visit_decisiveness(np.random.default_rng(6), 300_000, 3.0, tally_rows(ROWS, -1, votes), data, target)
    log_tau = np.linspace(-40, 8, 4801)
    tau = np.exp(log_tau)
    mixture = action_probabilities(ROWS, policies)
    log_weights = tau[:, None] * np.log(mixture)[:, None, :]
    log_density = stats.gamma.logpdf(tau, prior[0], scale=1 / prior[1]) + log_tau
    log_density += action_weight * sum_log_probabilities(log_weights, data)
    ((mean, square),) = grid_moments(log_density, log_tau)
    assert abs(batch_z(drawn, mean)) < Z_LIMIT
    assert abs(batch_z(drawn**2, square)) < Z_LIMIT
    below = np.cumsum(special.softmax(log_density))
    for place in np.searchsorted(below, [0.05, 0.25, 0.5, 0.75, 0.95]):
        edge = (log_tau[place] + log_tau[place + 1]) / 2
        assert abs(batch_z((drawn < edge).astype(float), below[place])) < Z_LIMIT


def test_a_given_decisiveness_stays():
    target = make_target(Priors(), n_actions=3, n_dimensions=1, decisiveness=4.0)
    rng = np.random.default_rng(0)
    assert draw_decisiveness(rng, 4.0, np.ones((5, 3)), make_acting(False), target) == 4.0
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


# --- product of policies -------------------------------------------------------------------------------------


@numba.njit
def visit_product(rng, n, substates, state, data, target):
    """Policies, base policy and scale of a product, drawn given the substates; and how the last draw ended."""
    policies, base_policy, scale = state.policies, state.base_policy, state.policy_scale
    drawn = np.empty((n, 8 + 3 * len(policies)))
    log_likelihood = 0.0
    for i in range(n):
        votes = find_votes(policies, base_policy, 1.0, target)
        policies, base_policy, scale, log_likelihood = draw_product_policies(rng, substates, scale, votes, data, target)
        measure_product(drawn[i], policies, base_policy, scale)
    return drawn, policies, base_policy, log_likelihood


@numba.njit
def measure_product(values, policies, base_policy, scale):
    log_base = np.log(base_policy)
    log_base -= log_base.mean()
    values[0] = math.log(scale)
    values[1] = math.log(scale) ** 2
    values[2] = base_policy[0]
    values[3] = base_policy[0] ** 2
    values[4] = base_policy[-1]
    values[5] = log_base[1]
    values[6] = log_base[0] * log_base[1]
    values[7] = math.log(np.sum(log_base**2)) * math.log(scale)
    for k in range(len(policies)):
        logs = np.log(policies[k])
        logs -= logs.mean()
        values[8 + 3 * k] = policies[k, 0]
        values[9 + 3 * k] = policies[k, 1] * base_policy[1]
        values[10 + 3 * k] = logs[0] * log_base[2]


@numba.njit
def measure_prior_of_product(policies, scales):
    values = np.empty((len(scales), 5 + 3 * policies.shape[1]))
    for i in range(len(scales)):
        measure_product(values[i], policies[i, :-1], policies[i, -1], scales[i])
    return values


@pytest.mark.parametrize(
    ("action_weight", "n_actions", "n_features", "masked"),
    [
        (1.0, 3, 2, False),
        (1.0, 3, 2, True),
        (1.0, 5, 2, True),  # two actions of the five in one call
        (1.0, 3, 0, True),
        (2.5, 3, 2, False),
        (2.5, 3, 2, True),
        (0.4, 3, 2, True),
        (0.0, 3, 2, True),
    ],
)
def test_policies_of_a_product_follow_the_posterior(action_weight, n_actions, n_features, masked):
    """Against draws of all log odds and their scale from the prior, weighted by the likelihood."""
    data = make_acting(masked, n_actions)
    substates = ROWS[:n_features]
    target = make_target(
        Priors(policy_scale=(6.0, 8.0)), n_actions=n_actions, n_dimensions=1, action_weight=action_weight,
        combination="product",
    )  # fmt: skip
    uniform = np.full((n_features + 1, n_actions), 1 / n_actions)
    state = make_tiny()[0]._replace(policies=uniform[:-1], base_policy=uniform[-1])
    drawn, policies, base_policy, log_likelihood = visit_product(
        np.random.default_rng(7), 200_000, substates, state, data, target
    )
    probabilities = multiplied_probabilities(substates, policies, base_policy, data.available)
    taken = np.log(probabilities[np.arange(4), data.actions[:4]])
    assert log_likelihood == pytest.approx(taken.sum(), abs=1e-9)

    rng = np.random.default_rng(8)
    scales = 8.0 / rng.gamma(6.0, size=500_000)
    log_odds = np.sqrt(scales)[:, None, None] * rng.standard_normal((len(scales), n_features + 1, n_actions))
    log_weights = np.stack([log_odds[:, -1] + np.tensordot(s, log_odds[:, :-1], (0, 1)) for s in substates.T])
    likelihood = np.exp(action_weight * sum_log_probabilities(log_weights, data))
    prior = measure_prior_of_product(special.softmax(log_odds, axis=2), scales)
    assert np.abs(compare_with_weighted(drawn, prior, likelihood)).max() < Z_LIMIT


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
