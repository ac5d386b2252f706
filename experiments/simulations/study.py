"""The paper's simulation study (Sec. 5): which runs there are, and what is measured in each.

A data set is given by the number of features, the SNR and the number of the run, whichever method learns from it: all
methods see the same rows, the first 80 to learn from and the last 20 to predict.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from experiments.harness.ground_truth import DataSet
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, StudyError, check_settings, locked, make_folder
from experiments.simulations.measures import compare_with_truth
from experiments.simulations.peers import ACCURACIES, COUNTS, run_peers
from whyact import DoubtfulFitWarning, FeaturePolicyClassifier
from whyact.comparison.compiling import compile_kernels
from whyact.comparison.crossvalidation import align
from whyact.simulation import N_TRAIN, PEAK
from whyact.version import __version__

N_FEATURES = (5, 7, 9, 12, 15, 18)
SNR_DB = (10.0, 15.0, 20.0, 25.0, 30.0)

SAMPLERS = ("exact", "as-published")
# Sweeps of each chain: the estimator's defaults. For the paper's algorithm they are its N_iter.
SWEEPS = {"exact": 3000, "as-published": 10_000}
N_CHAINS = {"exact": 4, "as-published": 1}

# The study is about the paper's own model: a mixture of policies as it is, of observations as they are.
AS_IN_THE_PAPER: dict[str, Any] = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}


# --- one run --------------------------------------------------------------------------------------------------------


def make_estimator(sampler: str, sweeps: int, random_state: int) -> FeaturePolicyClassifier:
    """The estimator with half of the sweeps as burn-in."""
    n_draws = sweeps - sweeps // 2
    return FeaturePolicyClassifier(
        sampler=sampler,
        n_burn_in=sweeps // 2,
        n_draws=n_draws,
        thin=min(5, n_draws),
        n_chains=N_CHAINS[sampler],
        random_state=random_state,
        **AS_IN_THE_PAPER,
    )


def run_sampler(data_set: DataSet, sampler: str, sweeps: int) -> Row:
    """Fit one data set; return what is measured, by the names of the study's columns."""
    truth = data_set.draw()
    model = make_estimator(sampler, sweeps, data_set.run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)
        model.fit(*truth.train)
    X, actions = truth.test  # an action never seen in training is one more to get wrong
    by_best_draw = model.classes_[model.judge(X, prediction="map").probabilities.argmax(axis=1)]
    policies = align(model.policies_, model.classes_, np.arange(truth.policies.shape[1]))
    errors = compare_with_truth(
        model.components_, model.substates_, policies, truth.features, truth.substates[:N_TRAIN], truth.policies
    )
    posterior = model.posterior_
    return {
        "n_features_found": model.n_components_,
        "p_true_n_features": posterior.n_features_probabilities.get(data_set.n_features, 0.0),
        "accuracy_mmse": float(np.mean(model.predict(X) == actions)),
        "accuracy_map": float(np.mean(by_best_draw == actions)),
        **errors._asdict(),
        "chains_agree": int(posterior.chains_agree) if posterior.n_chains > 1 else None,
    }


# --- the study: which runs, and where their rows go ----------------------------------------------------------------


class Design(NamedTuple):
    """What to run."""

    n_features: tuple[int, ...] = N_FEATURES
    snr_db: tuple[float, ...] = SNR_DB
    n_runs: int = 1
    samplers: tuple[str, ...] = SAMPLERS
    sweeps: int | None = None  # None: SWEEPS of each sampler
    peers: bool = True
    seed: int = 0
    peak: float = PEAK
    action_rule: str = "most-probable"

    def data_sets(self) -> list[DataSet]:
        """Run by run through all cells, so that a study stopped early has seen every cell about equally often."""
        return [
            DataSet(n_features, snr_db, run, self.seed, self.peak, self.action_rule)
            for run in range(self.n_runs)
            for n_features in self.n_features
            for snr_db in self.snr_db
        ]

    def sweeps_of(self, sampler: str) -> int:
        """Sweeps of each chain."""
        return SWEEPS[sampler] if self.sweeps is None else self.sweeps

    def tasks(self) -> list["Task"]:
        """All runs of all methods."""
        methods = [(sampler, self.sweeps_of(sampler)) for sampler in self.samplers]
        if self.peers:
            methods.append(("peers", 0))
        return [Task(data_set, *method) for data_set in self.data_sets() for method in methods]

    def settings(self) -> dict[str, Any]:
        """What all rows of a folder share."""
        return {
            "study": "simulations",
            "version": __version__,
            "seed": self.seed,
            "peak": self.peak,
            "actions": self.action_rule,
        }


class Task(NamedTuple):
    """One run of one method on one data set."""

    data_set: DataSet
    method: str  # a sampler, or "peers"
    sweeps: int  # 0 for the peers

    def __str__(self) -> str:
        return f"K = {self.data_set.n_features}, {self.data_set.snr_db:g} dB, run {self.data_set.run}, {self.method}"

    def key(self) -> tuple[int, float, int, str]:
        """Which run it is."""
        return (self.data_set.n_features, self.data_set.snr_db, self.data_set.run, self.method)


CELL = {"n_features": int, "snr": float, "run": int}
UNITS = {
    "snr": "dB",
    "accuracy_mmse": "share",
    "accuracy_map": "share",
    "rmse_features": "unit of F",
    "rmse_substates": "unit of S",
    "rmse_states": "unit of X",
    "mad_policies": "probability",
    "p_true_n_features": "probability",
    "seconds": "s",
}


def sampler_rows(folder: Path) -> RowStore:
    """One row for each run of a sampler."""
    columns = {
        **CELL, "sampler": str, "sweeps": int, "n_features_found": int, "p_true_n_features": float,
        "accuracy_mmse": float, "accuracy_map": float, "rmse_features": float, "rmse_substates": float,
        "rmse_states": float, "mad_policies": float, "chains_agree": int,
    }  # fmt: skip
    return RowStore(folder / "runs.csv", columns, (*CELL, "sampler"), UNITS)


def peer_rows(folder: Path) -> RowStore:
    """One row for each data set: the accuracy of each peer, and the number of features from each that finds one."""
    columns = {**CELL, **{f"accuracy_{name}": float for name in ACCURACIES}, **{f"n_features_{n}": int for n in COUNTS}}
    units = UNITS | {f"accuracy_{name}": "share" for name in ACCURACIES}
    return RowStore(folder / "peers.csv", columns, tuple(CELL), units)


def timing_rows(folder: Path) -> RowStore:
    """How long each run took; in a file of its own, because no two studies agree on it."""
    columns = {**CELL, "method": str, "sweeps": int, "seconds": float}
    return RowStore(folder / "timings.csv", columns, (*CELL, "method"), UNITS)


def do_task(task: Task) -> Rows:
    """Run a method on a data set; return the row for each file. The row that marks the task as done comes last."""
    start = time.perf_counter()
    if task.method == "peers":
        measured = run_peers(task.data_set.draw(), task.data_set.run)
    else:
        measured = run_sampler(task.data_set, task.method, task.sweeps)
    seconds = round(time.perf_counter() - start, 3)
    row = {"n_features": task.data_set.n_features, "snr": task.data_set.snr_db, "run": task.data_set.run}
    timing = {**row, "method": task.method, "sweeps": task.sweeps, "seconds": seconds}
    if task.method == "peers":
        return {"timings": timing, "peers": {**row, **measured}}
    return {"timings": timing, "runs": {**row, "sampler": task.method, "sweeps": task.sweeps, **measured}}


def find_undone(folder: Path, tasks: list[Task]) -> list[Task]:
    """Leave out what is done. In a folder each sampler has one number of sweeps, so that means mix no budgets."""
    rows = sampler_rows(folder).read()
    sweeps = {row["sampler"]: row["sweeps"] for row in rows}
    for task in tasks:
        if task.method in sweeps and sweeps[task.method] != task.sweeps:
            raise StudyError(
                f"the study in {folder} holds runs of the {task.method} sampler with {sweeps[task.method]} sweeps, not "
                f"{task.sweeps}; choose another folder."
            )
    done = {(row["n_features"], row["snr"], row["run"], row["sampler"]) for row in rows}
    done |= {(row["n_features"], row["snr"], row["run"], "peers") for row in peer_rows(folder).read()}
    return [task for task in tasks if task.key() not in done]


def run_study(
    folder: Path,
    design: Design,
    *,
    n_jobs: int = -1,
    on_start: Callable[[list[Task], list[Task]], None] | None = None,
    on_done: Callable[[Task], None] | None = None,
) -> None:
    """Do what is not done yet, `n_jobs` runs at a time, and write each run's row as soon as it is finished.

    `on_start(tasks, undone)` and `on_done(task)` are for a progress bar.
    """
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        tasks = design.tasks()
        undone = find_undone(folder, tasks)
        if on_start:
            on_start(tasks, undone)
        if joblib.effective_n_jobs(n_jobs) > 1:
            samplers = {task.method for task in undone} & set(SAMPLERS)
            X, actions = DataSet(5, 20.0, 0).draw().train
            compile_kernels([make_estimator(name, 2, 0) for name in samplers], X, actions, predictions=(None, "map"))
        stores = {"runs": sampler_rows(folder), "peers": peer_rows(folder), "timings": timing_rows(folder)}
        run_and_store(undone, do_task, stores, folder, n_jobs, on_done)
