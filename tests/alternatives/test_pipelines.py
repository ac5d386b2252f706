"""Features first, policies afterwards; the usual classifiers and how their settings are chosen."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.decomposition import NMF, PCA
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from experiments.simulations.study import DataSet
from whyact.alternatives.pipelines import CountedDecomposition, make_nmf_policies, make_pca_policies
from whyact.comparison.classifiers import LABELS, Candidate, make_classifiers, make_inner_folds, tune

# scikit-learn expects the same two of its own Pipeline
STEPS = "Pipeline.fit fits its steps in place, and they are its parameters"
PIPELINE_FAILURES = {"check_estimators_overwrite_params": STEPS, "check_dont_overwrite_parameters": STEPS}


@pytest.mark.parametrize("make", [make_nmf_policies, make_pca_policies])
@pytest.mark.parametrize("n_components", ["bicv", 1])
def test_pipelines_follow_scikit_learn_conventions(make, n_components):
    # one call for all checks: the name of a check holds the pipeline, and that an address, new in every process
    check_estimator(make(n_components), expected_failed_checks=PIPELINE_FAILURES, on_skip=None)


@parametrize_with_checks(
    [CountedDecomposition(PCA(random_state=0), centre=True), CountedDecomposition(NMF(random_state=0, max_iter=2000))]
)
def test_counted_decomposition_follows_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def truth():
    return DataSet(5, 30.0, 1).draw()


@pytest.mark.parametrize(("make", "expected"), [(make_nmf_policies, 5), (make_pca_policies, 4)])
def test_pipelines_find_the_features_and_predict(truth, make, expected):
    """Mixtures of five features that sum to one lie in a flat of four dimensions, which is what PCA needs."""
    X, y = truth.train
    model = make().fit(X, y)
    assert model["counteddecomposition"].n_components_ == expected
    assert model.score(*truth.test) >= 0.85
    assert make(3).fit(X, y)["counteddecomposition"].n_components_ == 3


def test_without_centring_the_mean_is_counted_as_a_component():
    rng = np.random.default_rng(0)
    X = 50 + rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12)) + 0.01 * rng.normal(size=(60, 12))
    assert CountedDecomposition(PCA(), centre=True).fit(X).n_components_ == 2
    assert CountedDecomposition(PCA()).fit(X).n_components_ == 3


def test_both_signs_of_a_component_have_a_policy():
    X = np.array([[-1.0, 0.0], [1.0, 0.1], [-2.0, 0.1], [2.0, 0.0]] * 5)
    model = make_pca_policies(1).fit(X, ["left", "right"] * 10)
    assert list(model.predict([[-1.5, 0.0], [1.5, 0.0]])) == ["left", "right"]
    names = model[:-1].get_feature_names_out()
    assert list(names) == ["counteddecomposition0_above", "counteddecomposition0_below"]


def test_what_is_negative_does_not_reach_nmf(truth):
    X, y = truth.train
    model = make_nmf_policies(3).fit(np.where(X > 0.5, X, -5.0), y)
    np.testing.assert_array_equal(model.predict_proba(-np.abs(X[:2])), model.predict_proba(0 * X[:2]))


@pytest.mark.parametrize("make", [make_nmf_policies, make_pca_policies])
def test_pipelines_can_be_cloned_pickled_and_fed_frames(truth, make):
    X, y = truth.train
    frame = pandas.DataFrame(X, columns=[f"cell {i}" for i in range(X.shape[1])])
    model = clone(make()).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"cell 0": "other"}))


# --- the usual classifiers ------------------------------------------------------------------------------------------


def test_every_classifier_has_a_label():
    assert list(make_classifiers(0)) == list(LABELS)


def test_settings_are_chosen_with_whole_groups_left_out():
    y = np.array(["a", "b"] * 12)
    groups = np.repeat(np.arange(6), 4)
    for train, test in make_inner_folds(y, 3, 0, groups):
        assert not set(groups[train]) & set(groups[test])


def test_groups_that_leave_one_class_to_learn_from_are_ignored():
    y = np.repeat(["a", "b"], 10)
    folds = make_inner_folds(y, 5, 0, groups=y)
    assert len(folds) == 5
    assert all(len(np.unique(y[train])) == 2 for train, _ in folds)


@pytest.mark.parametrize("counts", [(20, 2), (20, 3, 1), (3, 3), (2, 2, 1)])
def test_every_part_to_learn_from_holds_two_classes(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    for seed in range(20):
        folds = make_inner_folds(y, 5, seed)
        assert len(folds) == min(5, max(counts))
        assert all(len(np.unique(y[train])) >= 2 for train, _ in folds)


def test_a_second_class_of_one_row_leaves_nothing_to_choose_with():
    X = np.arange(12.0).reshape(-1, 1)
    y = ["a"] * 11 + ["b"]
    assert make_inner_folds(y, 5, 0) == []
    knn = tune(make_classifiers(0)["knn"], X, y, 0)
    assert knn.n_neighbors == 5  # scikit-learn's default


def test_the_best_setting_is_taken():
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = np.where(rng.random(60) < 0.25, X[:, 0] < 0, X[:, 0] > 0)  # a quarter of the labels is wrong
    best = tune(Candidate(KNeighborsClassifier(), {"n_neighbors": [1, 15]}), X, y, 0)
    assert best.best_params_ == {"n_neighbors": 15}
