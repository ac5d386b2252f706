"""How many features where the noise is not what the model says: the paper's design, spoilt in seven ways.

    python benchmarks/misspecified.py --runs 2

Each data set has 80 rows to learn from and 20 to predict; K is 5 to 15 and the SNR 20 dB before it is spoilt. The
classifier has its defaults. Every finished data set is written at once; the same command resumes.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.harness.ground_truth import DataSet
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, check_settings, locked, make_folder
from whyact import FeaturePolicyClassifier

SNR_DB = 20.0
N_FEATURES = (5, 8, 11, 15)
KEY = {"kind": str, "n_features": int, "run": int}
MEASURED = {"n_features_found": int, "combination": str, "tolerance": float, "accuracy": float}
Spoil = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]  # (rng, observations, noise) -> observations


def add_heavy_tails(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """Student-t noise with three degrees of freedom, as much again as there is."""
    return X + noise * rng.standard_t(3, X.shape) / np.sqrt(3.0)


def vary_columns(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """Noise from a third of what there is to three times as much, column by column."""
    return X + noise * np.exp(rng.uniform(-np.log(3), np.log(3), X.shape[1])) * rng.standard_normal(X.shape)


def correlate(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """Noise that neighbouring columns share."""
    smooth = gaussian_filter1d(rng.standard_normal(X.shape), 1.0, axis=1, mode="wrap")
    return X + noise * smooth / smooth.std()


def add_background(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """A smooth wave along the columns that drifts from row to row, three times the noise."""
    place, drift = np.arange(X.shape[1]) / X.shape[1], np.cumsum(0.2 * rng.standard_normal(len(X)))
    return X + 3 * noise * np.sin(2 * np.pi * (place + drift[:, None]))


def add_outliers(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """One entry in twenty is off by ten times the noise."""
    return X + 10 * noise * rng.standard_normal(X.shape) * (rng.random(X.shape) < 0.05)


def round_values(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """Steps of three times the noise."""
    return np.round(X / (3 * noise)) * 3 * noise


def add_empty_columns(rng: np.random.Generator, X: np.ndarray, noise: float) -> np.ndarray:
    """Ten columns of zeros."""
    return np.column_stack([X, np.zeros((len(X), 10))])


KINDS: dict[str, Spoil] = {
    "heavy tails": add_heavy_tails, "noise per column": vary_columns, "correlated noise": correlate,
    "smooth background": add_background, "outliers": add_outliers, "rounded": round_values,
    "empty columns": add_empty_columns,
}  # fmt: skip


class Spoilt(NamedTuple):
    """A data set that is spoilt in one way."""

    kind: str
    n_features: int
    run: int
    seed: int


def measure(spoilt: Spoilt) -> Rows:
    """Fit with default settings, and count features."""
    data_set = DataSet(spoilt.n_features, SNR_DB, spoilt.run, spoilt.seed)
    truth = data_set.draw()
    actions, noise = truth.actions, float(np.sqrt(truth.noise_variance))
    rng = np.random.default_rng([*data_set.seeds(), list(KINDS).index(spoilt.kind)])
    X = KINDS[spoilt.kind](rng, truth.observations, noise)
    n_train = len(truth.train[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FeaturePolicyClassifier(random_state=spoilt.run).fit(X[:n_train], actions[:n_train])
    row: Row = {
        "kind": spoilt.kind, "n_features": spoilt.n_features, "run": spoilt.run,
        "n_features_found": model.n_components_, "combination": model.combination_, "tolerance": model.tolerance_,
        "accuracy": model.score(X[n_train:], actions[n_train:]),
    }  # fmt: skip
    return {"rows": row}


def show(rows: list[Row]) -> None:
    """Print how often K is right, or one off, for each kind."""
    print(f"{'kind':20s}    n  exact  within one  accuracy  K found (true)")
    for kind in ("all", *KINDS):
        some = [row for row in rows if kind in ("all", row["kind"])]
        if not some:
            continue
        off = np.array([row["n_features_found"] - row["n_features"] for row in some])
        found = "" if kind == "all" else " ".join(f"{row['n_features_found']}({row['n_features']})" for row in some)
        print(
            f"{kind:20s} {len(some):4d} {np.mean(off == 0):6.2f} {np.mean(np.abs(off) <= 1):11.2f} "
            f"{np.mean([row['accuracy'] for row in some]):9.3f}  {found}"
        )


def main() -> None:
    """Run what is not done yet, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1515)
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("results/misspecified"))
    options = parser.parse_args()
    make_folder(options.out)
    with locked(options.out):
        check_settings(options.out, {"study": "misspecified", "seed": options.seed})
        store = RowStore(options.out / "rows.csv", {**KEY, **MEASURED}, tuple(KEY), {})
        done = {store.key(row) for row in store.read()}
        cells = [(kind, k, run) for run in range(options.runs) for k in N_FEATURES for kind in KINDS]
        tasks = [Spoilt(*cell, options.seed) for cell in cells if cell not in done]
        print(f"{len(cells)} data sets, {len(tasks)} to do")
        run_and_store(tasks, measure, {"rows": store}, options.out, options.n_jobs, lambda task: print("done:", task))
        show(store.read())


if __name__ == "__main__":
    main()
