"""Scenes of the driving study (Sec. 6): observations and actions, from LIDAR scans or from labelled boxes.

Both are marked and smoothed in the same way (`smooth_grids`). The same observations without either are kept beside
them, for tools that learn from the observations as the paper describes them.
"""

import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whyact.driving.grids import OccupancyGrid, grid_of_scene, join_frames, rasterise_scene, smooth_grids
from whyact.driving.kitti import SAMPLE_FREQUENCY, check_file, find_scene
from whyact.driving.labels import ACTIONS, Motion, label_actions, motion_from_oxts
from whyact.errors import ArgumentError

LIDAR = "LIDAR scans"
BOXES = "grids cast from labelled boxes, not LIDAR"
# Standard deviation of the smoothing along the road if not given, in metres: about half a car.
SMOOTHING = 2.5
POWER = 0.5
# Mark of the host vehicle, in metres: about as high above the cut as a car is.
HOST_HEIGHT = 1.0
BOX_KEYS = ("grids", "longitudinal_range", "lateral_range", "speed", "acceleration", "actions")
LEAST_OBSERVATIONS = 30


@dataclass(frozen=True)
class DrivingScene:
    """What a driver saw and did. A frame without a usable scan, or without the frame before it, is no observation."""

    name: str  # "0011", or "0011-boxes"
    number: str  # of the sequence, as in the paper: "0011"
    source: str  # LIDAR or BOXES
    grid: OccupancyGrid
    observations: np.ndarray  # (n, 2 * n_cells), marked and smoothed
    raw: np.ndarray  # the same, neither marked nor smoothed
    frames: np.ndarray  # (n,) number of the frame of each observation
    labels: np.ndarray  # (n_frames,) action in each frame
    motion: Motion  # in each frame
    n_skipped: int  # frames without a usable scan
    n_left_out: int  # frames whose previous frame is missing
    sample_frequency: float = SAMPLE_FREQUENCY

    @property
    def actions(self) -> np.ndarray:
        """Action of each observation."""
        return self.labels[self.frames]

    @property
    def resolved_speed(self) -> tuple[float, float]:
        """R f_s: (lateral, longitudinal), in m/s."""
        return self.grid.resolved_speed(self.sample_frequency)


def read_kitti_scene(root: Path, scene: int | str, frames: int | None, smoothing: float | None) -> DrivingScene:
    """A scene of LIDAR scans; `frames` keeps the first ones only, `smoothing` is in metres."""
    found = find_scene(root, scene, skip_damaged=True)
    n_frames = limit_frames(len(found.oxts), frames)
    found = replace(found, scans={n: path for n, path in found.scans.items() if n < n_frames})
    if not found.scans:
        raise ArgumentError("frames", f"none of the first {n_frames} frames of scene {found.name} has a usable scan.")
    grid = grid_of_scene(scene)
    motion = motion_from_oxts(found.oxts, found.sample_frequency)
    labels = label_actions(motion.acceleration, motion.speed, motion.yaw_rate, found.sample_frequency)
    return make_scene(
        name=found.name,
        number=found.name,
        source=LIDAR,
        grid=mark_and_smooth(grid, smoothing),
        raw_grids=rasterise_scene(found, grid),
        frames=found.frames,
        labels=labels[:n_frames],
        motion=Motion(*(values[:n_frames] for values in motion)),
        sample_frequency=found.sample_frequency,
    )


def read_boxes_scene(path: Path, frames: int | None, smoothing: float | None) -> DrivingScene:
    """A scene of grids that were cast from labelled boxes; the name of the file is that of the scene."""
    if not re.fullmatch(r"[\w.-]+", path.stem):
        raise ArgumentError("boxes", f"{path} must be named after its scene, with only letters, digits, dots, _ and -.")
    boxes = read_boxes(path)
    n_frames = limit_frames(len(boxes["grids"]), frames)
    try:
        grid = OccupancyGrid(
            shape=boxes["grids"].shape[1:],
            lateral=tuple(boxes["lateral_range"].tolist()),
            longitudinal=tuple(boxes["longitudinal_range"].tolist()),
        )
        grid = mark_and_smooth(grid, smoothing)
    except ArgumentError as error:
        if error.argument == "smoothing":
            raise
        raise ArgumentError("boxes", f"{path}: {error}") from None
    motion = Motion(boxes["speed"], boxes["acceleration"], np.zeros(len(boxes["speed"])))
    return make_scene(
        name=f"{path.stem}-boxes",
        number=path.stem,
        source=BOXES,
        grid=grid,
        raw_grids=boxes["grids"][:n_frames],
        frames=np.arange(n_frames),
        labels=boxes["actions"][:n_frames],
        motion=Motion(*(values[:n_frames] for values in motion)),
        sample_frequency=SAMPLE_FREQUENCY,
    )


def load_boxes(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a file of boxes as they are; nothing in the file is run."""
    check_file(path)
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ArgumentError("boxes", f"{path} holds only one array, not those of an .npz file of boxes.")
        with file:
            lacking = [key for key in BOX_KEYS if key not in file]
            if lacking:
                raise ArgumentError("boxes", f"{path} lacks the array {lacking[0]!r} of a file of boxes.")
            return {key: file[key] for key in BOX_KEYS}
    except ArgumentError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise ArgumentError("boxes", f"{path} is not an .npz file of plain arrays.") from None


def read_boxes(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a file of boxes, checked."""
    boxes = load_boxes(path)
    for key in BOX_KEYS[:-1]:
        if boxes[key].dtype.kind not in "fiu" or not np.isfinite(boxes[key]).all():
            raise ArgumentError("boxes", f"{path}: {key} must hold finite numbers.")
        boxes[key] = boxes[key].astype(np.float64)
    grids = boxes["grids"]
    if grids.ndim != 3 or (grids < 0).any():
        raise ArgumentError(
            "boxes", f"{path}: grids must be an array (frames, rows, columns) without negative heights."
        )
    for key in BOX_KEYS[3:]:
        if boxes[key].shape != (len(grids),):
            raise ArgumentError("boxes", f"{path}: {key} must have one value for each of the {len(grids)} frames.")
    unknown = sorted(set(boxes["actions"].tolist()) - set(ACTIONS), key=str)
    if unknown:
        raise ArgumentError("boxes", f"{path}: the action {unknown[0]!r} is none of {', '.join(ACTIONS)}.")
    return boxes


def limit_frames(n_frames: int, frames: int | None) -> int:
    """The number of frames to use."""
    if frames is not None and frames > n_frames:
        raise ArgumentError("frames", f"{frames} is more than the {n_frames} frames of the scene.")
    return n_frames if frames is None else frames


def mark_and_smooth(grid: OccupancyGrid, smoothing: float | None) -> OccupancyGrid:
    """The same grid with the study's mark, smoothing and power."""
    smoothing = SMOOTHING if smoothing is None else smoothing
    return replace(grid, smoothing=smoothing, host_height=HOST_HEIGHT, power=POWER)


def make_scene(
    *,
    name: str,
    number: str,
    source: str,
    grid: OccupancyGrid,
    raw_grids: np.ndarray,
    frames: np.ndarray,
    labels: np.ndarray,
    motion: Motion,
    sample_frequency: float,
) -> DrivingScene:
    """Join the frames, both raw and marked and smoothed as `grid` says; check that there is something to learn."""
    raw = join_frames(raw_grids, frames)
    joint = join_frames(smooth_grids(raw_grids, grid), frames)
    if len(joint.frames) < LEAST_OBSERVATIONS:
        raise ArgumentError(
            "frames", f"scene {name} has {len(joint.frames)} observations; at least {LEAST_OBSERVATIONS} are needed."
        )
    present = np.unique(labels[joint.frames])
    if len(present) == 1:
        raise ArgumentError("scene", f"scene {name} has only one action ({present[0]}), so there is nothing to learn.")
    return DrivingScene(
        name=name,
        number=number,
        source=source,
        grid=grid,
        observations=joint.observations,
        raw=raw.observations,
        frames=joint.frames,
        labels=labels,
        motion=motion,
        n_skipped=len(labels) - len(frames),
        n_left_out=joint.n_left_out,
        sample_frequency=sample_frequency,
    )
