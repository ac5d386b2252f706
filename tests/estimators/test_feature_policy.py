"""The scikit-learn interface: checks, inputs, outputs, bad input."""

import copy
import logging
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.plain import PLAIN
from whyact import ChainsDisagreeWarning, FeaturePolicyClassifier, Priors, load, simulate
from whyact.simulation import simulate_data

QUICK = {**PLAIN, "n_burn_in": 30, "n_draws": 20, "thin": 2, "n_chains": 1, "random_state": 0}


@parametrize_with_checks(
    [
        FeaturePolicyClassifier(**PLAIN, n_burn_in=60, n_draws=40, thin=10, n_chains=2),
        FeaturePolicyClassifier(**PLAIN, n_burn_in=300, n_draws=200, thin=50, n_chains=2, feature_values="real"),
        FeaturePolicyClassifier(**PLAIN, n_burn_in=60, n_draws=40, thin=10, n_chains=1, prediction="map"),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- what comes out -----------------------------------------------------------------------------------------


def test_the_demo_is_understood(fitted, demo):
    assert fitted.n_components_ == 5
    cosine = (fitted.components_ / np.linalg.norm(fitted.components_, axis=1, keepdims=True)) @ (
        demo.features / np.linalg.norm(demo.features, axis=1, keepdims=True)
    ).T
    assert np.all(np.sort(cosine.max(axis=1)) > 0.98)
    assert len(set(cosine.argmax(axis=1))) == 5
    assert fitted.score(demo.X[80:], demo.y[80:]) >= 0.9
    assert np.sqrt(fitted.noise_variance_) == pytest.approx(0.12, rel=0.1)


def test_shapes_of_what_was_learned(fitted, demo):
    assert fitted.components_.shape == (5, 36)
    assert fitted.policies_.shape == (5, 5)
    assert np.allclose(fitted.policies_.sum(axis=1), 1)
    assert fitted.substates_.shape == (80, 5)
    assert list(fitted.classes_) == sorted(set(demo.y))
    assert list(fitted.get_feature_names_out()) == [f"featurepolicyclassifier{k}" for k in range(5)]


def test_probabilities_are_probabilities(fitted, demo):
    probabilities = fitted.predict_proba(demo.X[80:])
    assert probabilities.shape == (40, 5)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(fitted.predict(demo.X[80:]), fitted.classes_[probabilities.argmax(axis=1)])


def test_confidence_is_honest(demo):
    """For a teacher who acts at random from the mixture, predicted probabilities are frequencies."""
    rng = np.random.default_rng(0)
    n_train, n_test = 150, 1500
    substates = np.where(rng.random((5, n_train + n_test)) < 0.6, 0.0, rng.random((5, n_train + n_test)))
    state = simulate(
        rng,
        n_train + n_test,
        36,
        4,
        features=demo.features,
        substates=substates,
        noise_variance=0.01,
        policy_concentration=0.3,
    ).state
    X, y = simulate_data(rng, state)
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=600, n_draws=400, n_chains=2, random_state=0).fit(
        X[:n_train], y[:n_train]
    )
    probabilities = model.predict_proba(X[n_train:])
    correct = model.predict(X[n_train:]) == y[n_train:]
    sure = probabilities.max(axis=1)
    for low, high in ((0.25, 0.6), (0.6, 0.8), (0.8, 1.01)):
        inside = (sure >= low) & (sure < high)
        assert inside.sum() > 100
        # the policies are known from 150 rows only, so they may be off by some percent
        assert abs(sure[inside].mean() - correct[inside].mean()) < 0.05 + 3 / np.sqrt(4 * inside.sum())


def test_map_prediction_uses_one_draw(fitted, demo):
    model = clone(fitted).set_params(prediction="map").fit(demo.X[:80], demo.y[:80])
    assert model.score(demo.X[80:], demo.y[80:]) >= 0.85
    assert np.array_equal(model.components_, fitted.components_)
    substates = model.transform(demo.X[80:])
    assert np.array_equal(np.rint(substates * 99) / 99, substates)


def test_transform_and_back_reconstructs(fitted, demo):
    substates = fitted.transform(demo.X[80:])
    assert substates.min() >= 0
    assert substates.max() <= 1
    residual = demo.X[80:] - fitted.inverse_transform(substates)
    assert np.sqrt(np.mean(residual**2)) < 1.1 * 0.12


def test_output_may_be_a_data_frame(fitted, demo):
    model = clone(fitted).set_params(**QUICK).set_output(transform="pandas").fit(demo.X[:80], demo.y[:80])
    frame = model.transform(demo.X[80:])
    assert list(frame.columns) == list(model.get_feature_names_out())


def test_what_no_feature_explains_is_unfamiliar_and_near_uniform(fitted, demo):
    strange = np.vstack([-demo.X[80], np.full(36, 50.0), np.eye(36)[0] * 9])
    assert fitted.familiarity(demo.X[80:]).min() > 0.9
    assert fitted.familiarity(strange).max() < 0.05
    assert np.abs(fitted.predict_proba(strange) - 0.2).max() < 0.02
    nothing = np.zeros((1, 36))  # not strange, but no feature is needed for it either
    assert fitted.familiarity(nothing)[0] < 0.5
    assert np.abs(fitted.predict_proba(nothing) - 0.2).max() < 0.1


def test_predictions_do_not_depend_on_the_other_rows(fitted, demo):
    together = fitted.predict_proba(demo.X[80:])
    alone = np.vstack([fitted.predict_proba(row[None]) for row in demo.X[80:]])
    assert np.allclose(together, alone, atol=1e-12)
    assert np.array_equal(together, fitted.predict_proba(demo.X[80:]))
    threaded = copy.deepcopy(fitted).set_params(n_jobs=2)
    assert np.allclose(together, threaded.predict_proba(demo.X[80:]), atol=1e-12)


def test_printing_a_fitted_model_explains_it(fitted, demo):
    text = str(fitted)
    assert text.startswith("5 features explain 80 demonstrations.\nBoth chains find all of them; draws have 5")
    assert all(action in text for action in demo.y)
    assert text.count("interval") == 5
    assert "chains" in text
    assert text.endswith("What the features leave unexplained looks like noise.")
    assert str(FeaturePolicyClassifier()) == repr(FeaturePolicyClassifier())


def test_explanation_names_the_columns(demo):
    frame = pd.DataFrame(demo.X[:80], columns=demo.column_names)
    model = FeaturePolicyClassifier(**QUICK).fit(frame, demo.y[:80])
    assert any(name in str(model) for name in demo.column_names)


def test_same_seed_same_model_whatever_n_jobs(demo):
    models = [
        FeaturePolicyClassifier(**{**QUICK, "n_chains": 2}, n_jobs=n).fit(demo.X[:80], demo.y[:80]) for n in (1, 2)
    ]
    assert np.array_equal(models[0].components_, models[1].components_)
    assert np.array_equal(models[0].predict_proba(demo.X[80:]), models[1].predict_proba(demo.X[80:]))


# --- what goes in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=["list", "numpy", "pandas", "polars"])
def test_labels_of_any_sortable_type(demo, make):
    numbers = {action: 10 * i for i, action in enumerate(sorted(set(demo.y)))}
    for labels in ([str(a) for a in demo.y[:80]], [numbers[a] for a in demo.y[:80]]):
        model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], make(labels))
        assert list(model.classes_) == sorted(set(labels))
        assert set(model.predict(demo.X[80:])) <= set(labels)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_data_frames_keep_their_names(demo, library):
    frame = library.DataFrame({name: demo.X[:80, d] for d, name in enumerate(demo.column_names)})
    model = FeaturePolicyClassifier(**QUICK).fit(frame, demo.y[:80])
    assert list(model.feature_names_in_) == demo.column_names
    plain = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], demo.y[:80])
    assert np.array_equal(model.components_, plain.components_)


def test_missing_actions_are_learned_from(demo):
    y = demo.y[:80].astype(object)
    y[::2] = None
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=400, n_draws=200, n_chains=1, random_state=0).fit(demo.X[:80], y)
    assert model.score(demo.X[80:], demo.y[80:]) > 0.75
    marked = np.where(y == None, "?", y).astype(str)  # noqa: E711
    other = clone(model).set_params(missing_action="?").fit(demo.X[:80], marked)
    assert np.array_equal(model.components_, other.components_)
    numbers = np.where(marked == "?", np.nan, np.unique(marked, return_inverse=True)[1])
    by_number = clone(model).set_params(missing_action=np.nan).fit(demo.X[:80], numbers)
    assert np.array_equal(model.components_, by_number.components_)


def test_without_any_action_features_are_learned(demo):
    for y in (None, [None] * 80):
        model = FeaturePolicyClassifier(**PLAIN, n_burn_in=400, n_draws=100, n_chains=1, random_state=0).fit(
            demo.X[:80], y
        )
        assert model.n_components_ >= 4
        assert len(model.classes_) == 0
        assert model.policies_.shape == (model.n_components_, 0)
        assert model.transform(demo.X[80:]).shape == (40, model.n_components_)
        assert "features explain" in str(model)
        with pytest.raises(ValueError, match="y held no action"):
            model.predict(demo.X[80:])


def test_missing_entries_are_marginalised(demo):
    rng = np.random.default_rng(0)
    X = np.where(rng.random(demo.X.shape) < 0.15, np.nan, demo.X)
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=800, n_draws=300, n_chains=1, random_state=0).fit(
        X[:80], demo.y[:80]
    )
    assert model.n_components_ == 5
    assert np.isfinite(model.components_).all()
    assert model.score(X[80:], demo.y[80:]) >= 0.8


def test_action_weights_are_taken(demo):
    for weight in (0.0, 0.5, 3.0, "dimensions"):
        model = FeaturePolicyClassifier(**QUICK, action_weight=weight).fit(demo.X[:80], demo.y[:80])
        assert np.isfinite(model.predict_proba(demo.X[80:])).all()


def test_it_works_in_pipelines_and_cross_validation(demo):
    pipeline = make_pipeline(
        MaxAbsScaler(), FeaturePolicyClassifier(**PLAIN, n_burn_in=300, n_draws=100, n_chains=1, random_state=0)
    )
    assert cross_val_score(pipeline, demo.X, demo.y, cv=3).mean() > 0.8


def test_pickling_keeps_the_predictions(fitted, demo):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(demo.X[80:]), fitted.predict_proba(demo.X[80:]))


@settings(max_examples=25, deadline=None)
@given(
    n_rows=st.integers(2, 12),
    n_columns=st.integers(1, 6),
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.uint8, bool]),
    levels=st.sampled_from([2, 3, 100, 300]),
    values=st.sampled_from(["positive", "real"]),
    seed=st.integers(0, 1000),
)
def test_any_shape_and_type(n_rows, n_columns, dtype, levels, values, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_columns)) * 5).astype(dtype)
    y = np.arange(n_rows) % 2
    model = FeaturePolicyClassifier(
        **PLAIN, n_burn_in=6, n_draws=4, thin=2, n_chains=1, n_levels=levels, feature_values=values, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.transform(X).shape == (n_rows, model.n_components_)
    assert np.isfinite(model.components_).all()


@settings(max_examples=20, deadline=None)
@given(exponent=st.integers(-40, 40), values=st.sampled_from(["positive", "real"]), seed=st.integers(0, 100))
def test_the_unit_of_the_observations_changes_nothing_else(exponent, values, seed):
    """A power of two is exact in floating point: the draws are the same to the last bit."""
    rng = np.random.default_rng(seed)
    X = rng.random((10, 4)) @ rng.random((4, 5))
    y = np.arange(10) % 3
    model = FeaturePolicyClassifier(
        **PLAIN, n_burn_in=30, n_draws=20, thin=2, n_chains=1, feature_values=values, random_state=seed
    )
    factor = 2.0**exponent
    one = clone(model).fit(X, y)
    other = clone(model).fit(X * factor, y)
    assert np.array_equal(one.components_ * factor, other.components_)
    assert np.array_equal(one.substates_, other.substates_)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X * factor))
    assert other.noise_variance_ == pytest.approx(one.noise_variance_ * factor**2)


@pytest.mark.parametrize("factor", [1e6, 1e-6, 1e12, 1e140])
def test_a_million_times_the_observations_is_only_another_unit(demo, factor):
    model = FeaturePolicyClassifier(**QUICK)
    one = clone(model).fit(demo.X[:80], demo.y[:80])
    other = clone(model).fit(demo.X[:80] * factor, demo.y[:80])
    assert np.allclose(one.components_ * factor, other.components_, rtol=1e-6, atol=1e-9 * factor)
    assert np.allclose(one.predict_proba(demo.X[80:]), other.predict_proba(demo.X[80:] * factor), atol=1e-6)


# --- bad input ----------------------------------------------------------------------------------------------

X, Y = np.random.default_rng(0).random((12, 3)), np.arange(12) % 2


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_levels": 1}, "'n_levels'"),
        ({"n_draws": 0}, "'n_draws'"),
        ({"n_draws": 3, "thin": 5}, "n_draws=3 must be at least thin=5"),
        ({"n_chains": 0}, "'n_chains'"),
        ({"n_burn_in": -1}, "'n_burn_in'"),
        ({"action_weight": -1.0}, "'action_weight'"),
        ({"action_weight": "many"}, "'action_weight'"),
        ({"observation_weight": -0.5}, "'observation_weight'"),
        ({"observation_weight": 0.0}, "'observation_weight'"),
        ({"feature_values": "negative"}, "'feature_values'"),
        ({"prediction": "best"}, "'prediction'"),
        ({"priors": {"ibp_mass": (1, 1)}}, "'priors'"),
        ({"unit": 0.0}, "'unit'"),
    ],
)
def test_bad_parameters_are_named(parameters, sentence):
    model = FeaturePolicyClassifier(**parameters)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    ("observations", "actions", "sentence"),
    [
        (np.where(X > 0.9, np.inf, X), Y, "X contains infinity"),
        (np.column_stack([X, np.full(12, np.nan)]), Y, "X: column 3 holds no number"),
        (X[:1], Y[:1], "X holds 1 sample"),
        (X, np.zeros(12), "y holds one class only"),
        (X, Y[:5], "X has 12 rows, but y has 5"),
        ([["a", "b"], ["c", "d"]], [0, 1], "X must hold numbers"),
        (np.zeros((0, 3)), [], "0 sample"),
        (np.zeros((3, 0)), [0, 1, 0], "0 feature"),
        (X, X[:, 0], "Unknown label type: continuous"),
        (X, np.where(Y == 0, np.nan, Y), "y contains NaN or infinity"),
        (X, [None if i else "a" for i in range(12)], "y holds one class only"),
        (X, np.array([0, "a"] * 6, dtype=object), "y must hold labels of one sortable type"),
        (X[:, 0], Y, "Expected 2D array"),
        (X * 1e200, Y, "X holds values as large as 1e"),
    ],
)
def test_bad_data_gets_a_sentence_and_leaves_nothing_half_done(observations, actions, sentence):
    model = FeaturePolicyClassifier(**QUICK)
    with pytest.raises(ValueError, match=sentence):
        model.fit(observations, actions)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_failed_fit_keeps_the_earlier_one(demo):
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], demo.y[:80])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="one class"):
        model.fit(demo.X[:80, :3], np.zeros(80))
    assert vars(model) == before


def test_a_column_without_numbers_is_named(demo):
    frame = pd.DataFrame({"speed": X[:, 0], "gap": np.nan})
    with pytest.raises(ValueError, match="column gap holds no number"):
        FeaturePolicyClassifier(**QUICK).fit(frame, Y)


def test_other_width_at_predict_is_refused(fitted):
    with pytest.raises(ValueError, match="X has 3 features, but FeaturePolicyClassifier is expecting 36"):
        fitted.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="substates must have 5 columns"):
        fitted.inverse_transform(np.zeros((2, 4)))


def test_actions_never_seen_count_as_wrong_with_a_warning(fitted, demo):
    y = demo.y[80:].copy().astype(object)
    full = fitted.score(demo.X[80:], y)
    right = np.nonzero(fitted.predict(demo.X[80:]) == y)[0]
    y[right[0]] = "honk"
    with pytest.warns(UserWarning, match=r"actions never seen in training \(honk\)"):
        assert fitted.score(demo.X[80:], y) == pytest.approx(full - 1 / 40)


def test_constant_columns_and_equal_rows_are_no_obstacle():
    constant = np.column_stack([X, np.full(12, 3.0), np.zeros(12)])
    model = FeaturePolicyClassifier(**QUICK).fit(constant, Y)
    assert np.isfinite(model.predict_proba(constant)).all()
    with pytest.warns(UserWarning, match="X: all rows are equal"):
        model.fit(np.ones((12, 3)), Y)
    with pytest.warns(UserWarning, match="X: all rows are equal"):
        model.fit(np.zeros((12, 3)), Y)
    assert np.allclose(model.predict_proba(np.zeros((1, 3))), 0.5)


def test_data_without_noise_are_no_obstacle():
    """Without a floor at the residuals' rounding the noise variance would fall to zero, and kernels would hang."""
    y = np.arange(40) % 2
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=400, n_draws=100, n_chains=1, random_state=0)
    single = np.zeros((40, 5))
    single[3, 2] = 1.0
    for noiseless in (np.ones((40, 5)), np.eye(40)[:, :5], single, np.zeros((40, 5))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(noiseless, y)
        assert 0 < model.noise_variance_ < 1
        assert np.isfinite(model.posterior_.traces["log_joint"]).all()


def test_large_arrays_reach_the_other_processes():
    """joblib maps arrays above a megabyte into its processes; the state must stay of one type."""
    rng = np.random.default_rng(0)
    X = rng.random((140_000, 2))
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=2, n_draws=2, thin=1, n_chains=2, n_jobs=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)
        model.fit(X, rng.integers(0, 2, len(X)))
    assert model.substates_.shape[0] == 140_000


def test_not_fitted_is_said():
    model = FeaturePolicyClassifier()
    for method in (model.predict, model.predict_proba, model.transform, model.familiarity, model.inverse_transform):
        with pytest.raises(NotFittedError):
            method(X)


def test_chains_that_disagree_are_told_in_a_warning(demo):
    with pytest.warns(ChainsDisagreeWarning, match="chains disagree, and the number of features is still growing"):
        FeaturePolicyClassifier(**PLAIN, n_burn_in=0, n_draws=40, thin=2, n_chains=3, random_state=1).fit(
            demo.X[:80], demo.y[:80]
        )


# --- progress -----------------------------------------------------------------------------------------------


def test_a_library_user_hears_nothing(demo, capfd, caplog):
    with caplog.at_level(logging.WARNING):
        FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], demo.y[:80])
    out, err = capfd.readouterr()
    assert (out, err, caplog.text) == ("", "", "")


def test_a_person_who_asked_sees_progress(demo, capfd):
    FeaturePolicyClassifier(**QUICK, verbose=1).fit(demo.X[:80], demo.y[:80])
    out, err = capfd.readouterr()
    assert out == ""
    assert re.search(r"50/50 sweeps  K \d+  noise 0\.\d+  log joint -?\d+", err)


def test_scikit_learn_callbacks_follow_the_fit(demo):
    callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")

    class Counter:
        def __init__(self, stop_after=None):
            self.events = []
            self.stop_after = stop_after

        def setup(self, estimator, context):
            self.events.append("setup")

        def teardown(self, estimator, context):
            self.events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.events.append("begin")

        def on_fit_task_end(self, estimator, context):
            self.events.append("end")
            return self.stop_after is not None and self.events.count("end") >= self.stop_after

    counter = Counter()
    assert isinstance(counter, callback.FitCallback)
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=40, n_draws=60, thin=2, n_chains=1, random_state=0)
    clone(model).set_callbacks(counter).fit(demo.X[:80], demo.y[:80])
    assert counter.events[0] == "setup"
    assert counter.events[-1] == "teardown"
    assert counter.events.count("begin") == counter.events.count("end") == 21
    stopper = Counter(stop_after=12)
    stopped = clone(model).set_callbacks(stopper).fit(demo.X[:80], demo.y[:80])
    assert 0 < stopped.posterior_.n_draws < 30
    early = Counter(stop_after=2)  # in the burn-in: continues until there are draws
    assert clone(model).set_callbacks(early).fit(demo.X[:80], demo.y[:80]).posterior_.n_draws > 0
    assert early.events.count("begin") == early.events.count("end")


def test_priors_are_taken(demo):
    many = FeaturePolicyClassifier(**QUICK, priors=Priors(ibp_mass=(50, 1))).fit(demo.X[:80], demo.y[:80])
    few = FeaturePolicyClassifier(**QUICK, priors=Priors(ibp_mass=(1, 500))).fit(demo.X[:80], demo.y[:80])
    assert many.posterior_.traces["ibp_mass"].mean() > 10 * few.posterior_.traces["ibp_mass"].mean()


def test_policy_of_substates(fitted, demo):
    assert np.array_equal(fitted.observations_, demo.X[:80])
    assert np.array_equal(fitted.classes_[fitted.actions_], demo.y[:80])
    alone = fitted.policy(0.3 * np.eye(5))  # one feature by itself, however much of it
    assert np.allclose(alone, fitted.policies_, atol=1e-14)
    halves = fitted.policy([[0.5, 0.5, 0, 0, 0], [0.0] * 5])
    assert np.allclose(halves[0], fitted.policies_[:2].mean(axis=0))
    assert np.allclose(halves[1], 0.2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fitted.policy([[1.1, 0, 0, 0, 0]])


def test_scaled_columns_are_what_a_scaler_before_would_make(demo):
    from sklearn.preprocessing import MinMaxScaler

    units = np.geomspace(1e-3, 1e3, 36)
    X, y = demo.X * units - 5 * units, demo.y
    X[4, 7] = np.nan
    scaled = FeaturePolicyClassifier(**QUICK | {"scale_columns": True}, priors=Priors()).fit(X[:80], y[:80])
    scaler = MinMaxScaler().fit(X[:80])
    before = FeaturePolicyClassifier(**QUICK).fit(scaler.transform(X[:80]), y[:80])
    assert np.allclose(scaled.predict_proba(X[80:]), before.predict_proba(scaler.transform(X[80:])), atol=1e-6)
    made_up = scaled.inverse_transform(scaled.substates_)
    assert np.allclose(made_up, scaler.inverse_transform(before.inverse_transform(before.substates_)))
    again = scaled.set_params(scale_columns=False).fit(X[:80], y[:80])
    assert not hasattr(again, "column_range_")


@pytest.mark.parametrize("start", ["prior", "rows"])
def test_the_number_of_features_can_be_given(demo, start, tmp_path):
    model = FeaturePolicyClassifier(
        n_components=3, n_burn_in=60, n_draws=30, n_chains=2, start=start, combination="mixture", random_state=0
    ).fit(demo.X[:60], demo.y[:60])
    assert model.n_components_ == len(model.components_) == 3
    assert set(model.posterior_.n_features_probabilities) == {3}
    model.save(tmp_path / "model.nc")
    loaded = load(tmp_path / "model.nc")
    assert np.array_equal(loaded.predict_proba(demo.X[60:]), model.predict_proba(demo.X[60:]))
    loaded.set_params(warm_start=True, n_draws=40).fit(demo.X[:60], demo.y[:60])
    assert set(loaded.posterior_.n_features_probabilities) == {3}


def test_a_number_of_features_and_a_limit_contradict_each_other(demo):
    with pytest.raises(ValueError, match="n_components fixes the number of features, so max_features must be None"):
        FeaturePolicyClassifier(n_components=3, max_features=5).fit(demo.X, demo.y)
