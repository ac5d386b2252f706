"""How many features, on real tables: do chains, and fits with other seeds, give the same answer?

    python benchmarks/agreement.py --tables iris,wine --seeds 1,2
    python benchmarks/agreement.py --tables digits --rows 200,400,800

Every table of `experiments.decisions` is fitted with default settings, once for each seed, to the same rows. On rows
not seen, the predictions of single chains are compared: the mean total variation between two of them. Of what the
features explain, and of their substates, the share is given that is in features of the consensus which all chains find.
Every finished fit is written at once; the same command resumes.
"""

import argparse
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.decisions.contestants import fit_ours, predict
from experiments.decisions.study import ALL, Design, make_lesson
from experiments.decisions.tables import DATA, SOURCES, load_tables
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, check_settings, locked, make_folder
from whyact import FeaturePolicyClassifier
from whyact.comparison.scoring import score
from whyact.prediction import N_KEPT

KEY = {"table": str, "n_rows": int, "seed": int}
MEASURED = {
    "combination": str, "tolerance": float, "n_columns": int, "n_features": int, "n_in_all_chains": int,
    "modes": str, "distance": float, "distance_said": float, "share_of_parts": float, "share_of_substates": float,
    "accuracy": float, "log_score": float, "fit_seconds": float,
}  # fmt: skip
LARGEST_DISTANCE, LEAST_SHARE = 0.05, 0.8
N_TEST = 1000


class Fit(NamedTuple):
    """One fit of a table."""

    table: str
    n_rows: int
    seed: int


def compare_chains(model: FeaturePolicyClassifier, X: np.ndarray) -> float:
    """Mean total variation between the predictions of two chains that have weight, for rows as they are."""
    predictor, rows = model._predictor, model._check_new_rows(X)
    n_kept = N_KEPT if predictor.draws_substates else 0
    alone = [predictor._run(rows, draws, n_kept, None)[0] for draws in predictor.split_by_chain()]
    pairs = combinations([one.probabilities for one in alone], 2)
    return float(np.mean([0.5 * np.abs(a - b).sum(axis=1).mean() for a, b in pairs]))


def share_of_substates(model: FeaturePolicyClassifier) -> float:
    """Share of the sum of substates that is in features which all chains find."""
    posterior = model.posterior_
    in_all = np.append(posterior.consensus().in_all_chains, False)
    use = [chain.levels.sum(axis=1, dtype=float) for chain in posterior.chains]
    found = [parts[in_all[labels]].sum() for parts, labels in zip(use, posterior.labels, strict=True)]
    return float(sum(found) / sum(parts.sum() for parts in use))


def measure(fit: Fit, split_seed: int) -> Rows:
    """Fit a table with default settings, and compare its chains."""
    tables, _ = load_tables((fit.table,), DATA)
    table = tables[fit.table]
    design = Design(n_train=fit.n_rows, n_test=N_TEST, seed=split_seed)
    split = design.split(tables, fit.table, 0)
    lesson = make_lesson(table, split, ALL)._replace(seed=fit.seed)
    available = None if table.available is None else table.available[split.test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = fit_ours("ours", lesson, {})
        seconds = time.perf_counter() - start
        judged = score(predict(model, table.X[split.test], len(table.classes), available), table.actions[split.test])
    posterior = model.posterior_
    modes = [int(np.bincount(row.astype(int)).argmax()) for row in posterior.traces["n_features"]]
    row: Row = {
        **fit._asdict(),
        "combination": model.combination_, "tolerance": model.tolerance_, "n_columns": lesson.X.shape[1],
        "n_features": model.n_components_, "n_in_all_chains": int(posterior.consensus().in_all_chains.sum()),
        "modes": " ".join(map(str, modes)), "distance": compare_chains(model, table.X[split.test]),
        "distance_said": posterior.distance, "share_of_parts": posterior.share_in_common,
        "share_of_substates": share_of_substates(model), "accuracy": judged["accuracy"],
        "log_score": judged["log_score"], "fit_seconds": round(seconds, 1),
    }  # fmt: skip
    return {"rows": row}


def show(rows: list[Row]) -> None:
    """Print each fit, and how many are as they should be."""
    names = ["table", "n_rows", "seed", "tolerance", "n_columns", "n_features", "n_in_all_chains", "modes"]
    numbers = ["distance", "distance_said", "share_of_parts", "share_of_substates", "accuracy", "log_score"]
    print("  ".join([*names, *numbers, "seconds"]))
    for row in rows:
        texts = [str(row[name]) for name in names] + [f"{row[name]:.3f}" for name in numbers]
        print("  ".join([*texts, f"{row['fit_seconds']:.0f}"]))

    def count(name: str, holds: Any) -> None:
        print(f"{name}: {sum(map(holds, rows))} of {len(rows)} fits")

    count(f"single chains differ by at most {LARGEST_DISTANCE}", lambda row: row["distance"] <= LARGEST_DISTANCE)
    count("at least 80% of what is explained in common", lambda row: row["share_of_parts"] >= LEAST_SHARE)
    count("at least 80% of the substates in common", lambda row: row["share_of_substates"] >= LEAST_SHARE)
    same, pairs = 0, 0
    for one, other in combinations(rows, 2):
        if (one["table"], one["n_rows"]) == (other["table"], other["n_rows"]):
            few, many = sorted((one["n_features"], other["n_features"]))
            pairs += 1
            same += many - few <= (1 if many <= 10 else 0.15 * many)
    print(f"two seeds find as many features, or nearly so: {same} of {pairs} pairs")


def main() -> None:
    """Run what is not done yet, and print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(SOURCES))
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--rows", default="600")
    parser.add_argument("--split-seed", type=int, default=15)
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=Path("results/agreement"))
    options = parser.parse_args()
    make_folder(options.out)
    with locked(options.out):
        check_settings(options.out, {"study": "agreement", "split_seed": options.split_seed})
        store = RowStore(options.out / "rows.csv", {**KEY, **MEASURED}, tuple(KEY), {"fit_seconds": "s"})
        done = {store.key(row) for row in store.read()}
        wanted = [
            Fit(table, int(n_rows), int(seed))
            for table in options.tables.split(",")
            for n_rows in options.rows.split(",")
            for seed in options.seeds.split(",")
        ]
        tasks = [fit for fit in wanted if fit not in done]
        print(f"{len(wanted)} fits, {len(tasks)} to do")
        run_and_store(
            tasks, lambda fit: measure(fit, options.split_seed), {"rows": store}, options.out, options.n_jobs,
            lambda fit: print("done:", fit),
        )  # fmt: skip
        show(store.read())


if __name__ == "__main__":
    main()
