"""Real drives (Sec. 6): predict the driver's action in frames held out, beside existing tools on the same splits.

Two ways to hold out a fifth of the observations. Random rows, as the paper does: most of them have a neighbour among
the rows to learn from, a tenth of a second away. Blocks of consecutive frames: these are situations never seen.
"""

import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.driving.scenes import DrivingScene
from experiments.harness.running import run_and_store
from experiments.harness.store import RowStore, StudyError, check_settings, locked, make_folder
from experiments.simulations.study import fill_actions
from whyact.alternatives.pipelines import make_nmf
from whyact.comparison.classifiers import REGULARISATION, Candidate, make_regression, tune
from whyact.comparison.folds import SPLITS, Fold, make_folds
from whyact.comparison.scoring import score
from whyact.model import Priors
from whyact.version import __version__

# Of the classifier, for all scenes alike. The prior of the IBP's mass is the paper's for real data;
# `benchmarks/driving.py` shows what each of the others does.
OPTIONS: dict = {
    "n_burn_in": 100,
    "n_draws": 100,
    "n_chains": 3,
    "start": "rows",
    "max_features": 40,
    "decisiveness": 10.0,
    "priors": Priors(ibp_mass=(1.0, 10.0)),
}

N_PARTS = 5  # one of which is held out
BLOCK_LENGTH = 15  # in frames
N_TRIES = 1000
N_FACTORS = 30  # of the NMF
N_INNER_FOLDS = 3

BASELINES = {
    "logistic_regression": "logistic regression",
    "random_forest": "random forest",
    "nearest_neighbours": "nearest neighbours",
    "nmf_lr": "NMF + LR",
}
RAW = "_raw"  # ends the names of those that see observations neither marked nor smoothed


# --- which rows to learn from ---------------------------------------------------------------------------------------


def hold_out(scene: DrivingScene, split: str, run: int, seed: int) -> Fold:
    """The rows of a run: the same for everyone who learns, and for every study with this seed."""
    random = np.random.RandomState([seed, SPLITS.index(split), run])
    if split == "blocked":
        return hold_out_blocks(scene.actions, scene.frames, run, random)
    codes = np.unique(scene.actions, return_inverse=True)[1]
    return make_folds(codes, None, ("random",), N_PARTS, 1, random)[0]._replace(repeat=run)


def hold_out_blocks(actions: np.ndarray, frames: np.ndarray, run: int, random: np.random.RandomState) -> Fold:
    """Hold out a fifth of the blocks of consecutive frames, chosen at random.

    Rows that share a frame with a row held out are not learned from either. Blocks are drawn again if one action only
    would be left to learn from.
    """
    blocks = (frames - frames[0]) // BLOCK_LENGTH
    names = np.unique(blocks)
    n_held = max(1, round(len(names) / N_PARTS))
    for _ in range(N_TRIES):
        held = np.isin(blocks, random.choice(names, n_held, replace=False))
        shares = np.isin(frames - 1, frames[held]) | np.isin(frames + 1, frames[held])
        train = np.flatnonzero(~held & ~shares)
        if len(np.unique(actions[train])) > 1:
            seed = int(random.randint(2**31 - 1))
            return Fold("blocked", run, 0, train, np.flatnonzero(held), blocks[train], seed)
    raise ValueError("whatever blocks are held out, one action only is left to learn from.")


# --- what is measured -----------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One split of one scene."""

    scene: str
    split: str
    run: int
    seed: int

    def __str__(self) -> str:
        return f"scene {self.scene}, {self.split} hold-out, run {self.run}"

    def key(self) -> tuple:
        return (self.scene, self.split, self.run)


def measure(task: Task, scene: DrivingScene, options: dict, folder: Path) -> dict[str, dict]:
    """Fit and measure; return the rows of each file. The row that counts as done comes last."""
    fold = hold_out(scene, task.split, task.run, task.seed)
    key = {"scene": task.scene, "split": task.split, "run": task.run}
    start = time.perf_counter()
    model = fit_ours(scene, fold, options)
    fitted = time.perf_counter()
    ours = judge_ours(model, scene, fold)
    judged = time.perf_counter()
    baselines = judge_baselines(scene, fold)
    if task.split == "random" and task.run == 0:
        draw_features(model, scene, folder)
    timings = {
        **key,
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(judged - fitted, 3),
        "baselines_seconds": round(time.perf_counter() - judged, 3),
    }
    unseen = ~np.isin(scene.actions[fold.test], scene.actions[fold.train])
    rows = {**key, "n_train": len(fold.train), "n_test": len(fold.test), "n_unseen": int(unseen.sum())}
    return {"timings": timings, "runs": {**rows, **ours, **baselines}}


def fit_ours(scene: DrivingScene, fold: Fold, options: dict):
    from whyact import FeaturePolicyClassifier
    from whyact.errors import ChainsDisagreeWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainsDisagreeWarning)  # it is in the rows
        model = FeaturePolicyClassifier(**options, random_state=fold.seed)
        return model.fit(scene.observations[fold.train], scene.actions[fold.train])


def judge_ours(model, scene: DrivingScene, fold: Fold) -> dict:
    """Accuracy, log score, confusions and errors of the reconstruction, with the names of the study's columns."""
    X, X_new = scene.observations[fold.train], scene.observations[fold.test]
    classes, codes = np.unique(scene.actions, return_inverse=True)
    actual = codes[fold.test]
    seen = np.searchsorted(classes, model.classes_)
    probabilities = fill_actions(model.predict_proba(X_new), seen, len(classes))  # an unseen action is held impossible
    model.set_params(prediction="map")
    predicted = {"mmse": probabilities.argmax(axis=1), "map": seen[model.predict_proba(X_new).argmax(axis=1)]}
    new_substates = model.transform(X_new)
    model.set_params(prediction="mmse")
    posterior = model.posterior_
    return {
        **{f"accuracy_{rule}": float(np.mean(codes == actual)) for rule, codes in predicted.items()},
        "log_score": score(probabilities, actual)["log_score"],
        "n_features": model.n_components_,
        "mse_train": mean_square_of_heights(model.inverse_transform(model.substates_), X, scene),
        "mse_test": mean_square_of_heights(model.inverse_transform(new_substates), X_new, scene),
        "chains_agree": int(posterior.chains_agree) if posterior.n_chains > 1 else None,
        **{f"confusion_{rule}": write_confusion(actual, codes, classes) for rule, codes in predicted.items()},
    }


def mean_square_of_heights(one: np.ndarray, other: np.ndarray, scene: DrivingScene) -> float:
    """Mean squared difference in the unit of the heights, whatever power the observations are of."""
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


# --- existing tools -------------------------------------------------------------------------------------------------


def make_baselines(seed: int) -> dict[str, Candidate]:
    """Existing tools and the settings to choose from; the NMF, which needs no actions, comes before and apart."""
    # A penalised regression sees only the span of the rows, so turning it by a PCA changes nothing but the time.
    regression = make_pipeline(StandardScaler(), PCA(svd_solver="full"), make_regression())
    scaling = {"standardscaler": [StandardScaler(), "passthrough"], **REGULARISATION}
    of_factors = make_pipeline(StandardScaler(), make_regression())
    return {
        "logistic_regression": Candidate(regression, scaling, N_INNER_FOLDS),
        "random_forest": Candidate(RandomForestClassifier(200, random_state=seed)),
        "nearest_neighbours": Candidate(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, N_INNER_FOLDS),
        "nmf_lr": Candidate(of_factors, REGULARISATION, N_INNER_FOLDS),
    }


def judge_baselines(scene: DrivingScene, fold: Fold) -> dict[str, float]:
    """Accuracy of each on both kinds of observations, tuned inside the rows to learn from (by blocks, if blocked)."""
    y, y_new = scene.actions[fold.train], scene.actions[fold.test]
    names, counts = np.unique(y, return_counts=True)
    accuracies = {"accuracy_most_frequent": float(np.mean(y_new == names[counts.argmax()]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that does not converge is one that loses
        for ending, observations in (("", scene.observations), (RAW, scene.raw)):
            X, X_new = observations[fold.train], observations[fold.test]
            for name, candidate in make_baselines(fold.seed).items():
                inputs = (X, X_new)
                if name == "nmf_lr":
                    factors = make_nmf(min(N_FACTORS, *X.shape)).fit(X)
                    inputs = (factors.transform(X), factors.transform(X_new))
                fitted = tune(candidate, inputs[0], y, fold.seed, fold.groups)
                accuracies[f"accuracy_{name}{ending}"] = float(np.mean(fitted.predict(inputs[1]) == y_new))
    return accuracies


# --- pictures -------------------------------------------------------------------------------------------------------


def draw_features(model, scene: DrivingScene, folder: Path) -> list[Path]:
    """Draw the features of the chosen draw to `SCENE-features`; without matplotlib nothing is drawn."""
    try:
        from experiments.harness.figures import save_svg_and_png
        from whyact.driving.pictures import plot_driving_features

        title = f"Scene {scene.number}, {scene.source}: {model.n_components_} features"
        shares = np.mean(model.substates_ > 0, axis=0)
        quantity = (
            "height above the cut [m]" if scene.grid.power == 1 else f"height [m] to the power of {scene.grid.power:g}"
        )
        arguments = (model.components_, model.policies_, model.classes_.tolist(), scene.grid, shares)
        return save_svg_and_png(
            lambda: plot_driving_features(*arguments, title=title, quantity=quantity),
            folder / f"{scene.name}-features",
        )
    except ImportError:
        return []


def draw_actions(scene: DrivingScene, folder: Path) -> list[Path]:
    """Draw the actions over time to `SCENE-actions`; without matplotlib nothing is drawn."""
    try:
        from experiments.harness.figures import save_svg_and_png
        from whyact.driving.pictures import plot_actions

        title = f"Scene {scene.number}, {scene.source}: what the driver did"
        return save_svg_and_png(
            lambda: plot_actions(scene.motion, scene.labels, scene.sample_frequency, title),
            folder / f"{scene.name}-actions",
        )
    except ImportError:
        return []


# --- the study ------------------------------------------------------------------------------------------------------


class Design(NamedTuple):
    """What to run."""

    n_runs: int = 10
    seed: int = 0
    options: dict = OPTIONS

    def tasks(self, scene: str) -> list[Task]:
        """Run by run through both splits, so that a study stopped early has seen both about equally often."""
        return [Task(scene, split, run, self.seed) for run in range(self.n_runs) for split in SPLITS]

    def settings(self) -> dict:
        """What all rows of a folder share."""
        plain = {name: value if isinstance(value, int | float | str) else repr(value) for name, value in
                 self.options.items()}  # fmt: skip
        return {"study": "driving", "version": __version__, "seed": self.seed, "options": plain}


KEY = {"scene": str, "split": str, "run": int}
ACCURACIES = ("mmse", "map", "most_frequent", *BASELINES, *(f"{name}{RAW}" for name in BASELINES))
UNITS = {
    **{f"accuracy_{name}": "share" for name in ACCURACIES},
    "log_score": "nats", "mse_train": "m^2", "mse_test": "m^2", "mean_square": "m^2", "smoothing": "m",
    "host_height": "m", "lateral_speed": "m/s", "longitudinal_speed": "m/s", "fit_seconds": "s",
    "predict_seconds": "s", "baselines_seconds": "s",
}  # fmt: skip


def make_stores(folder: Path) -> dict[str, RowStore]:
    """One row for each split; how long it took (no two studies agree on that)."""
    runs = {
        **KEY, "n_train": int, "n_test": int, "n_unseen": int, "n_features": int, "log_score": float,
        "mse_train": float, "mse_test": float, "chains_agree": int, "confusion_mmse": str, "confusion_map": str,
        **{f"accuracy_{name}": float for name in ACCURACIES},
    }  # fmt: skip
    timings = {**KEY, "fit_seconds": float, "predict_seconds": float, "baselines_seconds": float}
    return {
        name: RowStore(folder / f"{name}.csv", columns, tuple(KEY), UNITS)
        for name, columns in (("timings", timings), ("runs", runs))
    }


def scene_rows(folder: Path) -> RowStore:
    """One row for each scene: what its observations are."""
    columns = {
        "scene": str, "number": str, "source": str, "n_frames": int, "n_observations": int, "n_skipped": int,
        "n_left_out": int, "actions": str, "smoothing": float, "host_height": float, "power": float,
        "lateral_speed": float, "longitudinal_speed": float, "mean_square": float,
    }  # fmt: skip
    return RowStore(folder / "scenes.csv", columns, ("scene",), UNITS)


def describe_scene(scene: DrivingScene) -> dict:
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
    """Write what a new scene is, or check that the one of this name that is there is the same."""
    store = scene_rows(folder)
    rows = store.read()
    described = describe_scene(scene)
    for row in rows:
        if row["scene"] == scene.name:
            for name, value in described.items():
                if row[name] != value:
                    raise StudyError(
                        f"scene {scene.name} in {folder} was begun with {name} = {row[name]}, not {value}; choose "
                        "another folder."
                    )
            return
    store.rewrite([*rows, described])


def run_study(
    folder: Path, scene: DrivingScene, design: Design, *, n_jobs: int = -1, on_start=None, on_done=None
) -> None:
    """Do what is not done yet, `n_jobs` splits at a time, and write each one's rows as soon as it is finished.

    A folder may hold several scenes, each run by a call of its own.
    """
    make_folder(folder)
    with locked(folder):
        check_settings(folder, design.settings())
        check_scene(folder, scene)
        stores = make_stores(folder)
        done = {stores["runs"].key(row) for row in stores["runs"].read()}
        tasks = design.tasks(scene.name)
        undone = [task for task in tasks if task.key() not in done]
        if on_start:
            on_start(tasks, undone)
        draw_actions(scene, folder)
        if undone and joblib.effective_n_jobs(n_jobs) > 1:  # compile once, so that the processes find it in the cache
            compile_kernels(scene, design)
        work = partial(measure, scene=scene, options=design.options, folder=folder)
        run_and_store(undone, work, stores, folder, n_jobs, on_done)


def compile_kernels(scene: DrivingScene, design: Design) -> None:
    short = {**design.options, "n_burn_in": 2, "n_draws": 5, "thin": 5}
    fold = hold_out(scene, "random", 0, design.seed)
    judge_ours(fit_ours(scene, fold, short), scene, fold)
