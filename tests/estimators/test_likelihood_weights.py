"""Weights chosen by held-out rows, chains that start from rows, and a bounded number of features."""

import numpy as np
import pytest

from whyact import FeaturePolicyClassifier, Priors, load_demo, simulate
from whyact.estimators import likelihood_weights as weights
from whyact.estimators.inputs import CheckedInput
from whyact.model import make_demonstrations, make_target
from whyact.sampler.starts import start_from_rows

PAPER = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
SHORT = {"n_burn_in": 60, "n_draws": 40, "n_chains": 1, "random_state": 0, **PAPER}


@pytest.fixture(scope="module")
def demo():
    return load_demo()


def test_auto_takes_the_pair_with_the_best_score(demo, monkeypatch):
    tried = []

    def score(estimator, zeta, omega, given, held_out):
        tried.append((zeta, omega))
        n_rows = len(given.observations)
        assert held_out.sum() == pytest.approx(n_rows / 4, abs=n_rows / 24)
        return -abs(zeta - 0.1) - 0.01 * abs(omega - 10)

    monkeypatch.setattr(weights, "score_weights", score)
    model = FeaturePolicyClassifier(observation_weight="auto", action_weight="auto", **SHORT).fit(demo.X, demo.y)
    assert (model.observation_weight_, model.action_weight_) == (0.1, 10.0)
    assert tried == [(1.0, 1.0), (0.3, 1.0), (0.1, 1.0), (0.03, 1.0), (0.1, 10.0)]
    assert set(model.weight_scores_) == set(tried)
    model = FeaturePolicyClassifier(observation_weight=0.7, action_weight="auto", **SHORT).fit(demo.X, demo.y)
    assert (model.observation_weight_, model.action_weight_) == (0.7, 10.0)


def test_score_is_that_of_rows_not_learned_from(demo):
    """With actions of the rows left out shuffled, nobody can predict them; those learned from stay as they are."""
    estimator = FeaturePolicyClassifier(**PAPER)
    classes, actions = np.unique(demo.y, return_inverse=True)
    held_out = np.arange(len(actions)) % 4 == 0
    given = CheckedInput(demo.X, None, classes, actions)
    score = weights.score_weights(estimator, 1.0, 1.0, given, held_out)
    shuffled = actions.copy()
    shuffled[held_out] = np.random.default_rng(0).permutation(actions[held_out])
    assert score > weights.score_weights(estimator, 1.0, 1.0, given._replace(actions=shuffled), held_out) + 0.3


def test_weights_are_learned_and_judged_by_what_is_available(demo, monkeypatch):
    """Where nothing but the action that was taken is available, every weight predicts it for sure."""
    learned = []

    def keep(model, given):
        learned.append(given.available)
        return fit_quietly(model, given)

    fit_quietly = FeaturePolicyClassifier._fit_quietly
    monkeypatch.setattr(FeaturePolicyClassifier, "_fit_quietly", keep)
    only = demo.y[:, None] == np.unique(demo.y)
    model = FeaturePolicyClassifier(observation_weight="auto", **SHORT).fit(demo.X, demo.y, available=only)
    assert list(model.weight_scores_.values()) == pytest.approx([0.0] * len(weights.OBSERVATION_WEIGHTS), abs=1e-12)
    held_out = (np.arange(120) * weights.N_BLOCKS // 120) % 4 == 2
    assert all(np.array_equal(mask, only[~held_out]) for mask in learned)


@pytest.mark.parametrize("name", ["observation_weight", "action_weight"])
def test_auto_needs_rows_and_actions_to_judge_by(demo, name):
    model = FeaturePolicyClassifier(**{name: "auto"}, **SHORT)
    with pytest.raises(ValueError, match=f"{name}='auto' holds out"):
        model.fit(demo.X[:20], demo.y[:20])
    with pytest.raises(ValueError, match=f"{name}='auto' holds out"):
        model.fit(demo.X)
    with pytest.raises(ValueError, match=f"{name}='auto' needs sampler='exact'"):
        model.set_params(sampler="as-published").fit(demo.X, demo.y)


@pytest.mark.parametrize(
    "options", [{"decisiveness": 3.0}, {"combination": "product"}, {"max_features": 4}, {"start": "rows"}]
)
def test_the_papers_algorithm_refuses_what_it_has_not(demo, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}=.* needs sampler='exact'"):
        FeaturePolicyClassifier(sampler="as-published", **SHORT | options).fit(demo.X, demo.y)


@pytest.mark.parametrize("start", ["prior", "rows"])
def test_there_are_never_more_features_than_allowed(demo, start):
    model = FeaturePolicyClassifier(max_features=3, start=start, **SHORT).fit(demo.X, demo.y)
    assert model.posterior_.traces["n_features"].max() == 3


def test_a_start_from_rows_explains_most_of_them():
    rng = np.random.default_rng(2)
    features = rng.exponential(size=(4, 60)) * (rng.random((4, 60)) < 0.3)
    simulation = simulate(rng, 80, 60, 3, features=features, noise_variance=1e-4)
    data = make_demonstrations(simulation.observations, simulation.actions)
    target = make_target(Priors(), n_actions=3, n_dimensions=60, max_features=12)
    state = start_from_rows(np.random.default_rng(0), data, target, Priors())
    residual = data.observations - state.substates.T @ state.features
    assert np.mean(residual**2) < 0.1 * np.mean(data.observations**2)
    assert len(state.features) <= 12
    assert state.substates.max() == 1.0
    levels = state.substates * (target.n_levels - 1)
    assert np.allclose(levels, np.rint(levels))
    assert np.allclose(state.policies.sum(axis=1), 1.0)


@pytest.mark.parametrize("values", [np.zeros((50, 6)), np.full((50, 6), np.nan)])
def test_a_start_from_rows_that_hold_nothing_is_that_of_the_prior(values):
    values = values.copy()
    values[0, 0] = 0.0
    data = make_demonstrations(values, np.arange(50) % 2)
    target = make_target(Priors(), n_actions=2, n_dimensions=6)
    assert len(start_from_rows(np.random.default_rng(0), data, target, Priors()).features) == 1


def test_a_decisive_teacher_is_predicted_with_more_confidence(demo):
    """The demo's driver takes the most probable action; the mixture cannot say so, its power can."""
    X, y, X_new, y_new = demo.X[:80], demo.y[:80], demo.X[80:], demo.y[80:]
    scores = {}
    for decisiveness in (1.0, 8.0):
        model = FeaturePolicyClassifier(
            combination="mixture", decisiveness=decisiveness, n_burn_in=600, n_draws=200, n_chains=1, random_state=0
        ).fit(X, y)
        chosen = np.searchsorted(model.classes_, y_new)
        scores[decisiveness] = np.log(model.predict_proba(X_new)[np.arange(len(y_new)), chosen]).mean()
        assert model.score(X_new, y_new) > 0.7
    assert scores[8.0] > scores[1.0] + 0.05
