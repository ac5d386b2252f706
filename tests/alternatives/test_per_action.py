"""Features of each action by themselves: what is learned, and what is predicted from it."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.plain import PLAIN
from tests.support.statistics import Z_LIMIT
from whyact import FeaturePolicyClassifier, Priors
from whyact.alternatives.per_action import PerActionFeaturesClassifier
from whyact.errors import ChainsDisagreeWarning
from whyact.model import State, make_target
from whyact.posterior import Posterior
from whyact.prediction import Predictor
from whyact.sampler.draws import ChainDraws
from whyact.sampler.new_rows import weigh_row

SHORT = {"n_burn_in": 20, "n_draws": 20, "n_chains": 1}


@pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
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
        **PLAIN,
        n_burn_in=400,
        n_draws=200,
        n_chains=2,
        unit=model.unit_,
        action_weight=0.0,
        random_state=group.random_state,
    ).fit(X[:60][y[:60] == "go"])
    np.testing.assert_array_equal(alone.components_, group.components_)


def sum_over_substates(state, row, observation_weight, n_levels):
    """Log density of a row by enumeration of all substates on the grid."""
    observed = ~np.isnan(row)
    n_rows = state.substates.shape[1]
    zero = ((state.substates == 0).sum(axis=1) + 1) / (n_rows + 2)
    levels = np.arange(n_levels) / (n_levels - 1)
    log_terms = []
    for s in itertools.product(levels, repeat=len(state.features)):
        residual = (row - np.array(s) @ state.features)[observed]
        log_density = -0.5 * residual**2 / state.noise_variance - 0.5 * math.log(2 * math.pi * state.noise_variance)
        log_prior = np.log(np.where(np.array(s) == 0, zero, (1 - zero) / (n_levels - 1))).sum()
        log_terms.append(observation_weight * log_density.sum() + log_prior)
    return logsumexp(log_terms)


def test_density_of_a_row_is_estimated_without_bias():
    """The mean of the estimate over 4000 draws of it, against enumeration of the substates; features overlap."""
    rng = np.random.default_rng(0)
    features = np.array([[1.0, 0.8, 0.0, 0.1], [0.9, 0.9, 0.2, 0.0], [0.0, 0.1, 0.6, 0.7]])
    substates = np.where(rng.random((3, 12)) < 0.4, 0.0, rng.integers(1, 5, (3, 12)) / 4)
    state = State(substates, features, np.full((3, 1), 1.0), 0.05, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    row = np.array([0.8, np.nan, 0.3, 0.2])
    target = make_target(Priors(), n_actions=1, n_dimensions=4, n_levels=5, observation_weight=0.7)
    draws = ChainDraws(state, 5)
    for _ in range(4000):
        draws.append(state, 0.0, 0.0)
    flat = Predictor(Posterior([draws]), target, 4000, 0).many_draws
    log_weights = np.empty(4000)
    weigh_row(rng, np.nan_to_num(row), np.array([1]), 5, flat, log_weights)
    ratio = np.exp(log_weights - sum_over_substates(state, row, 0.7, 5))
    assert abs(ratio.mean() - 1) < Z_LIMIT * ratio.std() / math.sqrt(4000)
    assert 0.01 < ratio.std() < 2


def test_probabilities_are_those_of_the_enumerated_densities():
    """Rows between the groups, whose probabilities are not near 0 or 1; two features in a group."""
    X, y, _ = make_groups(1, 30)
    X = X[:, :5]
    model = PerActionFeaturesClassifier(
        n_burn_in=60, n_draws=60, thin=1, n_chains=1, n_levels=4, observation_weight=0.1, random_state=0
    ).fit(X, y)
    rows = 0.5 * (X[y == "brake"][:5] + X[y == "go"][:5])
    rows[0, 2] = np.nan
    log_scores = np.empty((5, 2))
    for u, (group, size) in enumerate(zip(model.estimators_, model.group_sizes_, strict=True)):
        (chain,) = group.posterior_.chains
        states = [chain.state(i) for i in range(len(chain))]
        assert max(len(state.features) for state in states) >= 2
        for n, row in enumerate(rows / model.unit_):
            log_scores[n, u] = logsumexp([sum_over_substates(state, row, 0.1, 4) for state in states]) + math.log(size)
    found = np.log(model.predict_proba(rows))
    assert np.abs(log_scores[:, 1] - log_scores[:, 0]).min() < 3
    np.testing.assert_allclose(found[:, 1] - found[:, 0], log_scores[:, 1] - log_scores[:, 0], atol=0.3)


@pytest.mark.parametrize("n_levels", [10, 1000])
def test_a_row_of_which_nothing_is_observed_has_the_groups_sizes(n_levels):
    X, y, _ = make_groups(5, 40)
    model = PerActionFeaturesClassifier(**SHORT, n_levels=n_levels, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 20), np.nan))[0], model.group_sizes_ / 40, rtol=1e-9)


def test_a_column_may_be_missing_throughout_a_group():
    X, y, _ = make_groups(6, 30)
    X[y == "go", 2] = np.nan
    assert np.isfinite(PerActionFeaturesClassifier(**SHORT, random_state=0).fit(X, y).predict_proba(X)).all()
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 holds no number"):
        PerActionFeaturesClassifier(**SHORT).fit(X, y)


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


def test_one_warning_names_the_groups_whose_chains_disagree(monkeypatch):
    monkeypatch.setattr(Posterior, "_least_in_common", 2.0)  # more than all of it: no chains can agree
    X, y, _ = make_groups(4, 30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PerActionFeaturesClassifier(n_burn_in=1, n_draws=20, n_chains=2, random_state=0).fit(X, y)
    (warning,) = [w for w in caught if issubclass(w.category, ChainsDisagreeWarning)]
    assert "features of brake, go disagree" in str(warning.message)
    assert warning.filename == __file__
