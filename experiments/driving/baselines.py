"""How existing tools do on the same splits: tuned within the rows to learn from, judged on those held out."""

import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.driving.scenes import DrivingScene
from whyact.alternatives.pipelines import make_nmf
from whyact.comparison.classifiers import REGULARISATION, Candidate, make_regression, tune
from whyact.comparison.folds import Fold

N_FACTORS = 30  # of the NMF
N_INNER_FOLDS = 3

# Names of the columns, and their labels for readers.
BASELINES = {
    "logistic_regression": "logistic regression",
    "random_forest": "random forest",
    "nearest_neighbours": "nearest neighbours",
    "nmf_lr": "NMF + LR",
}
RAW = "_raw"  # ends the names of those that see observations neither marked nor smoothed


def make_baselines(seed: int) -> dict[str, Candidate]:
    """Existing tools and the settings to choose from; the NMF, which needs no actions, is fitted separately before."""
    # A penalised regression sees only the span of the rows, so rotating it by a PCA saves time and changes nothing.
    regression = make_pipeline(StandardScaler(), PCA(svd_solver="full"), make_regression())
    scaling = {"standardscaler": [StandardScaler(), "passthrough"], **REGULARISATION}
    of_factors = make_pipeline(StandardScaler(), make_regression())
    return {
        "logistic_regression": Candidate(regression, scaling, N_INNER_FOLDS),
        "random_forest": Candidate(RandomForestClassifier(200, random_state=seed)),
        "nearest_neighbours": Candidate(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, N_INNER_FOLDS),
        "nmf_lr": Candidate(of_factors, REGULARISATION, N_INNER_FOLDS),
    }


def judge_baselines(scene: DrivingScene, fold: Fold) -> dict[str, float]:
    """Accuracy of each tool on both kinds of observations; settings are chosen in blocks if blocks are held out."""
    y, y_new = scene.actions[fold.train], scene.actions[fold.test]
    names, counts = np.unique(y, return_counts=True)
    accuracies = {"accuracy_most_frequent": float(np.mean(y_new == names[counts.argmax()]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that does not converge is one that loses
        for ending, observations in (("", scene.observations), (RAW, scene.raw)):
            X, X_new = observations[fold.train], observations[fold.test]
            for name, candidate in make_baselines(fold.seed).items():
                inputs = (X, X_new)
                if name == "nmf_lr":
                    factors = make_nmf(min(N_FACTORS, *X.shape)).fit(X)
                    inputs = (factors.transform(X), factors.transform(X_new))
                fitted = tune(candidate, inputs[0], y, fold.seed, fold.groups)
                accuracies[f"accuracy_{name}{ending}"] = float(np.mean(fitted.predict(inputs[1]) == y_new))
    return accuracies
