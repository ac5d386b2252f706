"""Models compared on the same folds: the folds, the measures, what counts as a tie, and the command line."""

import doctest
import re
import sys
import warnings
from collections import Counter

import numpy as np
import pandas
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

import whyact
from whyact.alternatives.pipelines import make_nmf_policies
from whyact.cli import app
from whyact.comparison import Comparison, compare, count_components
from whyact.comparison.classifiers import LABELS, Candidate, tune
from whyact.comparison.compiling import compile_kernels, set_seeds, shorten
from whyact.comparison.contestants import CONTESTANTS, DEFAULT
from whyact.comparison.crossvalidation import align
from whyact.comparison.folds import make_folds
from whyact.comparison.inputs import make_model, scale_if_asked
from whyact.comparison.scoring import UNIFORM_SHARE, calibration_error, corrected_interval, score
from whyact.errors import ArgumentError, ChainsDisagreeWarning
from whyact.estimators.feature_policy import FeaturePolicyClassifier

runner = CliRunner()


def make_rows(n_rows=60, n_classes=3, seed=0):
    """Classes that a line tells apart, with some overlap."""
    rng = np.random.default_rng(seed)
    actions = np.arange(n_rows) % n_classes
    X = np.abs(rng.normal(size=(n_rows, 4)) + 2.5 * np.eye(n_classes, 4)[actions])
    return X, np.array(["brake", "keep", "turn", "wait"])[actions]


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def comparison(rows):
    """Do not change it."""
    return compare(*rows, models=["lda", "majority", "pca"], n_folds=3, n_repeats=2)


# --- folds ----------------------------------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers nothing, but answers with which rows it was fitted to and asked for."""

    def __init__(self, log=None, random_state=None):
        self.log = log
        self.random_state = random_state

    def __sklearn_clone__(self):
        return Spy(self.log, self.random_state)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.train_ = X[:, 0]
        return self

    def predict_proba(self, X):
        self.log.append((tuple(self.train_), tuple(X[:, 0])))
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_all_models_see_the_same_folds(rows):
    X = np.arange(60.0).reshape(-1, 1)
    logs = {"a": [], "b": []}
    compare(X, rows[1], models={name: Spy(log) for name, log in logs.items()}, n_repeats=2)
    assert len(logs["a"]) == 15
    assert logs["a"] == logs["b"]
    for train, test in logs["a"]:
        assert sorted(train + test) == list(range(60))
    tested = Counter(row for _, test in logs["a"] for row in test)
    assert set(tested.values()) == {3}


def draw_folds(actions, groups=None, splits=("blocked",), n_folds=5, n_repeats=1, seed=0):
    return make_folds(np.asarray(actions), groups, splits, n_folds, n_repeats, np.random.RandomState(seed))


def test_blocks_are_consecutive_rows():
    folds = draw_folds(np.arange(23) % 2)
    assert [fold.test.tolist() for fold in folds] == [list(part) for part in (
        range(0, 5), range(5, 10), range(10, 14), range(14, 19), range(19, 23))]  # fmt: skip
    for fold in folds:
        # settings are chosen with the blocks of the rows to learn from
        assert len(np.unique(fold.groups)) == 4
        assert len(fold.groups) == len(fold.train)


def test_groups_stay_whole():
    groups = np.random.default_rng(0).integers(8, size=80)
    folds = draw_folds(np.arange(80) % 3, groups)
    for fold in folds:
        assert not set(groups[fold.train]) & set(groups[fold.test])
        assert set(fold.groups) == set(groups[fold.train])
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(80))


def test_random_folds_are_stratified_and_ignore_groups():
    actions = np.repeat([0, 1], [40, 10])
    folds = draw_folds(actions, np.arange(50) // 2, ("random",), n_repeats=3)
    assert len(folds) == 15
    assert {int(actions[fold.test].sum()) for fold in folds} == {2}
    assert {fold.groups is None for fold in folds} == {True}
    repeats = [tuple(fold.test) for fold in folds if fold.fold == 0]
    assert len(set(repeats)) == 3


def test_random_split_flatters_who_remembers_rows():
    """A drive in which everything drifts slowly: rows are near copies of their neighbours, and labels are moods."""
    rng = np.random.default_rng(3)
    X = np.cumsum(rng.normal(size=(400, 6)), axis=0)
    y = np.repeat(rng.integers(3, size=20), 20)  # a mood lasts 20 rows and has nothing to do with X
    found = compare(X, y, models=["knn", "majority"]).summary.set_index(["split", "model"])["accuracy"]
    assert found["random", "knn"] > 0.9
    assert found["blocked", "knn"] < 0.6


# --- measures -------------------------------------------------------------------------------------------------------


def test_measures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), 50)
    actions = rng.integers(3, size=50)  # the fourth is never taken
    found = score(probabilities, actions)
    predicted = probabilities.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(np.mean(predicted == actions))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(actions, predicted))
    mixed = (1 - UNIFORM_SHARE) * probabilities + UNIFORM_SHARE / 4
    assert found["log_score"] == pytest.approx(-log_loss(actions, mixed, labels=range(4)))


def test_an_impossible_action_costs_much_but_not_everything():
    assert score(np.array([[1.0, 0.0]]), np.array([1]))["log_score"] == pytest.approx(np.log(0.0005))


def test_calibration_error_by_hand():
    confidences = np.repeat([0.6, 0.9], 20)
    correct = np.concatenate([np.arange(20) < 10, np.arange(20) < 20])  # right in 50% and in 100%
    assert calibration_error(confidences, correct) == pytest.approx((0.1 + 0.1) / 2)
    shuffled = np.random.default_rng(0).permutation(40)
    assert calibration_error(confidences[shuffled], correct[shuffled]) == pytest.approx(0.1)


def test_equal_probabilities_share_a_bin():
    """Else the order of the rows would count, and chance within a bin would look like an error."""
    correct = np.random.default_rng(0).permutation(np.arange(200) < 60)
    assert calibration_error(np.full(200, 0.3), correct) == pytest.approx(0, abs=1e-12)


def test_calibration_error_tells_honest_from_sure():
    rng = np.random.default_rng(1)
    honest = rng.uniform(0.5, 1, 5000)
    correct = rng.random(5000) < honest
    assert calibration_error(honest, correct) < 0.03
    assert calibration_error(np.minimum(honest + 0.2, 1), correct) > 0.1


def test_unknown_actions_have_probability_zero():
    classes = np.array(["a", "b", "c"])
    np.testing.assert_array_equal(align([[0.3, 0.7]], ["a", "c"], classes), [[0.3, 0, 0.7]])
    with pytest.raises(ValueError, match="NaN"):
        align([[np.nan, 1.0]], ["a", "c"], classes)


def test_components_are_counted_where_there_are_any(rows):
    X, y = rows
    assert count_components(make_nmf_policies(2).fit(X, y)) == 2
    tuned = tune(Candidate(make_nmf_policies(2), {"policymixtureclassifier__pseudo_count": [0.1, 1.0]}), X, y, 0)
    assert count_components(tuned) == 2
    assert count_components(make_pipeline(StandardScaler(), make_nmf_policies(2)).fit(X, y)) == 2
    assert np.isnan(count_components(LogisticRegression().fit(X, y)))


# --- what is a tie --------------------------------------------------------------------------------------------------


def test_interval_by_hand():
    found = corrected_interval(np.array([0.1, 0.2, 0.3]), 80, 20)
    # variance 0.01, times 1/3 + 1/4; quantile of Student's t with two degrees of freedom
    half = 4.302653 * np.sqrt(0.01 * 7 / 12)
    np.testing.assert_allclose(found, [0.2, 0.2 - half, 0.2 + half], rtol=1e-6)
    assert found.verdict == "tie"
    assert corrected_interval(found.value + np.array([0, 1e-3, -1e-3]), 80, 20).verdict == "ahead"
    assert corrected_interval(-found.value + np.array([0, 1e-3, -1e-3]), 80, 20).verdict == "behind"


def test_two_folds_tell_nothing():
    """That both differences are the same is no proof of anything."""
    found = corrected_interval(np.array([0.3, 0.3]), 80, 20)
    assert found.value == 0.3
    assert found.verdict == "unknown"
    assert corrected_interval(np.array([]), np.nan, np.nan).verdict == "unknown"


def test_equal_models_are_seldom_told_apart():
    """Two nearest-neighbour models that see one useless column each: the truth is a tie.

    Repeated folds share their rows, so that the interval of independent folds cries wolf; the corrected one does not.
    """
    rng = np.random.default_rng(5)
    alarms = {"corrected": 0, "naive": 0}
    n_runs, n_rows = 300, 60
    for _ in range(n_runs):
        X, y = rng.normal(size=(n_rows, 2)), rng.integers(2, size=n_rows)
        distances = np.abs(X[:, None] - X[None])  # rows, rows, the one column of each model
        differences = []
        for fold in draw_folds(y, None, ("random",), 5, 6, seed=rng.integers(2**31)):
            nearest = distances[fold.test][:, fold.train].argmin(axis=1)
            correct = y[fold.train][nearest] == y[fold.test][:, None]
            differences.append(correct[:, 0].mean() - correct[:, 1].mean())
        alarms["corrected"] += corrected_interval(np.array(differences), 48, 12).verdict != "tie"
        alarms["naive"] += corrected_interval(np.array(differences), np.inf, 12).verdict != "tie"
    assert alarms["corrected"] / n_runs <= 0.1
    assert alarms["naive"] / n_runs >= 0.2


def test_differences_are_paired(comparison):
    folds = comparison.folds.set_index(["split", "repeat", "fold", "model"])["log_score"].unstack()
    for _, row in comparison.differences.iterrows():
        assert row["model"] != "lda"
        if row["measure"] == "log_score":
            differences = folds.loc[row["split"], row["model"]] - folds.loc[row["split"], "lda"]
            assert row["difference"] == pytest.approx(differences.mean())
            assert row["n_folds"] == len(differences) == (6 if row["split"] == "random" else 3)
            expected = corrected_interval(differences.to_numpy(), 40, 20)
            assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


# --- the whole ------------------------------------------------------------------------------------------------------


def test_frames_have_a_row_for_everything(comparison):
    assert len(comparison.folds) == (6 + 3) * 3
    assert comparison.folds[["accuracy", "balanced_accuracy", "log_score", "calibration_error"]].notna().all(axis=None)
    assert list(comparison.summary["model"]) == ["lda", "majority", "pca"] * 2
    assert list(comparison.summary["split"]) == ["random"] * 3 + ["blocked"] * 3
    assert comparison.reference == "lda"
    assert comparison.notes == []
    verdicts = comparison.differences.set_index(["split", "model", "measure"])["verdict"]
    assert verdicts["random", "majority", "accuracy"] == "behind"
    counts = comparison.summary.set_index(["split", "model"])["n_components"]
    assert counts["random", "pca"] >= 1
    assert np.isnan(counts["random", "lda"])


def test_summary_is_the_mean_over_folds(comparison):
    means = comparison.folds.groupby(["split", "model"])["accuracy"].agg(["mean", "std"])
    for _, row in comparison.summary.iterrows():
        assert tuple(means.loc[row["split"], row["model"]]) == pytest.approx((row["accuracy"], row["accuracy_sd"]))


def test_calibration_of_the_summary_is_that_of_all_predictions(rows):
    """The most frequent action has the same probability in all folds of equal classes, and is right in a third."""
    found = compare(*rows, models=["majority"], splits=["random"]).summary
    assert found["calibration_error"].iloc[0] == pytest.approx(0, abs=1e-9)


TIMES = ["fit_seconds", "predict_seconds"]


def test_results_do_not_depend_on_the_number_of_processes(rows):
    models = {"forest": RandomForestClassifier(10), "nmf": "nmf", "lr": "lr"}  # the first is random without a seed
    one, two = (compare(*rows, models=models, n_folds=2, n_jobs=n_jobs) for n_jobs in (None, 2))
    pandas.testing.assert_frame_equal(one.folds.drop(columns=TIMES), two.folds.drop(columns=TIMES))
    pandas.testing.assert_frame_equal(one.differences, two.differences)


def test_seeds_decide_the_folds_and_the_models(rows):
    def run(seed):
        return compare(*rows, models={"f": RandomForestClassifier(5)}, n_folds=2, random_state=seed).folds.drop(
            columns=TIMES
        )

    pandas.testing.assert_frame_equal(run(1), run(1))
    assert not run(1).equals(run(2))


def test_seeds_of_the_user_are_kept():
    model = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=7))
    assert set_seeds(model, 3)[-1].random_state == 7
    assert set_seeds(RandomForestClassifier(), 3).random_state == 3


def test_own_models_and_known_ones_can_be_mixed(rows):
    found = compare(
        *rows,
        models={"mine": LogisticRegression(), "theirs": "majority", "lda": "lda"},
        reference="theirs",
        splits=["random"],
        n_folds=2,
    )
    assert found.labels == {"mine": "mine", "theirs": "theirs", "lda": LABELS["lda"]}
    assert set(found.differences["model"]) == {"mine", "lda"}


def test_data_frames_keep_their_names(rows):
    frame = pandas.DataFrame(rows[0], columns=list("abcd"), index=np.arange(60)[::-1])

    class NeedsNames(LogisticRegression):
        def fit(self, X, y):
            assert list(X.columns) == list("abcd")
            return super().fit(X, y)

    series = pandas.Series(rows[1], index=frame.index, dtype="string")
    named = compare(frame, series, models={"model": NeedsNames()}, n_folds=2)
    plain = compare(*rows, models={"model": LogisticRegression()}, n_folds=2)
    assert named.notes == []
    np.testing.assert_array_equal(named.folds["accuracy"], plain.folds["accuracy"])


@pytest.mark.parametrize("name", list(CONTESTANTS))
def test_every_known_model_can_be_made(name):
    estimator = CONTESTANTS[name].make().estimator
    assert hasattr(estimator, "predict_proba")
    is_sampler = name.startswith("features") or name in ("patterns", "clusters", "per-action")
    assert make_model(name, name).is_sampler == is_sampler
    assert make_model(name, name).label == CONTESTANTS[name].label


def test_every_known_model_is_in_the_help():
    words = re.findall(r"[\w-]+", re.sub(r"[│\s]+", " ", runner.invoke(app, ["compare", "--help"]).output))
    assert set(CONTESTANTS) <= set(words)
    assert set(CONTESTANTS) - set(DEFAULT) == {"features-mixture", "features-product", "simplex", "lda", "mlp"}


def test_features_combine_policies_as_their_names_say():
    ways = {name: CONTESTANTS[name].make().estimator.combination for name in CONTESTANTS if name.startswith("features")}
    assert ways == {"features": "auto", "features-mixture": "mixture", "features-product": "product"}


# --- troubles -------------------------------------------------------------------------------------------------------


class Troubled(DummyClassifier):
    """Fails and warns on demand."""

    def __init__(self, problem=""):
        super().__init__()
        self.problem = problem

    def fit(self, X, y):
        if self.problem == "some" and X[0, 0] == 0:  # not if row 0 is to be predicted
            raise RuntimeError("the [red]first[/red] row\nis back. And more.")
        if self.problem == "all":
            raise ValueError("never")
        if self.problem == "warn":
            warnings.warn("R-hat is 1.4.", ChainsDisagreeWarning, stacklevel=2)
            warnings.warn("too few.", ConvergenceWarning, stacklevel=2)
            warnings.warn("Odd. Very.", UserWarning, stacklevel=2)
            warnings.warn("later", FutureWarning, stacklevel=2)
        return super().fit(X, y)


def test_a_model_that_fails_does_not_take_the_others_with_it(rows):
    X, y = rows
    X = np.column_stack([np.arange(60.0), X])
    models = {"good": "lda", "some": Troubled("some"), "all": Troubled("all")}
    found = compare(X, y, models=models, splits=["blocked"])
    assert found.notes == [
        "some failed in 4 of 5 fits, the first time with RuntimeError: the [red]first[/red] row is back.",
        "all failed in 5 of 5 fits, the first time with ValueError: never",
    ]
    folds = found.folds.set_index(["model", "fold"])["accuracy"]
    assert folds["good"].notna().all()
    assert folds["some"].notna().tolist() == [True, False, False, False, False]
    assert found.summary.set_index("model")["n_folds"].to_dict() == {"good": 5, "some": 1, "all": 0}
    assert set(found.differences["verdict"]) == {"unknown"}
    assert "failed" in str(found)
    assert "[red]first[/red]" in str(found)
    found.plot()
    failed_reference = compare(X, y, models=models, splits=["blocked"], reference="all")
    assert set(failed_reference.differences["verdict"]) == {"unknown"}
    failed_reference.plot()
    str(failed_reference)


def test_warnings_of_models_are_counted(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(*rows, models={"m": Troubled("warn")}, n_folds=2)
    assert found.notes == [
        "m: the chains disagreed in 4 of 4 fits.",
        "m: an optimiser stopped before it converged in 4 of 4 fits.",
        "m: UserWarning, Odd. in 4 of 4 fits.",
    ]


# --- actions that are not available -----------------------------------------------------------------------------


class Choosy(Spy):
    """Keeps what it is told is available, and says the same of all actions."""

    def __sklearn_clone__(self):
        return Choosy(self.log, self.random_state)

    def fit(self, X, y, available=None):
        self.log.append(("fit", X[:, 0], available))
        return super().fit(X, y)

    def predict_proba(self, X, available=None):
        self.log.append(("predict", X[:, 0], available))
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def draw_masks(labels, seed=0):
    mask = np.random.default_rng(seed).random((len(labels), 3)) < 0.5
    return mask | (labels[:, None] == np.unique(labels))


def test_what_is_not_available_has_no_probability_in_any_model(rows):
    X, y = rows
    only = y[:, None] == np.unique(y)
    found = compare(X, y, available=only, models=["lda", "lr", "majority"], n_folds=3)
    assert (found.folds[["accuracy", "log_score"]] == [1.0, 0.0]).all(axis=None)
    assert "What is not available in a row has no probability there, for any model." in found.notes
    mask = draw_masks(y)
    masked = compare(X, y, available=mask, models=["majority"], splits=["blocked"], n_folds=3)
    expected = []
    for fold in np.split(np.arange(60), 3):  # a third of the rows to learn from have each action
        shares = mask[fold] / mask[fold].sum(axis=1, keepdims=True)
        expected.append(np.log(shares[np.arange(20), np.unique(y, return_inverse=True)[1][fold]]).mean())
    np.testing.assert_allclose(masked.folds["log_score"], expected, atol=0.03)
    everything = compare(X, y, available=np.ones((60, 3), bool), models=["majority", "lr"], n_folds=3)
    pandas.testing.assert_frame_equal(
        everything.folds[["accuracy", "log_score"]],
        compare(X, y, models=["majority", "lr"], n_folds=3).folds[["accuracy", "log_score"]],
    )


def test_models_that_want_to_know_are_told_what_is_available(rows):
    X, y = rows
    X, y, log = X.copy(), y.copy(), []
    X[:, 0] = np.arange(60)
    y[15:] = np.where(y[15:] == "turn", "keep", y[15:])  # who learns without the first block does not know of it
    labels, mask = [None, *y[1:]], draw_masks(y)
    mask[2] = np.unique(y) == "turn"
    found = compare(X, labels, available=mask, models={"mine": Choosy(log)}, splits=["blocked"], n_folds=4)
    assert not found.folds["accuracy"].isna().any()
    assert found.notes[1] == (
        "What is not available in a row has no probability there, for any model. Models that also learn with it: mine."
    )
    for what, numbers, told in log:
        knows = [0, 1] if len(told[0]) == 2 else [0, 1, 2]
        expected = mask[numbers.astype(int)][:, knows]
        if what == "predict":
            expected = expected | ~expected.any(axis=1, keepdims=True)
        np.testing.assert_array_equal(told, expected)
    assert {len(told[0]) for _, _, told in log} == {2, 3}


def test_the_share_for_surprises_goes_to_what_is_available():
    available = np.array([[True, True, False], [True, False, False]])
    measures = score(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.array([1, 0]), available)
    assert measures["log_score"] == pytest.approx(np.log(UNIFORM_SHARE / 2) / 2)


def test_rows_without_an_action_are_dropped(rows):
    X, y = rows
    marked = [None if i in (3, 7) else label for i, label in enumerate(y)]
    groups = np.arange(60) // 6
    found = compare(X, marked, groups=groups, models=["majority"])
    assert found.notes == ["2 of 60 rows dropped, because their action is missing."]
    assert found.folds[found.folds["split"] == "blocked"]["n_test"].sum() == 58
    keep = [i for i in range(60) if i not in (3, 7)]
    dropped = compare(X[keep], y[keep], groups=groups[keep], models=["majority"])
    pandas.testing.assert_frame_equal(found.folds.drop(columns=TIMES), dropped.folds.drop(columns=TIMES))
    numbers = np.where(np.arange(60) == 5, np.nan, np.arange(60) % 2)
    assert "1 of 60 rows dropped" in compare(X, numbers, models=["majority"]).notes[0]


def test_missing_entries_are_imputed_for_who_needs_it(rows):
    X, y = rows
    X = X.copy()
    X[::7, 1] = np.nan
    found = compare(
        X, y, models={"lr": "lr", "other": "nmf", "forest": "forest", "own": LogisticRegression()}, n_folds=2
    )
    assert found.notes[0] == "X has missing entries; these models get the column's mean instead: lr, other."
    assert found.notes[-1].startswith("own failed in 4 of 4 fits")
    assert found.folds[found.folds["model"] != "own"]["accuracy"].notna().all()
    assert found.folds[found.folds["model"] == "other"]["n_components"].notna().all()


def test_columns_are_scaled_on_demand(rows):
    X, y = rows
    sizes = np.array([1.0, 1.0, 1000.0, 1.0])
    advice = "The columns of X differ in scale by a factor of"
    short = FeaturePolicyClassifier(n_burn_in=10, n_draws=10, n_chains=1, combination="mixture", scale_columns=False)
    plain = compare(X * sizes, y, models={"own": short}, splits=["random"], n_folds=2)
    assert plain.notes[0].startswith(advice)
    assert "one noise for all columns (own)" in plain.notes[0]
    assert not compare(X * sizes, y, models=["knn"], splits=["random"], n_folds=2).notes
    scaled = compare(X * sizes, y, models=["knn", "nmf"], splits=["random"], n_folds=2, scale=True)
    unscaled = compare(X, y, models=["knn", "nmf"], splits=["random"], n_folds=2, scale=True)
    pandas.testing.assert_frame_equal(scaled.folds.drop(columns=TIMES), unscaled.folds.drop(columns=TIMES))
    assert not any(note.startswith(advice) for note in scaled.notes)
    assert scaled.folds["n_components"].notna().sum() == 2


def test_a_scaled_sampler_is_still_one():
    scaled, _ = scale_if_asked({"clusters": make_model("clusters", "clusters")}, np.eye(3), True)
    assert scaled["clusters"].is_sampler
    assert shorten(scaled["clusters"].candidate.estimator)[-1].n_burn_in == 1  # the shortest fit that compiles


def test_a_model_that_scales_by_itself_is_left_alone(rows):
    models = {name: make_model(name, name) for name in ("features", "features-product", "clusters", "lr")}
    scaled, _ = scale_if_asked(models, rows[0], True)
    assert [name for name in models if scaled[name] is models[name]] == ["features", "features-product"]
    assert list(scaled) == list(models)
    _, [advice] = scale_if_asked(models, rows[0] * [1, 1, 1000, 1], False)
    assert "one noise for all columns (clusters)" in advice


class SpySampler(Spy):
    """Has the parameters of a sampler, and tells how long it ran."""

    def __init__(self, log=None, n_burn_in=500, n_draws=500, n_chains=4):
        super().__init__(log)
        self.n_burn_in, self.n_draws, self.n_chains = n_burn_in, n_draws, n_chains

    def __sklearn_clone__(self):
        return SpySampler(self.log, self.n_burn_in, self.n_draws, self.n_chains)

    def fit(self, X, y):
        if len(np.unique(y)) == 1:
            raise ValueError("one action")
        return super().fit(X, y)

    def predict_proba(self, X):
        self.log.append((self.n_burn_in, self.n_draws, self.n_chains, len(X)))

    def judge(self, X, prediction=None):
        self.log.append((prediction, len(X)))


def test_kernels_are_compiled_by_the_shortest_fits_of_samplers(rows):
    log, other = [], []
    compile_kernels([Spy(other), make_pipeline(StandardScaler(), SpySampler(log))], *rows)
    assert log == [(1, 5, 2, 1)]
    assert not other
    compile_kernels([SpySampler(log)], *rows, predictions=("mmse", "map"))
    assert log[1:] == [("mmse", 1), ("map", 1)]
    compile_kernels([SpySampler(log)], rows[0], np.zeros(60))  # a fit that fails does so later, where it is noted
    assert len(log) == 3


def test_actions_that_cannot_be_learned_count_as_wrong():
    X, _ = make_rows(40)
    y = np.where(np.arange(40) < 8, "late", np.where(np.arange(40) % 2, "a", "b"))
    found = compare(X, y, models=["lda"])
    assert found.notes == [
        "blocked: some folds test actions that are missing from their rows to learn from ('late' in 1 of them); "
        "there they count as wrong."
    ]
    first = found.folds[(found.folds["split"] == "blocked") & (found.folds["fold"] == 0)].iloc[0]
    assert first["accuracy"] == 0
    assert first["log_score"] == pytest.approx(np.log(UNIFORM_SHARE / 3))


def test_a_fold_with_one_action_to_learn_from_is_left_out():
    X, _ = make_rows(40)
    y = np.where(np.arange(40) < 8, "a", "b")  # the first of five blocks holds all of a
    found = compare(X, y, models=["lda", "majority"])
    assert found.notes[0].startswith("blocked: 1 of 5 folds left out for all models")
    assert found.folds.groupby(["split", "model"]).size().to_dict() == {
        ("blocked", "lda"): 4, ("blocked", "majority"): 4, ("random", "lda"): 5, ("random", "majority"): 5,
    }  # fmt: skip
    with pytest.raises(ArgumentError, match="no fold is left"):
        compare(X, np.repeat(["a", "b"], 20), models=["lda"], splits=["blocked"], n_folds=2)


def test_rare_actions_are_no_reason_to_stop():
    X, y = make_rows(40, 2)
    y[[3, 4]] = ["once", "twice"]
    y[20] = "twice"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(X, y, models=["lr", "knn", "pca"], splits=["random"])
    assert found.folds["accuracy"].notna().all()
    assert "'once' in 1 of them" in found.notes[0]


# --- what is refused ------------------------------------------------------------------------------------------------

X60, Y60 = make_rows()


@pytest.mark.parametrize(
    ("changes", "argument", "sentence"),
    [
        ({"models": ["lr", "forrest"]}, "models", r"'forrest' is not known, did you mean 'forest'\? Available: feat"),
        ({"models": []}, "models", "models is empty"),
        ({"models": {"m": 3}}, "models", "'m' is not a scikit-learn estimator, but 3"),
        ({"models": {"m": LogisticRegression}}, "models", "'m' is not a scikit-learn estimator"),
        ({"models": {"m": SVC()}}, "models", "'m' has no predict_proba"),
        ({"reference": "features"}, "reference", r"'features' is not compared\. Available: lda, majority"),
        ({"y": ["a"] * 60}, "y", r"y holds only one action \('a'\)"),
        ({"y": [None] * 60}, "y", "y holds no action"),
        ({"y": Y60[:59]}, "y", "X has 60 rows, but y has 59 entries"),
        ({"y": None}, "y", "y must be one column"),
        ({"y": np.zeros((60, 2))}, "y", "y must be one column"),
        ({"y": np.linspace(0.1, 0.9, 60)}, "y", "y must hold one discrete action per row"),
        ({"y": ["a", 1] * 30}, "y", "labels of one sortable type"),
        ({"groups": [1] * 59}, "groups", "X has 60 rows, but groups has 59 entries"),
        ({"groups": [1, 2] * 30}, "groups", "groups holds 2 different groups, fewer than n_folds=5"),
        ({"groups": [None, *range(59)]}, "groups", "groups must have an entry for every row, but lacks 1"),
        ({"available": np.ones((60, 2))}, "available", "available must have 60 rows and 3 columns"),
        ({"available": np.zeros((60, 3))}, "available", "row 0 has no action that can be taken"),
        ({"available": np.tile([1, 0, 0], (60, 1))}, "available", "the action 'keep' of row 1 is not available there"),
        ({"n_folds": 1}, "n_folds", "n_folds must be a whole number of at least 2, got 1"),
        ({"n_folds": 2.5}, "n_folds", "n_folds must be a whole number"),
        ({"n_folds": 61}, "n_folds", "n_folds=61 is more than the 60 rows"),
        ({"n_folds": 21}, "n_folds", "n_folds=21 is more than the 20 rows of the most frequent action"),
        ({"n_repeats": 0}, "n_repeats", "n_repeats must be a whole number of at least 1, got 0"),
        ({"splits": ["blockd"]}, "splits", "'blockd' is not known, did you mean 'blocked'"),
        ({"splits": "random"}, "splits", "splits must be a list"),
        ({"splits": []}, "splits", "splits must be a list"),
        ({"X": X60[:, 0]}, "X", "X must be a table of finite numbers"),
        ({"X": np.full((60, 2), "a")}, "X", "X must be a table of finite numbers"),
        ({"X": np.where(X60 > 2, np.inf, X60)}, "X", "X must be a table of finite numbers: .*infinity"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_sentence(changes, argument, sentence):
    options = {"X": X60, "y": Y60, "models": ["lda", "majority"]} | changes
    with pytest.raises(ArgumentError, match=sentence) as error:
        compare(options.pop("X"), options.pop("y"), **options)
    assert error.value.argument == argument
    assert isinstance(error.value, ValueError)


# --- text, files, picture -------------------------------------------------------------------------------------------


def test_table_fits_and_marks_ties(comparison):
    lines = str(comparison).splitlines()
    assert max(len(line) for line in lines) <= 100
    text = str(comparison)
    assert "= is a tie with LDA with shrinkage" in text
    assert re.search(r"LDA with shrinkage .* reference", text)
    assert re.search(r"most frequent action +0\.\d{3} < +0\.\d{3} < +-0\.\d{3} ± 0\.\d{3}", text)
    assert "3 stratified folds of shuffled rows, 2 times" in " ".join(text.split())
    assert "3 blocks of consecutive rows" in " ".join(text.split())


def test_long_and_hostile_names_do_not_break_table_and_picture(rows, tmp_path):
    names = ["[bold]x[/nothing]", "$\\frac{", "a very long name " * 5]
    found = compare(*rows, models={name: LogisticRegression() for name in names}, n_folds=2)
    lines = str(found).splitlines()
    assert max(len(line) for line in lines) <= 100
    assert any(line.strip().startswith("[bold]x[/nothing]") for line in lines)
    found.plot().savefig(tmp_path / "picture.png")


def test_files_hold_what_the_frames_hold(comparison, tmp_path):
    paths = comparison.to_csv(tmp_path / "results.csv")
    assert [path.name for path in paths] == ["results.csv", "results_folds.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.csv", "results_folds.csv"]
    table, folds = (pandas.read_csv(path) for path in paths)
    pandas.testing.assert_frame_equal(folds, comparison.folds, check_dtype=False)
    pandas.testing.assert_frame_equal(table[comparison.summary.columns], comparison.summary, check_dtype=False)
    row = table.set_index(["split", "model"]).loc[("blocked", "majority")]
    difference = comparison.difference("blocked", "majority", "log_score")
    assert row["log_score_low"] == pytest.approx(difference["low"])
    assert row["log_score_verdict"] == difference["verdict"]


def test_picture_shows_every_model_and_the_reference(comparison):
    figure = comparison.plot()
    assert len(figure.axes) == 4
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == [comparison.labels[name] for name in comparison.sort_models("random")]
    bold = [tick.get_text() for tick in figure.axes[0].get_yticklabels() if tick.get_fontweight() == "bold"]
    assert bold == ["LDA with shrinkage"]


@pytest.mark.parametrize(("module", "n_examples"), [("crossvalidation", 8), ("results", 35), ("scoring", 11)])
def test_the_examples_of_the_docstrings_run(module, n_examples):
    result = doctest.testmod(sys.modules[f"whyact.comparison.{module}"])
    assert (result.attempted, result.failed) == (n_examples, 0)


def test_names_are_imported_when_asked_for():
    assert whyact.compare is compare
    assert whyact.Comparison is Comparison
    assert {"compare", "Comparison"} <= set(whyact.__all__)
