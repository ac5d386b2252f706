"""How policies are combined: the choice, the product as a classifier, and actions that are not available."""

import numpy as np
import pytest
import sklearn
from scipy.special import softmax
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.support.plain import PLAIN
from tests.support.stand_in import make_model
from whyact import FeaturePolicyClassifier
from whyact.estimators.choose_by_trials import MOST_ROWS, find_length, take_some
from whyact.estimators.inputs import CheckedInput
from whyact.scaling import looks_like_table
from whyact.simulation import draw_ground_truth

QUICK = {"n_burn_in": 150, "n_draws": 60, "thin": 3, "n_chains": 2, "random_state": 0, "scale_columns": False}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


def draw_vetoes(rng, n_rows=240, sharpness=5.0):
    """Three features in nine columns; the third one speaks against the action that the first two speak for."""
    substates = rng.random((n_rows, 3)) * (rng.random((n_rows, 3)) < 0.6)
    X = substates @ np.kron(np.eye(3), np.ones(3)) + 0.05 * rng.standard_normal((n_rows, 9))
    log_odds = sharpness * substates @ np.array([1.0, 1.0, -3.0])
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))).astype(int)


def draw_thresholds(rng, n_rows=240):
    """The action depends on whether there is much of the first feature, and a mixture hears its share only."""
    substates = rng.random((n_rows, 2)) * (rng.random((n_rows, 2)) < 0.9)
    X = substates @ np.kron(np.eye(2), np.ones(3)) + 0.05 * rng.standard_normal((n_rows, 6))
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-20.0 * (substates[:, 0] - 0.4)))).astype(int)


@pytest.fixture(scope="module")
def product():
    X, y = draw_vetoes(np.random.default_rng(0))
    return FeaturePolicyClassifier(**QUICK, combination="product").fit(X[:160], y[:160])


def test_a_feature_can_speak_against_an_action(product):
    X, y = draw_vetoes(np.random.default_rng(0))
    assert product.n_components_ == 3
    assert product.score(X[160:], y[160:]) > 0.8
    veto = int(np.argmax(product.components_[:, 6:].sum(axis=1)))
    assert product.policies_[veto, 1] < 0.05
    assert (np.delete(product.policies_[:, 1], veto) > 0.9).all()
    assert product.base_policy_ == pytest.approx([0.5, 0.5], abs=0.2)


def test_policies_are_multiplied(product):
    rng = np.random.default_rng(1)
    substates = rng.random((5, 3))
    log_odds = np.log(product.policies_ / product.base_policy_)
    expected = softmax(np.log(product.base_policy_) + substates @ log_odds, axis=1)
    assert np.allclose(product.policy(substates), expected)
    assert np.allclose(product.policy(np.zeros((1, 3))), product.base_policy_)


def test_a_product_predicts_row_by_row(product):
    X, _ = draw_vetoes(np.random.default_rng(2), 30)
    together = product.predict_proba(X)
    assert np.array_equal(together[7:9], product.predict_proba(X[7:9]))
    assert np.allclose(together.sum(axis=1), 1.0)
    X[0] = np.nan
    judged = product.judge(X[:1])
    assert judged.probabilities[0] == pytest.approx(product.predict_proba(X[:1])[0])
    assert judged.familiarity[0] == 0.0


@pytest.mark.parametrize("kind", ["threshold", "mixture"])
def test_the_default_takes_what_predicts_better(kind):
    if kind == "threshold":
        X, y = draw_thresholds(np.random.default_rng(3), 200)
    else:
        truth = draw_ground_truth(np.random.default_rng(3), 6, 25)
        X, y = truth.train
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 1200, "n_draws": 300, "n_chains": 4}).fit(X, y)
    assert model.combination_ == ("product" if kind == "threshold" else "mixture")
    assert set(model.combination_scores_) == {"mixture", "product"}
    assert not hasattr(model.set_params(combination="mixture").fit(X, y), "combination_scores_")


@pytest.mark.parametrize("is_table", [False, True])
def test_what_cannot_be_told_apart_follows_the_kind_of_data(is_table):
    """With too few actions to compare, and with actions that nothing can predict."""
    X, y = draw_vetoes(np.random.default_rng(4), 60)
    usual = "product" if is_table else "mixture"
    options = QUICK | {"scale_columns": is_table}
    few = [label if i < 12 else None for i, label in enumerate(y.tolist())]
    model = FeaturePolicyClassifier(**options).fit(X, few)
    assert model.combination_ == usual
    assert not hasattr(model, "combination_scores_")
    at_random = np.random.default_rng(0).integers(2, size=60)
    assert FeaturePolicyClassifier(**options).fit(X, at_random).combination_ == usual


def test_trials_take_a_fifth_of_the_sweeps():
    default = FeaturePolicyClassifier()
    assert find_length(default, 30) == {
        "n_burn_in": 480, "n_draws": 120, "n_chains": 1, "thin": 8, "max_prediction_draws": 15
    }  # fmt: skip
    assert find_length(FeaturePolicyClassifier(n_draws=9000), 30) == find_length(default, 30)
    short = find_length(FeaturePolicyClassifier(n_burn_in=10, n_draws=5, n_chains=1), 30)
    assert short["n_draws"] == 15  # an average needs some
    assert short["thin"] == 1


def test_of_many_rows_some_are_tried():
    given = CheckedInput(np.zeros((5000, 2)), None, np.arange(2), np.where(np.arange(5000) % 10, -1, 1))
    some = take_some(given)
    assert len(some.observations) == len(some.actions) == MOST_ROWS
    assert np.sum(some.actions >= 0) == 500  # all that have an action


@pytest.mark.parametrize("way", ["auto", "drawn"])
def test_decisiveness_is_learned(way):
    truth = draw_ground_truth(np.random.default_rng(5), 4, 25)
    options = QUICK | {"n_burn_in": 900, "n_draws": 300, "combination": "mixture"}
    model = FeaturePolicyClassifier(**options, decisiveness=way).fit(*truth.train)
    assert model.decisiveness_ > 3
    # after sampling, one number for all draws; otherwise each has its own
    assert (np.ptp(model.posterior_.traces["decisiveness"]) > 0) == (way == "drawn")
    fixed = FeaturePolicyClassifier(**options, decisiveness=1.0).fit(*truth.train)
    X, y = truth.test
    chosen = np.searchsorted(model.classes_, y)
    rows = np.arange(len(y))
    gain = np.log(model.predict_proba(X)[rows, chosen]) - np.log(fixed.predict_proba(X)[rows, chosen])
    assert gain.mean() > 0.05


@pytest.mark.parametrize("option", [{"combination": "product"}, {"decisiveness": "none"}, {"combination": "both"}])
def test_what_cannot_be_is_refused(option):
    X, y = draw_vetoes(np.random.default_rng(6), 40)
    with pytest.raises(ValueError, match=r"combination|decisiveness"):
        FeaturePolicyClassifier(sampler="as-published", **option).fit(X, y)


# --- actions that are not available ---------------------------------------------------------------------------------


@pytest.fixture
def masked():
    X, y = draw_vetoes(np.random.default_rng(7), 60)
    y = np.where(np.arange(60) % 3 == 0, 2, y)
    available = np.ones((60, 3), bool)
    available[np.arange(60), (y + 1) % 3] = np.arange(60) % 2 == 0
    return X, y, available


@pytest.mark.parametrize("combination", ["mixture", "product", "auto"])
@pytest.mark.parametrize("prediction", ["mmse", "map"])
def test_what_is_not_available_has_no_probability(masked, combination, prediction):
    X, y, available = masked
    options = QUICK | {"n_burn_in": 20, "n_draws": 12, "n_chains": 1}
    model = FeaturePolicyClassifier(**options, combination=combination, prediction=prediction)
    model.fit(X, y, available=available)
    probabilities = model.predict_proba(X, available=available)
    assert not probabilities[~available].any()
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert available[np.arange(60), model.predict(X, available)].all()
    assert np.array_equal(model.judge_demonstrations().probabilities, probabilities)
    only = np.eye(3, dtype=bool)[np.arange(60) % 3]
    assert np.allclose(model.predict_proba(X, only), only)


@pytest.mark.parametrize("options", [{}, {"decisiveness": 4.0}, {"combination": "product"}])
def test_what_features_do_is_among_what_is_available(options):
    """A prediction with one draw is what that draw's policies say, and the rest of what is unfamiliar."""
    model = make_model(labels=list("abcd"), n_features=4, prediction="map", **options)
    rng = np.random.default_rng(0)
    available = rng.random((30, 4)) < 0.5
    available[np.arange(30), rng.integers(4, size=30)] = True
    judged = model.judge(model.observations_, available=available)
    policy = model.policy(judged.substates, available)
    assert not policy[~available].any()
    whole = np.where(available, model.policy(judged.substates), 0.0)
    assert np.allclose(policy, whole / whole.sum(axis=1, keepdims=True))
    if "combination" not in options:  # nothing unfamiliar changes what a product says
        share = judged.familiarity[:, None]
        policy = share * policy + (1 - share) * available / available.sum(axis=1, keepdims=True)
    assert np.allclose(judged.probabilities, policy)
    with pytest.raises(ValueError, match="available must have 30 rows and 4 columns"):
        model.policy(judged.substates, available[:5])


def test_masks_are_routed_through_cross_validation(masked):
    """Scikit-learn hands each fold its rows of the mask; with it, no score is lost to what nobody could do."""
    X, y, available = masked
    options = QUICK | {"n_burn_in": 20, "n_draws": 12, "n_chains": 1}
    with sklearn.config_context(enable_metadata_routing=True):
        model = FeaturePolicyClassifier(**options, combination="mixture")
        model = model.set_fit_request(available=True).set_score_request(available=True)
        only = np.eye(3, dtype=bool)[y]
        assert cross_val_score(model, X, y, cv=3, params={"available": only}).tolist() == [1.0, 1.0, 1.0]
        assert cross_val_score(model, X, y, cv=3, params={"available": available}).mean() < 1.0
        model = model.set_predict_proba_request(available=True).set_predict_request(available=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, available=available)
        assert not pipeline.predict_proba(X, available=available)[~available].any()
        assert available[np.arange(60), pipeline.predict(X, available=available)].all()
    model.fit(X, y, available=available)
    weights = np.arange(60)
    correct = model.predict(X, available) == y
    assert model.score(X, y, weights, available) == pytest.approx(np.average(correct, weights=weights))


def test_masks_that_are_wrong_are_refused(masked):
    X, y, available = masked
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, n_chains=1)
    with pytest.raises(ValueError, match=r"60 rows and 3 columns.*\(0, 1, 2\); its shape is \(60, 2\)"):
        model.fit(X, y, available=available[:, :2])
    with pytest.raises(ValueError, match="available must hold truth values"):
        model.fit(X, y, available=2.0 * available)
    none = available.copy()
    none[5] = False
    with pytest.raises(ValueError, match="available: row 5 has no action that can be taken"):
        model.fit(X, y, available=none)
    wrong = available.copy()
    wrong[4, y[4]] = False
    wrong[4, (y[4] + 1) % 3] = True
    with pytest.raises(ValueError, match=f"available: the action '{y[4]}' of row 4 is not available there"):
        model.fit(X, y, available=wrong)
    with pytest.raises(NotFittedError):
        model.predict_proba(X, available)


def test_a_mask_that_allows_everything_changes_nothing(masked):
    X, y, _ = masked
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=30, n_draws=10, n_chains=1, random_state=0)
    plain = model.fit(X, y).predict_proba(X)
    assert np.array_equal(model.fit(X, y, available=np.ones((60, 3))).predict_proba(X, np.ones((60, 3))), plain)


# --- columns of different kinds -------------------------------------------------------------------------------------


def test_tables_are_told_from_signals(demo):
    rng = np.random.default_rng(8)
    table = np.column_stack([rng.integers(18, 70, 50), rng.random(50), rng.integers(0, 2, 50), 1e4 * rng.random(50)])
    assert looks_like_table(table)
    assert looks_like_table(rng.standard_normal((50, 4)))
    assert looks_like_table(20 + rng.random((50, 4)))
    assert looks_like_table(rng.poisson(2.0, (50, 4)).astype(float))  # counts
    assert not looks_like_table((rng.random((50, 4)) < 0.5).astype(float))  # indicators
    assert looks_like_table(rng.random((50, 4)).round(1))  # rounded values
    assert looks_like_table(rng.random((50, 4)) * (rng.random((50, 4)) < 0.4))  # exact zeros
    assert not looks_like_table(demo.X)
    assert not looks_like_table(np.ones((5, 3)))
    for snr in (10, 20, 30):
        assert not looks_like_table(draw_ground_truth(rng, 8, snr).observations)


def test_a_scan_is_no_table_though_some_of_its_cells_are_seldom_hit():
    """Scaled to its own range, a cell that one obstacle touched once would count as much as the road ahead."""
    rng = np.random.default_rng(18)
    hits = rng.random((60, 400)) < np.linspace(0.02, 0.5, 400)
    scan = hits * rng.random((60, 400)) * np.geomspace(0.01, 1.0, 400)
    assert not looks_like_table(scan)
    assert looks_like_table(scan[:, ::10])  # few columns may well be of different kinds
    assert looks_like_table(scan + np.geomspace(0.1, 100.0, 400))


def test_columns_of_a_table_are_scaled_and_their_noise_is_held():
    rng = np.random.default_rng(9)
    X = np.column_stack([rng.integers(18, 70, 80), rng.random(80), 1e4 * rng.random(80)]).astype(float)
    options = QUICK | {"n_burn_in": 30, "n_draws": 12, "scale_columns": "auto"}
    model = FeaturePolicyClassifier(**options, combination="mixture").fit(X, X[:, 1] > 0.5)
    assert np.allclose(model.column_range_, np.ptp(X, axis=0))
    assert model.noise_variance_ == pytest.approx(model.tolerance_**2, rel=0.05)
    assert model.observations_.max() == pytest.approx(1.0)
