"""What need not be explained: where the noise is held, and how that is chosen."""

import numpy as np
import pytest

from whyact import FeaturePolicyClassifier, Priors, load
from whyact.estimators.choose_by_trials import Outcome, choose_tolerance
from whyact.explanation.choices import say_trials
from whyact.model import LEARNED
from whyact.scaling import TOLERANCES, Scaling, find_least_tolerance

QUICK = {"n_burn_in": 100, "n_draws": 40, "thin": 2, "n_chains": 2, "random_state": 0, "combination": "product"}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


def draw_table(rng, n_rows=80):
    """Quantities of different kinds; the first one decides."""
    X = np.column_stack([rng.uniform(100, 900, n_rows), rng.random(n_rows), rng.normal(40, 5, n_rows)])
    return X, np.where(X[:, 0] > 500, "go", "stay")


@pytest.fixture(scope="module")
def table():
    return draw_table(np.random.default_rng(0))


N_HIDDEN = 400


def make_outcome(mean, tolerance, spread):
    # errors that are not the same for two tolerances, so that differences have a standard error
    errors = spread * np.random.default_rng(int(1000 * tolerance)).standard_normal(N_HIDDEN) * 20
    return Outcome({"product": mean + errors - errors.mean()}, 10 / tolerance)


def choose(means, spread=0.001, reach=1):
    """Which tolerance is taken, and how many hidden actions each was judged by."""
    outcomes = [make_outcome(mean, tolerance, spread) for mean, tolerance in zip(means, TOLERANCES, strict=True)]
    judged = {TOLERANCES[0]: N_HIDDEN}

    def try_out(tolerance, is_enough):
        outcome = outcomes[TOLERANCES.index(tolerance)]
        half = Outcome({"product": outcome.logs["product"][: N_HIDDEN // 2]}, outcome.n_features)
        found = half if is_enough(half) else outcome
        judged[tolerance] = len(found.logs["product"])
        return found

    trials, chosen = choose_tolerance(outcomes[0], try_out, "product", TOLERANCES, reach)
    assert [trial.tolerance for trial in trials] == list(judged)
    return chosen, list(judged.values())


def test_the_largest_tolerance_that_surely_costs_nothing_is_taken():
    assert choose([-0.5, -0.5, -0.5]) == (0.2, [400, 400, 400])
    assert choose([-0.5, -0.5, -0.9]) == (0.1, [400, 400, 200])  # a clear loss is not tried to its end
    assert choose([-0.5, -0.9, -0.5]) == (0.05, [400, 200])  # and what comes after it not at all
    # a larger one may also be better
    assert choose([-0.9, -0.5, -0.9]) == (0.1, [400, 400, 200])


def test_what_cannot_be_told_apart_stays_as_usual():
    """With a standard error of a tenth, nothing is sure."""
    assert choose([-0.5, -0.5, -0.5], spread=0.07) == (0.05, [400, 400])
    # all rows are alike, which says as little as one
    assert choose([-0.5, -0.5, -0.5], reach=400) == (0.05, [400, 200])


def test_no_tolerance_is_below_what_the_data_can_carry():
    rng = np.random.default_rng(1)
    fine = rng.random((200, 3))
    assert find_least_tolerance(fine, 100) == pytest.approx(1 / 99)
    answers = rng.integers(0, 5, (200, 3)) / 4  # five possible ones
    assert find_least_tolerance(answers, 100) == pytest.approx(0.25 / np.sqrt(12))
    indicators = rng.integers(0, 2, (200, 3)).astype(float)
    assert find_least_tolerance(indicators, 100) == pytest.approx(1 / 99)
    assert find_least_tolerance(fine, 2) == max(TOLERANCES)
    fine[3, 1] = np.nan
    assert find_least_tolerance(np.column_stack([fine, np.ones(200)]), 100) == pytest.approx(1 / 99)


def test_a_table_chooses_and_says_why(table):
    model = FeaturePolicyClassifier(**QUICK).fit(*table)
    assert model.tolerance_ in TOLERANCES
    assert model.noise_variance_ == pytest.approx(model.tolerance_**2, rel=0.05)
    assert len(model.tolerance_trials_) >= 2
    taken = next(trial for trial in model.tolerance_trials_ if trial.tolerance == model.tolerance_)
    assert not taken.is_lost
    assert all(trial.is_lost for trial in model.tolerance_trials_ if trial.tolerance > model.tolerance_)
    told = f"\n{100 * model.tolerance_:.2g}% of a column's range need not be explained (tolerance). "
    assert f"{told}{say_trials(model, model.tolerance_trials_)}\n" in str(model)


@pytest.mark.parametrize("tolerance", [0.03, "free", None])
def test_a_tolerance_can_be_given(tolerance, table):
    model = FeaturePolicyClassifier(**QUICK, tolerance=tolerance).fit(*table)
    if tolerance == 0.03:
        assert model.tolerance_ == pytest.approx(0.03)
        assert model.noise_variance_ == pytest.approx(0.03**2, rel=0.05)
    else:
        assert model.tolerance_ is None
    assert not hasattr(model, "tolerance_trials_")


def test_a_tolerance_is_a_share_of_every_columns_range():
    """Also where columns do not look like a table, and would not be scaled."""
    X = np.random.default_rng(2).random((60, 4)) * [1, 1, 1, 3]
    model = FeaturePolicyClassifier(**QUICK, tolerance=0.1).fit(X, X[:, 0] > 0.5)
    assert np.allclose(model.column_range_, np.ptp(X, axis=0))
    unscaled = FeaturePolicyClassifier(**QUICK, tolerance=0.1, scale_columns=False).fit(X, X[:, 0] > 0.5)
    assert unscaled.tolerance_ == pytest.approx(0.1)
    # the range of a column that takes all values alike is the root of twelve standard deviations
    assert unscaled.noise_variance_ == pytest.approx(0.1**2 * 12 * X.var(axis=0).mean(), rel=0.05)


def test_one_wide_column_does_not_make_all_others_noise():
    """Of a scan most cells are nearly always empty, and the widest says nothing about them."""
    X = np.random.default_rng(3).random((50, 20))
    wide = np.column_stack([X, np.where(np.arange(50) == 7, 9.0, 0.0)])
    assert Scaling().find_width(X) == pytest.approx(1.0, rel=0.05)
    assert Scaling().find_width(wide) < 1.5
    assert Scaling().find_width(np.zeros((5, 2))) == 1.0


def test_coarse_values_raise_the_tolerance_also_without_trials():
    """Without actions nothing can be tried, and what the data can carry still holds."""
    answers = np.random.default_rng(5).integers(0, 4, (60, 3)).astype(float)
    model = FeaturePolicyClassifier(**QUICK).fit(answers)
    assert model.tolerance_ == pytest.approx(1 / 3 / np.sqrt(12), rel=1e-6)


def test_scans_have_a_floor_under_their_noise():
    """The variance is that of the tolerance and of what the features leave over, whichever is larger."""
    rng = np.random.default_rng(7)
    substates = rng.random((40, 2)) * (rng.random((40, 2)) < 0.7)
    signal = substates @ ((rng.random((2, 320)) < 0.3) * rng.uniform(0.5, 1.0, (2, 320)))
    options = QUICK | {"n_burn_in": 20, "n_draws": 10, "combination": "mixture"}
    for noise in (0.02, 0.3):
        X = signal + noise * rng.standard_normal(signal.shape)
        model = FeaturePolicyClassifier(**options).fit(X, substates[:, 0] > 0.3)
        floor = model.tolerance_ * Scaling().find_width(X)
        assert model.tolerance_ == pytest.approx(0.05)
        residual = np.mean((X - model.inverse_transform(model.substates_)) ** 2)
        assert model.noise_variance_ == pytest.approx(floor**2 + residual, rel=0.15)
        assert not model._result.scaling.holds_noise


def test_a_floor_comes_back_from_a_file(tmp_path):
    X = np.random.default_rng(8).random((30, 310))
    options = QUICK | {"n_burn_in": 4, "n_draws": 4, "combination": "mixture"}
    model = FeaturePolicyClassifier(**options).fit(X, X[:, 0] > 0.5)
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc")
    assert loaded._result.target == model._result.target
    assert loaded._result.scaling.n_floor == X.size


def test_a_given_number_of_features_leaves_the_noise_free():
    """Two features do not explain six columns to a twentieth of their range."""
    X = np.random.default_rng(6).random((80, 6)) * [1, 10, 100, 1000, 10, 1]
    model = FeaturePolicyClassifier(**QUICK, n_components=2).fit(X, X[:, 0] > 0.5)
    assert model.tolerance_ is None
    assert np.sqrt(model.noise_variance_) > 0.1


def test_signals_and_given_priors_leave_the_noise_free(table):
    X = np.random.default_rng(3).random((60, 4))
    assert FeaturePolicyClassifier(**QUICK).fit(X, X[:, 0] > 0.5).tolerance_ is None
    assert FeaturePolicyClassifier(**QUICK, priors=Priors()).fit(*table).tolerance_ is None


def test_the_choice_comes_back_from_a_file(table, tmp_path):
    model = FeaturePolicyClassifier(**QUICK).fit(*table)
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc")
    assert loaded.tolerance_ == model.tolerance_
    assert loaded.tolerance_trials_ == model.tolerance_trials_
    assert loaded._result.target == model._result.target
    assert loaded.posterior_.distance == model.posterior_.distance
    assert str(loaded) == str(model)


def test_a_constant_column_does_no_harm(table):
    X, y = table
    model = FeaturePolicyClassifier(**QUICK).fit(np.column_stack([X, np.full(len(X), 7.0)]), y)
    assert model.tolerance_ in TOLERANCES
    assert (model.components_[:, -1] < model.tolerance_).all()


@pytest.mark.parametrize("n_columns", [299, 300])
def test_with_many_columns_chains_start_from_rows(n_columns):
    """There a feature cannot grow from a single cell; and the decisiveness is drawn."""
    rng = np.random.default_rng(4)
    substates = rng.random((40, 2)) * (rng.random((40, 2)) < 0.7)
    X = substates @ (rng.random((2, n_columns)) < 0.3) + 0.05 * rng.standard_normal((40, n_columns))
    options = QUICK | {"n_burn_in": 5, "n_draws": 4, "combination": "mixture"}
    model = FeaturePolicyClassifier(**options).fit(X, substates[:, 0] > 0.3)
    given = FeaturePolicyClassifier(**options, start="rows" if n_columns == 300 else "prior").fit(X, model.actions_)
    assert np.array_equal(model.components_, given.components_)
    assert (model._result.target.decisiveness == LEARNED) == (n_columns == 300)
