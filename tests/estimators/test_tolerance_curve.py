"""Short chains count features at several tolerances, of any fitted model."""

import numpy as np
import pytest

from whyact import FeaturePolicyClassifier, load
from whyact.estimators import tolerance_curve
from whyact.estimators.tolerance_curve import CURVE_TOLERANCES, gather_known, make_short

QUICK = {"n_burn_in": 100, "n_draws": 40, "thin": 2, "n_chains": 2, "random_state": 0, "combination": "mixture"}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


def draw_signals(rng, n_rows=80):
    """Three features of three columns each."""
    substates = rng.random((n_rows, 3)) * (rng.random((n_rows, 3)) < 0.7)
    X = substates @ np.kron(np.eye(3), np.ones(3)) + 0.02 * rng.standard_normal((n_rows, 9))
    return X, (substates[:, 0] > 0.3).astype(int)


@pytest.fixture(scope="module")
def signals():
    return draw_signals(np.random.default_rng(0))


def test_features_that_are_clear_form_a_plateau(signals):
    model = FeaturePolicyClassifier(**QUICK).fit(*signals)
    before = model.get_params()
    curve = model.count_features_over_tolerance()
    assert tuple(count.tolerance for count in curve.counts) == CURVE_TOLERANCES
    assert curve.plateau.least == curve.plateau.most == 3
    assert curve.n_rows == 80
    assert curve.own.n_features == model.n_components_
    typical_range = np.sqrt(12 * signals[0].var(axis=0).mean())
    assert curve.own.tolerance == pytest.approx(np.sqrt(model.noise_variance_) / typical_range)
    assert model.get_params() == before
    assert model.count_features_over_tolerance([0.1, 0.05]).counts == curve.counts[1:3]


def test_actions_are_not_needed(signals):
    model = FeaturePolicyClassifier(**QUICK).fit(signals[0])
    assert model.count_features_over_tolerance([0.1]).counts[0].n_features == 3


def test_some_rows_are_enough(signals, tmp_path):
    model = FeaturePolicyClassifier(**QUICK, tolerance=0.1).fit(*signals)
    assert model.count_features_over_tolerance([0.2], max_rows=30).n_rows == 30
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc").count_features_over_tolerance([0.2], max_rows=30)
    assert loaded == model.count_features_over_tolerance([0.2], max_rows=30)


def test_an_algorithm_as_published_is_asked_with_the_exact_one(signals):
    model = FeaturePolicyClassifier(**QUICK | {"combination": "auto"}, sampler="as-published").fit(*signals)
    assert make_short(model, 0.1).sampler == "exact"
    assert len(model.count_features_over_tolerance([0.1], max_rows=30).counts) == 1


@pytest.mark.parametrize("tolerances", [[], [0.0], [1.0], [0.1, np.nan]])
def test_tolerances_are_shares(tolerances, signals):
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 10}).fit(*signals)
    with pytest.raises(ValueError, match="tolerances must be shares"):
        model.count_features_over_tolerance(tolerances)
    with pytest.raises(ValueError, match="max_rows"):
        model.count_features_over_tolerance(max_rows=1)


def test_no_tolerance_is_below_what_the_data_can_carry():
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 5, (60, 3)).astype(float)
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 10}).fit(answers)
    least = 0.25 / np.sqrt(12)
    assert tolerance_curve.check_tolerances(model, None) == pytest.approx([least, 0.1, 0.15, 0.2, 0.3])
    assert tolerance_curve.check_tolerances(model, [0.02]) == [0.02]  # what was asked for is done


def test_what_the_trials_found_is_known_for_free(signals):
    X, y = signals
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 50}).fit(X * np.geomspace(1, 1000, 9), y)
    curve = gather_known(model)
    assert [count.tolerance for count in curve.counts] == [trial.tolerance for trial in model.tolerance_trials_]
    assert gather_known(FeaturePolicyClassifier(**QUICK | {"n_burn_in": 10}).fit(X)).counts == ()
