"""The model: priors, the generative process, the log joint density."""

import math

import numpy as np
import pytest
from scipy import special, stats

from whyact.model import Priors, State, action_probabilities, log_joint, make_demonstrations, make_target
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


def test_equal_patterns_are_counted_in_the_buffet():
    """Two features with the same pattern: K_h! = 2 in the denominator of Eq. (ibp)."""
    state = State(np.zeros((2, 1)), np.array([[1.0, 0], [2.0, 0]]), np.full((2, 2), 0.5), 1, 1, 1, 1, 1, 1, 1)
    other = state._replace(features=np.array([[1.0, 0], [0, 2.0]]))
    target = make_target(Priors(), n_actions=2, n_dimensions=2)
    data = make_demonstrations(np.zeros((1, 2)), [0])
    assert log_joint(other, data, target) - log_joint(state, data, target) == pytest.approx(math.log(2))


def test_action_weight_may_be_the_number_of_dimensions():
    assert make_target(Priors(), n_actions=2, n_dimensions=7, action_weight="dimensions").action_weight == 7
