"""What matters, whether the residual looks like noise, and what speaks against a model."""

import html
import re

import numpy as np
import pytest

from tests.support.stand_in import make_model
from whyact import FeaturePolicyClassifier
from whyact.explanation.matter import Speakers, find_what_matters, leave_out
from whyact.explanation.residuals import Residual, examine_residual, say_residual
from whyact.explanation.suitability import (
    advise_residual,
    doubt_number,
    list_choices,
    list_doubts,
    say_choices,
    say_what_matters,
    score_of_base_rates,
)
from whyact.fit_result import ToleranceTrial
from whyact.prediction import Prediction
from whyact.report import render, summarise

QUICK = {"n_burn_in": 1200, "n_draws": 60, "thin": 3, "n_chains": 2, "random_state": 0, "scale_columns": False}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


def draw_blocks(rng, n_rows=150):
    """Three features of three columns each; the first one alone decides."""
    substates = rng.random((n_rows, 3)) * (rng.random((n_rows, 3)) < 0.7)
    X = substates @ np.kron(np.eye(3), np.ones(3)) + 0.05 * rng.standard_normal((n_rows, 9))
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-25.0 * (substates[:, 0] - 0.35)))).astype(int)


@pytest.fixture(scope="module", params=["product", "mixture"])
def fitted(request):
    X, y = draw_blocks(np.random.default_rng(0))
    return FeaturePolicyClassifier(**QUICK, combination=request.param).fit(X, y)


def test_only_what_decides_matters(fitted):
    deciding = int(np.argmax(fitted.components_[:, :3].sum(axis=1)))
    matters = find_what_matters(fitted)
    assert deciding in matters.features
    assert matters.share >= 0.95
    if fitted.combination_ == "product":  # in a mixture the others are what it is weighed against
        assert len(matters.features) == 1
        assert say_what_matters(fitted)[0].startswith("1 of them carries ")


def test_with_all_features_nothing_is_lost(fitted):
    amounts = fitted.transform(fitted.observations_[:50])
    speakers = Speakers(fitted, amounts, None)
    reference = speakers.combine(np.ones(fitted.n_components_, bool))
    assert np.allclose(reference, fitted.policy(amounts))
    order = leave_out(speakers, reference)
    assert sorted(order) == list(range(fitted.n_components_))
    assert speakers.project(order, reference) == pytest.approx(0.0, abs=1e-3)


def test_nothing_matters_without_actions():
    X, _ = draw_blocks(np.random.default_rng(1), 60)
    model = FeaturePolicyClassifier(**QUICK).fit(X)
    assert find_what_matters(model) is None
    assert say_what_matters(model) == []


def test_white_noise_looks_like_noise(fitted):
    residual = examine_residual(fitted)
    assert residual.looks_like_noise
    assert residual.n_dimensions == pytest.approx(residual.expected, rel=0.15)
    assert residual.of_neighbours == pytest.approx(0.0, abs=0.1)
    assert say_residual(residual) == "What the features leave unexplained looks like noise."


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_structure_in_the_residual_is_told(kind):
    rng = np.random.default_rng(2)
    X, y = draw_blocks(rng)
    if kind == "columns":  # a background that is above and below zero, which no positive feature can hold
        X += 0.3 * rng.standard_normal((len(X), 1)) * np.array([1, -1] * 4 + [1])
    else:
        X += np.cumsum(0.1 * rng.standard_normal(X.shape), axis=0) * 0.3
    # free noise, and as many features as there are in truth: what else is there must stay in the residual
    model = FeaturePolicyClassifier(**QUICK, combination="product", max_features=3).fit(X, y)
    residual = examine_residual(model)
    assert not residual.looks_like_noise
    (doubt,) = [doubt for doubt in list_doubts(model) if doubt.startswith(say_residual(residual))]
    assert doubt.endswith("Allow more of them: max_features=6 (--max-features 6 on the command line).")


def test_the_limits_of_noise():
    assert Residual(8.0, 10.0, 0.1).looks_like_noise
    assert "6 effective dimensions, noise would have 10" in say_residual(Residual(6.0, 10.0, 0.1))
    assert "neighbouring rows correlate by 0.30" in say_residual(Residual(9.0, 10.0, 0.3))
    assert say_residual(None) == ""


def test_actions_at_random_are_doubted():
    rng = np.random.default_rng(3)
    X, _ = draw_blocks(rng, 120)
    model = FeaturePolicyClassifier(**QUICK).fit(X, rng.integers(2, size=120))
    assert score_of_base_rates(model) == pytest.approx(-np.log(2), abs=0.02)
    assert any("no better than by how often each one occurs" in doubt for doubt in list_doubts(model))


def test_frequencies_are_those_among_what_was_available():
    model = make_model(n_rows=50, available=np.random.default_rng(0).random((50, 3)) < 0.5)
    counts = np.bincount(model.actions_, minlength=3)
    there = model.available_
    by_hand = [np.log(counts[u] / counts[there[n]].sum()) for n, u in enumerate(model.actions_)]
    assert score_of_base_rates(model) == pytest.approx(np.mean(by_hand))
    plain = make_model(n_rows=50)
    shares = np.bincount(plain.actions_) / 50
    assert score_of_base_rates(plain) == pytest.approx(np.sum(shares * np.log(shares)))


def test_who_had_no_choice_is_not_doubted():
    """Where nothing else was available, the most frequent action that was is always right."""
    free = make_model(n_rows=60, n_features=1)
    bound = make_model(n_rows=60, n_features=1, available=np.zeros((60, 3), bool))
    assert bound.available_.sum() == 60
    assert score_of_base_rates(bound) == 0.0
    for model, is_doubted in ((free, True), (bound, False)):
        model._predictor = Constant(model)
        assert any("Not even the demonstrations" in doubt for doubt in list_doubts(model)) == is_doubted


def test_more_features_than_columns_are_doubted():
    X, y = draw_blocks(np.random.default_rng(4), 60)
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 300}, combination="mixture").fit(X, y)
    assert not any("than columns" in doubt for doubt in list_doubts(model))
    model.n_components_ = 10
    assert any("more features (10) than columns (9)" in doubt for doubt in list_doubts(model))


# --- the same doubts everywhere, each with what helps -------------------------------------------------------


def test_doubts_are_said_the_same_everywhere():
    X, y = draw_blocks(np.random.default_rng(5), 60)
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 300, "n_chains": 1}, combination="mixture").fit(X, y)
    doubts = list_doubts(model)
    assert doubts[0].endswith("run at least two: n_chains=2 (--n-chains 2 on the command line).")
    assert str(model).splitlines()[-len(doubts) :] == [f"! {doubt}" for doubt in doubts]
    assert str(model).count("convergence cannot be checked") == 1
    assert summarise(model)["doubts"] == doubts
    page = re.sub(r"</?code>", "", render(summarise(model)))
    assert page.count("convergence cannot be checked") == 1
    assert all(html.escape(doubt, quote=False) in html.unescape(page) for doubt in doubts)


def test_chains_that_disagree_are_a_doubt_said_once():
    model = make_model(n_features=4)
    model.posterior_.distance = 0.3
    assert list_doubts(model)[0] == model.posterior_.agreement()
    assert "more of them (n_chains, or --n-chains on the command line)" in list_doubts(model)[0]
    assert str(model).count("chains disagree") == 1


def test_a_number_that_grows_is_a_doubt_even_if_chains_agree():
    model = make_model(n_features=9, numbers=[2, 2, 3, 5, 6, 7, 8, 9])
    assert str(model).count("still growing") == 1
    assert list_doubts(model)[0].count("still growing") == 1


def test_without_trials_only_what_is_missed_among_the_demonstrations_is_doubted():
    """To predict what it learned from proves nothing; not even to do that proves that nothing was learned."""
    X, y = draw_blocks(np.random.default_rng(6), 60)
    options = QUICK | {"n_burn_in": 300}
    clear = FeaturePolicyClassifier(**options, combination="mixture").fit(X, y)
    assert not any("most frequent action" in doubt for doubt in list_doubts(clear))
    model = make_model(
        n_rows=60, n_features=1, labels=("go", "stay")
    )  # its actions have nothing to do with its feature
    model._predictor = Constant(model)
    assert any("Not even the demonstrations themselves" in doubt for doubt in list_doubts(model))


class Constant:
    """Predicts the most frequent action."""

    def __init__(self, model):
        self.favourite = np.bincount(model.actions_).argmax()
        self.n_actions, self.n_features = len(model.classes_), model.n_components_

    def predict(self, observations, **options):
        probabilities = np.tile(np.eye(self.n_actions)[self.favourite], (len(observations), 1))
        return Prediction(probabilities, np.ones((len(observations), self.n_features)), np.ones(len(observations)))


def test_noise_of_next_to_nothing_is_doubted():
    model = make_model()
    model.noise_variance_ = 1e-12
    (doubt,) = [doubt for doubt in list_doubts(model) if "next to nothing" in doubt]
    assert doubt.endswith("Set a tolerance: tolerance=0.05 (--tolerance 0.05 on the command line).")
    model.sampler = "as-published"  # which has no tolerance
    (doubt,) = [doubt for doubt in list_doubts(model) if "next to nothing" in doubt]
    assert 'sampler="exact" and tolerance=0.05 (--sampler exact --tolerance 0.05 on the command line)' in doubt


def test_a_larger_tolerance_is_advised_with_what_trials_say_about_it():
    model = make_model()
    model.n_components_, model.tolerance_ = 10, 0.05
    assert "leaves fewer: tolerance=0.1 (--tolerance 0.1 on the command line)." in doubt_number(model)
    model.tolerance_trials_ = (ToleranceTrial(0.05, -0.1, 0, 0, 20.0), ToleranceTrial(0.1, -0.3, 0.2, 0.1, 4.0))
    assert "about 4 instead of 20, with a log score of hidden actions of -0.30 instead of -0.10." in doubt_number(model)
    model.tolerance_ = 0.2
    assert "max_features=6 (--max-features 6 on the command line)" in doubt_number(model)


@pytest.mark.parametrize(
    ("parameters", "tolerance", "residual", "advice"),
    [
        ({}, 0.1, Residual(5.0, 10.0, 0.0), "tolerance=0.05 (--tolerance 0.05"),
        ({}, None, Residual(5.0, 10.0, 0.0), 'feature_values="real" (--feature-values real'),
        ({"feature_values": "real"}, None, Residual(5.0, 10.0, 0.0), "left out"),
        ({}, None, Residual(10.0, 10.0, 0.5), "observation_weight=0.3 (--observation-weight 0.3"),
    ],
)
def test_structure_that_is_left_over_has_a_remedy(parameters, tolerance, residual, advice):
    model = make_model(**parameters)
    model.tolerance_ = tolerance
    assert advice in advise_residual(model, residual)


def test_what_auto_chose_is_said():
    model = make_model(combination="auto", scale_columns="auto")
    assert list_choices(model)["combination"].startswith("policies are")
    assert list_choices(make_model(scale_columns=False)) == {}
    model.column_range_, model.tolerance, model.tolerance_ = np.ones(6), "auto", 0.05
    assert say_choices(model)[0].startswith(
        "Chosen automatically: each column is scaled to its range; 0.05 of a column's range need not be explained; "
    )
    assert say_choices(model, but=("tolerance", "combination"))[0].endswith("scaled to its range.")
