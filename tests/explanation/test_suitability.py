"""What matters, whether the residual looks like noise, and what speaks against a model."""

import html
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import check_grad

from tests.support.stand_in import make_model
from whyact import FeaturePolicyClassifier
from whyact.errors import ChainsDisagreeWarning, DoubtfulFitWarning
from whyact.explanation.choices import list_choices, say_choices, say_tolerance
from whyact.explanation.matter import Speakers, find_divergence, find_what_matters, leave_out
from whyact.explanation.residuals import Residual, examine_residual, say_residual
from whyact.explanation.suitability import (
    NOT_PREDICTED,
    Doubt,
    advise_residual,
    doubt_number,
    find_doubts,
    list_doubts,
    say_what_matters,
    score_of_base_rates,
)
from whyact.explanation.support import say_who_finds_them
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
        told = f"Feature {deciding} alone predicts almost as well as all 3 ({matters.share:.0%} of what they tell)."
        assert say_what_matters(fitted, []) == told
        assert str(fitted).startswith(f"3 features explain 150 demonstrations. {told}\n")
        assert summarise(fitted)["matters"] == told


def test_with_all_features_nothing_is_lost(fitted):
    amounts = fitted.transform(fitted.observations_[:50])
    speakers = Speakers(fitted, amounts, None)
    reference = speakers.combine(np.ones(fitted.n_components_, bool))
    assert np.allclose(reference, fitted.policy(amounts))
    order = leave_out(speakers, reference)
    assert sorted(order) == list(range(fitted.n_components_))
    assert speakers.project(order, reference) == pytest.approx(0.0, abs=1e-3)


def test_the_slopes_of_a_projection_are_right(fitted):
    amounts = fitted.transform(fitted.observations_[:40])
    available = np.ones((40, 2), bool)
    speakers = Speakers(fitted, amounts, available)
    reference = speakers.combine(np.ones(3, bool))
    kept = np.array([0, 2])
    seen = {}

    def catch(find_slope, start, centre, reference):
        seen.update(find_slope=find_slope, start=start)
        return reference

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whyact.explanation.matter.minimise_divergence", catch)
        speakers.project(kept, reference)

    def lose(flat):
        return -np.sum(reference * seen["find_slope"](flat.reshape(seen["start"].shape))[0])

    def slope(flat):
        return seen["find_slope"](flat.reshape(seen["start"].shape))[1].ravel()

    start = seen["start"].ravel() + 0.1
    assert check_grad(lose, slope, start) < 1e-4 * max(1.0, float(np.abs(slope(start)).max()))


def test_features_that_stay_learn_from_all_in_a_mixture_too():
    """Two features that are always present together say the same: either is enough once its votes are fitted."""
    rng = np.random.default_rng(7)
    amounts = np.repeat(rng.random((60, 1)), 2, axis=1) * [1.0, 0.5]
    other = 1.0 - amounts[:, :1]
    speakers = Speakers.__new__(Speakers)
    speakers.amounts, speakers.available, speakers.is_product = np.hstack([amounts, other]), None, False
    speakers.votes, speakers.decisiveness = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]), 3.0
    reference = speakers.combine(np.ones(3, bool))
    kept = np.array([0, 2])
    as_they_are = find_divergence(reference, speakers.combine(np.isin(np.arange(3), kept)))
    assert as_they_are > 1e-3
    assert speakers.project(kept, reference) < 1e-4


def test_nothing_matters_where_nothing_is_predicted():
    model = make_model(n_rows=60, n_features=2, labels=("go", "stay"))
    doubts = [Doubt(NOT_PREDICTED, "Actions are not predicted.")]
    assert say_what_matters(model, doubts) == ""
    model._predictor = Constant(model)
    assert any(doubt.what == NOT_PREDICTED for doubt in find_doubts(model))
    assert "predicts almost as well" not in str(model).splitlines()[0]
    assert "predict almost as well" not in str(model).splitlines()[0]


def test_nothing_matters_without_actions():
    X, _ = draw_blocks(np.random.default_rng(1), 60)
    model = FeaturePolicyClassifier(**QUICK).fit(X)
    assert find_what_matters(model) is None
    assert say_what_matters(model, []) == ""


def test_white_noise_looks_like_noise(fitted):
    residual = examine_residual(fitted)
    assert residual.looks_like_noise
    assert residual.n_dimensions == pytest.approx(residual.expected, rel=0.15)
    assert residual.of_neighbours == pytest.approx(0.0, abs=0.1)
    told = "What the features leave unexplained looks like noise."
    assert say_residual(residual) == told
    assert f"\n{told}" in str(fitted)  # where nothing speaks against it, that is said, too
    assert render(summarise(fitted)).count(told) == 1


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


def test_noise_is_compared_with_a_typical_column():
    """One wide column does not make the noise next to nothing for the others, but they are hardly explained."""
    model = make_model(names=["area", "b", "c", "d", "e", "f"])
    model.observations_ = np.random.default_rng(0).random((30, 6)) * np.array([1400.0, 3, 3, 3, 3, 3])
    model.noise_variance_ = 1.9**2
    (doubt,) = [doubt for doubt in list_doubts(model) if "noise" in doubt and "left over" not in doubt][:1]
    assert "next to nothing" not in doubt
    assert doubt.startswith(
        "Column area is far wider than the others (its range is 1.3e+03, that of a typical one 2.9)"
    )
    assert doubt.endswith("scale_columns=True (--scale-columns yes on the command line).")
    model.noise_variance_ = 0.01**2
    assert any("next to nothing (0.01; a typical column has a range of 2.9)" in doubt for doubt in list_doubts(model))
    model.noise_variance_ = 100.0**2
    assert not any("noise (" in doubt for doubt in list_doubts(model))


def test_a_number_that_was_given_is_no_finding_and_nothing_is_said_to_change_it():
    model = make_model(n_features=3, n_components=3)
    assert str(model).startswith("3 features, as asked (n_components), explain 30 demonstrations.")
    assert "draws have" not in str(model).splitlines()[1]
    model.n_components, model.n_components_, model.tolerance_ = 10, 10, 0.05
    assert doubt_number(model) == (
        "n_components=10 asks for more features than there are columns (6), so some copy columns. Without "
        "n_components, their number is inferred."
    )
    assert advise_residual(model, Residual(5.0, 10.0, 0.0)) == "Without n_components, their number is inferred."
    page = re.sub(r"</?code>", "", render(summarise(make_model(n_features=3, n_components=3))))
    assert "The number was given (n_components), so it is no finding." in page


@pytest.mark.parametrize(
    ("support", "told"),
    [
        ([[1.0, 1, 1], [1, 1, 1]], "both chains find all of them"),
        ([[1.0, 1, 1], [1, 0.2, 1]], "both chains find 2 of them; more than half of the draws hold the other one"),
        (
            [[1.0, 1, 0.1], [1, 0.2, 0.1]],
            "both chains find 1 of them; more than half of the draws hold 1 more; 1 is in less than half of the draws, "
            "so do not rely on it",
        ),
        (
            [[1.0, 0.07, 0.0], [1, 0.07, 0.0]],
            "both chains find 1 of them; 2 are in less than half of the draws, so do not rely on them",
        ),
        ([[1.0, 0, 1], [0.2, 1, 0.4]], "both chains find none of them; more than half of the draws hold 2 of them"),
        ([[0.1, 0, 0], [0, 0, 0]], "the draws have no feature in common, so these are only those of one draw"),
        ([[0.9, 0.8, 0.4]], "more than half of the draws hold 2 of them; 1 is in less than half of the draws"),
    ],
)
def test_only_those_are_said_to_be_held_that_are(support, told):
    support = np.array(support)
    aligned = SimpleNamespace(in_all_chains=np.all(support > 0.5, axis=0), presence=support.mean(axis=0))
    posterior = SimpleNamespace(aligned=aligned, n_chains=len(support), counts=np.ones(len(support), bool))
    assert say_who_finds_them(posterior).startswith(told)


TRIAL = ToleranceTrial(0.05, -0.13, 0.0, 0.0, 6.0)


@pytest.mark.parametrize(
    ("trials", "told"),
    [
        ((TRIAL,), "5% of a column's range need not be explained (tolerance). No other one was tried."),
        (
            (TRIAL, ToleranceTrial(0.1, -0.10, -0.03, 0.03, 6.0)),
            "5% of a column's range need not be explained (tolerance). 10% was tried as well, but with 30 actions it "
            "is not sure that it predicts as well (log score of hidden actions -0.10, with 5% -0.13).",
        ),
        (
            (TRIAL, ToleranceTrial(0.1, -0.40, 0.27, 0.03, 2.0)),
            "5% of a column's range need not be explained (tolerance). 10% was tried as well, but it predicted worse "
            "(log score of hidden actions -0.40, with 5% -0.13); it leaves about 2 features instead of 6.",
        ),
        (None, "5% of a column's range need not be explained (tolerance), as is usual: there are too few actions to "),
    ],
)
def test_a_tolerance_is_told_with_what_was_tried(trials, told):
    model = make_model()
    model.tolerance, model.tolerance_ = "auto", 0.05
    if trials is not None:
        model.tolerance_trials_ = trials
    assert say_tolerance(model)[0].startswith(told)


def test_the_largest_tolerance_may_be_taken():
    model = make_model()
    model.tolerance_, model.tolerance_trials_ = 0.1, (TRIAL, ToleranceTrial(0.1, -0.131, 0.001, 0.001, 5.0))
    assert say_tolerance(model) == [
        "10% of a column's range need not be explained (tolerance). Hidden actions were surely predicted as well as "
        "with 5% (log score -0.131, with 5% -0.130); it leaves about 5 features instead of 6."
    ]
    model.tolerance = 0.1
    assert say_tolerance(model) == ["10% of a column's range need not be explained, as asked (tolerance)."]
    model.tolerance_ = None
    assert say_tolerance(model) == []


def test_no_larger_tolerance_is_advised_that_leaves_as_many():
    model = make_model()
    model.n_components_, model.tolerance_ = 10, 0.05
    model.tolerance_trials_ = (TRIAL, ToleranceTrial(0.1, -0.12, 0.0, 0.1, 5.8))
    assert "max_features=6 (--max-features 6 on the command line)" in doubt_number(model)
    assert "instead of" not in doubt_number(model)


def test_a_fit_ends_with_one_warning_that_names_the_doubts(monkeypatch):
    X, y = draw_blocks(np.random.default_rng(8), 60)
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 300}, combination="mixture")
    doubts = [Doubt("there are more features than columns", "There are."), Doubt(NOT_PREDICTED, "They are not.")]
    monkeypatch.setattr("whyact.estimators.feature_policy.find_doubts", lambda model: doubts)
    with pytest.warns(DoubtfulFitWarning) as caught:
        model.fit(X, y)
    (warning,) = [one for one in caught if issubclass(one.category, DoubtfulFitWarning)]
    assert str(warning.message) == (
        "Before you rely on this model: there are more features than columns; actions are predicted no better than "
        "without looking. print(model) says what helps."
    )
    assert warning.filename == __file__
    assert issubclass(warning.category, ChainsDisagreeWarning) == (not model.posterior_.chains_agree)


def test_where_nothing_speaks_against_a_fit_there_is_no_warning(monkeypatch):
    X, y = draw_blocks(np.random.default_rng(8), 60)
    monkeypatch.setattr("whyact.estimators.feature_policy.find_doubts", lambda model: [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FeaturePolicyClassifier(**QUICK | {"n_burn_in": 100}, combination="mixture").fit(X, y)


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
        "Chosen automatically: each column is scaled to its range; 5% of a column's range need not be explained; "
    )
    assert say_choices(model, but=("tolerance", "combination"))[0].endswith("scaled to its range.")
