"""The decisiveness that predictions use, learned after sampling."""

import numpy as np
import pytest
from scipy import stats

from tests.support.stand_in import make_model
from whyact import FeaturePolicyClassifier, load, load_demo
from whyact.cut_decisiveness import find_decisiveness, log_mixtures
from whyact.model import LEARNED, sharpen
from whyact.simulation import draw_ground_truth

FLAT = {"shape": 1.0, "rate": 0.0}  # every tau is equally probable


def draw_rows(decisiveness, n_rows, available, seed=0):
    """Mixtures of one draw and round, and actions of a teacher who is as decisive as this."""
    rng = np.random.default_rng(seed)
    mixtures = rng.dirichlet(np.ones(3), n_rows)
    probabilities = np.where(available, sharpen(mixtures, decisiveness), 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    actions = (rng.random((n_rows, 1)) >= np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
    return np.log(mixtures)[:, None, None, :], actions


@pytest.mark.parametrize("decisiveness", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("masked", [False, True])
def test_the_decisiveness_of_the_teacher_is_found(decisiveness, masked):
    available = np.ones((20_000, 3), bool)
    if masked:
        available[::3, 1] = False
    logs, actions = draw_rows(decisiveness, 20_000, available)
    assert find_decisiveness(logs, actions, available, **FLAT).value == pytest.approx(decisiveness, rel=0.06)


def test_the_most_probable_one_is_found():
    """By a grid: prior times the average over draws and rounds, written with other means."""
    rng = np.random.default_rng(2)
    logs, available = np.log(rng.dirichlet(np.ones(3), (40, 2, 5))), rng.random((40, 3)) < 0.8
    actions = rng.integers(3, size=40)
    available[np.arange(40), actions] = True
    found = find_decisiveness(logs, actions, available, 2.0, 0.1).value

    def log_density(tau):
        weights = np.exp(logs) ** tau * available[:, None, None]
        shares = weights / weights.sum(axis=3, keepdims=True)
        of_actions = shares.mean(axis=(1, 2))[np.arange(40), actions]
        return np.log(of_actions).sum() + stats.gamma.logpdf(tau, 2.0, scale=10.0)

    grid = np.geomspace(0.1, 100, 4000)
    assert found == pytest.approx(grid[np.argmax([log_density(tau) for tau in grid])], rel=0.01)


def test_the_prior_bounds_what_nothing_contradicts():
    """Rows that are all predicted right would make the teacher infinitely decisive."""
    logs = np.log(np.tile([0.7, 0.2, 0.1], (30, 1, 1, 1)))
    available = np.ones((30, 3), bool)
    assert find_decisiveness(logs, np.zeros(30, int), available, **FLAT).value > 25  # beyond it rounding sees no gain
    assert 5 < find_decisiveness(logs, np.zeros(30, int), available, 2.0, 0.1).value < 15


def test_mixtures_are_those_of_each_draw():
    rng = np.random.default_rng(3)
    substates, policies = rng.random((4, 2, 5)), rng.dirichlet(np.ones(3), 5)
    substates[1] = 0.0
    logs = log_mixtures(substates, policies, np.array([0, 2, 5]))
    assert logs.shape == (4, 2, 2, 3)
    assert np.allclose(np.exp(logs[0, 1, 1]), substates[0, 1, 2:] @ policies[2:])
    assert not logs[1].any()  # without any feature the action is uniform


def test_learning_it_leaves_the_paper_s_chains_as_they_are():
    """Only the decisiveness of the draws differs, and it is one number for all of them."""
    demo = load_demo()
    quick = {"n_burn_in": 60, "n_draws": 60, "n_chains": 2, "random_state": 0, "combination": "mixture"}
    plain = FeaturePolicyClassifier(**quick, decisiveness=1.0).fit(demo.X[:60], demo.y[:60])
    learned = FeaturePolicyClassifier(**quick).fit(demo.X[:60], demo.y[:60])
    for one, other in zip(plain.posterior_.chains, learned.posterior_.chains, strict=True):
        assert np.array_equal(one.features, other.features)
        assert np.array_equal(one.policies, other.policies)
        assert np.all(one.traces["decisiveness"] == 1)
        assert np.all(other.traces["decisiveness"] == learned.decisiveness_)
    assert learned.decisiveness_ != 1
    assert all(state.decisiveness == 1 for state in learned._result.end.states)  # what the chains would go on from


def test_drawing_more_learns_it_again():
    demo = load_demo()
    quick = {"n_burn_in": 40, "n_chains": 2, "random_state": 0, "combination": "mixture"}
    once = FeaturePolicyClassifier(**quick, n_draws=60).fit(demo.X[:50], demo.y[:50])
    twice = FeaturePolicyClassifier(**quick, n_draws=30, warm_start=True).fit(demo.X[:50], demo.y[:50])
    twice.set_params(n_draws=60).fit(demo.X[:50], demo.y[:50])
    assert twice.decisiveness_ == once.decisiveness_
    assert np.array_equal(once.predict_proba(demo.X[50:60]), twice.predict_proba(demo.X[50:60]))


def test_predictions_of_a_decisive_teacher_are_surer_and_better():
    truth = draw_ground_truth(np.random.default_rng(4), 5, 20, n_rows=120)
    seen, new = slice(80), slice(80, None)
    options = {"n_burn_in": 300, "n_draws": 300, "n_chains": 2, "random_state": 0, "combination": "mixture"}
    scores = {}
    for decisiveness in (1.0, "auto"):
        model = FeaturePolicyClassifier(**options, decisiveness=decisiveness)
        model.fit(truth.observations[seen], truth.actions[seen])
        places = np.searchsorted(model.classes_, truth.actions[new])
        scores[decisiveness] = np.log(model.predict_proba(truth.observations[new])[np.arange(20 * 2), places]).mean()
    assert scores["auto"] > scores[1.0] + 0.1


def test_the_chosen_draw_speaks_with_averaged_policies():
    model = make_model(decisiveness="auto", labels=("a", "b", "c"))
    chosen = model.posterior_.chosen_on_average
    assert chosen.decisiveness == pytest.approx(model.decisiveness_)
    assert model._result.is_decisiveness_learned
    assert not make_model(decisiveness=10.0, labels=("a", "b", "c"))._result.is_decisiveness_learned


def test_from_rows_it_is_drawn(tmp_path):
    """In thousands of columns features must learn from the actions what matters; a file says the same."""
    demo = load_demo()
    quick = {"n_burn_in": 20, "n_draws": 30, "n_chains": 2, "random_state": 0, "combination": "mixture"}
    model = FeaturePolicyClassifier(**quick, start="rows", max_features=6).fit(demo.X[:50], demo.y[:50])
    assert model._result.target.decisiveness == LEARNED
    assert np.ptp(model.posterior_.traces["decisiveness"]) > 0
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc")
    assert loaded._result.target == model._result.target
    assert np.array_equal(loaded.predict_proba(demo.X[50:60]), model.predict_proba(demo.X[50:60]))
