"""Means over the runs of the driving study, beside the paper's numbers."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas

from experiments.driving.baselines import BASELINES, RAW
from experiments.driving.study import KEY, make_stores, read_confusion, scene_rows
from experiments.harness.store import read_settings
from whyact.comparison.folds import SPLITS
from whyact.comparison.scoring import corrected_interval
from whyact.driving.labels import ACTIONS
from whyact.intervals import Interval

OURS = {"mmse": "ours, MMSE", "map": "ours, MAP"}
LABELS = {
    **OURS,
    **{name + ending: label + said for name, label in BASELINES.items() for ending, said in (("", ""), (RAW, ", raw"))},
    "most_frequent": "the most frequent action",
}


class Paper(NamedTuple):
    """What the paper reports of a scene, on LIDAR scans (Sec. 6.1 and 6.2)."""

    accuracy: float
    n_features: int
    mse: float
    actions: list[str]
    confusion: np.ndarray  # (taken, predicted)


PAPER = {
    "0011": Paper(0.7432, 31, 0.0329, ["C", "D", "A"], np.array([[12, 2, 4], [1, 15, 6], [5, 1, 28]])),
    "0020": Paper(0.7333, 17, 0.0027, ["A", "R", "C"], np.array([[3, 3, 7], [0, 29, 0], [0, 6, 12]])),
}


class Results(NamedTuple):
    """The rows of the study."""

    scenes: pandas.DataFrame  # indexed by the scene
    runs: pandas.DataFrame
    timings: pandas.DataFrame
    settings: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Scenes that have runs."""
        return [scene for scene in self.scenes.index if (self.runs["scene"] == scene).any()]

    def splits(self, scene: str) -> list[str]:
        """Splits that have runs of a scene."""
        return [split for split in SPLITS if len(self.of(scene, split))]

    def of(self, scene: str, split: str) -> pandas.DataFrame:
        """The runs of a scene and split."""
        return self.runs[(self.runs["scene"] == scene) & (self.runs["split"] == split)]

    def interval(self, scene: str, split: str, measure: str, minus: str | None = None) -> Interval:
        """Mean over runs of a measure, or of its difference to another, with its 95% interval."""
        rows = self.of(scene, split)
        values = rows[measure] - (0 if minus is None else rows[minus])
        return corrected_interval(values.to_numpy(dtype=float), rows["n_train"].mean(), rows["n_test"].mean())

    def accuracy(self, scene: str, split: str, method: str) -> Interval:
        """Mean accuracy of a method."""
        return self.interval(scene, split, f"accuracy_{method}")

    def best_baseline(self, scene: str, split: str) -> str:
        """The existing tool with the highest mean accuracy, on either kind of observations."""
        names = [name for name in LABELS if name not in OURS]
        return max(names, key=lambda name: float(self.accuracy(scene, split, name).value))

    def actions(self, scene: str) -> list[str]:
        """Actions of a scene: those of the paper in its order, then all others."""
        present = [entry.partition(":")[0] for entry in self.scenes.loc[scene, "actions"].split()]
        paper = PAPER.get(self.scenes.loc[scene, "number"])
        first = paper.actions if paper else []
        return [*(a for a in first if a in present), *(a for a in ACTIONS if a in present and a not in first)]

    def confusion(self, scene: str, split: str, rule: str) -> np.ndarray:
        """Counts (taken, predicted), summed over runs."""
        actions = self.actions(scene)
        matrices = [read_confusion(text, actions) for text in self.of(scene, split)[f"confusion_{rule}"]]
        return np.sum(matrices, axis=0)


def read_results(folder: Path) -> Results:
    """The rows of a study's folder."""
    stores = {**make_stores(folder), "scenes": scene_rows(folder)}
    frames = {name: pandas.DataFrame(store.read(), columns=list(store.columns)) for name, store in stores.items()}
    keys, seconds = list(KEY), ["baselines_seconds"]
    runs = frames["runs"].merge(frames["tools"].drop(columns=seconds), on=keys)
    timings = frames["timings"].merge(frames["tools"][keys + seconds], on=keys)
    return Results(frames["scenes"].set_index("scene"), runs, timings, read_settings(folder))


def say_mean(interval: Interval, spec: str = ".3f") -> str:
    """A mean and its interval; the mean alone if there are too few runs for one."""
    if not math.isfinite(interval.low):
        return f"{interval.value:{spec}}"
    ends = spec.replace("3f", "2f")
    return f"{interval.value:{spec}} [{interval.low:{ends}}, {interval.high:{ends}}]"


def say_share(interval: Interval) -> str:
    """The same for a share, whose interval ends at 0 and 1."""
    return say_mean(Interval(interval.value, *np.clip([interval.low, interval.high], 0.0, 1.0).tolist()))


def say_span(values: pandas.Series) -> str:
    """The smallest and the largest value."""
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low} to {high}"


def describe_scene(results: Results, scene: str) -> str:
    """What the observations of a scene are, in sentences."""
    row = results.scenes.loc[scene]
    counts = ", ".join(
        f"{count} {ACTIONS.get(action, action)} ({action})"
        for action, _, count in (entry.partition(":") for entry in row["actions"].split())
    )
    return (
        f"{row['n_observations']} observations of {row['n_frames']} frames; {row['n_skipped']} skipped without a "
        f"usable scan, {row['n_left_out']} left out without the frame before. Actions: {counts}. Two frames show "
        f"relative speeds (R f_s) of at least {row['lateral_speed']:.1f} m/s to the side and "
        f"{row['longitudinal_speed']:.1f} m/s along the road. Grids are smoothed along the road (s.d. "
        f"{row['smoothing']:.2f} m), the host vehicle is marked ({row['host_height']:g} m), and the heights are taken "
        f"to the power of {row['power']:g}."
    )


def make_lines(results: Results, scene: str) -> list[list[str]]:
    """Header and rows of a scene's table: a name, a cell for each split, and one for the paper if it has the scene."""
    splits = results.splits(scene)
    rows = [results.of(scene, split) for split in splits]
    paper = PAPER.get(results.scenes.loc[scene, "number"])
    of_paper = {
        "accuracy of": "paper", LABELS["map"]: f"{paper.accuracy:.3f}", "number of features": str(paper.n_features),
        "MSE, learned from [m²]": f"{paper.mse:.4f}", "runs": "1",
    } if paper else {}  # fmt: skip
    lines = [
        ["accuracy of", *splits],
        *(
            [label, *(say_share(results.accuracy(scene, split, method)) for split in splits)]
            for method, label in LABELS.items()
        ),
        ["log score of ours", *(f"{part['log_score'].mean():.3f}" for part in rows)],
        ["number of features", *(say_span(part["n_features"]) for part in rows)],
        ["MSE, learned from [m²]", *(f"{part['mse_train'].mean():.4f}" for part in rows)],
        ["MSE, held out [m²]", *(f"{part['mse_test'].mean():.4f}" for part in rows)],
        ["runs", *(str(len(part)) for part in rows)],
    ]
    return [[*line, of_paper.get(line[0], "")] for line in lines] if paper else lines


def list_confusions(results: Results, scene: str, rule: str) -> dict[str, tuple[list[str], np.ndarray]]:
    """Confusion matrices by their titles, ours and the paper's: the actions, and the counts (taken, predicted)."""
    matrices = {
        f"{split}, {rule.upper()}": (results.actions(scene), results.confusion(scene, split, rule))
        for split in results.splits(scene)
    }
    paper = PAPER.get(results.scenes.loc[scene, "number"])
    if paper:
        matrices["the paper"] = (paper.actions, paper.confusion)
    return matrices
