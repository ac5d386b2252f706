"""Real drives (Sec. 6): predict the driver's action in frames held out, beside existing tools on the same splits."""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from experiments.driving.baselines import BASELINES, RAW, judge_baselines
from experiments.driving.pictures import draw_actions, draw_features
from experiments.driving.scenes import DrivingScene
from experiments.driving.splits import hold_out
from experiments.harness.running import Rows, run_and_store
from experiments.harness.store import Row, RowStore, StudyError, check_settings, locked, make_folder
from whyact import DoubtfulFitWarning, FeaturePolicyClassifier
from whyact.comparison.compiling import compile_kernels
from whyact.comparison.crossvalidation import align
from whyact.comparison.folds import SPLITS, Fold
from whyact.comparison.scoring import score
from whyact.version import __version__

# Of the classifier: its defaults, because nobody should have to know a setting. `benchmarks/driving.py` shows what
# others would change.
OPTIONS: dict[str, Any] = {}


# --- one run --------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One split of one scene."""

    scene: str
    split: str
    run: int
    seed: int

    def __str__(self) -> str:
        return f"scene {self.scene}, {self.split} hold-out, run {self.run}"

    def key(self) -> tuple[str, str, int]:
        """Which run it is."""
        return (self.scene, self.split, self.run)


def measure(
    task: Task, scene: DrivingScene, options: dict[str, Any], folder: Path, tools_done: set[tuple[Any, ...]]
) -> Rows:
    """Fit and measure; return the rows of each file. The row that marks the task as done comes last.

    Existing tools are not fitted again where `tools_done` has the key of the task.
    """
    fold = hold_out(scene, task.split, task.run, task.seed)
    key = {"scene": task.scene, "split": task.split, "run": task.run}
    start = time.perf_counter()
    model = fit_ours(scene, fold, options)
    fitted = time.perf_counter()
    ours = judge_ours(model, scene, fold)
    judged = time.perf_counter()
    if task.split == "random" and task.run == 0:
        draw_features(model, scene, folder)
    timings = {
        **key,
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(judged - fitted, 3),
    }
    found: Rows = {"timings": timings}
    if task.key() not in tools_done:
        start = time.perf_counter()
        baselines = judge_baselines(scene, fold)
        found["tools"] = {**key, **baselines, "baselines_seconds": round(time.perf_counter() - start, 3)}
    unseen = ~np.isin(scene.actions[fold.test], scene.actions[fold.train])
    rows = {**key, "n_train": len(fold.train), "n_test": len(fold.test), "n_unseen": int(unseen.sum())}
    return found | {"runs": {**rows, **ours}}


def fit_ours(scene: DrivingScene, fold: Fold, options: dict[str, Any]) -> FeaturePolicyClassifier:
    """Our model, fitted to the rows of a fold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)  # it is in the rows
        model = FeaturePolicyClassifier(**options, random_state=fold.seed)
        return model.fit(scene.observations[fold.train], scene.actions[fold.train])


def judge_ours(model: FeaturePolicyClassifier, scene: DrivingScene, fold: Fold) -> Row:
    """Accuracy, log score, confusions and errors of the reconstruction, by the names of the study's columns."""
    X, X_new = scene.observations[fold.train], scene.observations[fold.test]
    classes, codes = np.unique(scene.actions, return_inverse=True)
    actual = codes[fold.test]
    # an action that is not among the rows to learn from has probability zero
    by_mmse = align(model.predict_proba(X_new), model.classes_, classes)
    best_draw = model.judge(X_new, prediction="map")
    by_map = align(best_draw.probabilities, model.classes_, classes)
    predicted = {"mmse": by_mmse.argmax(axis=1), "map": by_map.argmax(axis=1)}
    posterior = model.posterior_
    return {
        **{f"accuracy_{rule}": float(np.mean(codes == actual)) for rule, codes in predicted.items()},
        "log_score": score(by_mmse, actual)["log_score"],
        "n_features": model.n_components_,
        "mse_train": mean_square_of_heights(model.inverse_transform(model.substates_), X, scene),
        "mse_test": mean_square_of_heights(model.inverse_transform(best_draw.substates), X_new, scene),
        "chains_agree": int(posterior.chains_agree) if posterior.n_chains > 1 else None,
        **{f"confusion_{rule}": write_confusion(actual, codes, classes) for rule, codes in predicted.items()},
    }


def mean_square_of_heights(one: np.ndarray, other: np.ndarray, scene: DrivingScene) -> float:
    """Mean squared difference in the unit of the heights, whichever power of them the observations are."""
    root = 1 / scene.grid.power
    return float(np.mean(np.square(one**root - other**root)))


def write_confusion(actual: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> str:
    """Counts of each (action taken, action predicted) that occurs, as in "A>A:12 A>C:3"."""
    pairs, counts = np.unique(np.stack([actual, predicted]), axis=1, return_counts=True)
    return " ".join(f"{classes[a]}>{classes[p]}:{n}" for a, p, n in zip(*pairs, counts, strict=True))


def read_confusion(text: str, actions: list[str]) -> np.ndarray:
    """The counts (taken, predicted) of `write_confusion`, in the order of `actions`."""
    matrix = np.zeros((len(actions), len(actions)), dtype=np.int64)
    for entry in text.split():
        pair, _, count = entry.partition(":")
        taken, _, predicted = pair.partition(">")
        matrix[actions.index(taken), actions.index(predicted)] += int(count)
    return matrix


# --- the study ------------------------------------------------------------------------------------------------------


class Design(NamedTuple):
    """What to run."""

    n_runs: int = 10
    seed: int = 0
    options: dict[str, Any] = OPTIONS

    def tasks(self, scene: str) -> list[Task]:
        """Run by run through both splits, so that a study stopped early has seen both about equally often."""
        return [Task(scene, split, run, self.seed) for run in range(self.n_runs) for split in SPLITS]

    def settings(self) -> dict[str, Any]:
        """What all rows of a folder share."""
        plain = {name: value if isinstance(value, int | float | str) else repr(value) for name, value in
                 self.options.items()}  # fmt: skip
        return {"study": "driving", "version": __version__, "seed": self.seed, "options": plain}


KEY = {"scene": str, "split": str, "run": int}
RULES = ("mmse", "map")
TOOLS = ("most_frequent", *BASELINES, *(f"{name}{RAW}" for name in BASELINES))
UNITS = {
    **{f"accuracy_{name}": "share" for name in (*RULES, *TOOLS)},
    "log_score": "nats", "mse_train": "m^2", "mse_test": "m^2", "mean_square": "m^2", "smoothing": "m",
    "host_height": "m", "lateral_speed": "m/s", "longitudinal_speed": "m/s", "fit_seconds": "s",
    "predict_seconds": "s", "baselines_seconds": "s",
}  # fmt: skip


def make_stores(folder: Path) -> dict[str, RowStore]:
    """One row for each split: ours, how long it took (no two studies agree on that), and existing tools.

    The tools have a file of their own, so that ours can be run again without them: remove `runs.csv` and
    `timings.csv`.
    """
    runs = {
        **KEY, "n_train": int, "n_test": int, "n_unseen": int, "n_features": int, "log_score": float,
        "mse_train": float, "mse_test": float, "chains_agree": int, "confusion_mmse": str, "confusion_map": str,
        **{f"accuracy_{name}": float for name in RULES},
    }  # fmt: skip
    timings = {**KEY, "fit_seconds": float, "predict_seconds": float}
    tools = {**KEY, **{f"accuracy_{name}": float for name in TOOLS}, "baselines_seconds": float}
    return {
        name: RowStore(folder / f"{name}.csv", columns, tuple(KEY), UNITS)
        for name, columns in (("timings", timings), ("tools", tools), ("runs", runs))
    }


def scene_rows(folder: Path) -> RowStore:
    """One row for each scene: what its observations are."""
    columns = {
        "scene": str, "number": str, "source": str, "n_frames": int, "n_observations": int, "n_skipped": int,
        "n_left_out": int, "actions": str, "smoothing": float, "host_height": float, "power": float,
        "lateral_speed": float, "longitudinal_speed": float, "mean_square": float,
    }  # fmt: skip
    return RowStore(folder / "scenes.csv", columns, ("scene",), UNITS)


def make_scene_row(scene: DrivingScene) -> Row:
    """What the observations of a scene are."""
    lateral, longitudinal = scene.resolved_speed
    names, counts = np.unique(scene.actions, return_counts=True)
    return {
        "scene": scene.name,
        "number": scene.number,
        "source": scene.source,
        "n_frames": len(scene.labels),
        "n_observations": len(scene.frames),
        "n_skipped": scene.n_skipped,
        "n_left_out": scene.n_left_out,
        "actions": " ".join(f"{name}:{count}" for name, count in zip(names, counts, strict=True)),
        "smoothing": round(scene.grid.smoothing, 6),
        "host_height": scene.grid.host_height,
        "power": scene.grid.power,
        "lateral_speed": round(lateral, 6),
        "longitudinal_speed": round(longitudinal, 6),
        "mean_square": round(mean_square_of_heights(scene.observations, np.zeros(1), scene), 9),
    }


def check_scene(folder: Path, scene: DrivingScene) -> None:
    """Write what a new scene is, or check that the scene of this name in the folder is the same."""
    store = scene_rows(folder)
    rows = store.read()
    described = make_scene_row(scene)
    for row in rows:
        if row["scene"] == scene.name:
            for name, value in described.items():
                if row[name] != value:
                    raise StudyError(
                        f"scene {scene.name} in {folder} was started with {name} = {row[name]}, not {value}; choose "
                        "another folder."
                    )
            return
    store.rewrite([*rows, described])


def run_study(
    folder: Path,
    scene: DrivingScene,
    design: Design,
    *,
    n_jobs: int = -1,
    on_start: Callable[[list[Task], list[Task]], None] | None = None,
    on_done: Callable[[Task], None] | None = None,
) -> None:
    """Do what is not done yet, `n_jobs` splits at a time, and write each one's rows as soon as it is finished.

    A folder may hold several scenes, each run by a call of its own.
    """
    make_folder(folder)
    with locked(folder):
        stores = make_stores(folder)
        # without rows of ours, only tools have been run, which have nothing to do with our options
        check_settings(folder, design.settings(), may_change=() if stores["runs"].read() else ("options",))
        check_scene(folder, scene)
        done, tools_done = ({stores[name].key(row) for row in stores[name].read()} for name in ("runs", "tools"))
        tasks = design.tasks(scene.name)
        undone = [task for task in tasks if task.key() not in done]
        if on_start:
            on_start(tasks, undone)
        draw_actions(scene, folder)
        if undone and joblib.effective_n_jobs(n_jobs) > 1:
            ours = FeaturePolicyClassifier(**design.options)
            compile_kernels([ours], scene.observations, scene.actions, predictions=(None, "map"))
        work = partial(measure, scene=scene, options=design.options, folder=folder, tools_done=tools_done)
        run_and_store(undone, work, stores, folder, n_jobs, on_done)
