"""The usual classifiers, and how their settings are chosen: by cross-validation within the rows to learn from."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

LABELS = {
    "lr": "logistic regression",
    "lda": "LDA with shrinkage",
    "svm": "SVM",
    "knn": "nearest neighbours",
    "forest": "random forest",
    "boosting": "gradient boosting",
    "mlp": "MLP",
}
REGULARISATION = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}


class Candidate(NamedTuple):
    """An estimator and the settings to choose from."""

    estimator: Any  # a scikit-learn classifier
    settings: dict[str, Any] = {}  # noqa: RUF012 (nobody changes it)
    n_folds: int = 5  # of the cross-validation that chooses


def make_regression() -> LogisticRegression:
    """A logistic regression with time to converge."""
    return LogisticRegression(max_iter=2000)


def make_classifiers(seed: int | None) -> dict[str, Candidate]:
    """The classifiers by name, in the order of LABELS."""
    return {
        "lr": Candidate(make_pipeline(StandardScaler(), make_regression()), REGULARISATION),
        "lda": Candidate(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        "svm": Candidate(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.003, 0.01, 0.03, 0.1]},
        ),
        "knn": Candidate(
            KNeighborsClassifier(),
            {"n_neighbors": [1, 3, 5, 9, 15], "weights": ["uniform", "distance"], "metric": ["euclidean", "cosine"]},
        ),
        "forest": Candidate(RandomForestClassifier(100, random_state=seed), {"max_features": ["sqrt", 0.5]}, 3),
        "boosting": Candidate(
            GradientBoostingClassifier(n_estimators=60, subsample=0.7, max_features="sqrt", random_state=seed),
            {"max_depth": [1, 3]},
            3,
        ),
        "mlp": Candidate(
            make_pipeline(StandardScaler(), MLPClassifier((50,), solver="lbfgs", max_iter=300, random_state=seed)),
            {"mlpclassifier__alpha": [0.01, 1.0, 10.0]},
        ),
    }


def tune(
    candidate: Candidate, X: Any, y: ArrayLike, seed: int, groups: np.ndarray | None = None, **options: Any
) -> Any:
    """Fit with the settings that are best in cross-validation, which leaves out whole groups if there are any.

    `options` are given to `fit`.
    """
    folds = make_inner_folds(y, candidate.n_folds, seed, groups) if candidate.settings else []
    if not folds:
        return candidate.estimator.fit(X, y, **options)
    return GridSearchCV(candidate.estimator, candidate.settings, cv=folds).fit(X, y, **options)


def make_inner_folds(
    y: ArrayLike, n_folds: int, seed: int, groups: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds to choose settings with: (rows to learn from, rows to judge); none if every choice would be blind.

    Each part to learn from holds at least two classes. Groups are ignored if they make that impossible.
    """
    y = np.asarray(y)
    _, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    n_folds = min(n_folds, counts.max())
    if len(counts) < 2 or np.sort(counts)[-2] < 2:  # a part to learn from without the second class
        return []
    with warnings.catch_warnings():
        # rare actions have fewer rows than there are folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        if groups is not None and (n_groups := len(np.unique(groups))) > 1:
            splitter = StratifiedGroupKFold(min(n_folds, n_groups))
            folds = [
                (train, test)
                for train, test in splitter.split(y, classes, groups)
                if len(test) and len(np.unique(classes[train])) > 1
            ]
            if len(folds) > 1:
                return folds
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, classes))
