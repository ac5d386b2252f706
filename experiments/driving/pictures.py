"""Pictures of a scene: its features and its actions. Without matplotlib nothing is drawn."""

from pathlib import Path

import numpy as np

from experiments.driving.scenes import DrivingScene
from experiments.harness.figures import save_svg_and_png
from whyact import FeaturePolicyClassifier
from whyact.driving.pictures import plot_actions, plot_driving_features
from whyact.explanation.voices import align_policies


def draw_features(model: FeaturePolicyClassifier, scene: DrivingScene, folder: Path) -> list[Path]:
    """Draw the features of the chosen draw to `SCENE-features`."""
    try:
        title = f"Scene {scene.number}, {scene.source}: {model.n_components_} features"
        shares = np.mean(model.substates_ > 0, axis=0)
        quantity = (
            "height above the cut [m]" if scene.grid.power == 1 else f"height [m] to the power of {scene.grid.power:g}"
        )
        policies = align_policies(model).value  # as the report has them
        arguments = (model.components_, policies, model.classes_.tolist(), scene.grid, shares)
        return save_svg_and_png(
            lambda: plot_driving_features(*arguments, title=title, quantity=quantity),
            folder / f"{scene.name}-features",
        )
    except ImportError:
        return []


def draw_actions(scene: DrivingScene, folder: Path) -> list[Path]:
    """Draw the actions over time to `SCENE-actions`."""
    try:
        title = f"Scene {scene.number}, {scene.source}: what the driver did"
        return save_svg_and_png(
            lambda: plot_actions(scene.motion, scene.labels, scene.sample_frequency, title),
            folder / f"{scene.name}-actions",
        )
    except ImportError:
        return []
