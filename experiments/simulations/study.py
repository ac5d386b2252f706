"""The paper's simulation study (Sec. 5): its ground truth, and what is measured on it.

A data set is given by the number of features, the SNR and the number of the run, whoever learns from it: all methods
see the same rows, the first 80 to learn from and the last 20 to predict.
"""

import time
import warnings
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np

from experiments.harness.running import run_and_store
from experiments.harness.store import RowStore, StudyError, check_settings, locked, make_folder
from experiments.simulations.measures import compare_with_truth
from experiments.simulations.peers import ACCURACIES, COUNTS, run_peers
from whyact.simulation import N_TRAIN, PEAK, GroundTruth, draw_ground_truth
from whyact.version import __version__

N_FEATURES = (5, 7, 9, 12, 15, 18)
SNR_DB = (10.0, 15.0, 20.0, 25.0, 30.0)
ACTION_RULES = ("most-probable", "drawn")

SAMPLERS = ("exact", "as-published")
# Sweeps of each chain: the estimator's defaults. For the paper's algorithm they are its N_iter.
SWEEPS = {"exact": 3000, "as-published": 10_000}
N_CHAINS = {"exact": 4, "as-published": 1}


class DataSet(NamedTuple):
    """Which data set of the study, and how it is drawn."""

    n_features: int
    snr_db: float
    run: int
    seed: int = 0
    peak: float = PEAK
    action_rule: str = "most-probable"

    def seeds(self) -> list[int]:
        """Random numbers depend on the data set alone, not on which others are in the study."""
        return [self.seed, self.n_features, round(1000 * self.snr_db) % 2**32, self.run]

    def draw(self) -> GroundTruth:
        """Draw it; again if the rows to learn from hold one action only, from which nobody could learn."""
        rng = np.random.default_rng(self.seeds())
        while True:
            truth = draw_ground_truth(rng, self.n_features, self.snr_db, peak=self.peak, action_rule=self.action_rule)
            if len(np.unique(truth.train[1])) > 1:
                return truth


def make_estimator(sampler: str, sweeps: int, random_state: int):
    """The estimator with half of the sweeps as burn-in."""
    from whyact import FeaturePolicyClassifier

    n_draws = sweeps - sweeps // 2
    return FeaturePolicyClassifier(
        sampler=sampler,
        n_burn_in=sweeps // 2,
        n_draws=n_draws,
        thin=min(5, n_draws),
        n_chains=N_CHAINS[sampler],
        random_state=random_state,
    )


def run_sampler(data_set: DataSet, sampler: str, sweeps: int) -> dict[str, float | None]:
    """Fit one data set; return what is measured, with the names of the study's columns."""
    from whyact.errors import ChainsDisagreeWarning

    truth = data_set.draw()
    model = make_estimator(sampler, sweeps, data_set.run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)
        model.fit(*truth.train)
    X, actions = truth.test  # an action never seen in training is one more to get wrong
    accuracy_mmse = float(np.mean(model.predict(X) == actions))
    accuracy_map = float(np.mean(model.set_params(prediction="map").predict(X) == actions))
    errors = compare_with_truth(
        model.components_, model.substates_, fill_actions(model.policies_, model.classes_, truth.policies.shape[1]),
        truth.features, truth.substates[:N_TRAIN], truth.policies,
    )  # fmt: skip
    return {
        "n_features_found": model.n_components_,
        "p_true_n_features": model.posterior_.n_features_probabilities.get(data_set.n_features, 0.0),
        "accuracy_mmse": accuracy_mmse,
        "accuracy_map": accuracy_map,
        **errors._asdict(),
        "chains_agree": int(model.posterior_.chains_agree) if model.posterior_.n_chains > 1 else None,
    }


def fill_actions(policies: np.ndarray, classes: np.ndarray, n_actions: int) -> np.ndarray:
    """Put policies over the actions that were seen into a table over all actions; one never seen has zero."""
    table = np.zeros((len(policies), n_actions))
    table[:, classes] = policies
    return table


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
        return SWEEPS[sampler] if self.sweeps is None else self.sweeps

    def settings(self) -> dict:
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

    def key(self) -> tuple:
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
    """One row for each data set: the accuracy of each peer, and the number of features by each that finds one."""
    columns = {**CELL, **{f"accuracy_{name}": float for name in ACCURACIES}, **{f"n_features_{n}": int for n in COUNTS}}
    units = UNITS | {f"accuracy_{name}": "share" for name in ACCURACIES}
    return RowStore(folder / "peers.csv", columns, tuple(CELL), units)


def timing_rows(folder: Path) -> RowStore:
    """How long each run took; apart from the rest, because no two studies agree on it."""
    columns = {**CELL, "method": str, "sweeps": int, "seconds": float}
    return RowStore(folder / "timings.csv", columns, (*CELL, "method"), UNITS)


def do_task(task: Task) -> dict[str, dict]:
    """Run a method on a data set; return the row for each file. The row that counts as done comes last."""
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


def list_tasks(design: Design) -> list[Task]:
    methods = [(sampler, design.sweeps_of(sampler)) for sampler in design.samplers]
    if design.peers:
        methods.append(("peers", 0))
    return [Task(data_set, *method) for data_set in design.data_sets() for method in methods]


def find_undone(folder: Path, tasks: list[Task]) -> list[Task]:
    """Leave out what is done. A sampler has one number of sweeps in a folder, else means would mix two budgets."""
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


def run_study(folder: Path, design: Design, *, n_jobs: int = -1, on_start=None, on_done=None) -> None:
    """Do what is not done yet, `n_jobs` runs at a time, and write each run's row as soon as it is finished.

    `on_start(tasks, undone)` and `on_done(task)` tell a progress bar.
    """
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        tasks = list_tasks(design)
        undone = find_undone(folder, tasks)
        if on_start:
            on_start(tasks, undone)
        if joblib.effective_n_jobs(n_jobs) > 1:
            compile_kernels({task.method for task in undone})
        stores = {"runs": sampler_rows(folder), "peers": peer_rows(folder), "timings": timing_rows(folder)}
        run_and_store(undone, do_task, stores, folder, n_jobs, on_done)


def compile_kernels(methods: set[str]) -> None:
    """Compile in this process once, so that the others find it in the cache."""
    truth = DataSet(5, 20.0, 0).draw()
    for sampler in methods & set(SAMPLERS):
        model = make_estimator(sampler, 2, 0).fit(*truth.train)
        for prediction in ("mmse", "map"):
            model.set_params(prediction=prediction).predict(truth.test[0][:1])
