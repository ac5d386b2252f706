"""The classifier as it comes on the paper's design: accuracy, log score and number of features, by SNR.

    python benchmarks/defaults.py --runs 20 --out results/defaults

Each data set has 80 rows to learn from and 20 to predict, as in `experiments.simulations`, and simplex factors + EM and
a logistic regression see the same. Every finished data set is written at once; the same command resumes.
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.harness.ground_truth import DataSet
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, check_settings, locked, make_folder
from experiments.simulations.peers import make_peers
from experiments.simulations.study import N_FEATURES, SNR_DB
from whyact import FeaturePolicyClassifier
from whyact.comparison.classifiers import tune
from whyact.comparison.crossvalidation import align
from whyact.comparison.scoring import score

KEY = {"n_features": int, "snr": float, "run": int}
MEASURED = {
    "combination": str, "n_features_found": int, "chains_agree": int, "accuracy_mmse": float, "log_score_mmse": float,
    "accuracy_map": float, "log_score_map": float, "accuracy_simplex": float, "accuracy_lr": float,
    "log_score_lr": float,
}  # fmt: skip


def measure(data_set: DataSet) -> Rows:
    """Fit a data set with default settings, and judge the rows held out."""
    truth = data_set.draw()
    X, actions = truth.test
    everything = np.arange(truth.policies.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether chains agree is in the rows; a peer that does not converge loses
        model = FeaturePolicyClassifier(random_state=data_set.run).fit(*truth.train)
        peers = make_peers(data_set.n_features, X.shape[1], data_set.run)
        peers = {name: tune(peers[name], *truth.train, data_set.run) for name in ("simplex", "lr")}
    scores = {
        rule: score(align(model.judge(X, prediction=rule).probabilities, model.classes_, everything), actions)
        for rule in ("mmse", "map")
    }
    scores["lr"] = score(align(peers["lr"].predict_proba(X), peers["lr"].classes_, everything), actions)
    row: Row = {
        "n_features": data_set.n_features, "snr": data_set.snr_db, "run": data_set.run,
        "combination": model.combination_, "n_features_found": model.n_components_,
        "chains_agree": int(model.posterior_.chains_agree),
        "accuracy_simplex": float(peers["simplex"].score(X, actions)),
    }  # fmt: skip
    for name, values in scores.items():
        row |= {f"{measure}_{name}": values[measure] for measure in ("accuracy", "log_score")}
    return {"rows": row}


def show(rows: list[Row]) -> None:
    """Print means over data sets, all of them and by SNR."""
    names = [name for name in MEASURED if name.startswith(("accuracy", "log_score"))]
    print(" ".join(["    SNR    n  product  K exact  agree", *(f"{name:>16}" for name in names)]))
    for snr in (None, *SNR_DB):
        some = [row for row in rows if snr in (None, row["snr"])]
        if not some:
            continue
        means = [float(np.mean([row[name] for row in some])) for name in names]
        shares = [
            np.mean([row["combination"] == "product" for row in some]),
            np.mean([row["n_features_found"] == row["n_features"] for row in some]),
            np.mean([row["chains_agree"] for row in some]),
        ]
        label = "all" if snr is None else f"{snr:g} dB"
        print(
            f"{label:>7} {len(some):4d} {shares[0]:8.3f} {shares[1]:8.3f} {shares[2]:6.3f} "
            + " ".join(f"{mean:16.4f}" for mean in means)
        )
    ahead = np.array([row["accuracy_mmse"] - row["accuracy_simplex"] for row in rows])
    print(f"MMSE minus simplex factors + EM: {ahead.mean():+.4f} ± {ahead.std() / np.sqrt(len(ahead)):.4f}")


def main() -> None:
    """Run what is not done yet, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1703)
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("results/defaults"))
    options = parser.parse_args()
    make_folder(options.out)
    with locked(options.out):
        check_settings(options.out, {"study": "defaults", "seed": options.seed})
        store = RowStore(options.out / "rows.csv", {**KEY, **MEASURED}, tuple(KEY), {"snr": "dB"})
        done = {store.key(row) for row in store.read()}
        cells = [(k, snr, run) for run in range(options.runs) for k in N_FEATURES for snr in SNR_DB]
        tasks = [DataSet(*cell, options.seed) for cell in cells if cell not in done]
        print(f"{len(cells)} data sets, {len(tasks)} to do")
        on_done = partial(print, "done:")
        run_and_store(tasks, measure, {"rows": store}, options.out, options.n_jobs, on_done)
        show(store.read())


if __name__ == "__main__":
    main()
