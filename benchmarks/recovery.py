"""The paper's design with the default estimator: is K found, and how accurate are predictions? (make experiment)

For every cell (number of features, SNR) some fresh data sets: 80 rows to learn from, 20 to predict. Prints one line a
run, then the shares per cell and the figures of interest. "Truth" is the ceiling: the true features and policies, and
substates by least squares over the simplex.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import nnls

from whyact import FeaturePolicyClassifier
from whyact.posterior import ChainsDisagreeWarning
from whyact.studies.simulations import N_FEATURES, SNR_DB, draw_ground_truth


def predict_with_truth(truth, X):
    """Actions from the true features and policies; the heavy last equation makes the substates sum to one."""
    heavy = 1e3
    equations = np.vstack([truth.features.T, np.full(len(truth.features), heavy)])
    substates = np.array([nnls(equations, np.append(row, heavy))[0] for row in X])
    return (substates @ truth.policies).argmax(axis=1)


def run_one(n_features, snr_db, run, seed, n_jobs):
    rng = np.random.default_rng([seed, n_features, snr_db, run])
    truth = draw_ground_truth(rng, n_features, snr_db)
    X, y = truth.observations, truth.actions
    model = FeaturePolicyClassifier(random_state=run, n_jobs=n_jobs)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)
        model.fit(X[:80], y[:80])
    seconds = time.perf_counter() - start
    mmse = model.score(X[80:], y[80:])
    maximum = model.set_params(prediction="map").score(X[80:], y[80:])
    posterior = model.posterior_
    probability = posterior.n_features_probabilities.get(n_features, 0.0)
    ceiling = np.mean(predict_with_truth(truth, X[80:]) == y[80:])
    return model.n_components_, probability, mmse, maximum, ceiling, posterior.chains_agree, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--features", type=int, nargs="+", default=N_FEATURES, metavar="K")
    parser.add_argument("--snr", type=int, nargs="+", default=SNR_DB, metavar="DB")
    options = parser.parse_args()
    found = np.zeros((len(options.features), len(options.snr), options.runs))
    accuracy = np.zeros_like(found)
    accuracy_map, ceiling = np.zeros_like(found), np.zeros_like(found)
    print("K true, SNR in dB, run: K found, P(true K), accuracy MMSE, MAP, truth, chains agree, seconds of fit")
    for run in range(options.runs):
        for i, n_features in enumerate(options.features):
            for j, snr_db in enumerate(options.snr):
                k, p, mmse, maximum, best, agree, seconds = run_one(n_features, snr_db, run, options.seed, options.jobs)
                found[i, j, run], accuracy[i, j, run] = k, mmse
                accuracy_map[i, j, run], ceiling[i, j, run] = maximum, best
                cell = f"{n_features:3d} {snr_db:3d} {run:2d}"
                scores = f"{mmse:5.2f} {maximum:5.2f} {best:5.2f}"
                print(f"{cell}: {k:3d} {p:5.2f} {scores} {agree!s:5} {seconds:5.1f}", flush=True)
    exact = found == np.array(options.features)[:, None, None]
    for title, table in (("modal K is exact", exact), ("accuracy, MMSE", accuracy), ("accuracy, MAP", accuracy_map)):
        print(f"\n{title} (rows: K, columns: SNR {', '.join(map(str, options.snr))} dB)")
        for n_features, row in zip(options.features, table.mean(axis=2), strict=True):
            print(f"{n_features:4d}  " + "  ".join(f"{value:.3f}" for value in row))
    print(f"\n{found.size} runs: modal K exact in {exact.mean():.1%}")
    print(
        f"mean accuracy MMSE {accuracy.mean():.4f}, MAP {accuracy_map.mean():.4f}, with the truth {ceiling.mean():.4f}"
    )
    print(f"lowest cell (MMSE) {accuracy.mean(axis=2).min():.3f}")


if __name__ == "__main__":
    main()
