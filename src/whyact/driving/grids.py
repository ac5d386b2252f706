"""Occupancy grids (Sec. 6): from a scan's points to an image of heights, from two frames to one observation.

Points below the cut are ground and are dropped, as are the returns of the car itself. Each cell then holds the largest
height above the cut, 0 where nothing was measured. Rows are lateral from right to left, columns longitudinal from rear
to front.

Two more steps are not in the paper, and off by default. An edge that moves by one cell changes two cells by its full
height, so neighbouring frames look unrelated; smoothed along the road, what is near looks alike. And positive features
cannot speak in an observation that holds nothing; with a mark where the host vehicle is, an empty road is not nothing.

An observation is the grid of a frame followed by the grid of the frame before it, so that it shows motion:
what moves relative to the car by less than a cell from frame to frame cannot be told from what stands still.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whyact.driving.kitti import Scene, read_scan
from whyact.errors import ArgumentError

Interval = tuple[float, float]

# Seen from the LIDAR, the Passat reaches from about -1.8 to 2.9 m and 0.9 m to each side. In the scans of sequence 0000
# its returns lie within -1.26 < x < 2.81 and |y| < 1.6, which is wider than the car.
OWN_VEHICLE = ((-1.8, 3.0), (-1.6, 1.6))


@dataclass(frozen=True)
class OccupancyGrid:
    """A grid of heights around the car, which is at the origin. Lengths are in metres, x is forward and y left.

    `grid_size` and `grid_step` mean what they mean in highway-env's `OccupancyGridObservation`, x first; its own grids
    are indexed [x, y], these are [y, x], as images are.

    Parameters
    ----------
    shape : (int, int)
        Numbers of rows (lateral) and columns (longitudinal).
    lateral, longitudinal : (float, float)
        Where the grid begins and ends; what lies on the end is outside.
    ground : float
        Height of the cut relative to the LIDAR, which is 1.73 m above the road.
    ceiling : float or None
        Points above this height relative to the LIDAR are dropped, such as trees over the road; None: none are.
    own_vehicle : ((x from, x to), (y from, y to)) or None
        Box whose points are returns of the car itself and are dropped; None: none are.
    smoothing : float
        Standard deviation, in metres, of a Gaussian along the road that is put over the finished grid; 0: none is.
    power : float
        Power of the heights after the smoothing. The square root, 0.5, lets the tails of the smoothing count for more,
        so that what is near looks alike even where it hardly overlaps; 1: heights as they are.
    host_height : float
        Height that the cell of the origin, where the host vehicle is, gets before the smoothing; 0: stays as it is.

    Examples
    --------
    >>> grid = OccupancyGrid()
    >>> image = grid.rasterise([[12.0, 0.1, -1.0, 0.3], [12.1, 0.1, -0.25, 0.3], [13.0, 0.1, -1.7, 0.1]])
    >>> image.shape, float(image.max()), int((image > 0).sum())
    ((21, 65), 1.25, 1)
    >>> [round(speed, 1) for speed in grid.resolved_speed(10.0)]
    [2.9, 6.2]
    """

    shape: tuple[int, int] = (21, 65)
    lateral: Interval = (-3.0, 3.0)
    longitudinal: Interval = (-10.0, 30.0)
    ground: float = -1.5
    ceiling: float | None = None
    own_vehicle: tuple[Interval, Interval] | None = OWN_VEHICLE
    smoothing: float = 0.0
    host_height: float = 0.0
    power: float = 1.0

    def __post_init__(self) -> None:
        if not (is_pair(self.shape) and all(isinstance(n, int | np.integer) and n >= 1 for n in self.shape)):
            raise ArgumentError("shape", f"shape must be two positive whole numbers, not {self.shape!r}.")
        check_interval("lateral", self.lateral)
        check_interval("longitudinal", self.longitudinal)
        if not is_number(self.ground):
            raise ArgumentError("ground", f"ground must be a finite number, not {self.ground!r}.")
        if self.ceiling is not None and not (is_number(self.ceiling) and self.ceiling > self.ground):
            raise ArgumentError("ceiling", f"ceiling must be above ground ({self.ground:g}), not {self.ceiling!r}.")
        if self.own_vehicle is not None:
            if not is_pair(self.own_vehicle):
                raise ArgumentError(
                    "own_vehicle",
                    f"own_vehicle must be ((x from, x to), (y from, y to)) or None, not {self.own_vehicle!r}.",
                )
            for interval in self.own_vehicle:
                check_interval("own_vehicle", interval)
        for name, value in (("smoothing", self.smoothing), ("host_height", self.host_height)):
            if not (is_number(value) and value >= 0):
                raise ArgumentError(name, f"{name} must be a finite number and not negative, not {value!r}.")
        if not (is_number(self.power) and 0 < self.power <= 1):
            raise ArgumentError("power", f"power must be above 0 and at most 1, not {self.power!r}.")
        if self.host_height and not all(low <= 0 < high for low, high in self.grid_size):
            raise ArgumentError("host_height", "host_height must be 0 for a grid that does not hold the origin.")

    @property
    def grid_size(self) -> tuple[Interval, Interval]:
        """Where the grid begins and ends: ((x from, x to), (y from, y to))."""
        return self.longitudinal, self.lateral

    @property
    def grid_step(self) -> tuple[float, float]:
        """Size of a cell: (x, y)."""
        lateral, longitudinal = self.resolution
        return longitudinal, lateral

    @property
    def resolution(self) -> tuple[float, float]:
        """R of the paper, metres per cell: (lateral, longitudinal), in the order of `shape`."""
        (right, left), (rear, front) = self.lateral, self.longitudinal
        return (left - right) / self.shape[0], (front - rear) / self.shape[1]

    @property
    def n_cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def resolved_speed(self, sample_frequency: float) -> tuple[float, float]:
        """Smallest relative speed, R f_s, that two frames show: (lateral, longitudinal), in m/s."""
        if not (is_number(sample_frequency) and sample_frequency > 0):
            raise ArgumentError("sample_frequency", f"sample_frequency must be positive, not {sample_frequency!r}.")
        lateral, longitudinal = self.resolution
        return lateral * sample_frequency, longitudinal * sample_frequency

    @property
    def host_cell(self) -> tuple[int, int]:
        """Row and column of the cell that holds the origin."""
        starts = self.lateral[0], self.longitudinal[0]
        row, column = (
            min(math.floor(-start / step), n - 1)
            for start, step, n in zip(starts, self.resolution, self.shape, strict=True)
        )
        return row, column

    def rasterise(self, points: np.ndarray | Sequence) -> np.ndarray:
        """Largest height above the cut in each cell, 0 where there is none; then what `smooth_grids` does.

        Parameters
        ----------
        points : array-like (n_points, 3 or more)
            x, y, z, and what else there is.
        """
        points = np.asarray(points)
        if points.ndim != 2 or points.shape[1] < 3:
            raise ArgumentError("points", f"points must be an array (n_points, 3 or more), not {points.shape}.")
        # in double precision, else a limit such as 1.6 m would be rounded to that of the points
        x, y, z = points[:, :3].T.astype(np.float64, order="C")
        if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(z).all()):
            raise ArgumentError("points", "points must be finite.")
        kept = self.keep(x, y, z)
        x, y, z = x[kept], y[kept], z[kept]
        lateral, longitudinal = self.resolution
        rows = np.floor((y - self.lateral[0]) / lateral).astype(np.intp)
        columns = np.floor((x - self.longitudinal[0]) / longitudinal).astype(np.intp)
        # a point just before the end may be rounded to it
        cells = np.minimum(rows, self.shape[0] - 1) * self.shape[1] + np.minimum(columns, self.shape[1] - 1)
        heights = np.zeros(self.n_cells)
        np.maximum.at(heights, cells, z - self.ground)
        return smooth_grids(heights.reshape(self.shape), self)

    def keep(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Numbers of the points that lie in the grid, above the ground and outside of the car."""
        kept = is_within(y, self.lateral) & is_within(x, self.longitudinal) & (z > self.ground)
        if self.ceiling is not None:
            kept &= z <= self.ceiling
        if self.own_vehicle is not None:
            length, width = self.own_vehicle
            kept &= ~(is_within(x, length) & is_within(y, width))
        return np.flatnonzero(kept)


class Joint(NamedTuple):
    """Observations of two consecutive frames."""

    observations: np.ndarray  # (n, 2 * n_cells), current frame first, then the previous one
    frames: np.ndarray  # (n,) number of the current frame
    n_left_out: int  # frames whose previous frame is missing, the first one among them


LONGITUDINAL_RANGES = {"0011": (-10.0, 30.0), "0020": (-40.0, 40.0)}  # of the paper's two scenes


def grid_of_scene(scene: int | str) -> OccupancyGrid:
    """The paper's grid for a scene: -40 m to 40 m along the road for Scene 20, -10 m to 30 m for all others."""
    default = LONGITUDINAL_RANGES["0011"]
    return OccupancyGrid(longitudinal=LONGITUDINAL_RANGES.get(str(scene).zfill(4), default))


def rasterise_scene(scene: Scene, grid: OccupancyGrid) -> np.ndarray:
    """Grids (n_scans, *grid.shape) of all scans, in the order of `scene.frames`."""
    return np.stack([grid.rasterise(read_scan(path)) for path in scene.scans.values()])


def smooth_grids(grids: np.ndarray, grid: OccupancyGrid) -> np.ndarray:
    """Mark the host vehicle, smooth along the road and take the power, as `grid` says; for grids from elsewhere.

    Parameters
    ----------
    grids : array (..., *grid.shape)
        Heights without any of it. They are not changed.
    """
    from scipy.ndimage import gaussian_filter1d

    grids = np.array(grids, dtype=np.float64)
    if grids.shape[-2:] != tuple(grid.shape):
        raise ArgumentError("grids", f"grids must be an array (..., {grid.shape[0]}, {grid.shape[1]}), "
                            f"not {grids.shape}.")  # fmt: skip
    if grid.host_height:
        grids[..., *grid.host_cell] = grid.host_height
    if grid.smoothing:
        grids = gaussian_filter1d(grids, grid.smoothing / grid.resolution[1], axis=-1, mode="constant")
    return grids if grid.power == 1 else np.maximum(grids, 0.0) ** grid.power


def join_frames(grids: np.ndarray, frames: Sequence[int] | np.ndarray) -> Joint:
    """Put each grid together with the grid of the frame before; frames without one are left out, and counted.

    Parameters
    ----------
    grids : array (n_frames, ...)
    frames : array-like (n_frames,)
        Numbers of the frames, increasing; where one is missing, the next has no previous frame.
    """
    grids = np.asarray(grids)
    frames = np.asarray(frames)
    if frames.ndim != 1 or len(frames) != len(grids):
        raise ArgumentError("frames", f"frames must have one number for each of the {len(grids)} grids.")
    if (np.diff(frames) <= 0).any():
        raise ArgumentError("frames", "frames must increase.")
    current = np.flatnonzero(np.diff(frames) == 1) + 1
    flat = grids.reshape(len(grids), -1)
    observations = np.concatenate([flat[current], flat[current - 1]], axis=1)
    return Joint(observations, frames[current], len(frames) - len(current))


def split_frames(joint: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Current and previous frame of observations or features (..., 2 * n_cells), each (..., *shape)."""
    joint = np.asarray(joint)
    n_cells = math.prod(shape)
    if joint.ndim < 1 or joint.shape[-1] != 2 * n_cells:
        raise ArgumentError("joint", f"two frames of {shape[0]} x {shape[1]} cells have {2 * n_cells} values, "
                            f"not {joint.shape[-1] if joint.ndim else 1}.")  # fmt: skip
    pairs = joint.reshape(*joint.shape[:-1], 2, *shape)
    return pairs[..., 0, :, :], pairs[..., 1, :, :]


def is_within(values: np.ndarray, interval: Interval) -> np.ndarray:
    return (values >= interval[0]) & (values < interval[1])


def is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def is_pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2


def check_interval(name: str, interval: Interval) -> None:
    if not (is_pair(interval) and all(map(is_number, interval)) and interval[0] < interval[1]):
        raise ArgumentError(name, f"{name} must be two numbers, the smaller one first, not {interval!r}.")
