"""What existing tools reach on the same data: tuned on the rows to learn from, judged on the others.

Each is a scikit-learn pipeline whose settings are chosen by cross-validation inside the training rows. The ceiling is
what someone reaches who is told the true features and policies.
"""

import tempfile
import warnings

import numpy as np
from sklearn.decomposition import NMF, PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
from whyact.alternatives.rank import count_by_bicrossvalidation, count_by_minka
from whyact.alternatives.simplex import SimplexFactorization, project_to_mixtures

# Names of the columns, and what a reader calls them.
ACCURACIES = {
    "lr": "logistic regression",
    "lda": "LDA with shrinkage",
    "svm": "SVM",
    "knn": "nearest neighbours",
    "forest": "random forest",
    "boosting": "gradient boosting",
    "mlp": "MLP",
    "pca_lr": "PCA + LR",
    "nmf_lr_known": "NMF + LR, K known",
    "nmf_lr_cv": "NMF + LR, K by CV",
    "simplex": "simplex factors + EM",
    "ceiling": "true features and policies",
}
COUNTS = {"minka": "Minka's MLE + 1", "bicv": "bi-cross-validation"}

REGULARISATION = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def clip_at_zero(X):
    return np.maximum(X, 0.0)


def make_nmf(n_components):
    return NMF(n_components, init="nndsvda", max_iter=2000, tol=1e-5, random_state=0)


def make_peers(n_features: int, n_columns: int, seed: int, memory=None) -> dict:
    """Each peer as an estimator and the settings to choose from; `memory` keeps factors for the next regularisation."""
    regression = LogisticRegression(max_iter=2000)
    regularisation = {"logisticregression__C": REGULARISATION}
    some_counts = [k for k in (3, 5, 7, 9, 12, 15, 18, 21) if k < n_columns]
    return {
        "lr": (make_pipeline(StandardScaler(), regression), regularisation),
        "lda": (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), {}),
        "svm": (
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.003, 0.01, 0.03, 0.1]},
        ),
        "knn": (
            KNeighborsClassifier(),
            {"n_neighbors": [1, 3, 5, 9, 15], "weights": ["uniform", "distance"], "metric": ["euclidean", "cosine"]},
        ),
        "forest": (
            RandomForestClassifier(100, random_state=seed),
            {"max_features": ["sqrt", 0.5]},
        ),
        "boosting": (
            GradientBoostingClassifier(n_estimators=60, subsample=0.7, max_features="sqrt", random_state=seed),
            {"max_depth": [1, 3]},
        ),
        "mlp": (
            make_pipeline(StandardScaler(), MLPClassifier((50,), solver="lbfgs", max_iter=300, random_state=seed)),
            {"mlpclassifier__alpha": [0.01, 1.0, 10.0]},
        ),
        "pca_lr": (
            make_pipeline(PCA(random_state=seed), StandardScaler(), regression, memory=memory),
            {"pca__n_components": some_counts, "logisticregression__C": [0.1, 1.0, 10.0]},
        ),
        "nmf_lr_known": (
            make_pipeline(
                FunctionTransformer(clip_at_zero), make_nmf(n_features), StandardScaler(), regression, memory=memory
            ),
            regularisation,
        ),
        "nmf_lr_cv": (
            make_pipeline(
                FunctionTransformer(clip_at_zero), make_nmf(n_features), StandardScaler(), regression, memory=memory
            ),
            {"nmf__n_components": some_counts, "logisticregression__C": [1.0, 10.0]},
        ),
        "simplex": (make_pipeline(SimplexFactorization(), PolicyMixtureClassifier()), {}),
    }


N_FOLDS = {"forest": 3, "boosting": 3, "pca_lr": 3, "nmf_lr_cv": 3}


def tune(name, estimator, settings, X, y, seed):
    """Fit with the settings that are best in cross-validation."""
    if not settings:
        return estimator.fit(X, y)
    folds = StratifiedKFold(N_FOLDS.get(name, 5), shuffle=True, random_state=seed)
    return GridSearchCV(estimator, settings, cv=folds).fit(X, y)


def run_peers(truth, seed: int) -> dict:
    """Accuracy of every peer, and the numbers of features found, with the names of the study's columns."""
    X, y = truth.train
    X_new, y_new = truth.test
    accuracies = {}
    counts = {"minka": count_by_minka(X), "bicv": count_by_bicrossvalidation(X)}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # rare actions have fewer rows than there are folds; a setting that does not converge is a setting that loses
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, (estimator, settings) in make_peers(len(truth.features), X.shape[1], seed, folder).items():
            fitted = tune(name, estimator, settings, X, y, seed)
            accuracies[name] = float(fitted.score(X_new, y_new))
    accuracies["ceiling"] = float(np.mean(predict_with_truth(truth, X_new) == y_new))
    return {f"accuracy_{name}": accuracies[name] for name in ACCURACIES} | {
        f"n_features_{name}": counts[name] for name in COUNTS
    }


def predict_with_truth(truth, X) -> np.ndarray:
    """The most probable action, given the true features and policies."""
    return (project_to_mixtures(X, truth.features) @ truth.policies).argmax(axis=1)
