"""Speed of MAP prediction (make bench): a million rows on two threads, and one row at a time."""

import argparse
import time
import warnings

import numpy as np

from whyact import DoubtfulFitWarning, FeaturePolicyClassifier
from whyact.simulation import GroundTruth, draw_ground_truth

N_FEATURES, N_DIMENSIONS = 8, 30


def fit_model() -> tuple[FeaturePolicyClassifier, GroundTruth, np.random.Generator]:
    """A model of a data set of the paper's design at 20 dB, the truth, and random numbers for new rows."""
    rng = np.random.default_rng(0)
    truth = draw_ground_truth(rng, N_FEATURES, 20, n_rows=80, n_dimensions=N_DIMENSIONS)
    model = FeaturePolicyClassifier(
        n_burn_in=600, n_draws=200, n_chains=1, prediction="map", n_jobs=2, random_state=0, combination="mixture"
    ).fit(truth.observations, truth.actions)
    return model, truth, rng


def draw_rows(rng: np.random.Generator, truth: GroundTruth, n_rows: int) -> np.ndarray:
    """New rows: the substates of the training rows in other combinations, and new noise."""
    picks = rng.integers(0, len(truth.substates), (n_rows, N_FEATURES))
    substates = np.take_along_axis(truth.substates, picks, axis=0)
    noise = rng.standard_normal((n_rows, N_DIMENSIONS))
    return substates @ truth.features + np.sqrt(truth.noise_variance) * noise


def main() -> None:
    """Print rows per second, and the time for one row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)
        model, truth, rng = fit_model()
    X = draw_rows(rng, truth, options.rows)
    model.predict_proba(X[:5000])
    for n_jobs in (1, 2):
        model.set_params(n_jobs=n_jobs)
        start = time.perf_counter()
        model.predict_proba(X)
        speed = len(X) / (time.perf_counter() - start)
        print(
            f"MAP of {len(X)} x {N_DIMENSIONS} rows, K = {model.n_components_}, {n_jobs} threads: {speed:,.0f} rows/s"
        )
    times = []
    for row in X[:500]:
        start = time.perf_counter()
        model.predict_proba(row.reshape(1, -1))
        times.append(time.perf_counter() - start)
    print(f"MAP of one row: {1e6 * np.median(times):.0f} microseconds (95%: {1e6 * np.quantile(times, 0.95):.0f})")


if __name__ == "__main__":
    main()
