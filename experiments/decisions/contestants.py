"""Who predicts: our classifier as it comes, existing tools tuned by log score, and tools that learn without labels."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import NMF
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from experiments.decisions.decision_table import import_extra
from whyact import FeaturePolicyClassifier
from whyact.comparison.classifiers import REGULARISATION, Candidate, make_classifiers, make_inner_folds, make_regression
from whyact.comparison.contestants import CONTESTANTS, put_first
from whyact.comparison.crossvalidation import align
from whyact.comparison.scoring import score

# Versions of ours: what each sets, beside the defaults. Those that set what the classifier does not have are left out.
VERSIONS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours-mixture": {"combination": "mixture"},
    "ours-product": {"combination": "product"},
}
LABELS = {
    "ours": "feature policies",
    "ours-mixture": "feature policies, mixture",
    "ours-product": "feature policies, product",
    "lr": "logistic regression",
    "forest": "random forest",
    "boosting": "gradient boosting",
    "nmf-lr": "NMF + LR",
    "ebm": "explainable boosting",
    "majority": "most frequent action",
    "self-training": "self-training LR",
    "label-spreading": "label spreading",
}
N_INNER_FOLDS = 3
N_FACTORS = (2, 5, 10, 20)  # of the NMF
HIDDEN = -1  # in place of an action that is not on record


class Lesson(NamedTuple):
    """Rows to learn from."""

    X: np.ndarray  # (N, D)
    actions: np.ndarray  # (N,), HIDDEN where not on record
    groups: np.ndarray | None  # (N,)
    available: np.ndarray | None  # (N, U)
    seed: int

    @property
    def labelled(self) -> np.ndarray:
        """Rows whose action is on record."""
        return np.flatnonzero(self.actions != HIDDEN)

    def take(self, rows: np.ndarray) -> "Lesson":
        """Some of the rows."""
        groups, available = (None if part is None else part[rows] for part in (self.groups, self.available))
        return Lesson(self.X[rows], self.actions[rows], groups, available, self.seed)


# --- ours -----------------------------------------------------------------------------------------------------------


def list_versions() -> list[str]:
    """Versions of ours that this version of whyact has."""
    known = FeaturePolicyClassifier().get_params()
    return [name for name, parameters in VERSIONS.items() if set(parameters) <= set(known)]


def fit_ours(version: str, lesson: Lesson, options: dict[str, Any]) -> FeaturePolicyClassifier:
    """Our classifier with its defaults, except for what makes the version, and `options` for trials."""
    model = FeaturePolicyClassifier(**VERSIONS[version], **options, random_state=lesson.seed)
    if len(lesson.labelled) < len(lesson.actions):
        model.set_params(missing_action=HIDDEN)
    known = np.unique(lesson.actions[lesson.labelled])
    return model.fit(lesson.X, lesson.actions, **say_available(model.fit, lesson.available, known))


def say_available(method: Callable[..., Any], available: np.ndarray | None, known: np.ndarray) -> dict[str, Any]:
    """The argument `available` of a method that takes one, with a column for each action that the model knows."""
    if available is None or "available" not in signature(method).parameters:
        return {}
    return {"available": available[:, known]}


# --- existing tools -------------------------------------------------------------------------------------------------


def make_forest(n_most: int, seed: int) -> Candidate:
    """A random forest; small leaves make it too sure of itself, so their size is chosen as well."""
    usual = make_classifiers(seed)["forest"]
    return usual._replace(settings={**usual.settings, "min_samples_leaf": [1, 3, 10]})


def make_boosting(n_most: int, seed: int) -> Candidate:
    """Gradient boosting; how many trees are too many is chosen as well."""
    usual = make_classifiers(seed)["boosting"]
    return usual._replace(settings={**usual.settings, "n_estimators": [20, 60, 180]})


def make_nmf_regression(n_most: int, seed: int) -> Candidate:
    """Parts found without the actions, then a regression on how much of each is there."""
    # new rows may lie outside the range of those learned from, and an NMF takes nothing below zero
    parts = make_pipeline(MinMaxScaler(clip=True), NMF(2, init="nndsvda", max_iter=500, random_state=seed))
    pipeline = make_pipeline(parts, StandardScaler(), make_regression())
    numbers = sorted({min(number, n_most) for number in N_FACTORS})
    settings = {"pipeline__nmf__n_components": numbers, "logisticregression__C": [0.1, 1.0, 10.0, 100.0]}
    return Candidate(pipeline, settings, N_INNER_FOLDS)


def make_explainable_boosting(n_most: int, seed: int) -> Candidate:
    """An explainable boosting machine; it finds the number of its rounds by itself."""
    # an extra that nothing but this study needs
    glassbox = import_extra("interpret.glassbox", "experiments")
    # By default: 14 bags, three pairs for each column, 50,000 rounds. Where actions can be told apart completely, pairs
    # go on improving till the last round, which takes over nine minutes a fit.
    machine = glassbox.ExplainableBoostingClassifier(outer_bags=8, max_rounds=2000, n_jobs=1, random_state=seed)
    return Candidate(machine, {"interactions": [0, 5]}, N_INNER_FOLDS)


# Learn from the rows whose action is on record. Each is made for a largest number of factors and a seed.
PEERS: dict[str, Callable[[int, int], Candidate]] = {
    "lr": lambda n_most, seed: make_classifiers(seed)["lr"],
    "forest": make_forest,
    "boosting": make_boosting,
    "nmf-lr": make_nmf_regression,
    "ebm": make_explainable_boosting,
    "majority": lambda n_most, seed: CONTESTANTS["majority"].make(),
}


class Spreading(LabelSpreading):  # type: ignore[misc]  # sklearn has no types
    """Label spreading that calls all actions equally probable where none has spread to, instead of NaN."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probability of each action, (N, U)."""
        with np.errstate(invalid="ignore"):
            probabilities = super().predict_proba(X)
        return np.where(np.isnan(probabilities), 1 / len(self.classes_), probabilities)


def make_self_training(n_most: int, seed: int) -> Candidate:
    """A logistic regression that learns from those of its own predictions that it is sure of."""
    pipeline = make_pipeline(StandardScaler(), SelfTrainingClassifier(make_regression()))
    settings = {"estimator__C": REGULARISATION["logisticregression__C"], "threshold": [0.75, 0.95]}
    return Candidate(pipeline, {f"selftrainingclassifier__{name}": values for name, values in settings.items()})


def make_label_spreading(n_most: int, seed: int) -> Candidate:
    """Actions spread to the neighbours of the rows on record, and to theirs."""
    pipeline = make_pipeline(StandardScaler(), Spreading(kernel="knn", max_iter=200))
    return Candidate(pipeline, {"spreading__n_neighbors": [3, 7, 15], "spreading__alpha": [0.2, 0.8]})


# Learn from all rows. Only where actions are hidden do they differ from the others.
FROM_ALL_ROWS: dict[str, Callable[[int, int], Candidate]] = {
    "self-training": make_self_training,
    "label-spreading": make_label_spreading,
}


def make_peer(name: str, n_most: int, seed: int) -> Candidate:
    """An existing tool that gets medians for missing entries, and columns that say where they were missing."""
    filling = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return put_first(filling, (PEERS | FROM_ALL_ROWS)[name](n_most, seed))


def fit_peer(name: str, lesson: Lesson) -> Any:
    """Fit with the settings that have the best log score in cross-validation, by groups where there are any."""
    if name in PEERS:
        lesson = lesson.take(lesson.labelled)
    # factors no more than columns, nor than rows to learn from in any of the folds
    candidate = make_peer(name, min(lesson.X.shape[1], len(lesson.X) // 2), lesson.seed)
    folds = make_folds(lesson, candidate.n_folds) if candidate.settings else []
    if not folds:
        return candidate.estimator.fit(lesson.X, lesson.actions)
    search = GridSearchCV(candidate.estimator, candidate.settings, scoring=find_log_score, cv=folds)
    return search.fit(lesson.X, lesson.actions)


def make_folds(lesson: Lesson, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of the rows with an action; those without are always among the rows to learn from."""
    rows, hidden = lesson.labelled, np.flatnonzero(lesson.actions == HIDDEN)
    groups = None if lesson.groups is None else lesson.groups[rows]
    folds = make_inner_folds(lesson.actions[rows], n_folds, lesson.seed, groups)
    return [(np.concatenate([rows[train], hidden]), rows[test]) for train, test in folds]


def find_log_score(model: Any, X: np.ndarray, actions: np.ndarray) -> float:
    """Mean log probability of the actions, some of which the model may not know."""
    classes = np.union1d(model.classes_, actions)
    probabilities = align(model.predict_proba(X), model.classes_, classes)
    return score(probabilities, np.searchsorted(classes, actions))["log_score"]


# --- all of them ----------------------------------------------------------------------------------------------------


def fit_contestant(name: str, lesson: Lesson, options: dict[str, Any]) -> Any:
    """A fitted model; `options` are for ours alone."""
    return fit_ours(name, lesson, options) if name in VERSIONS else fit_peer(name, lesson)


def predict(model: Any, X: np.ndarray, n_actions: int, available: np.ndarray | None) -> np.ndarray:
    """Probability of each action (N, U), zero where it cannot be taken."""
    given = say_available(model.predict_proba, available, model.classes_)
    probabilities = align(model.predict_proba(X, **given), model.classes_, np.arange(n_actions))
    return probabilities if available is None else rule_out(probabilities, available)


def rule_out(probabilities: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Probabilities of the actions that can be taken, which add up to one; all alike if none was thought possible."""
    possible = np.where(available, probabilities, 0.0)
    lost = possible.sum(axis=1) <= 0
    possible[lost] = available[lost]
    return possible / possible.sum(axis=1, keepdims=True)
