"""KITTI scenes for tests: made ones, and the real ones where they are."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import ROOT


def find_real_data() -> Path:
    """Folder with KITTI data, which the repository does not hold; without it the test is skipped."""
    folder = Path(os.environ.get("WHYACT_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "kitti-tracking" / "training" / "velodyne" / "0000").is_dir():
        pytest.skip(f"real KITTI data is not here: no kitti-tracking in {folder} (set WHYACT_DATA)")
    return folder


def make_points(frame, n_points=5):
    return np.random.default_rng(frame).uniform(-2, 2, (n_points, 4)).astype("<f4")


def make_line(frame):
    """A line of oxts whose speed tells the frame."""
    values = [0.0] * 30
    values[8] = float(frame)
    return " ".join(map(str, values))


def make_tracking(root, name="0011", n_frames=4, lacking=()):
    """A sequence in the layout of the tracking benchmark; `root` is the folder above `training`."""
    scans = root / "training" / "velodyne" / name
    scans.mkdir(parents=True)
    for frame in range(n_frames):
        if frame not in lacking:
            make_points(frame).tofile(scans / f"{frame:06d}.bin")
    (root / "training" / "oxts").mkdir(exist_ok=True)
    (root / "training" / "oxts" / f"{name}.txt").write_text("".join(f"{make_line(n)}\n" for n in range(n_frames)))
    return scans


def make_raw(date_folder, number=1, n_frames=4, lacking=(), date="2011_09_26"):
    """A raw drive."""
    drive = date_folder / f"{date}_drive_{number:04d}_sync"
    scans = drive / "velodyne_points" / "data"
    scans.mkdir(parents=True)
    (drive / "oxts" / "data").mkdir(parents=True)
    for frame in range(n_frames):
        if frame not in lacking:
            make_points(frame).tofile(scans / f"{frame:010d}.bin")
        (drive / "oxts" / "data" / f"{frame:010d}.txt").write_text(make_line(frame))
    return drive
