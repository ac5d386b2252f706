"""The unique coefficient model: its sampler against enumeration and Geweke's test, and what it learns."""

import itertools
import math

import numba
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.geweke import compare, make_small_model, redraw_data
from tests.support.statistics import P_LIMIT, Z_LIMIT, batch_z, chi_square_p
from whyact.alternatives.pattern.estimator import PatternPolicyClassifier, PatternPredictor, find_pattern_policies
from whyact.alternatives.pattern.sampler import (
    count_actions,
    draw_bits,
    group_rows,
    leave_out,
    log_joint_of_patterns,
    run_sweeps_of_patterns,
    weigh_column,
)
from whyact.model import Priors, State, log_joint_without_actions, make_demonstrations, make_target
from whyact.posterior import Posterior
from whyact.sampler.births import insert_row
from whyact.sampler.draws import ChainDraws
from whyact.sampler.policies import log_action_gain, log_marginal_of_actions


def make_state(substates, features):
    substates, features = np.array(substates, dtype=float), np.array(features, dtype=float)
    return State(substates, features, np.empty((len(features), 0)), 0.3, 4.0, 1.0, 0.8, 1.2, 0.9, 0.6)


def make_problem(n_rows=4, missing=False, action_weight=1.0, seed=0):
    rng = np.random.default_rng(seed)
    observations = rng.exponential(size=(n_rows, 3))
    actions = rng.integers(0, 2, n_rows)
    if missing:
        observations[0, 1] = observations[2, 0] = np.nan
        actions[1] = -1
    target = make_target(
        Priors(sparsity=(1.5, 2.0)), n_actions=2, n_dimensions=3, n_levels=2, action_weight=action_weight
    )
    return make_demonstrations(observations, actions), target


FEATURES = np.array([[1.0, 0.4, 0.0], [0.0, 0.7, 0.9]])


# --- actions of a pattern -------------------------------------------------------------------------------------------


def test_rows_are_grouped_by_their_pattern():
    rng = np.random.default_rng(0)
    substates = (rng.random((4, 50)) < 0.5).astype(float)
    for left_out in ([], [2], [0, 3]):
        patterns, n_patterns = group_rows(substates, np.isin(np.arange(4), left_out))
        rest = np.delete(substates, left_out, axis=0)
        _, expected = np.unique(rest.T, axis=0, return_inverse=True)
        assert n_patterns == expected.max() + 1
        assert len(set(zip(patterns.tolist(), expected.ravel().tolist(), strict=True))) == n_patterns


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 30.0])
def test_gains_of_single_actions_multiply_to_the_marginal_likelihood(weight):
    actions, alpha = [0, 2, 2, 1, 2, 0], 0.7
    counts, total = np.zeros(3), 0.0
    for u in actions:
        total += log_action_gain(counts[u], counts.sum(), weight, alpha, 3)
        counts[u] += 1
    assert log_marginal_of_actions(weight * counts[None], alpha) == pytest.approx(total)
    exact = (
        gammaln(3 * alpha) - gammaln(3 * alpha + weight * 6) + (gammaln(alpha + weight * counts) - gammaln(alpha)).sum()
    )
    assert total == pytest.approx(exact)


def test_joint_density_integrates_the_policies_out():
    data, target = make_problem(missing=True)
    state = make_state([[1, 0, 1, 1], [0, 0, 0, 1]], FEATURES)
    expected = 0.0
    # rows 0 and 2 share the pattern (1, 0); row 1 has no action; row 3 is alone
    for rows in ([0, 2], [3]):
        counts = np.bincount(data.actions[rows], minlength=2)
        p = (np.arange(20_000) + 0.5) / 20_000
        prior = np.exp(gammaln(1.2) - 2 * gammaln(0.6) - 0.4 * (np.log(p) + np.log(1 - p)))
        expected += math.log(np.mean(prior * p ** counts[0] * (1 - p) ** counts[1]))
    found = log_joint_of_patterns(state, data, target) - log_joint_without_actions(state, data, target)
    assert found == pytest.approx(expected, abs=5e-3)


# --- bits and births against enumeration ----------------------------------------------------------------------------


def make_many_features(n_features):
    """More features than a block holds, two of which make up a third one."""
    features = 0.4 * np.abs(np.random.default_rng(5).normal(size=(n_features, 3)))
    features[2] = features[0] + features[1]
    return features


@numba.njit
def run_bits(rng, substates, features, n_sweeps, scale, concentration, data, target):
    visited = np.empty(n_sweeps, np.int64)
    for i in range(n_sweeps):
        draw_bits(rng, substates, features, scale, concentration, data, target)
        code = 0
        for bit in substates.flat:
            code = 2 * code + int(bit)
        visited[i] = code
    return visited


@pytest.mark.parametrize(
    "options", [{}, {"missing": True}, {"action_weight": 4.5}], ids=["plain", "missing", "heavy actions"]
)
def test_bits_are_drawn_from_the_enumerated_posterior(options):
    data, target = make_problem(3, **options)
    codes = list(itertools.product([0, 1], repeat=6))
    log_weights = [log_joint_of_patterns(make_state(np.reshape(c, (2, 3)), FEATURES), data, target) for c in codes]
    probabilities = np.exp(log_weights - logsumexp(log_weights))
    state = make_state(np.zeros((2, 3)), FEATURES)
    visited = run_bits(
        np.random.default_rng(0), state.substates, state.features, 400_000, 1 / state.noise_variance,
        state.policy_concentration, data, target,
    )  # fmt: skip
    for code, probability in enumerate(probabilities):
        if probability > 1e-3:
            assert abs(batch_z((visited == code).astype(float), probability)) < Z_LIMIT


def test_bits_of_several_blocks_are_drawn_from_the_enumerated_posterior():
    data, target = make_problem(2)
    features = make_many_features(7)
    codes = np.array(list(itertools.product([0, 1], repeat=14)))
    log_weights = [log_joint_of_patterns(make_state(np.reshape(c, (7, 2)), features), data, target) for c in codes]
    probabilities = np.exp(log_weights - logsumexp(log_weights))
    state = make_state(np.zeros((7, 2)), features)
    visited = run_bits(
        np.random.default_rng(0), state.substates, state.features, 200_000, 1 / state.noise_variance,
        state.policy_concentration, data, target,
    )  # fmt: skip
    bits = codes[visited]
    for i in range(14):  # every bit, and every pair of bits
        for j in range(i + 1):
            both = (bits[:, i] * bits[:, j]).astype(float)
            expected = probabilities @ (codes[:, i] * codes[:, j])
            assert expected > 1e-3
            assert abs(batch_z(both, expected)) < Z_LIMIT


def test_bits_return_the_squared_residuals():
    data, target = make_problem(4, missing=True)
    state = make_state(np.ones((2, 4)), FEATURES)
    squares = draw_bits(np.random.default_rng(0), state.substates, state.features, 2.0, 0.5, data, target)
    residual = data.observations - state.substates.T @ FEATURES
    for n in range(4):
        residual[n, data.row_gaps[data.row_splits[n] : data.row_splits[n + 1]]] = 0.0
    assert squares == pytest.approx(np.sum(residual**2))


@pytest.mark.parametrize(("missing", "action_weight"), [(False, 1.0), (True, 1.0), (True, 2.5)])
def test_weight_of_a_column_is_its_joint_density_over_its_proposal(missing, action_weight):
    data, target = make_problem(4, missing=missing, action_weight=action_weight)
    base = make_state([[1, 0, 1, 0]], FEATURES[:1])
    d, weight = 1, 0.8
    residual = data.observations[:, d] - base.substates[0] * FEATURES[0, d]
    observed = np.ones(4, dtype=bool)
    observed[data.column_gaps[data.column_splits[d] : data.column_splits[d + 1]]] = False
    groups, n_groups = group_rows(base.substates, leave_out(-1, 1))
    rng = np.random.default_rng(1)

    def weigh(column, propose):
        return weigh_column(
            rng, column, propose, weight, residual, observed, groups, n_groups, 1 / base.noise_variance,
            base.policy_concentration, data, target,
        )  # fmt: skip

    newborn = np.zeros(3)
    newborn[d] = weight
    columns = [np.array(c, dtype=float) for c in itertools.product([0, 1], repeat=4)]
    ratios = []
    for column in columns:
        grown = base._replace(
            substates=insert_row(base.substates, column, 1),
            features=insert_row(base.features, newborn, 1),
            policies=np.empty((2, 0)),
        )
        # the density of the buffet and of the weight is not the column's
        silent = make_state(np.zeros((2, 4)), grown.features)
        alone = make_state(np.zeros((1, 4)), base.features)
        same = log_joint_of_patterns(silent, data, target) - log_joint_of_patterns(alone, data, target)
        both = log_joint_of_patterns(grown, data, target) - log_joint_of_patterns(base, data, target)
        ratios.append(both - same + log_prior_of_zeros(4, target))
    proposals = np.array([math.exp(r - weigh(c.copy(), False)) for r, c in zip(ratios, columns, strict=True)])
    assert proposals.sum() == pytest.approx(1.0)
    counts = np.zeros(16)
    for _ in range(20_000):
        column = np.empty(4)
        weigh(column, True)
        counts[int(column @ [8, 4, 2, 1])] += 1
    assert chi_square_p(counts, proposals) > P_LIMIT


def log_prior_of_zeros(n, target):
    """Log probability that a feature is absent from n rows."""
    a, b = target.sparsity_zero, target.sparsity_nonzero
    return gammaln(a + n) - gammaln(a) + gammaln(a + b) - gammaln(a + b + n)


# --- Geweke ---------------------------------------------------------------------------------------------------------

QUANTITIES = (
    "n_features",
    "n_active",
    "weight_sum",
    "noise_variance",
    "noise_shape",
    "noise_rate",
    "weight_scale",
    "ibp_mass",
    "ibp_concentration",
    "policy_concentration",
    "n_present",
    "n_patterns",
    "n_agreeing",
    "first_feature_active",
)


@numba.njit
def measure(state, data):
    values = np.zeros(14)
    values[0] = len(state.features)
    values[1] = np.sum(state.features != 0.0)
    values[2] = np.sum(np.abs(state.features))
    values[3] = math.log(state.noise_variance)
    values[4] = math.log(state.noise_shape)
    values[5] = math.log(state.noise_rate)
    values[6] = math.log(state.weight_scale)
    values[7] = math.log(state.ibp_mass)
    values[8] = math.log(state.ibp_concentration)
    values[9] = math.log(state.policy_concentration)
    values[10] = np.sum(state.substates)
    patterns, n_patterns = group_rows(state.substates, leave_out(-1, len(state.substates)))
    values[11] = n_patterns
    for n in range(len(patterns)):  # pairs of rows with the same pattern and the same action
        for m in range(n):
            values[12] += patterns[n] == patterns[m] and data.actions[n] == data.actions[m]
    if len(state.features) > 0:
        values[13] = np.sum(state.features[0] != 0.0)
    return values


@numba.njit
def redraw_actions(rng, state, data, target):
    """Draw the actions of the rows one after the other: an urn for each pattern."""
    patterns, n_patterns = group_rows(state.substates, leave_out(-1, len(state.substates)))
    counts = np.zeros((n_patterns, target.n_actions))
    for n in range(len(patterns)):
        if data.actions[n] < 0:
            continue
        weights = counts[patterns[n]] + state.policy_concentration
        left = rng.random() * weights.sum()
        action = 0
        while action < target.n_actions - 1 and left >= weights[action]:
            left -= weights[action]
            action += 1
        counts[patterns[n], action] += 1.0
        data.actions[n] = action


@numba.njit
def run_joint_chain(rng, state, data, target, sweep_target, n_steps):
    """`sweep_target` is the target, or a wrong one to see that the test can fail."""
    drawn = np.empty((n_steps, 14))
    observation_weights = np.array([1.0])
    silent = data.actions < 0
    for i in range(n_steps):
        state = run_sweeps_of_patterns(rng, state, observation_weights, data, sweep_target)[0]
        data.actions[:] = -1  # only the observations here: a mixture of policies is none of this model
        data = redraw_data(rng, state, data, target)
        for n in range(len(silent)):
            data.actions[n] = -1 if silent[n] else 0
        redraw_actions(rng, state, data, target)
        drawn[i] = measure(state, data)
    return drawn


def run_geweke(seed, n_steps, n_prior, wrong=None, **model):
    target, _, start = make_small_model(n_levels=2, **model)
    rng = np.random.default_rng(seed)

    def draw(rng):
        state, data = start(rng)
        state = state._replace(policies=np.empty((len(state.features), 0)))
        redraw_actions(rng, state, data, target)
        return state, data

    prior = np.array([measure(*draw(rng)) for _ in range(n_prior)])
    state, data = draw(rng)
    chain = run_joint_chain(rng, state, data, target, target._replace(**(wrong or {})), n_steps)
    return compare(chain, prior, QUANTITIES)


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [{}, {"missing": True}, {"feature_values": "real"}], ids=["positive", "missing", "real"]
)
def test_sweep_leaves_the_joint_distribution_invariant(model):
    """About 120 z scores, |t| > 4.5 has probability 2e-5: a correct sampler fails with probability below 0.3%."""
    scores = run_geweke(seed=3, n_steps=300_000, n_prior=40_000, **model)
    worst = max(scores, key=lambda key: abs(scores[key]))
    assert abs(scores[worst]) < Z_LIMIT, f"{worst}: z = {scores[worst]:.1f}"
    assert len({name for name, _ in scores}) == len(QUANTITIES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "quantity"),
    [({"sparsity_zero": 2.0}, "n_present"), ({"action_weight": 1.3}, "policy_concentration")],
    ids=["sparsity", "actions"],
)
def test_a_wrong_conditional_is_caught(wrong, quantity):
    scores = run_geweke(seed=4, n_steps=150_000, n_prior=20_000, wrong=wrong)
    assert max(abs(score) for (name, _), score in scores.items() if name == quantity) > 1.5 * Z_LIMIT


# --- the estimator --------------------------------------------------------------------------------------------------

SHORT = {"n_burn_in": 30, "n_draws": 30, "n_chains": 2, "random_state": 0}


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
@parametrize_with_checks(
    [PatternPolicyClassifier(n_burn_in=20, n_draws=20, n_chains=1), PatternPolicyClassifier(**SHORT, prediction="map")]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def make_patterns(seed, n_features=3, n_rows=90, snr_db=20.0):
    """Demonstrations whose action is the parity of the features: what no mixture of policies can say."""
    rng = np.random.default_rng(seed)
    features = np.where(rng.random((n_features, 20)) < 0.5, rng.exponential(size=(n_features, 20)), 0.0)
    substates = (rng.random((n_rows, n_features)) < 0.5).astype(float)
    X = substates @ features
    X += np.sqrt(np.mean(X**2) / 10 ** (snr_db / 10)) * rng.standard_normal(X.shape)
    return X, np.array(["even", "odd"])[substates.sum(axis=1).astype(int) % 2], substates


@pytest.fixture(scope="module")
def fitted():
    X, y, substates = make_patterns(0)
    model = PatternPolicyClassifier(n_burn_in=400, n_draws=200, n_chains=2, random_state=0)
    return model.fit(X[:60], y[:60]), X, y, substates


def test_features_patterns_and_their_policies_are_found(fitted):
    model, X, y, substates = fitted
    assert model.n_components_ == 3
    assert model.score(X[60:], y[60:]) == 1.0
    assert set(np.unique(model.substates_)) == {0.0, 1.0}
    agree = np.abs(np.corrcoef(model.transform(X[60:]).T, substates[60:].T)[:3, 3:])
    assert np.all(agree.max(axis=1) > 0.99)
    assert model.patterns_.shape == (8, 3)
    assert model.pattern_counts_.sum() == 60
    parity = model.patterns_.sum(axis=1)
    assert np.ptp(model.policies_.argmax(axis=1)[parity % 2 == 0]) == 0
    assert "pattern (" in str(model)
    assert "The 2 chains agree" in str(model)


def test_policy_of_a_pattern_never_seen_is_the_priors():
    X, y, substates = make_patterns(1)
    held = substates.all(axis=1)
    model = PatternPolicyClassifier(n_burn_in=400, n_draws=200, n_chains=2, random_state=0).fit(X[~held], y[~held])
    assert model.n_components_ == 3
    np.testing.assert_allclose(model.predict_proba(X[held]), 0.5, atol=0.02)
    assert model.familiarity(X[held]).max() < 0.05
    assert model.familiarity(X[~held]).min() > 0.9


def test_row_without_any_feature_is_a_pattern_like_others(fitted):
    model, X, _, _ = fitted
    empty = np.zeros((1, X.shape[1]))
    assert model.predict(empty) == ["even"]
    assert model.predict_proba(empty).max() > 0.9
    assert model.familiarity(empty)[0] > 0.9


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0]])
def test_prediction_finds_both_ways_to_say_the_same(order):
    """f0 = f1 + f2: a new row like f0 is (1, 0, 0) or (0, 1, 1), and no single bit leads from one to the other."""
    features = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]], dtype=float)
    substates = np.zeros((3, 40))
    substates[0, :10] = substates[1:, 10:] = 1.0
    actions = np.repeat([0, 1], [10, 30])
    state = State(substates[order], features[order], np.empty((3, 0)), 0.01, 1000.0, 1.0, 1.0, 1.0, 1.0, 0.1)
    draws = ChainDraws(state, 2)
    for _ in range(1000):
        draws.append(state, 0.0, 0.0)
    target = make_target(Priors(), n_actions=2, n_dimensions=6, n_levels=2)
    predictor = PatternPredictor(Posterior([draws]), target, 1000, 0, actions=actions)
    rows = features[0] + 0.1 * np.random.default_rng(0).standard_normal((10, 6))
    absent = ((substates == 0).sum(axis=1) + 1) / 42
    combinations = np.array(list(itertools.product([0, 1], repeat=3)))
    log_prior = (combinations * np.log(1 - absent) + (1 - combinations) * np.log(absent)).sum(axis=1)
    distances = ((rows[:, None] - combinations @ features) ** 2).sum(axis=2)
    log_weights = -0.5 * distances / 0.01 + log_prior
    exact = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
    # (0, 1, 1) is the fourth, (1, 0, 0) the fifth combination
    expected = exact[:, 3] * 30.1 / 30.2 + exact[:, 4] * 0.1 / 10.2
    found = predictor.predict(rows, one_draw=False, maximise=False).probabilities[:, 1]
    assert expected.mean() > 0.9
    np.testing.assert_allclose(found, expected, atol=0.02)  # 4000 draws of the bits
    best = predictor.predict(rows, one_draw=True, maximise=True).substates
    by_amount = [1, 2, 0]  # the order of the chosen draw's features
    assert np.array_equal(best, combinations[log_weights.argmax(axis=1)][:, by_amount])


def test_pattern_policies_are_counts_with_the_prior():
    substates = np.array([[1, 1, 0, 1], [0, 0, 1, 0]])
    found = find_pattern_policies(substates, np.array([0, 1, 1, -1]), 2, 0.5, 1.0)
    assert found.patterns.tolist() == [[True, False], [False, True]]
    assert found.counts.tolist() == [[1, 1], [0, 1]]
    np.testing.assert_allclose(found.policies, [[0.5, 0.5], [0.25, 0.75]])


def test_observations_alone_can_be_learned():
    X, _, _ = make_patterns(0)
    model = PatternPolicyClassifier(**SHORT).fit(X)
    assert model.posterior_.n_draws == 6
    with pytest.raises(ValueError, match="y held no action"):
        model.predict(X)
    assert "pattern (" not in str(model)


def test_counts_know_missing_actions():
    data, target = make_problem(4, missing=True)
    patterns, n_patterns = group_rows(np.zeros((0, 4)), leave_out(-1, 0))
    assert count_actions(patterns, n_patterns, data, target).sum() == 3
