"""Features of each action by themselves: what is learned, and what is predicted from it."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

from whyact import FeaturePolicyClassifier
from whyact.alternatives.per_action import PerActionFeaturesClassifier
from whyact.posterior import ChainsDisagreeWarning

SHORT = {"n_burn_in": 20, "n_draws": 20, "n_chains": 1}


@parametrize_with_checks(
    [PerActionFeaturesClassifier(**SHORT), PerActionFeaturesClassifier(**SHORT, feature_values="real")]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def make_groups(seed, n_rows=90):
    """Two actions with two features each, which the other one never has."""
    rng = np.random.default_rng(seed)
    features = np.where(rng.random((4, 20)) < 0.5, rng.exponential(size=(4, 20)), 0.0)
    actions = rng.integers(0, 2, n_rows)
    substates = np.zeros((n_rows, 4))
    for u in (0, 1):
        substates[actions == u, 2 * u : 2 * u + 2] = rng.uniform(0.2, 1.0, (np.sum(actions == u), 2))
    X = substates @ features
    return X + 0.05 * rng.standard_normal(X.shape), np.array(["brake", "go"])[actions], features


@pytest.fixture(scope="module")
def fitted():
    X, y, features = make_groups(0)
    model = PerActionFeaturesClassifier(n_burn_in=400, n_draws=200, n_chains=2, random_state=0)
    return model.fit(X[:60], y[:60]), X, y, features


def test_each_action_finds_its_own_features(fitted):
    model, X, y, features = fitted
    assert model.n_components_ == 4
    assert [group.n_components_ for group in model.estimators_] == [2, 2]
    assert model.components_.shape == (4, 20)
    for u in (0, 1):
        cosines = np.corrcoef(model.estimators_[u].components_, features[2 * u : 2 * u + 2])[:2, 2:]
        assert np.all(cosines.max(axis=1) > 0.95)
    assert model.group_sizes_.sum() == 60
    assert model.score(X[60:], y[60:]) == 1.0
    assert "brake (" in str(model)


def test_groups_learn_as_the_model_does_from_their_rows_alone(fitted):
    model, X, y, _ = fitted
    group = model.estimators_[1]
    alone = FeaturePolicyClassifier(
        n_burn_in=400, n_draws=200, n_chains=2, unit=model.unit_, action_weight=0.0, random_state=group.random_state
    ).fit(X[:60][y[:60] == "go"])
    np.testing.assert_array_equal(alone.components_, group.components_)


def test_probabilities_weigh_the_best_explanation_of_each_group():
    """By enumeration over all substates of a grid of three levels, for each draw."""
    X, y, _ = make_groups(1, 30)
    X = X[:, :6]
    X[0, 2] = np.nan
    model = PerActionFeaturesClassifier(
        n_burn_in=60, n_draws=20, n_chains=1, n_levels=3, observation_weight=0.5, random_state=0
    ).fit(X, y)
    row = X[:1] / model.unit_
    observed = ~np.isnan(row[0])
    log_scores = []
    for group, size in zip(model.estimators_, model.group_sizes_, strict=True):
        log_densities = []
        (chain,) = group.posterior_.chains
        for state in map(chain.state, range(len(chain))):
            zero = ((state.substates == 0).sum(axis=1) + 1) / (size + 2)
            best = -math.inf
            for s in itertools.product([0.0, 0.5, 1.0], repeat=len(state.features)):
                s = np.array(s)
                residual = (row[0] - s @ state.features)[observed]
                log_density = 0.5 * np.sum(
                    -0.5 * residual**2 / state.noise_variance - 0.5 * math.log(2 * math.pi * state.noise_variance)
                )
                best = max(best, log_density + np.log(np.where(s == 0, zero, (1 - zero) / 2)).sum())
            log_densities.append(best)
        log_scores.append(logsumexp(log_densities) - math.log(len(log_densities)) + math.log(size))
    expected = np.exp(log_scores - logsumexp(log_scores))
    # coordinate ascent may end beside the best substates now and then
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], expected, atol=0.02)


def test_an_action_seen_once_is_a_group_like_others():
    X, y, _ = make_groups(2, 30)
    y[0] = "stop"
    model = PerActionFeaturesClassifier(**SHORT, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["brake", "go", "stop"]
    assert model.predict_proba(X).shape == (30, 3)


def test_rows_without_an_action_are_left_out():
    X, y, _ = make_groups(3, 30)
    labels = y.astype(object)
    labels[:5] = None
    model = PerActionFeaturesClassifier(**SHORT, random_state=0).fit(X, labels)
    assert model.group_sizes_.sum() == 25
    with pytest.raises(ValueError, match="y holds no action"):
        PerActionFeaturesClassifier(**SHORT).fit(X, [None] * 30)


def test_one_warning_names_the_groups_whose_chains_disagree():
    X, y, _ = make_groups(4, 30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PerActionFeaturesClassifier(n_burn_in=1, n_draws=20, n_chains=2, random_state=0).fit(X, y)
    (warning,) = [w for w in caught if issubclass(w.category, ChainsDisagreeWarning)]
    assert "features of brake, go disagree" in str(warning.message)
    assert warning.filename == __file__
