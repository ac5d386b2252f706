"""Two ways to learn how decisive the teacher is, on the paper's design: after sampling ("auto"), or with all the rest.

    python benchmarks/decisiveness.py --runs 1 --seed 1704

Both are mixtures; each data set has 80 rows to learn from and 20 to predict.
"""

import argparse
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.harness.ground_truth import DataSet
from experiments.simulations.study import N_FEATURES, SNR_DB
from whyact import FeaturePolicyClassifier
from whyact.comparison.crossvalidation import align
from whyact.comparison.scoring import score

WAYS = ("auto", "drawn")
MEASURES = ("accuracy, MMSE", "log score, MMSE", "accuracy, MAP", "K exact", "chains agree")


def measure(data_set: DataSet) -> np.ndarray:
    """Both ways on one data set, (ways, measures)."""
    truth = data_set.draw()
    X, actions = truth.test
    everything = np.arange(truth.policies.shape[1])
    rows = []
    for way in WAYS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether chains agree is measured
            model = FeaturePolicyClassifier(combination="mixture", decisiveness=way, random_state=data_set.run)
            model.fit(*truth.train)
        mmse, best = (
            score(align(model.judge(X, prediction=rule).probabilities, model.classes_, everything), actions)
            for rule in ("mmse", "map")
        )
        exact = model.n_components_ == data_set.n_features
        rows.append([mmse["accuracy"], mmse["log_score"], best["accuracy"], exact, bool(model.posterior_.chains_agree)])
    return np.array(rows, float)


def main() -> None:
    """Print means over data sets, and their paired difference with its standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1704)
    parser.add_argument("--n-jobs", type=int, default=-1)
    options = parser.parse_args()
    tasks = [DataSet(k, snr, run, options.seed) for run in range(options.runs) for k in N_FEATURES for snr in SNR_DB]
    found = np.stack(joblib.Parallel(n_jobs=options.n_jobs)(joblib.delayed(measure)(task) for task in tasks))
    print(f"{len(tasks)} data sets")
    for i, name in enumerate(MEASURES):
        of_ways = found[:, :, i]
        ahead = of_ways[:, 0] - of_ways[:, 1]
        means = ", ".join(f"{way} {mean:.4f}" for way, mean in zip(WAYS, of_ways.mean(axis=0), strict=True))
        print(f"{name}: {means}; difference {ahead.mean():+.4f} ± {ahead.std() / np.sqrt(len(ahead)):.4f}")


if __name__ == "__main__":
    main()
