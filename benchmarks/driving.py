"""What makes the model work on a drive: each choice of the driving study, left out or changed, on the same splits.

    python benchmarks/driving.py 0011.npz --runs 3

The file holds grids cast from labelled boxes (see docs/driving.md); --kitti ROOT and --scene N read LIDAR scans.
Accuracy is that of MMSE, on random rows and on blocks of frames held out. Last comes the time of 500 sweeps of a chain
on all observations, in one process.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `experiments`
from experiments.driving.scenes import DrivingScene, read_boxes_scene, read_kitti_scene
from experiments.driving.splits import hold_out
from experiments.driving.study import OPTIONS, fit_ours
from whyact import FeaturePolicyClassifier
from whyact.comparison.folds import Fold

SEED = 7  # not the study's


def divide_by_residuals(scene: DrivingScene, fold: Fold) -> np.ndarray:
    """Noise per cell: each cell divided by the root mean square of what a first fit leaves unexplained in it."""
    model = fit_ours(scene, fold, OPTIONS)
    residual = scene.observations[fold.train] - model.inverse_transform(model.substates_)
    squares = np.mean(residual**2, axis=0)
    return scene.observations / np.sqrt(squares + 0.1 * squares.mean())


VARIANTS: dict[str, dict[str, Any] | str] = {  # other options, or other observations
    "as in the study": {},
    "50 + 50 sweeps": {"n_burn_in": 50, "n_draws": 50},
    "a tolerance of 10%": {"tolerance": 0.1},
    "free noise, at most 80 features": {"tolerance": "free", "max_features": 80, "n_burn_in": 50, "n_draws": 50},
    "each cell scaled to its range": {"scale_columns": True},
    "policies that multiply": {"combination": "product"},
    "decisiveness 10": {"decisiveness": 10.0},
    "the paper's mixture (decisiveness 1)": {"decisiveness": 1.0},
    "decisiveness 30": {"decisiveness": 30.0},
    "the paper's mixture, action weight D": {"decisiveness": 1.0, "action_weight": "dimensions"},
    "action weight 10": {"action_weight": 10.0},
    "observation weight 0.1": {"observation_weight": 0.1},
    "both weights chosen (auto)": {"observation_weight": "auto", "action_weight": "auto"},
    "one chain": {"n_chains": 1},
    "start from the prior": {"start": "prior"},
    "not smoothed, host not marked": "raw",
    "noise per cell": "cells",
}


def change_observations(change: dict[str, Any] | str, scene: DrivingScene, fold: Fold) -> np.ndarray:
    """The observations that a variant learns from."""
    if change == "raw":
        return scene.raw
    return divide_by_residuals(scene, fold) if change == "cells" else scene.observations


def run_variant(change: dict[str, Any] | str, scene: DrivingScene, splits: tuple[str, ...], n_runs: int) -> list[str]:
    """Accuracy for each split, numbers of features, and mean time of a fit."""
    options = {**OPTIONS, **change} if isinstance(change, dict) else OPTIONS
    cells, sizes, seconds = [], [], []
    for split in splits:
        accuracies = []
        for run in range(n_runs):
            fold = hold_out(scene, split, run, SEED)
            X = change_observations(change, scene, fold)
            start = time.perf_counter()
            model = fit_ours(replace(scene, observations=X), fold, options)
            seconds.append(time.perf_counter() - start)
            sizes.append(model.n_components_)
            accuracies.append(np.mean(model.predict(X[fold.test]) == scene.actions[fold.test]))
        cells.append(f"{np.mean(accuracies):.3f}")
    return [*cells, f"{min(sizes)} to {max(sizes)}", f"{np.mean(seconds):.0f} s"]


def print_time_of_500_sweeps(scene: DrivingScene) -> None:
    """Time a chain on all observations."""
    options = {**OPTIONS, "n_chains": 1, "n_burn_in": 350, "n_draws": 150, "random_state": 0}
    X, y = scene.observations, scene.actions
    start = time.perf_counter()
    model = FeaturePolicyClassifier(**options).fit(X, y)
    seconds = time.perf_counter() - start
    print(f"500 sweeps on {X.shape[0]} x {X.shape[1]} with {model.n_components_} features: {seconds:.0f} s")


def main() -> None:
    """Run all variants, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("boxes", nargs="?", type=Path)
    parser.add_argument("--kitti", type=Path)
    parser.add_argument("--scene", default="0")
    parser.add_argument("--frames", type=int)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.kitti:
        scene = read_kitti_scene(arguments.kitti, arguments.scene, arguments.frames, None)
    else:
        scene = read_boxes_scene(arguments.boxes, arguments.frames, None)
    splits = ("random", "blocked")
    print(f"scene {scene.name}, {scene.source}, {len(scene.actions)} observations, {arguments.runs} runs")
    print(f"{'':40s} {'random':>8s} {'blocked':>8s} {'features':>10s} {'a fit':>8s}")
    for name, change in VARIANTS.items():
        random, blocked, sizes, seconds = run_variant(change, scene, splits, arguments.runs)
        print(f"{name:40s} {random:>8s} {blocked:>8s} {sizes:>10s} {seconds:>8s}", flush=True)
    print_time_of_500_sweeps(scene)


if __name__ == "__main__":
    main()
