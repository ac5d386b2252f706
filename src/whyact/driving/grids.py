"""Occupancy grids (Sec. 6): from a scan's points to an image of heights, from two frames to one observation.

Points below the cut are ground and are dropped, as are returns of the car itself. Each cell then holds the largest
height above the cut, 0 where nothing was measured. Rows are lateral from right to left, columns longitudinal from rear
to front.

Two more steps are not in the paper and are off by default. An edge that moves by one cell changes two cells by its full
height, so neighbouring frames look unrelated; smoothed along the road, nearby positions look alike. And positive
features cannot explain an observation that holds nothing; a mark where the host vehicle is gives an empty road content.

An observation is the grid of a frame followed by the grid of the frame before it, so that it shows motion. Motion
relative to the car by less than a cell per frame cannot be told from no motion.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from whyact.driving.kitti import Scene, read_scan
from whyact.errors import ArgumentError

# Seen from the LIDAR, the Passat extends from about -1.8 to 2.9 m and 0.9 m to each side. In the scans of sequence 0000
# its returns lie within -1.26 < x < 2.81 and |y| < 1.6, which is wider than the car.
OWN_VEHICLE = ((-1.8, 3.0), (-1.6, 1.6))
LONGITUDINAL_RANGES = {"0011": (-10.0, 30.0), "0020": (-40.0, 40.0)}  # of the paper's two scenes


@dataclass(frozen=True)
class OccupancyGrid:
    """A grid of heights around the car, which is at the origin. Lengths are in metres, x is forward and y left.

    `grid_size` and `grid_step` have the meaning of highway-env's `OccupancyGridObservation`, x first. Its grids are
    indexed [x, y]; these are indexed [y, x], like images.

    Parameters
    ----------
    shape : (int, int), default=(21, 65)
        Numbers of rows (lateral) and columns (longitudinal).
    lateral, longitudinal : (float, float), default=(-3, 3) and (-10, 30)
        Where the grid begins and ends; points on the end are outside.
    ground : float, default=-1.5
        Height of the cut relative to the LIDAR, which is 1.73 m above the road.
    ceiling : float or None, default=None
        Points above this height relative to the LIDAR are dropped, such as trees over the road. None: no points are.
    own_vehicle : ((x from, x to), (y from, y to)) or None, default=((-1.8, 3.0), (-1.6, 1.6))
        Box whose points are returns of the car itself and are dropped. None: no points are.
    smoothing : float, default=0
        Standard deviation of a Gaussian along the road that smooths the finished grid. 0: no smoothing.
    host_height : float, default=0
        Height given to the cell of the origin, where the host vehicle is, before the smoothing. 0: no mark.
    power : float, default=1
        Power of the heights after the smoothing. The square root, 0.5, gives the tails of the smoothing more weight, so
        that nearby positions look alike even where they hardly overlap. 1: heights as they are.

    Examples
    --------
    >>> from whyact.driving.grids import OccupancyGrid
    >>> grid = OccupancyGrid()
    >>> image = grid.rasterise([[12.0, 0.1, -1.0, 0.3], [12.1, 0.1, -0.25, 0.3], [13.0, 0.1, -1.7, 0.1]])
    >>> image.shape, float(image.max()), int((image > 0).sum())
    ((21, 65), 1.25, 1)
    >>> [round(speed, 1) for speed in grid.resolved_speed(10.0)]
    [2.9, 6.2]
    """

    shape: tuple[int, int] = (21, 65)
    lateral: tuple[float, float] = (-3.0, 3.0)
    longitudinal: tuple[float, float] = (-10.0, 30.0)
    ground: float = -1.5
    ceiling: float | None = None
    own_vehicle: tuple[tuple[float, float], tuple[float, float]] | None = OWN_VEHICLE
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
    def grid_size(self) -> tuple[tuple[float, float], tuple[float, float]]:
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
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    def resolved_speed(self, sample_frequency: float) -> tuple[float, float]:
        """Smallest relative speed that two frames show, R f_s of the paper.

        Parameters
        ----------
        sample_frequency : float
            Frames per second.

        Returns
        -------
        (float, float)
            Lateral and longitudinal, in m/s.
        """
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

    def rasterise(self, points: ArrayLike) -> np.ndarray:
        """Draw the largest height above the cut in each cell, 0 where there is none; then apply `smooth_grids`.

        Parameters
        ----------
        points : array-like of shape (n_points, 3 or more)
            x, y, z; further columns are ignored.

        Returns
        -------
        ndarray of shape `shape`
            Heights in metres.
        """
        points = np.asarray(points)
        if points.ndim != 2 or points.shape[1] < 3:
            raise ArgumentError("points", f"points must be an array (n_points, 3 or more), not {points.shape}.")
        # in double precision, or a limit such as 1.6 m would be rounded to the precision of the points
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
        """Indices of the points that lie in the grid, above the ground and outside the car."""
        kept = is_within(y, self.lateral) & is_within(x, self.longitudinal) & (z > self.ground)
        if self.ceiling is not None:
            kept &= z <= self.ceiling
        if self.own_vehicle is not None:
            length, width = self.own_vehicle
            kept &= ~(is_within(x, length) & is_within(y, width))
        return np.flatnonzero(kept)


class Joint(NamedTuple):
    """Observations of two consecutive frames.

    Attributes
    ----------
    observations : ndarray of shape (n, 2 * n_cells)
        The current frame, then the previous one.
    frames : ndarray of shape (n,)
        Number of the current frame.
    n_left_out : int
        Number of frames whose previous frame is missing, including the first.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.grids import join_frames
    >>> join_frames(np.zeros((3, 21, 65)), [0, 1, 2]).observations.shape
    (2, 2730)
    """

    observations: np.ndarray
    frames: np.ndarray
    n_left_out: int


def grid_of_scene(scene: int | str) -> OccupancyGrid:
    """Make the paper's grid for a scene: -40 m to 40 m along the road for Scene 20, -10 m to 30 m for all others.

    Parameters
    ----------
    scene : int or str
        Number of the sequence.

    Returns
    -------
    OccupancyGrid

    Examples
    --------
    >>> from whyact.driving.grids import grid_of_scene
    >>> grid_of_scene(20).longitudinal
    (-40.0, 40.0)
    """
    default = LONGITUDINAL_RANGES["0011"]
    return OccupancyGrid(longitudinal=LONGITUDINAL_RANGES.get(str(scene).zfill(4), default))


def rasterise_scene(scene: Scene, grid: OccupancyGrid) -> np.ndarray:
    """Make the grids of all scans of a scene.

    Parameters
    ----------
    scene : Scene
        As found by `find_scene`.
    grid : OccupancyGrid
        Where the cells are, and which points count.

    Returns
    -------
    ndarray of shape (n_scans, *grid.shape)
        Grids in the order of `scene.frames`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from whyact.driving.grids import OccupancyGrid, rasterise_scene
    >>> from whyact.driving.kitti import Scene
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "000000.bin"
    ...     np.array([[12.0, 0.1, -0.5, 0.3]], "<f4").tofile(path)
    ...     grids = rasterise_scene(Scene("0011", "tracking", {0: path}, np.zeros((1, 30))), OccupancyGrid())
    >>> grids.shape, float(grids.max())
    ((1, 21, 65), 1.0)
    """
    return np.stack([grid.rasterise(read_scan(path)) for path in scene.scans.values()])


def smooth_grids(grids: np.ndarray, grid: OccupancyGrid) -> np.ndarray:
    """Mark the host vehicle, smooth along the road and take the power, as `grid` says; for grids from elsewhere.

    Parameters
    ----------
    grids : array of shape (..., *grid.shape)
        Plain heights, which are not changed.
    grid : OccupancyGrid
        Its `host_height`, `smoothing` and `power` are used.

    Returns
    -------
    ndarray of shape (..., *grid.shape)

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.grids import OccupancyGrid, smooth_grids
    >>> grid = OccupancyGrid(shape=(1, 5), longitudinal=(-5.0, 5.0), host_height=1.0, smoothing=2.0)
    >>> smooth_grids(np.zeros((1, 5)), grid).round(2)
    array([[0.05, 0.24, 0.4 , 0.24, 0.05]])
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
    """Join each grid with the grid of the frame before; frames without one are left out and counted.

    Parameters
    ----------
    grids : array of shape (n_frames, ...)
        Grids as made by `rasterise_scene`.
    frames : array-like of shape (n_frames,)
        Numbers of the frames, increasing. After a gap, the next frame has no previous frame.

    Returns
    -------
    Joint
        Observations, their frames, and the number of frames left out.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.grids import join_frames
    >>> joint = join_frames(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), frames=[0, 1, 3])
    >>> joint.observations, joint.frames, joint.n_left_out
    (array([[2., 3., 0., 1.]]), array([1]), 2)
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
    """Split observations or features into current and previous frame; undoes `join_frames`.

    Parameters
    ----------
    joint : array of shape (..., 2 * n_cells)
        The current frame, then the previous one.
    shape : (int, int)
        Rows and columns of a grid.

    Returns
    -------
    current, previous : ndarray of shape (..., *shape)

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.grids import split_frames
    >>> split_frames(np.array([2.0, 3.0, 0.0, 1.0]), shape=(1, 2))
    (array([[2., 3.]]), array([[0., 1.]]))
    """
    joint = np.asarray(joint)
    n_cells = math.prod(shape)
    if joint.ndim < 1 or joint.shape[-1] != 2 * n_cells:
        raise ArgumentError("joint", f"two frames of {shape[0]} x {shape[1]} cells have {2 * n_cells} values, "
                            f"not {joint.shape[-1] if joint.ndim else 1}.")  # fmt: skip
    pairs = joint.reshape(*joint.shape[:-1], 2, *shape)
    return pairs[..., 0, :, :], pairs[..., 1, :, :]


def is_within(values: np.ndarray, interval: tuple[float, float]) -> np.ndarray:
    """Whether each value lies in a half-open interval."""
    return (values >= interval[0]) & (values < interval[1])


def is_number(value: object) -> bool:
    """Whether something is a finite number."""
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def is_pair(value: object) -> bool:
    """Whether something is a tuple or list of two."""
    return isinstance(value, tuple | list) and len(value) == 2


def check_interval(name: str, interval: tuple[float, float]) -> None:
    """Check that a parameter is two finite numbers that increase."""
    if not (is_pair(interval) and all(map(is_number, interval)) and interval[0] < interval[1]):
        raise ArgumentError(name, f"{name} must be two numbers, the smaller one first, not {interval!r}.")
