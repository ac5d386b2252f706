"""The paper's arguments about other models (Sec. 2.4), put to the test: which runs there are, and what is measured.

Demonstrations are drawn as each model assumes them, and as the paper simulates them; every model learns from all kinds.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.alternatives.demonstrations import KINDS, N_ACTIONS, OWN_MODEL, SNR_DB, Demos, draw_demos
from experiments.harness.ground_truth import match_features
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, check_settings, locked, make_folder
from experiments.simulations.study import AS_IN_THE_PAPER
from whyact import DoubtfulFitWarning
from whyact.comparison import count_components
from whyact.comparison.classifiers import tune
from whyact.comparison.compiling import compile_kernels
from whyact.comparison.contestants import CONTESTANTS
from whyact.comparison.crossvalidation import align
from whyact.comparison.scoring import score
from whyact.model import action_probabilities
from whyact.version import __version__

# Noise that sets bits wrongly, for the pattern model and ours on few patterns.
NOISY_SNR_DB = (0.0, 5.0, 10.0)
SAMPLED = ("features", "patterns", "clusters", "per-action")
METHODS = (*SAMPLED, "pca", "nmf", "lr")
# Sweeps of each chain, half of them burn-in, and chains: a third of the estimators' defaults, for all models alike.
SWEEPS = 2000
N_CHAINS = 2


# --- one run --------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One model on one data set."""

    kind: str
    snr_db: float
    run: int
    method: str
    seed: int
    sweeps: int = SWEEPS

    def __str__(self) -> str:
        return f"{self.kind} data, {self.snr_db:g} dB, run {self.run}, {self.method}"

    def key(self) -> tuple[str, float, int, str]:
        """Which run it is."""
        return (self.kind, self.snr_db, self.run, self.method)

    @property
    def n_true(self) -> int:
        """The true number of features or clusters."""
        numbers = KINDS[self.kind]
        return numbers[self.run % len(numbers)]

    def draw(self) -> Demos:
        """The data set, the same for all models."""
        return draw_demos(self.kind, self.n_true, self.snr_db, self.run, self.seed)


def fit_model(method: str, sweeps: int, random_state: int, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit the model with this name; half of the sweeps are burn-in where there are chains."""
    candidate = CONTESTANTS[method].make()
    if method in SAMPLED:
        chains = {"n_burn_in": sweeps // 2, "n_draws": sweeps - sweeps // 2, "n_chains": N_CHAINS}
        candidate.estimator.set_params(**chains, random_state=random_state)
    if method == "features":
        candidate.estimator.set_params(**AS_IN_THE_PAPER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that does not converge is one that loses
        return tune(candidate, X, y, random_state)


def measure(task: Task) -> Rows:
    """Fit and measure; return the rows of each file. The row that marks the task as done comes last."""
    demos = task.draw()
    X_new, y_new = demos.test
    start = time.perf_counter()
    model = fit_model(task.method, task.sweeps, task.run, *demos.train)
    fitted = time.perf_counter()
    probabilities = align(model.predict_proba(X_new), model.classes_, np.arange(N_ACTIONS))
    predicted = time.perf_counter()
    scores = score(probabilities, y_new)
    row = {"kind": task.kind, "snr": task.snr_db, "run": task.run, "method": task.method}
    n_found = count_components(model)
    rows: Rows = {
        "timings": {
            **row, "sweeps": task.sweeps, "fit_seconds": round(fitted - start, 3),
            "predict_seconds": round(predicted - fitted, 3),
        },
    }  # fmt: skip
    if task.method == OWN_MODEL.get(task.kind) and task.method in ("patterns", "features"):
        rows["bits"] = {**row, **set_wrongly(model, demos, task.run)}
    rows["runs"] = {
        **row,
        "sweeps": task.sweeps,
        "n_true": task.n_true,
        "n_found": None if np.isnan(n_found) else int(n_found),
        "accuracy": scores["accuracy"],
        "log_score": scores["log_score"],
    }
    return rows


# --- one entry of the substates set wrongly -------------------------------------------------------------------------


def predict_from_substates(model: Any, substates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predict from given substates (N, K) with the chosen draw: the action, and whether it has seen such rows."""
    if not hasattr(model, "patterns_"):
        actions = action_probabilities(substates.T, model.policies_).argmax(axis=1)
        return model.classes_[actions], substates.sum(axis=1) > 0
    same = ((substates > 0)[:, None, :] == model.patterns_).all(axis=2)
    known = same.any(axis=1)
    policies = np.where(known[:, None], model.policies_[same.argmax(axis=1)], 1.0 / len(model.classes_))
    return model.classes_[policies.argmax(axis=1)], known


def set_wrongly(model: Any, demos: Demos, seed: int) -> Row:
    """How the most probable substates of new rows compare with the truth, and what one wrong entry in each does."""
    X_new, y_new = demos.test
    substates = model.judge(X_new, prediction="map").substates
    actions, known = predict_from_substates(model, substates)
    correct = actions == y_new
    changed = flip_one_entry(substates, model.substates_, np.random.default_rng([seed, 1]))
    actions_changed, known_changed = predict_from_substates(model, changed)
    right = find_right_rows(model, demos, substates)
    return {
        "accuracy_map": float(correct.mean()),
        "share_all_bits_right": float(right.mean()),
        "accuracy_if_right": float(correct[right].mean()) if right.any() else None,
        "accuracy_if_wrong": float(correct[~right].mean()) if not right.all() else None,
        "share_unseen": float(1 - known.mean()),
        "accuracy_one_flipped": float(np.mean(actions_changed == y_new)),
        "share_unseen_one_flipped": float(1 - known_changed.mean()),
    }


def flip_one_entry(substates: np.ndarray, learned: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One random entry of each row (N, K) set wrongly: the present become absent, the absent appear.

    They appear as strong as they usually are among the substates learned from.
    """
    rows, flipped = np.arange(len(substates)), rng.integers(substates.shape[1], size=len(substates))
    usual = np.array([column[column > 0].mean() if column.any() else 1.0 for column in learned.T])
    changed = substates.copy()
    changed[rows, flipped] = np.where(substates[rows, flipped] > 0, 0.0, usual[flipped])
    return changed


def find_right_rows(model: Any, demos: Demos, substates: np.ndarray) -> np.ndarray:
    """New rows in which exactly the features are present that should be, (N,) of bool."""
    true_present = demos.substates[demos.n_train :] > 0
    true_index, index = match_features(
        model.components_, model.substates_, demos.features, demos.substates[: demos.n_train]
    )
    found = np.zeros_like(true_present)
    found[:, true_index] = substates[:, index] > 0
    surplus = np.delete(substates, index, axis=1).any(axis=1)
    return (found == true_present).all(axis=1) & ~surplus


# --- the study ------------------------------------------------------------------------------------------------------


class Design(NamedTuple):
    """What to run."""

    n_runs: int = 3
    kinds: tuple[str, ...] = tuple(KINDS)
    methods: tuple[str, ...] = METHODS
    sweeps: int = SWEEPS
    seed: int = 0

    def tasks(self) -> list[Task]:
        """Run by run through all kinds, so that a study stopped early has seen every kind about equally often."""
        tasks = []
        for run in range(self.n_runs):
            for kind in self.kinds:
                tasks += [Task(kind, SNR_DB, run, method, self.seed, self.sweeps) for method in self.methods]
                if kind == "few-patterns":
                    noisy = [method for method in self.methods if method in ("features", "patterns")]
                    tasks += [
                        Task(kind, snr_db, run, method, self.seed, self.sweeps)
                        for snr_db in NOISY_SNR_DB
                        for method in noisy
                    ]
        return tasks

    def settings(self) -> dict[str, Any]:
        """What all rows of a folder share."""
        return {"study": "alternatives", "version": __version__, "seed": self.seed, "sweeps": self.sweeps}


KEY = {"kind": str, "snr": float, "run": int, "method": str}
UNITS = {"snr": "dB", "accuracy": "share", "log_score": "nats", "fit_seconds": "s", "predict_seconds": "s"}


def make_stores(folder: Path) -> dict[str, RowStore]:
    """One row for each run of a model; what wrong bits do; how long it took (no two studies agree on that)."""
    runs = {**KEY, "sweeps": int, "n_true": int, "n_found": int, "accuracy": float, "log_score": float}
    bits = {
        **KEY, "accuracy_map": float, "share_all_bits_right": float, "accuracy_if_right": float,
        "accuracy_if_wrong": float, "share_unseen": float, "accuracy_one_flipped": float,
        "share_unseen_one_flipped": float,
    }  # fmt: skip
    timings = {**KEY, "sweeps": int, "fit_seconds": float, "predict_seconds": float}
    return {
        name: RowStore(folder / f"{name}.csv", columns, tuple(KEY), UNITS)
        for name, columns in (("runs", runs), ("bits", bits), ("timings", timings))
    }


def run_study(
    folder: Path,
    design: Design,
    *,
    n_jobs: int = -1,
    on_start: Callable[[list[Task], list[Task]], None] | None = None,
    on_done: Callable[[Task], None] | None = None,
) -> None:
    """Do what is not done yet, `n_jobs` runs at a time, and write each run's rows as soon as it is finished."""
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        stores = make_stores(folder)
        done = {stores["runs"].key(row) for row in stores["runs"].read()}
        tasks = design.tasks()
        undone = [task for task in tasks if task.key() not in done]
        if on_start:
            on_start(tasks, undone)
        if joblib.effective_n_jobs(n_jobs) > 1:
            samplers = {task.method for task in undone} & set(SAMPLED)
            X, y = draw_demos("paper", 5, SNR_DB, 0, 0).train
            compile_kernels([CONTESTANTS[name].make().estimator for name in samplers], X, y)
        run_and_store(undone, measure, stores, folder, n_jobs, on_done)
