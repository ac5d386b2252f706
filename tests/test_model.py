"""The model: priors, the generative process, the log joint density."""

import math

import numpy as np
import pytest
from scipy import special, stats

from whyact.model import (
    Priors,
    State,
    action_probabilities,
    log_joint,
    make_demonstrations,
    make_target,
    multiplied_probabilities,
    state_probabilities,
)
from whyact.simulation import draw_activations, simulate, simulate_data


def test_priors_default_to_table_1():
    priors = Priors()
    assert priors.noise_shape == (1000, 1)
    assert priors.ibp_concentration == (1, 10)
    assert all(
        getattr(priors, name) == (1, 1)
        for name in ("noise_rate", "ibp_mass", "weight_scale", "policy_concentration", "sparsity")
    )


@pytest.mark.parametrize("value", [(0, 1), (1, -1), (1, math.inf), (math.nan, 1), 3, (1, 2, 3), "ab", None])
def test_priors_refuse_what_is_not_a_pair_of_positive_numbers(value):
    with pytest.raises(ValueError, match=r"Priors\.ibp_mass must be a pair of positive numbers"):
        Priors(ibp_mass=value)


def test_priors_are_frozen():
    with pytest.raises(AttributeError):
        Priors().ibp_mass = (2, 2)


def test_buffet_has_its_exact_means():
    """E K = alpha sum of beta / (beta + d - 1), and alpha active entries in each dimension."""
    rng = np.random.default_rng(0)
    alpha, beta, n_dimensions = 1.4, 0.7, 6
    drawn = [draw_activations(rng, n_dimensions, alpha, beta) for _ in range(20_000)]
    n_features = np.array([len(a) for a in drawn])
    per_dimension = np.array([a.sum(axis=0) for a in drawn])
    expected = alpha * sum(beta / (beta + d) for d in range(n_dimensions))
    assert abs(n_features.mean() - expected) < 4.5 * n_features.std() / math.sqrt(len(drawn))
    assert np.all(np.abs(per_dimension.mean(axis=0) - alpha) < 4.5 * per_dimension.std(axis=0) / math.sqrt(len(drawn)))
    assert all(a.any(axis=1).all() for a in drawn)


def test_simulate_draws_the_rest_given_some_of_it():
    rng = np.random.default_rng(0)
    features = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    simulation = simulate(rng, 500, 3, 2, features=features, noise_variance=1e-12, policies=np.eye(2))
    assert np.array_equal(simulation.state.features, features)
    assert np.allclose(simulation.observations, simulation.state.substates.T @ features, atol=1e-4)
    probabilities = action_probabilities(simulation.state.substates, simulation.state.policies)
    assert np.all(probabilities[np.arange(500), simulation.actions] > 0)
    assert set(np.unique(np.rint(simulation.state.substates * 99) / 99)) == set(np.unique(simulation.state.substates))


def test_simulate_names_what_it_does_not_know():
    with pytest.raises(TypeError, match="'noise' is not a variable of the model"):
        simulate(np.random.default_rng(0), 2, 2, 2, noise=1.0)
    with pytest.raises(ValueError, match="give `features` together"):
        simulate(np.random.default_rng(0), 2, 2, 2, substates=np.zeros((50, 2)))


def test_a_row_without_features_acts_uniformly():
    probabilities = action_probabilities(np.array([[0.0, 0.5]]), np.array([[0.9, 0.1]]))
    assert np.allclose(probabilities, [[0.5, 0.5], [0.9, 0.1]])


def test_simulated_actions_follow_the_mixture():
    rng = np.random.default_rng(1)
    n_rows = 40_000
    state = State(
        np.tile([[0.25], [0.75]], n_rows), np.ones((2, 1)), np.array([[0.9, 0.1], [0.2, 0.8]]), 1, 1, 1, 1, 1, 1, 1
    )
    _, actions = simulate_data(rng, state)
    expected = 0.25 * 0.9 + 0.75 * 0.2
    assert abs(np.mean(actions == 0) - expected) < 4.5 * math.sqrt(expected * (1 - expected) / n_rows)


@pytest.mark.parametrize("feature_values", ["positive", "real"])
def test_log_joint_is_the_sum_of_its_factors(feature_values):
    """Every factor of Eq. (posterior) again, from scipy's distributions, with weights and missing entries."""
    features = np.array([[0.5, 0.0, 1.2], [0.3, 0.9, 0.0], [0.0, 0.4, 0.0]])
    substates = np.array([[0.0, 0.5], [1.0, 0.5], [0.0, 0.0]])
    policies = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    state = State(substates, features, policies, 0.3, 2.1, 0.9, 1.4, 1.1, 0.8, 0.6)
    observations = np.array([[0.2, np.nan, 0.4], [0.6, 0.3, 1.0]])
    priors = Priors(noise_shape=(3, 2), sparsity=(1.5, 0.5), ibp_mass=(2, 3))
    target = make_target(
        priors,
        n_actions=2,
        n_dimensions=3,
        n_levels=3,
        observation_weight=0.7,
        action_weight=2.0,
        feature_values=feature_values,
    )
    data = make_demonstrations(observations, [1, -1])
    mean = substates.T @ features
    log_observations = np.nansum(stats.norm.logpdf(observations, mean, math.sqrt(0.3)))
    log_action = math.log(0.8)  # row 0 holds feature 1 only
    log_substates = sum(
        special.betaln(zeros + 1.5, 2 - zeros + 0.5) - special.betaln(1.5, 0.5) - (2 - zeros) * math.log(2)
        for zeros in (1, 0, 2)
    )
    active = features[features != 0]
    if feature_values == "positive":
        log_weights = stats.expon.logpdf(active, scale=1.4).sum()
    else:
        log_weights = stats.norm.logpdf(active, 0, math.sqrt(1.4)).sum()
    log_buffet = 3 * math.log(1.1 * 0.8) - 1.1 * sum(0.8 / (0.8 + d) for d in range(3))
    log_buffet += sum(special.betaln(m, 3 - m + 0.8) for m in (2, 2, 1))
    log_policies = sum(stats.dirichlet.logpdf(row, [0.6, 0.6]) for row in policies)
    log_hyper = (
        stats.invgamma.logpdf(0.3, 2.1, scale=0.9)
        + stats.gamma.logpdf(2.1, 3, scale=1 / 2)
        + stats.gamma.logpdf(0.9, 1, scale=1)
        + stats.gamma.logpdf(1.1, 2, scale=1 / 3)
        + stats.gamma.logpdf(0.8, 1, scale=1 / 10)
        + stats.invgamma.logpdf(1.4, 1, scale=1)
        + stats.gamma.logpdf(0.6, 1, scale=1)
    )
    expected = (
        0.7 * log_observations + 2 * log_action + log_substates + log_weights + log_buffet + log_policies + log_hyper
    )
    assert log_joint(state, data, target) == pytest.approx(expected, rel=1e-12)


def make_product_states():
    """Two states of a product of two features with three actions, which differ in all that has to do with actions."""
    one = State(
        np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]), np.array([[0.5, 0.0], [0.3, 0.9]]),
        np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]), 0.3, 2.1, 0.9, 1.4, 1.1, 0.8, 0.6,
        policy_scale=1.7, base_policy=np.array([0.5, 0.3, 0.2]),
    )  # fmt: skip
    other = one._replace(
        substates=np.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]), policies=np.array([[0.05, 0.9, 0.05], [0.3, 0.3, 0.4]]),
        policy_scale=0.4, base_policy=np.array([0.1, 0.1, 0.8]),
    )  # fmt: skip
    return one, other


def log_of_policies_by_hand(state, actions, available, action_weight):
    """The factors of a product that have to do with policies and actions, from scipy's distributions."""
    # an orthonormal basis of the centred space, on which the log odds are independent N(0, v)
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    log_odds = basis @ np.log(np.vstack([state.policies, state.base_policy])).T
    log_density = stats.norm.logpdf(log_odds, 0, math.sqrt(state.policy_scale)).sum()
    log_density += stats.invgamma.logpdf(state.policy_scale, 6.0, scale=8.0)
    for n, action in enumerate(actions):
        powers = state.base_policy * np.prod(state.policies ** state.substates[:, [n]], axis=0) * available[n]
        log_density += action_weight * math.log(powers[action] / powers.sum())
    return log_density


def log_of_observations_by_hand(state, observations):
    """The factors of observations and substates, up to what is the same for all substates."""
    log_density = stats.norm.logpdf(observations, state.substates.T @ state.features, math.sqrt(0.3)).sum()
    for column in state.substates:
        zeros = np.sum(column == 0)
        log_density += special.betaln(zeros + 1.5, 3 - zeros + 0.5) - (3 - zeros) * math.log(2)
    return log_density


@pytest.mark.parametrize("masked", [False, True])
def test_log_joint_of_a_product_has_its_own_factors(masked):
    observations = np.array([[0.2, 0.1], [0.6, 0.3], [0.4, -0.2]])
    available = np.array([[True, True, False], [True, False, True], [True, True, True]]) | (not masked)
    data = make_demonstrations(observations, [1, 0, -1], available=available if masked else None)
    priors = Priors(sparsity=(1.5, 0.5), policy_scale=(6.0, 8.0))
    options = {"n_actions": 3, "n_dimensions": 2, "n_levels": 3, "action_weight": 2.5}
    target = make_target(priors, **options, combination="product")
    one, other = make_product_states()
    expected = log_of_policies_by_hand(one, [1, 0], available, 2.5) + log_of_observations_by_hand(one, observations)
    expected -= log_of_policies_by_hand(other, [1, 0], available, 2.5)
    expected -= log_of_observations_by_hand(other, observations)
    assert log_joint(one, data, target) - log_joint(other, data, target) == pytest.approx(expected, rel=1e-11)
    # no constant is missing: also the difference from a mixture of uniform policies is right
    uniform = one._replace(policies=np.full((2, 3), 1 / 3), base_policy=np.zeros(0))
    expected = log_of_policies_by_hand(one, [1, 0], available, 2.5)
    expected -= 2 * stats.dirichlet.logpdf(np.full(3, 1 / 3), np.full(3, 0.6))
    expected += 2.5 * np.log(available[:2].sum(axis=1)).sum()
    found = log_joint(one, data, target) - log_joint(uniform, data, make_target(priors, **options))
    assert found == pytest.approx(expected, rel=1e-11)


def test_log_joint_with_a_learned_decisiveness_has_its_prior():
    one, other = (make_product_states()[0]._replace(base_policy=np.zeros(0), decisiveness=tau) for tau in (3.0, 0.7))
    data = make_demonstrations(np.zeros((3, 2)), [1, 0, -1])
    target = make_target(Priors(decisiveness=(2.5, 0.4)), n_actions=3, n_dimensions=2, n_levels=3, decisiveness="drawn")
    expected = 0.0
    for state, sign in ((one, 1), (other, -1)):
        tau = state.decisiveness
        expected += sign * stats.gamma.logpdf(tau, 2.5, scale=1 / 0.4)
        for mixture, action in ((state.policies[1], 1), (state.policies.mean(axis=0), 0)):
            expected += sign * math.log(mixture[action] ** tau / np.sum(mixture**tau))
    assert log_joint(one, data, target) - log_joint(other, data, target) == pytest.approx(expected, rel=1e-11)
    # a decisiveness that is given has no prior
    given = [make_target(Priors(), n_actions=3, n_dimensions=2, n_levels=3, decisiveness=tau) for tau in (3.0, 0.7)]
    found = log_joint(one, data, given[0]) - log_joint(other, data, given[1])
    expected -= stats.gamma.logpdf(3.0, 2.5, scale=2.5) - stats.gamma.logpdf(0.7, 2.5, scale=2.5)
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"decisiveness": 0.3}, {"decisiveness": 12.0}, {"combination": "product"}])
def test_probabilities_of_a_state_sum_to_one_over_what_is_available(options, masked):
    rng = np.random.default_rng(0)
    simulation = simulate(rng, 50, 3, 4, ibp_mass=2.0, ibp_concentration=1.0, policy_concentration=0.3, **options)
    available = rng.random((50, 4)) < 0.5
    available[np.arange(50), rng.integers(4, size=50)] = True
    target = make_target(Priors(), n_actions=4, n_dimensions=3, **options)
    probabilities = state_probabilities(simulation.state, target, available if masked else None)
    assert np.allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    if masked:
        assert np.all(probabilities[~available] == 0)
        whole = state_probabilities(simulation.state, target)
        # what is left keeps its odds
        kept = np.where(available, whole, 0.0)
        assert np.allclose(probabilities, kept / kept.sum(axis=1, keepdims=True), atol=1e-12)
    else:
        none_given = np.zeros((0, 4), dtype=bool)
        assert np.array_equal(probabilities, state_probabilities(simulation.state, target, none_given))


def test_a_product_multiplies_and_a_row_without_features_follows_the_base_policy():
    policies, base_policy = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]), np.array([0.5, 0.25, 0.25])
    substates = np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 0.0]])
    found = multiplied_probabilities(substates, policies, base_policy)
    for row, weights in zip(
        found, [base_policy, base_policy * policies.prod(axis=0), base_policy * policies[0] ** 0.5], strict=True
    ):
        assert np.allclose(row, weights / weights.sum(), atol=1e-14)


def test_an_action_keeps_its_odds_beside_a_far_more_probable_one_that_is_not_available():
    """A product may put more than exp(745) between two actions, where probabilities underflow."""
    policies = np.array([[1.0, 1e-200, 1e-201]] * 2)
    policies /= policies.sum(axis=1, keepdims=True)
    available = np.array([[False, True, True]])
    found = multiplied_probabilities(np.ones((2, 1)), policies, np.full(3, 1 / 3), available)
    assert np.allclose(found, [[0.0, 100 / 101, 1 / 101]], rtol=1e-9)


def test_simulated_actions_follow_the_product():
    rng = np.random.default_rng(1)
    n_rows = 40_000
    state = make_product_states()[0]._replace(substates=np.tile([[0.25], [0.75]], n_rows))
    _, actions = simulate_data(rng, state)
    weights = state.base_policy * state.policies[0] ** 0.25 * state.policies[1] ** 0.75
    expected = weights / weights.sum()
    counts = np.bincount(actions, minlength=3)
    assert np.all(np.abs(counts / n_rows - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n_rows))


def test_simulate_draws_what_a_product_and_a_learned_decisiveness_need():
    rng = np.random.default_rng(2)
    priors = Priors(policy_scale=(6.0, 8.0), decisiveness=(3.0, 2.0))
    scales, squares, decisiveness = [], [], []
    for _ in range(4000):
        state = simulate(rng, 1, 1, 3, priors=priors, combination="product").state
        logs = np.log(state.base_policy)
        scales.append(state.policy_scale)
        squares.append(np.sum((logs - logs.mean()) ** 2) / state.policy_scale)
        decisiveness.append(simulate(rng, 1, 1, 3, priors=priors, decisiveness="drawn").state.decisiveness)
        assert state.policies.shape == (len(state.features), 3)
    # a false alarm in 100,000 for each
    assert stats.kstest(scales, stats.invgamma(6.0, scale=8.0).cdf).pvalue > 1e-5
    assert stats.kstest(squares, stats.chi2(2).cdf).pvalue > 1e-5
    assert stats.kstest(decisiveness, stats.gamma(3.0, scale=1 / 2.0).cdf).pvalue > 1e-5
    assert simulate(rng, 1, 1, 3, combination="product", policy_scale=2.5).state.policy_scale == 2.5


def test_equal_patterns_are_counted_in_the_buffet():
    """Two features with the same pattern: K_h! = 2 in the denominator of Eq. (ibp)."""
    state = State(np.zeros((2, 1)), np.array([[1.0, 0], [2.0, 0]]), np.full((2, 2), 0.5), 1, 1, 1, 1, 1, 1, 1)
    other = state._replace(features=np.array([[1.0, 0], [0, 2.0]]))
    target = make_target(Priors(), n_actions=2, n_dimensions=2)
    data = make_demonstrations(np.zeros((1, 2)), [0])
    assert log_joint(other, data, target) - log_joint(state, data, target) == pytest.approx(math.log(2))


def test_action_weight_may_be_the_number_of_dimensions():
    assert make_target(Priors(), n_actions=2, n_dimensions=7, action_weight="dimensions").action_weight == 7


def test_births_that_the_action_must_accept_are_tried_less_often():
    options = {"n_actions": 3, "n_dimensions": 40}
    assert make_target(Priors(), **options).n_birth_tries == 12
    assert make_target(Priors(), **options, decisiveness=10.0).n_birth_tries == 6
    assert make_target(Priors(), **options, decisiveness="drawn").n_birth_tries == 6
    product = make_target(Priors(), **options, combination="product", decisiveness=10.0)
    assert (product.n_birth_tries, product.decisiveness) == (6, 1.0)


def test_columns_of_zeros_say_nothing_about_the_noise():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((6, 2)), np.zeros(6), np.full(6, 2.0)])
    X[0, 0] = X[1, 2] = np.nan
    data = make_demonstrations(X, np.zeros(6, int))
    assert data.n_observed == 5 + 6 + 6  # constants other than zero must be explained, so they count
    assert make_demonstrations(np.zeros((4, 3)), np.zeros(4, int)).n_observed == 12
