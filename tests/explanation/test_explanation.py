"""Reasons for single predictions: terms that add up, parts, neighbours, counterfactuals, table and text."""

import copy
import pickle
import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from tests.support.paths import DOCS
from whyact import FeaturePolicyClassifier
from whyact.explanation.counterfactual import ROUNDING, Counterfactual, find_counterfactual
from whyact.explanation.rows import find_nearest
from whyact.explanation.terms import LOG_ODDS, find_log_odds, find_terms
from whyact.explanation.text import Explanation, Explanations, Vocabulary, say_change, say_effect, say_times
from whyact.explanation.voices import align_policies, find_times, find_usual_policy
from whyact.intervals import Interval
from whyact.model import action_probabilities

pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")

# The paper's mixture.
PLAIN = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
# Too short to agree: draws differ in their number of features, and some features match none of the chosen draw.
QUICK = PLAIN | {"n_burn_in": 60, "n_draws": 60, "thin": 3, "n_chains": 2, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(demo):
    """A mixture, fitted to the first 80 demonstrations of the demo; do not change it."""
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=600, n_draws=400, thin=4, n_chains=2, random_state=0)
    return model.fit(demo.X[:80], demo.y[:80])


@pytest.fixture(scope="module")
def rows(demo):
    """New rows, rows with gaps, and rows that nobody explains."""
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random((5, 36)) < 0.2, np.nan, demo.X[90:95])
    return np.vstack([demo.X[80:86], gaps, np.zeros(36), np.full(36, 50.0), np.full(36, np.nan), -demo.X[80]])


@pytest.fixture(scope="module")
def restless(demo):
    """A model for each decisiveness."""
    return {
        tau: FeaturePolicyClassifier(**QUICK | {"decisiveness": tau}).fit(demo.X[:80], demo.y[:80])
        for tau in (1.0, 10.0, "auto")
    }


@pytest.fixture(scope="module")
def multiplied(demo):
    """A product, whose draws differ in their number of features."""
    return FeaturePolicyClassifier(**QUICK | {"combination": "product"}).fit(demo.X[:80], demo.y[:80])


@pytest.fixture(scope="module")
def masks(rows):
    """Some actions of each row, at least two, and one row with a single one."""
    available = np.random.default_rng(1).random((len(rows), 5)) < 0.5
    available[:, :2] |= available.sum(axis=1, keepdims=True) < 2
    available[3] = np.arange(5) == 2
    return available


# --- terms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prediction", ["mmse", "map"])
@pytest.mark.parametrize("tau", [1.0, 10.0, "auto"])
def test_terms_add_up_to_the_probabilities(restless, rows, prediction, tau):
    model = copy.deepcopy(restless[tau]).set_params(prediction=prediction)
    reasons = model.explain(rows)
    terms = np.stack([one.terms.value for one in reasons])
    probabilities = np.stack([one.probabilities.value for one in reasons])
    assert np.abs(terms.sum(axis=1) - model.predict_proba(rows)).max() < 1e-12
    assert np.array_equal(probabilities, model.predict_proba(rows))
    assert terms.min() >= 0
    assert [one.action for one in reasons] == model.predict(rows).tolist()
    assert np.array_equal([one.familiarity for one in reasons], model.familiarity(rows))
    assert np.array_equal([one.substates for one in reasons], model.transform(rows))
    if prediction == "mmse" and tau == 1.0:
        assert terms[:, -2].max() > 0.01  # other features speak here


@pytest.mark.parametrize("tau", [1.0, 10.0, "auto"])
def test_a_term_is_the_features_share_in_the_mixture(restless, demo, tau):
    model = copy.deepcopy(restless[tau]).set_params(prediction="map")
    for one in model.explain(demo.X[80:90]):
        contributions = one.substates[:, None] * model.posterior_.chosen_on_average.policies
        policy = model.policy(one.substates[None])[0]
        shares = contributions / contributions.sum(axis=0) if one.substates.any() else contributions
        assert np.allclose(one.terms.value[:-2], one.familiarity * policy * shares, atol=1e-12)
        assert np.allclose(one.terms.value[-2], 0)
        assert np.allclose(one.terms.value[-1], (1 - one.familiarity) / 5)


def test_features_that_are_absent_have_no_term(fitted, demo):
    for one in copy.deepcopy(fitted).set_params(prediction="map").explain(demo.X[80:90]):
        assert np.all(one.terms.value[:-2][one.substates == 0] == 0)
        assert sorted(one.present.tolist()) == np.nonzero(one.substates)[0].tolist()
        assert np.all(np.diff(one.substates[one.present]) <= 0)


def test_unmatched_features_of_a_draw_are_added_up():
    substates, policies = np.array([0.2, 0.3, 0.5]), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    terms = find_terms(substates, np.array(0.8), policies, 1.0, np.array([-1, 1, -1]), 2)
    assert np.allclose(terms, [[0, 0], [0.12, 0.12], [0.8 * 0.28, 0.8 * 0.42], [0.1, 0.1]])


def test_an_action_that_no_feature_speaks_for_has_no_term():
    policies = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    for tau in (1.0, 10.0):
        terms = find_terms(np.array([0.5, 0.5]), np.array(1.0), policies, tau, np.arange(2), 2)
        assert np.all(terms[:, 2] == 0)
        assert terms.sum() == pytest.approx(1.0)


def test_intervals_hold_the_values_and_widen(fitted, demo):
    narrow, usual, wide = (fitted.explain(demo.X[80:], interval=interval) for interval in (0.5, 0.9, 0.99))
    for few, some, many in zip(narrow, usual, wide, strict=True):
        for one, other in ((few, some), (some, many)):
            assert np.all(other.terms.low <= one.terms.low)
            assert np.all(other.terms.high >= one.terms.high)
            assert np.all(other.probabilities.low <= one.probabilities.low)
    values, lows, highs = (np.stack([one.terms[i] for one in usual]) for i in range(3))
    matter = values > 0.05
    assert matter.sum() > 40
    assert np.mean((lows <= values)[matter] & (values <= highs)[matter]) > 0.95
    # with MAP the value is another, the interval the same
    of_map = copy.deepcopy(fitted).set_params(prediction="map").explain(demo.X[80:82])
    assert np.array_equal(of_map[1].terms.low, usual[1].terms.low)


def test_rows_in_blocks_are_the_same(fitted, demo, monkeypatch):
    together = fitted.explain(demo.X[80:90])
    monkeypatch.setattr("whyact.explanation.rows.BLOCK_OF_NUMBERS", 1)
    apart = fitted.explain(demo.X[80:90])
    assert [one.row for one in apart] == list(range(10))
    assert str(apart) == str(together)


# --- terms of a product, and actions that are not available ------------------------------------------------


def centre(probabilities):
    """Logarithms minus their mean over what has a probability, NaN elsewhere."""
    with np.errstate(divide="ignore"):
        logs = np.where(probabilities > 0, np.log(probabilities), np.nan)
    return logs - np.nanmean(logs, axis=-1, keepdims=True)


@pytest.mark.parametrize("masked", [False, True])
def test_terms_of_a_product_add_up_to_log_odds(multiplied, rows, masks, masked):
    available = masks if masked else None
    model = copy.deepcopy(multiplied).set_params(prediction="map")
    for one, probabilities in zip(
        model.explain(rows, available=available), model.predict_proba(rows, available), strict=True
    ):
        assert one.scale == "log odds"
        assert np.array_equal(one.probabilities.value, probabilities)
        assert np.array_equal(one.available, masks[one.row] if masked else np.ones(5, bool))
        assert np.allclose(one.terms.value.sum(axis=0), centre(probabilities), rtol=0, atol=1e-9, equal_nan=True)
        assert np.allclose(one.totals.value, centre(probabilities), rtol=0, atol=1e-9, equal_nan=True)
        assert np.allclose(np.nansum(one.terms.value, axis=1), 0, atol=1e-9)  # centred
        assert np.all(np.nan_to_num(one.terms.value[-2]) == 0)  # nothing comes from other draws


@pytest.mark.parametrize("masked", [False, True])
def test_log_odds_are_averaged_over_the_draws_that_predict(multiplied, rows, masks, masked):
    available = masks if masked else None
    reasons = multiplied.explain(rows, available=available)
    predictor = multiplied._predictor
    draws = predictor.many_draws
    _, rounds = predictor.record(rows)
    in_draws = []
    for i, (first, last) in enumerate(pairwise(draws.splits)):
        tallies = draws.voices.base[i] + rounds.substates[:, 0, first:last] @ draws.voices.log_odds[first:last]
        in_draws.append(softmax(np.where(masks, tallies, -np.inf) if masked else tallies, axis=1))
    terms = np.stack([one.terms.value for one in reasons])
    assert np.abs(np.mean(in_draws, axis=0) - multiplied.predict_proba(rows, available)).max() < 1e-12
    assert np.allclose(
        terms.sum(axis=1), np.mean([centre(p) for p in in_draws], axis=0), rtol=0, atol=1e-9, equal_nan=True
    )
    assert np.nanmax(np.abs(terms[:, -2])) > 0  # features that match none speak here, too
    lows, highs = (
        np.stack([numbers(one) for one in reasons]) for numbers in (lambda o: o.totals.low, lambda o: o.totals.high)
    )
    inside = (lows <= terms.sum(axis=1)) & (terms.sum(axis=1) <= highs)
    assert np.mean(inside[np.isfinite(lows)]) > 0.95


def test_times_compare_with_the_row_without_the_feature(multiplied, demo):
    model = copy.deepcopy(multiplied).set_params(prediction="map")
    for one in model.explain(demo.X[80:90]):
        for k in range(model.n_components_):
            without = one.substates.copy()
            without[k] = 0
            assert np.allclose(one.times.value[k], one.probabilities.value / model.policy(without[None])[0])
        base = model.policy(one.substates[None])[0] / model.base_policy_
        assert np.allclose(one.times.value[-1], one.probabilities.value / (base / base.sum()))
        assert np.allclose(one.times.value[-2], 1)


@pytest.mark.parametrize("prediction", ["mmse", "map"])
@pytest.mark.parametrize("tau", [1.0, "auto"])
def test_terms_of_a_mixture_are_over_what_is_available(restless, rows, masks, prediction, tau):
    model = copy.deepcopy(restless[tau]).set_params(prediction=prediction)
    reasons = model.explain(rows, available=masks)
    terms = np.stack([one.terms.value for one in reasons])
    assert np.abs(terms.sum(axis=1) - model.predict_proba(rows, masks)).max() < 1e-12
    assert np.all(terms.transpose(0, 2, 1)[~masks] == 0)
    assert "No other action is available." in str(reasons[3])
    assert all(
        one.counterfactual is None or one.counterfactual.action in model.classes_[one.available] for one in reasons
    )


def test_what_nothing_speaks_for_is_uniform_over_what_is_available():
    policies, available = np.array([[1.0, 0.0, 0.0]]), np.array([False, True, True])
    terms = find_terms(np.array([0.5]), np.array(1.0), policies, 1.0, np.arange(1), 1, available)
    assert np.allclose(terms, [[0, 0, 0], [0, 0, 0], [0, 0.5, 0.5]])


@pytest.mark.parametrize("tau", [1.0, 0.3, 30.0])
def test_terms_add_up_to_the_mixture_that_the_model_makes_of_what_is_available(tau):
    """Also where the action that is not available would have been taken with near certainty."""
    policies = np.array([[1 - 2e-12, 1.5e-12, 5e-13], [0.2, 0.3, 0.5]])
    substates = np.array([[0.7, 0.0], [0.7, 0.2], [0.0, 0.0]])
    available = np.array([[False, True, True], [True, False, True], [False, True, True]])
    expected = action_probabilities(substates.T, policies, tau, available)
    if tau == 30.0:
        np.testing.assert_allclose(expected[0], [0.0, 1.0, 3.0**-30])
    terms = find_terms(substates, substates.any(axis=1).astype(float), policies, tau, np.arange(2), 2, available)
    np.testing.assert_allclose(terms.sum(axis=-2), expected, rtol=1e-12, atol=1e-300)


def test_unmatched_log_odds_are_added_up():
    log_odds, base = np.array([[1.0, -1.0, 0.0], [2.0, 0.0, -2.0], [0.0, 3.0, -3.0]]), np.array([0.5, 0.0, -0.5])
    substates = np.array([0.5, 1.0, 0.1])
    terms = find_log_odds(substates, log_odds, base, np.array([-1, 0, -1]), 1)
    assert np.allclose(terms, [[2, 0, -2], [0.5, -0.2, -0.3], [0.5, 0, -0.5]])
    some = find_log_odds(substates, log_odds, base, np.array([-1, 0, -1]), 1, np.array([True, False, True]))
    assert np.allclose(some, [[2, np.nan, -2], [0.4, np.nan, -0.4], [0.5, np.nan, -0.5]], equal_nan=True)


# --- parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_parts_and_rest_make_up_the_observation(restless, rows, prediction):
    model = copy.deepcopy(restless[1.0]).set_params(prediction=prediction)
    for one, row in zip(model.explain(rows), rows, strict=True):
        assert one.parts.shape == (model.n_components_ + 1, 36)
        assert np.isfinite(one.parts).all()
        assert np.array_equal(np.isnan(one.unexplained), np.isnan(row))
        assert np.allclose(one.parts.sum(axis=0) + one.unexplained, row, equal_nan=True)
        if prediction == "map":
            assert np.allclose(one.parts[:-1], one.substates[:, None] * model.components_)


def test_what_remains_of_a_familiar_row_is_noise(fitted, demo):
    rest = np.stack([one.unexplained for one in fitted.explain(demo.X[80:])])
    assert np.sqrt(np.mean(rest**2)) < 1.1 * 0.12


@pytest.fixture(scope="module")
def in_units(demo):
    """A model that scales columns, each in a unit of its own, and its observations."""
    units = np.geomspace(1e-3, 1e3, 36)
    X = demo.X * units - 5 * units
    return FeaturePolicyClassifier(**QUICK | {"scale_columns": True}).fit(X[:80], demo.y[:80]), X


@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_parts_of_scaled_columns_are_in_their_own_unit(in_units, prediction):
    model, X = in_units
    model = copy.deepcopy(model).set_params(prediction=prediction)
    rows = X[80:90].copy()
    rows[2, 5] = np.nan
    for one, row in zip(model.explain(rows), rows, strict=True):
        made_up = model.column_low_ + one.parts.sum(axis=0) + one.unexplained
        assert np.allclose(made_up / model.column_range_, row / model.column_range_, equal_nan=True)
        if prediction == "map":
            assert np.allclose(model.column_low_ + one.parts.sum(axis=0), model.inverse_transform(one.substates[None]))


def test_what_is_unexplained_is_named_by_its_share_of_the_range(in_units):
    model, X = in_units
    row = X[80].copy()
    noise = np.sqrt(model.noise_variance_) * model.column_range_
    plain = model.explain(row[None])[0]
    row[3] += 20 * noise[3] - plain.unexplained[3]  # much for this column, nothing for column 35
    assert 20 * noise[3] < 0.01 * noise[35]
    one = model.explain(row[None])[0]
    named = re.findall(r"x(\d+) [+-]", re.search("Unexplained: .*", str(one)).group())
    assert named[0] == "3"
    assert all(abs(one.unexplained[int(d)]) > 3 * noise[int(d)] for d in named)
    assert float(re.search(r"x3 \+(\d+\.\d+)", str(one)).group(1)) == pytest.approx(one.unexplained[3], rel=0.02)


# --- nearest demonstrations ---------------------------------------------------------------------------------


def test_a_demonstration_is_nearest_to_itself(fitted, demo):
    model = copy.deepcopy(fitted).set_params(prediction="map")
    same = np.nonzero((model.transform(demo.X[:80]) == model.substates_).all(axis=1))[0]
    assert len(same) > 0  # substates of demonstrations were drawn knowing the action, so not all are
    for n, one in zip(same, model.explain(demo.X[same]), strict=True):
        assert one.nearest[0] == (n, 0.0, demo.y[n])
    first = [one.nearest[0].row for one in model.explain(demo.X[:80], n_nearest=1)]
    assert np.mean(np.array(first) == np.arange(80)) > 0.9


def test_distances_are_between_what_the_features_make_up(fitted, demo):
    one = fitted.explain(demo.X[80:81], n_nearest=80)[0]
    away = np.linalg.norm(fitted.inverse_transform(fitted.substates_ - one.substates), axis=1)
    assert np.allclose([near.distance for near in one.nearest], np.sort(away))
    assert sorted(near.row for near in one.nearest) == list(range(80))
    assert fitted.explain(demo.X[80:81], n_nearest=0)[0].nearest == ()
    assert len(fitted.explain(demo.X[80:81], n_nearest=500)[0].nearest) == 80


def test_ties_go_to_the_earlier_demonstration():
    rows, distances = find_nearest(np.zeros(1), np.array([[1.0], [0.5], [0.5]]), np.array([[4.0]]), 2)
    assert rows.tolist() == [1, 2]
    assert distances.tolist() == [1.0, 1.0]


def test_a_demonstration_without_action_says_none(demo):
    y = demo.y[:80].astype(object)
    y[::2] = None
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], y)
    one = model.explain(demo.X[80:81], n_nearest=80)[0]
    assert {near.row % 2 for near in one.nearest if near.action is None} == {0}
    assert "action unknown" in str(one)


# --- counterfactuals ----------------------------------------------------------------------------------------


@st.composite
def mixtures(draw):
    """Few features, levels and actions; policies of few values, so that there are ties."""
    n_features, n_actions, top = draw(st.integers(0, 3)), draw(st.integers(2, 3)), draw(st.integers(1, 4))
    weights = st.lists(st.integers(0, 4), min_size=n_actions, max_size=n_actions).filter(any)
    policies = np.array([draw(weights) for _ in range(n_features)], dtype=float).reshape(n_features, n_actions)
    levels = np.array([draw(st.integers(0, top)) for _ in range(n_features)], dtype=int)
    return levels, policies / policies.sum(axis=1, keepdims=True), top


@settings(max_examples=300, deadline=None)
@given(mixtures())
def test_no_smaller_change_changes_the_action(mixture):
    levels, policies, top = mixture
    before = int(np.argmax(levels @ policies))
    costs = [
        np.abs(np.array(other) - levels).sum()
        for other in product(range(top + 1), repeat=len(levels))
        if np.max(np.array(other) @ policies) > np.array(other) @ policies[:, before] + ROUNDING
    ]
    found = find_counterfactual(levels, policies, top)
    if not costs:
        assert found is None
        return
    taken, action, changed = found
    assert taken == before != action
    assert np.all((changed >= 0) & (changed <= top))
    assert np.abs(changed - levels).sum() == min(costs)
    votes = changed @ policies
    assert votes[action] == pytest.approx(votes.max())
    assert votes[action] > votes[before]


@st.composite
def products(draw):
    """Log odds, a base policy, and amounts that are no points of the grid."""
    n_features, n_actions, top = draw(st.integers(0, 3)), draw(st.integers(2, 3)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    levels = rng.random(n_features) * top * (rng.random(n_features) < 0.8)
    return levels, rng.normal(size=(n_features, n_actions)), top, 0.3 * rng.normal(size=n_actions)


@settings(max_examples=200, deadline=None)
@given(products())
def test_no_change_of_a_product_is_smaller_by_more_than_a_step(product):
    levels, log_odds, top, base = product
    tallies = top * base + levels @ log_odds
    before = int(np.argmax(tallies))
    costs = []
    for action in set(range(len(base))) - {before}:
        leanings = log_odds[:, action] - log_odds[:, before]
        # up and down, each at a cost of one
        least = linprog(
            np.ones(2 * len(levels)),
            A_ub=-np.concatenate([leanings, -leanings])[None],
            b_ub=[tallies[action] - tallies[before]],
            bounds=[*((0, top - level) for level in levels), *((0, level) for level in levels)],
        ) if len(levels) else None  # fmt: skip
        if least is not None and least.success:
            costs.append(least.fun)
    found = find_counterfactual(levels, log_odds, top, base)
    if not costs:
        assert found is None
        return
    taken, action, changed = found
    assert taken == before
    assert np.abs(changed - levels).sum() <= min(costs) + 1 + 1e-6
    assert np.all((changed >= 0) & (changed <= top))
    moved = changed != levels
    assert np.array_equal(changed[moved], np.rint(changed[moved]))
    assert action == np.argmax(top * base + changed @ log_odds) != before


@settings(max_examples=200, deadline=None)
@given(mixtures(), st.lists(st.integers(-3, 3), min_size=3, max_size=3))
def test_no_smaller_change_from_the_grid_changes_the_action_of_a_product(mixture, weights):
    levels, log_odds, top = mixture
    base = np.array(weights[: log_odds.shape[1]]) / 4
    before = int(np.argmax(top * base + levels @ log_odds))
    costs = [
        np.abs(np.array(other) - levels).sum()
        for other in product(range(top + 1), repeat=len(levels))
        for tallies in [top * base + np.array(other) @ log_odds]
        if tallies.max() > tallies[before] + ROUNDING
    ]
    found = find_counterfactual(levels, log_odds, top, base)
    assert (found is None) == (not costs)
    assert found is None or np.abs(found[2] - levels).sum() == min(costs)


@pytest.mark.parametrize("prediction", ["mmse", "map"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_counterfactual_of_a_product_is_what_the_policy_says(multiplied, rows, masks, prediction, masked):
    model = copy.deepcopy(multiplied).set_params(prediction=prediction)

    def act(one, substates):
        return model.classes_[np.where(one.available, model.policy(substates[None])[0], 0).argmax()]

    reasons = model.explain(rows, available=masks if masked else None)
    assert (reasons[3].counterfactual is None) == masked  # the only action
    for one in reasons:
        found, substates = one.counterfactual, one.substates.copy()
        if found is None:
            continue
        assert act(one, substates) == found.before
        for k, (before, after) in found.changes.items():
            assert substates[k] == before != after
            substates[k] = after
        assert act(one, substates) == found.action != found.before


@pytest.mark.parametrize("tau", [1.0, 10.0, "auto"])
def test_a_counterfactual_is_what_the_policy_says(restless, rows, tau):
    model = copy.deepcopy(restless[tau]).set_params(prediction="map")
    for one in model.explain(rows):
        found = one.counterfactual
        substates = one.substates.copy()
        assert model.classes_[model.policy(substates[None]).argmax()] == found.before
        for k, (before, after) in found.changes.items():
            assert substates[k] == pytest.approx(before)
            assert after != before
            substates[k] = after
        assert model.classes_[model.policy(substates[None]).argmax()] == found.action != found.before


def test_a_counterfactual_starts_at_the_substates_that_the_text_names(restless, rows):
    for one in restless[1.0].explain(rows[:11]):
        for k, (before, _) in one.counterfactual.changes.items():
            assert before == one.substates[k]
            shown = re.search(rf"feature {k} (?:at [\d.]+|absent) instead of (absent|[\d.]+\d)", str(one)).group(1)
            present = re.search(rf"Present: .*feature {k} \(.*?\) ([\d.]+\d)", str(one))
            assert (present is None) == (shown == "absent")
            assert present is None or f"{float(shown):.2f}" == present.group(1)


def test_both_sides_of_a_change_can_be_told_apart():
    assert say_change(3, 0.2312, 25 / 99) == "feature 3 at 0.25 instead of 0.23"
    assert say_change(3, 0.398, 40 / 99) == "feature 3 at 0.404 instead of 0.398"
    assert say_change(3, 0.004, 0.5) == "feature 3 at 0.50 instead of absent"
    assert say_change(3, 0.5, 0.0) == "feature 3 absent instead of 0.50"
    assert say_change(3, 0.0, 0.005) == "feature 3 at 0.005 instead of absent"  # of a fine grid


# --- table, text, pickle ------------------------------------------------------------------------------------


def test_the_frame_adds_up(fitted, rows):
    reasons = fitted.explain(rows)
    frame = reasons.to_frame()
    assert list(frame) == ["row", "source", "action", "term", "low", "high", "substate", "presence"]
    assert len(frame) == len(rows) * (5 + 2) * 5
    sums = frame.groupby(["row", "action"])["term"].sum().unstack()[list(fitted.classes_)]
    assert np.abs(sums.to_numpy() - fitted.predict_proba(rows)).max() < 1e-12
    line = frame[(frame["row"] == 1) & (frame["source"] == "feature 2") & (frame["action"] == "keep")].iloc[0]
    keep = list(fitted.classes_).index("keep")
    assert line["term"] == reasons[1].terms.value[2, keep]
    assert line["substate"] == reasons[1].substates[2]
    assert frame[frame["source"] == "unfamiliar"]["substate"].isna().all()


def test_the_frame_of_a_product_has_log_odds_and_times(multiplied, rows, masks):
    reasons = multiplied.explain(rows, available=masks)
    frame = reasons.to_frame()
    assert list(frame) == ["row", "source", "action", "term", "low", "high", "times", "substate", "presence"]
    assert set(frame["source"]) == {*(f"feature {k}" for k in range(multiplied.n_components_)), "other", "base"}
    sums = frame.groupby(["row", "action"])["term"].sum(min_count=1).unstack()[list(multiplied.classes_)]
    assert np.allclose(sums, np.stack([one.totals.value for one in reasons]), rtol=0, atol=1e-9, equal_nan=True)
    line = frame[(frame["row"] == 1) & (frame["source"] == "feature 2")].iloc[0]
    assert np.isnan(line["times"]) == (not masks[1, 0])
    assert frame["times"].notna().sum() == masks.sum() * (multiplied.n_components_ + 2)


def test_the_text_of_a_product_says_how_many_times_more_likely(multiplied, rows, masks):
    told = 0
    for one in multiplied.explain(rows[:11]):
        if one.unfamiliar:
            continue
        reasons = find_line(one, "For it: ") + find_line(one, "Against it: ")
        for k, action, factor, word in re.findall(
            r"feature (\d+) \([^)]*\) makes (\D+?) ([\d.]+) times \([^)]*\) (more|less) likely", reasons
        ):
            times = one.times.value[int(k), list(multiplied.classes_).index(action)]
            assert action == one.action
            assert float(factor) == pytest.approx(times if word == "more" else 1 / times, rel=0.05)
            assert (word == "more") == (f"feature {k} " in find_line(one, "For it: "))
            told += 1
        assert "Each is compared with the same row without it." in str(one)
        assert "log odds" not in str(one)
    assert told > 10
    one = multiplied.explain(rows, available=masks)[1]
    unavailable = [str(label) for label in multiplied.classes_[~masks[1]]]
    assert find_line(one, "Not available") == f"  Not available: {', '.join(unavailable)}."
    assert not any(f"{label} " in find_line(one, "For it") for label in unavailable)


def make_multiplied(probabilities, times, base=(0.0, 0.5, -0.5)):
    """One of a product with a single feature; factors of the feature, of other features and of the base policy."""
    values = np.array([times, (1.0, 1.0, 1.0), (1.0, 0.5, 3.0)], dtype=float)
    terms = np.array([(0.0, 0.0, 0.0), (0.0, 0.0, 0.0), base])
    classes = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    words = Vocabulary(classes, ["a"], ["feature 0 (a)"], 0.9, np.ones(1), LOG_ODDS)
    return Explanation(
        row=0, action="setosa", probabilities=Interval(*(np.array(probabilities),) * 3), available=np.ones(3, bool),
        familiarity=1.0, terms=Interval(terms, terms, terms), totals=Interval(*(np.zeros(3),) * 3),
        times=Interval(values, values, values), substates=np.ones(1), presence=np.ones(1), parts=np.zeros((2, 1)),
        unexplained=np.zeros(1), nearest=(), counterfactual=None, vocabulary=words,
    )  # fmt: skip


def test_the_rival_of_a_row_is_named_not_the_action_that_moves_most():
    one = make_multiplied([0.97, 0.03, 1e-9], [1.5, 0.2, 1e-4])
    assert say_effect(one, 0) == "feature 0 (a) makes setosa 1.5 times (1.5 to 1.5) more likely and versicolor " + (
        "5.0 times less likely"
    )
    only_without = make_multiplied([0.97, 0.02, 0.01], [3.0, 1.0, 0.01])  # without it, virginica would be ahead
    assert "virginica 100 times less likely" in say_effect(only_without, 0)


def test_what_hardly_changes_is_said_to_do_so():
    one = make_multiplied([0.97, 0.03, 1e-9], [1.004, 0.034, 1.0])
    assert say_effect(one, 0) == "feature 0 (a) hardly changes setosa, but makes versicolor 29 times less likely"
    assert say_effect(one, 1) == "other features hardly change setosa"
    assert say_effect(one, 2) == (
        "without any feature the teacher would favour versicolor: versicolor 2.0 times less likely"
    )


def test_factors_are_told_with_two_digits_or_as_very_large():
    times = Interval(*(np.array([[value]]) for value in (3.14, 2.0, 20.0)))
    assert say_times(times, 0, 0) == "3.1 times more likely"
    assert say_times(times, 0, 0, with_interval=True) == "3.1 times (2.0 to 20) more likely"
    less = Interval(*(np.array([[value]]) for value in (0.25, 0.1, 0.5)))
    assert say_times(less, 0, 0, with_interval=True) == "4.0 times (2.0 to 10) less likely"
    huge = Interval(*(np.array([[value]]) for value in (1e-9, 1e-12, 1e-5)))
    assert say_times(huge, 0, 0, with_interval=True) == "over 1,000 times less likely"


# --- the whole model in words -------------------------------------------------------------------------------


def test_the_description_says_how_policies_are_combined_and_why(restless, multiplied, demo):
    assert "\nPolicies are mixed (mixture), as asked. Decisiveness 10 (as set).\n" in str(restless[10.0])
    learned = restless["auto"]
    assert f". Decisiveness {learned.decisiveness_:.3g} (learned).\n" in str(learned)
    text = str(multiplied)
    usual = find_usual_policy(multiplied)
    best = int(usual.argmax())
    assert "\nPolicies are multiplied (product), as asked.\n" in text
    assert f"\nIn a typical row: {multiplied.classes_[best]} with {usual[best]:.2f}. Each line below: " in text
    (effects, told) = re.search(r"-> (raises .*, lowers .*); with all of it: (.*); in \d+% of the rows", text).groups()
    factor = r"\((over 1,000|[\d.]+) times\)"
    assert re.fullmatch(rf"raises \D+ {factor}, lowers \D+ {factor}", effects)
    assert re.match(r"\D+ with [\d.]+ \(90% of the draws [\d.]+ to [\d.]+\)", told)
    chosen = copy.copy(multiplied)
    chosen.combination_scores_ = {"mixture": -0.741, "product": -0.613}
    assert "(product): on hidden actions its log score was -0.61, the mixture's -0.74 (0 is perfect).\n" in str(chosen)
    kept = copy.copy(restless[10.0])
    kept.combination_scores_ = {"mixture": -0.13, "product": -0.11}
    told = (
        "was -0.13, the product's -0.11 (0 is perfect); the product was not clearly better, so the usual one is kept."
    )
    assert f"{told} Decisiveness" in str(kept)
    few = FeaturePolicyClassifier(**QUICK | {"combination": "auto"}).fit(demo.X[:12], demo.y[:12])
    assert "Policies are mixed (mixture), as there are too few actions to compare by." in str(few)
    nothing = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80])
    assert "Policies" not in str(nothing)


def test_policies_of_a_product_are_told_with_everything_else_as_usual(multiplied, fitted):
    policies, times = align_policies(multiplied), find_times(multiplied)
    assert np.all(policies.low <= policies.high)
    assert np.allclose(policies.value.sum(axis=1), 1.0)
    draws, labels, cut = multiplied._predictor.many_draws, multiplied._predictor.labels, multiplied._result.cut
    told = {"with": [], "without": []}
    usual = []
    for i, (first, last) in enumerate(pairwise(draws.splits)):
        log_odds, base = draws.voices.log_odds[first:last], draws.voices.base[i]
        usual.append(softmax(base + cut.means[first:last] @ log_odds))
        for row in np.nonzero(labels[first:last] == 0)[0]:
            for name, amount in (("with", 1.0), ("without", 0.0)):
                amounts = cut.means[first:last].copy()
                amounts[row] = amount
                told[name].append(softmax(base + amounts @ log_odds))
    assert np.allclose(policies.value[0], np.mean(told["with"], axis=0))
    assert np.allclose(policies.low[0], np.quantile(told["with"], 0.05, axis=0))
    assert np.allclose(times[0], np.mean(told["with"], axis=0) / np.mean(told["without"], axis=0))
    assert np.allclose(find_usual_policy(multiplied), np.mean(usual, axis=0))
    shown = multiplied.judge_demonstrations(prediction="map").substates
    assert np.allclose(cut.chosen_means, shown.mean(axis=0))
    assert align_policies(fitted) is fitted.posterior_.aligned.policies


def test_the_text_names_columns_features_and_actions(demo):
    frame = pd.DataFrame(demo.X, columns=demo.column_names)
    model = FeaturePolicyClassifier(**QUICK).fit(frame[:80], demo.y[:80])
    text = str(model.explain(frame[80:84], interval=0.8))
    assert text.count("\n  ") >= 4 * 4
    for n, action in enumerate(model.predict(frame[80:84])):
        assert f"Row {n}: {action} with 0." in text
    assert "80% intervals" in text
    assert any(name in text for name in demo.column_names)
    assert "Most like it: demonstrations " in text
    assert " instead of 0." in text


def test_what_is_unexplained_is_told_where_it_is_more_than_noise(fitted, demo):
    odd = demo.X[80].copy()
    odd[17] += 3.0
    one = fitted.explain(odd[None])[0]
    assert "Unexplained: x17 +" in str(one)
    assert one.familiarity < 1


def find_line(text, beginning):
    found = [line for line in str(text).splitlines() if line.strip().startswith(beginning)]
    return found[0] if found else ""


@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_present_are_the_features_of_the_chosen_draw_and_all_that_are_reasons(restless, demo, prediction):
    model = copy.deepcopy(restless[1.0]).set_params(prediction=prediction)
    for one in model.explain(demo.X[80:]):
        line = find_line(one, "Present: ")
        named = [int(k) for k in re.findall(r"feature (\d+) \(", line)]
        strongest = [k for k in np.argsort(-one.substates, kind="stable") if one.substates[k] >= 0.01]
        assert named[: len(strongest)] == one.present.tolist() == strongest
        reasons = find_line(one, "For it") + find_line(one, "Against it")
        assert set(named) == {*strongest, *map(int, re.findall(r"from feature (\d+)", reasons))}
        assert " 0.00" not in line
        if prediction == "map":
            assert "draw" not in line


def make_explanation(fitted, demo, substates, presence, terms):
    """An explanation with this many features and three actions, the first of them taken."""
    terms = np.array(terms)
    one = fitted.explain(demo.X[80:81])[0]
    estimate = Interval(terms, terms, terms)
    sums = terms.sum(axis=0)
    total = Interval(sums, sums, sums)
    return replace(
        one, substates=np.array(substates), presence=np.array(presence), terms=estimate, totals=total,
        probabilities=total, familiarity=1.0,
    )  # fmt: skip


def test_doubtful_features_are_told_with_the_share_of_draws(fitted, demo):
    terms = [[0.3, 0, 0], [0.2, 0.1, 0], [0, 0.01, 0], [0, 0, 0.39], [0, 0, 0], [0, 0, 0]]
    one = make_explanation(fitted, demo, [0.2, 0.0, 0.7, 0.004], [1, 0.4, 0.49, 0.96], terms)
    line = re.sub(r" \(.*?\)", "", find_line(one, "Present"))
    assert line == (
        "  Present: feature 2 0.70, in 49% of the draws; feature 0 0.20; "
        "feature 1 absent in the chosen draw, in 40% of the draws; feature 3 below 0.01."
    )


def test_what_speaks_against_says_how_much_is_left_out(fitted, demo):
    terms = [[0.4, 0, 0], [0, 0.15, 0], [0, 0, 0.14], [0, 0.13, 0], [0, 0, 0.12], [0, 0.06, 0]]
    one = make_explanation(fitted, demo, [0.2] * 4, [1] * 4, terms)
    assert find_line(one, "Against it").endswith(f"from feature 2 for {fitted.classes_[2]}, and 2 more.")
    terms[4] = [0.12, 0, 0]
    one = make_explanation(fitted, demo, [0.2] * 4, [1] * 4, terms)
    assert find_line(one, "Against it").endswith(", and 1 more.")
    terms[3] = [0.13, 0, 0]
    assert "more" not in find_line(make_explanation(fitted, demo, [0.2] * 4, [1] * 4, terms), "Against it")


@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_no_reasons_are_told_for_what_is_unlike_the_demonstrations(fitted, demo, prediction):
    model = copy.deepcopy(fitted).set_params(prediction=prediction)
    strange, nothing = model.explain(np.vstack([-demo.X[80], np.zeros(36)]))
    for one in (strange, nothing):
        lines = str(one).splitlines()
        assert lines[0].startswith(f"Row {one.row}: unlike the demonstrations")
        assert lines[0].endswith("no meaningful reason can be given.")
        assert lines[1].startswith(f"  Still the most probable action: {one.action} with 0.2")
        for left_out in ("Present", "For it", "Against it", "Most like it", "instead of"):
            assert left_out not in str(one)
        assert one.unfamiliar
        assert isinstance(one.counterfactual, Counterfactual)
        assert len(one.nearest) == 3
    assert "Unexplained: x" in str(strange)
    assert "holds no feature" in str(nothing)
    assert not model.explain(demo.X[80:81])[0].unfamiliar


@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_where_nothing_is_observed_nothing_is_explained(fitted, prediction):
    model = copy.deepcopy(fitted).set_params(prediction=prediction)
    # features that nearly all demonstrations hold are held by a row that nobody has seen, too
    draws = model._predictor._best_draw
    model._predictor._best_draw = draws._replace(zero_priors=np.full_like(draws.zero_priors, 0.001))
    nothing = np.full((1, 36), np.nan)
    one = model.explain(nothing)[0]
    assert one.substates.any()
    assert one.familiarity == model.familiarity(nothing)[0] == 0
    assert np.abs(one.terms.value.sum(axis=0) - model.predict_proba(nothing)[0]).max() < 1e-12
    assert str(one).startswith("Row 0: nothing is observed")
    assert str(one).count("\n") == 1


def test_numbers_are_actions_as_well(demo):
    y = np.unique(demo.y, return_inverse=True)[1][:80] * 10
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], y)
    one = model.explain(demo.X[80:81])[0]
    assert one.action in (0, 10, 20, 30, 40)
    assert str(one).startswith(f"Row 0: action {one.action} with")  # not taken for a quantity
    assert f"-> action {y[0]} with" in str(model)


def test_explanations_are_a_sequence(fitted, demo):
    reasons = fitted.explain(demo.X[80:84])
    assert len(reasons) == 4
    assert [one.row for one in reasons] == [0, 1, 2, 3]
    assert isinstance(reasons[1:3], Explanations)
    assert reasons[1:3].to_frame()["row"].unique().tolist() == [1, 2]
    assert repr(reasons) == "<Explanations of 4 rows>"
    assert str(pickle.loads(pickle.dumps(reasons))) == str(reasons)
    assert "vocabulary" not in repr(reasons[0])


# --- nothing to say, and bad input --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:X. all rows are equal")
@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_a_model_without_any_feature_says_so(prediction):
    model = FeaturePolicyClassifier(**QUICK, prediction=prediction).fit(np.zeros((12, 3)), np.arange(12) % 2)
    assert model.n_components_ == 0
    one = model.explain(np.ones((1, 3)))[0]
    assert one.terms.value.shape == (2, 2)  # some draws of "mmse" do hold a feature
    assert np.allclose(one.terms.value.sum(axis=0), model.predict_proba(np.ones((1, 3))))
    assert one.counterfactual is None
    assert np.allclose(one.parts.sum(axis=0) + one.unexplained, 1)
    assert "the model has no feature" in str(one)
    familiar = str(replace(one, familiarity=1.0))
    assert "Present: no feature." in familiar
    assert "No change of the substates would change it." in familiar


def test_what_cannot_be_explained_gets_a_sentence(fitted, demo):
    with pytest.raises(ValueError, match="y held no action in fit"):
        FeaturePolicyClassifier(**QUICK).fit(demo.X[:80]).explain(demo.X[80:])
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.explain(np.zeros((1, 3)))
    for n_nearest in (-1, 1.5, None):
        with pytest.raises(ValueError, match="n_nearest must be a whole number"):
            fitted.explain(demo.X[80:81], n_nearest=n_nearest)
    for interval in (0, 1, 90, "wide"):
        with pytest.raises(ValueError, match="interval must be a probability"):
            fitted.explain(demo.X[80:81], interval=interval)
    with pytest.raises(NotFittedError):
        FeaturePolicyClassifier().explain(demo.X)


def test_the_example_of_the_documentation_runs(capsys):
    text = (DOCS / "explain.md").read_text()
    exec(compile(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), "explain.md", "exec"), {})
    shown = re.search(r"prints\n\n```\n(.*?)```", text, re.DOTALL).group(1)
    printed = capsys.readouterr().out
    # other machines round differently, and a chain is long: words, not digits
    words = re.compile(r"[-+]?\d+\.\d+")
    assert words.sub("", printed).splitlines()[0] == words.sub("", shown).splitlines()[0]
    assert len(printed.splitlines()) >= 10
