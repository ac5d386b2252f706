"""How existing tools do on the same data: tuned on the rows to learn from, judged on the others.

Each is a scikit-learn pipeline whose settings are chosen by cross-validation within the training rows. The ceiling is
the accuracy of a method that is told the true features and policies.
"""

import tempfile
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from experiments.harness.store import Row
from whyact.alternatives.pipelines import clip_at_zero, make_nmf, make_simplex_policies
from whyact.alternatives.rank import count_by_bicrossvalidation, count_by_minka
from whyact.alternatives.simplex import project_to_mixtures
from whyact.comparison.classifiers import LABELS, REGULARISATION, Candidate, make_classifiers, make_regression, tune
from whyact.simulation import GroundTruth

# Names of the columns, and their labels for readers.
ACCURACIES = {
    **LABELS,
    "pca_lr": "PCA + LR",
    "nmf_lr_known": "NMF + LR, K known",
    "nmf_lr_cv": "NMF + LR, K by CV",
    "simplex": "simplex factors + EM",
    "ceiling": "true features and policies",
}
COUNTS = {"minka": "Minka's MLE + 1", "bicv": "bi-cross-validation"}


def make_peers(n_features: int, n_columns: int, seed: int, memory: str | None = None) -> dict[str, Candidate]:
    """All peers by name; `memory` is a folder that keeps factors for the next regularisation."""
    some_counts = [k for k in (3, 5, 7, 9, 12, 15, 18, 21) if k < n_columns]
    nmf_regression = make_pipeline(
        FunctionTransformer(clip_at_zero), make_nmf(n_features), StandardScaler(), make_regression(), memory=memory
    )
    return {
        **make_classifiers(seed),
        "pca_lr": Candidate(
            make_pipeline(PCA(random_state=seed), StandardScaler(), make_regression(), memory=memory),
            {"pca__n_components": some_counts, "logisticregression__C": [0.1, 1.0, 10.0]},
            3,
        ),
        "nmf_lr_known": Candidate(nmf_regression, REGULARISATION),
        "nmf_lr_cv": Candidate(
            nmf_regression, {"nmf__n_components": some_counts, "logisticregression__C": [1.0, 10.0]}, 3
        ),
        "simplex": Candidate(make_simplex_policies()),
    }


def run_peers(truth: GroundTruth, seed: int) -> Row:
    """Accuracy of every peer, and the numbers of features found, by the names of the study's columns."""
    X, y = truth.train
    X_new, y_new = truth.test
    accuracies = {}
    counts = {"minka": count_by_minka(X), "bicv": count_by_bicrossvalidation(X)}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # a setting that does not converge is a setting that loses
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, peer in make_peers(len(truth.features), X.shape[1], seed, folder).items():
            fitted = tune(peer, X, y, seed)
            accuracies[name] = float(fitted.score(X_new, y_new))
    accuracies["ceiling"] = float(np.mean(predict_with_truth(truth, X_new) == y_new))
    return {f"accuracy_{name}": accuracies[name] for name in ACCURACIES} | {
        f"n_features_{name}": counts[name] for name in COUNTS
    }


def predict_with_truth(truth: GroundTruth, X: np.ndarray) -> np.ndarray:
    """The most probable action, given the true features and policies."""
    return (project_to_mixtures(X, truth.features) @ truth.policies).argmax(axis=1)
