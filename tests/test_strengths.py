"""How loudly features speak where they are parts of a whole."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from whyact import FeaturePolicyClassifier, load
from whyact.cut_decisiveness import learn_decisiveness
from whyact.simulation import draw_ground_truth
from whyact.strengths import FIRMNESS, find_strengths

OPTIONS = {"n_burn_in": 300, "n_draws": 300, "n_chains": 2, "random_state": 0, "combination": "mixture"}


@pytest.fixture(scope="module")
def fitted():
    """A model of features of which no row holds all: the sizes of many are not to be seen from one row."""
    truth = draw_ground_truth(np.random.default_rng(8), 12, 30, n_rows=180)
    model = FeaturePolicyClassifier(**OPTIONS).fit(truth.observations[:80], truth.actions[:80])
    return model, truth.observations[80:], truth.actions[80:]


def test_the_sizes_of_parts_are_found():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(6, 0.3), 400).T
    largest = rng.uniform(0.4, 1.0, 6)
    assert np.allclose(find_strengths(shares / largest[:, None]), largest, atol=0.01)


def test_it_is_the_bounded_least_squares_solution():
    """By another solver, from the rows themselves instead of their products."""
    substates = np.random.default_rng(1).random((5, 30))
    rows = np.vstack([substates.T, np.sqrt(FIRMNESS) * np.eye(5)])
    wanted = np.concatenate([np.ones(30), np.full(5, np.sqrt(FIRMNESS))])
    solution = lsq_linear(rows, wanted, bounds=(0, np.inf), tol=1e-14).x
    assert np.allclose(find_strengths(substates), np.clip(solution, 0.1, 10), atol=1e-6)


def test_a_feature_that_no_row_holds_keeps_its_voice():
    substates = np.vstack([np.ones(10), np.zeros(10)])
    assert np.allclose(find_strengths(substates), 1.0)
    assert find_strengths(np.zeros((0, 10))).shape == (0,)


def test_the_right_strengths_make_the_actions_more_probable():
    """Actions by votes that count by their strengths: the candidate that knows them wins, whichever it is."""
    rng = np.random.default_rng(2)
    policies, strengths = rng.dirichlet(np.full(3, 0.3), 4), np.array([0.3, 1.0, 0.6, 2.0])
    substates = rng.random((500, 1, 4))
    for truth, place in ((policies, 0), (policies * strengths[:, None], 1)):
        actions = (substates[:, 0] @ truth).argmax(axis=1)
        found = learn_decisiveness(
            lambda rows: substates[rows], [policies, policies * strengths[:, None]], np.array([0, 4]), actions, None,
            2.0, 0.1,
        )  # fmt: skip
        assert found[place].log_density > found[1 - place].log_density + 10


def test_the_design_of_the_paper_is_seen_as_parts_of_a_whole(fitted):
    """And predictions are better for it, on rows that were not learned from."""
    model, X, actions = fitted
    assert model.posterior_.adds_up
    assert "parts of a whole" in str(model)
    places = np.searchsorted(model.classes_, actions)
    known = np.isin(actions, model.classes_)
    found = np.log(model.predict_proba(X)[known, places[known]]).mean()
    model.posterior_.adds_up = False
    model._predictor.__dict__.pop("many_draws")
    without = np.log(model.predict_proba(X)[known, places[known]]).mean()
    model.posterior_.adds_up = True
    model._predictor.__dict__.pop("many_draws")
    assert found > without + 0.01


def test_all_that_speaks_of_votes_agrees(fitted, tmp_path):
    """Predictions, reasons, the policy of given substates, and a file."""
    model, X, _ = fitted
    probabilities = model.predict_proba(X[:20])
    reasons = model.explain(X[:20])
    assert np.allclose([reason.terms.value.sum(axis=0) for reason in reasons], probabilities, atol=1e-9)
    chosen = model.posterior_.chosen_on_average
    votes = chosen.policies * find_strengths(chosen.substates)[:, None]
    mixture = votes[:2].sum(axis=0) ** model.decisiveness_
    both = np.zeros((1, model.n_components_))
    both[0, :2] = 1.0
    assert np.allclose(model.policy(both)[0], mixture / mixture.sum())
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc")
    assert loaded.posterior_.adds_up
    assert np.array_equal(loaded.predict_proba(X[:20]), probabilities)
