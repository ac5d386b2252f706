"""Real decisions: every contestant on the same splits of every data set, with all actions on record or only a few."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from experiments.decisions.contestants import (
    FROM_ALL_ROWS,
    HIDDEN,
    PEERS,
    VERSIONS,
    Lesson,
    fit_contestant,
    list_versions,
    predict,
)
from experiments.decisions.decision_table import DecisionTable
from experiments.decisions.splits import Split, hide_actions, hold_out
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, StudyError, check_settings, locked, make_folder
from whyact import FeaturePolicyClassifier
from whyact.comparison import count_components
from whyact.comparison.compiling import compile_kernels
from whyact.comparison.scoring import score
from whyact.version import __version__

ALL = 0  # stands for all actions on record, where otherwise their number would be
FEW_LABELS = (20, 50, 100, 200)
N_TRAIN, N_TEST = 600, 1000  # at most
MEASURES = ("accuracy", "log_score", "calibration_error")

Tables = dict[str, DecisionTable]


def list_contestants() -> tuple[str, ...]:
    """All who can take part."""
    return (*list_versions(), *PEERS, *FROM_ALL_ROWS)


# --- one run --------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One contestant on one split of one data set."""

    table: str
    run: int
    n_labels: int  # number of actions on record, or ALL
    contestant: str

    def __str__(self) -> str:
        labels = "" if self.n_labels == ALL else f", {self.n_labels} labels"
        return f"{self.table}, run {self.run}{labels}, {self.contestant}"


class Design(NamedTuple):
    """What to run."""

    n_runs: int = 5
    contestants: tuple[str, ...] = list_contestants()
    few_labels: bool = False
    n_train: int = N_TRAIN
    n_test: int = N_TEST
    options: dict[str, Any] = {}  # noqa: RUF012 (nobody changes it); of our classifier, for trials
    seed: int = 0

    def split(self, tables: Tables, name: str, run: int) -> Split:
        """Rows to learn from and rows to predict."""
        return hold_out(name, tables[name], run, self.seed, self.n_train, self.n_test)

    def tasks(self, tables: Tables) -> list[Task]:
        """Run by run through all data sets, so that a study stopped early has seen all about equally often."""
        tasks = []
        for run in range(self.n_runs):
            for name in tables:
                n_rows = len(self.split(tables, name, run).train)
                sizes = [n_labels for n_labels in FEW_LABELS if self.few_labels and n_labels < n_rows]
                tasks += [
                    Task(name, run, n_labels, contestant)
                    for n_labels in (ALL, *sizes)
                    for contestant in self.contestants
                    if n_labels != ALL or contestant not in FROM_ALL_ROWS  # which would be logistic regression again
                ]
        return tasks

    def settings(self) -> dict[str, Any]:
        """What all rows of a folder share."""
        return {
            "study": "decisions", "version": __version__, "seed": self.seed, "n_train": self.n_train,
            "n_test": self.n_test, "options": self.options,
        }  # fmt: skip


def make_lesson(table: DecisionTable, split: Split, n_labels: int) -> Lesson:
    """The rows to learn from, with all actions on record or only some."""
    rows, actions = split.train, table.actions[split.train]
    if n_labels != ALL:
        actions = hide_actions(actions, n_labels, min(FEW_LABELS), split.seed)
    groups, available = (None if part is None else part[rows] for part in (table.groups, table.available))
    return Lesson(table.X[rows], actions, groups, available, split.seed)


def measure(task: Task, tables: Tables, design: Design) -> Rows:
    """Fit and measure; return the rows of each file. The row that marks the task as done comes last."""
    table, split = tables[task.table], design.split(tables, task.table, task.run)
    lesson = make_lesson(table, split, task.n_labels)
    available = None if table.available is None else table.available[split.test]
    start = time.perf_counter()
    with warnings.catch_warnings():
        # chains that disagree are in the rows; a setting that does not converge is one that loses
        warnings.simplefilter("ignore")
        model = fit_contestant(task.contestant, lesson, design.options)
        fitted = time.perf_counter()
        probabilities = predict(model, table.X[split.test], len(table.classes), available)
    predicted = time.perf_counter()
    seconds = {"fit_seconds": round(fitted - start, 3), "predict_seconds": round(predicted - fitted, 3)}
    row = {**task._asdict(), "n_train": len(split.train), "n_test": len(split.test), **describe_model(model)}
    scores = score(probabilities, table.actions[split.test])
    row |= {name: scores[name] for name in MEASURES}
    return {"timings": {**task._asdict(), **seconds}, "runs" if task.n_labels == ALL else "few_labels": row}


def describe_model(model: Any) -> Row:
    """Number of features, if there is one, and whether chains agree, if there are some."""
    n_features = count_components(model)
    posterior = getattr(model, "posterior_", None)
    agree = None if posterior is None or posterior.n_chains < 2 else int(posterior.chains_agree)
    return {
        "n_features": None if np.isnan(n_features) else int(n_features),
        "chains_agree": agree,
    }


# --- the study ------------------------------------------------------------------------------------------------------

KEY = {"table": str, "run": int, "n_labels": int, "contestant": str}
UNITS = {"accuracy": "share", "log_score": "nats", "fit_seconds": "s", "predict_seconds": "s"}


def make_stores(folder: Path) -> dict[str, RowStore]:
    """One row for each fit, in a file for each part; how long it took (no two studies agree on that)."""
    runs = {
        **KEY, "n_train": int, "n_test": int, "n_features": int, "chains_agree": int,
        **dict.fromkeys(MEASURES, float),
    }  # fmt: skip
    timings = {**KEY, "fit_seconds": float, "predict_seconds": float}
    return {
        name: RowStore(folder / f"{name}.csv", columns, tuple(KEY), UNITS)
        for name, columns in (("timings", timings), ("few_labels", runs), ("runs", runs))
    }


def table_rows(folder: Path) -> RowStore:
    """One row for each data set: what it is."""
    columns = {
        "table": str, "n_rows": int, "n_columns": int, "n_groups": int, "share_missing": float, "actions": str,
        "about": str,
    }  # fmt: skip
    return RowStore(folder / "tables.csv", columns, ("table",), {})


def make_table_row(name: str, table: DecisionTable) -> Row:
    """What a data set is."""
    classes, counts = np.unique(table.y, return_counts=True)
    return {
        "table": name,
        "n_rows": len(table.y),
        "n_columns": table.X.shape[1],
        "n_groups": None if table.groups is None else len(np.unique(table.groups)),
        "share_missing": round(float(np.isnan(table.X).mean()), 6),
        "actions": ", ".join(f"{action} {count}" for action, count in zip(classes, counts, strict=True)),
        "about": table.about,
    }


def check_tables(folder: Path, tables: Tables) -> None:
    """Write what new data sets are, or check that those of these names in the folder are the same."""
    store = table_rows(folder)
    rows = {row["table"]: row for row in store.read()}
    for name, table in tables.items():
        described = make_table_row(name, table)
        for column, value in described.items():
            if name in rows and rows[name][column] != value:
                raise StudyError(
                    f"{name} in {folder} was started with {column} = {rows[name][column]}, not {value}; choose another "
                    "folder."
                )
        rows[name] = described
    store.rewrite(rows.values())


def run_study(
    folder: Path,
    tables: Tables,
    design: Design,
    *,
    n_jobs: int = -1,
    on_start: Callable[[list[Task], list[Task]], None] | None = None,
    on_done: Callable[[Task], None] | None = None,
) -> None:
    """Do what is not done yet, `n_jobs` fits at a time, and write each one's rows as soon as it is finished."""
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        check_tables(folder, tables)
        stores = make_stores(folder)
        done = {store.key(row) for name, store in stores.items() if name != "timings" for row in store.read()}
        tasks = design.tasks(tables)
        undone = [task for task in tasks if task not in done]
        if on_start:
            on_start(tasks, undone)
        if joblib.effective_n_jobs(n_jobs) > 1:
            compile_ours(undone, tables, design)
        run_and_store(undone, partial(measure, tables=tables, design=design), stores, folder, n_jobs, on_done)


def compile_ours(undone: list[Task], tables: Tables, design: Design) -> None:
    """Compile the kernels of our classifier once, where otherwise every process would."""
    first = {task.contestant: task for task in reversed(undone) if task.contestant in VERSIONS}
    for version, task in first.items():
        lesson = make_lesson(tables[task.table], design.split(tables, task.table, task.run), task.n_labels)
        model = FeaturePolicyClassifier(**VERSIONS[version], missing_action=HIDDEN)
        compile_kernels([model], lesson.X, lesson.actions)
