"""Simulated traffic (highway-env): scenes, what the driver sees in them, and demonstrations of an IDM/MOBIL driver.

highway-env's IDM/MOBIL drivers take no meta-actions, so each step is labelled with what the driver did in it: a new
target lane, else a change of speed by more than `SPEED_CHANGE`, else nothing.

Traffic travels in platoons, more slowly than the driver wants to, and the scene is drawn anew for every episode: cars
close ahead or far away, lanes beside that are taken or free, a driver who is slow or fast. This is what balances the
actions; left alone for a while, an IDM driver settles behind somebody and does nothing any more. It is also what shows
the states that a learned driver may get into and the expert would not.

An observation is what is seen now, what was seen one second before, and the speed:

- Three lanes (right, own, left; highway-env's `grid_size` and `grid_step`), each cell with how much of a car is in it.
  Cars that cross into the next cell show in both, so motion shows below the size of a cell. A car hides the cars behind
  it. Where there is no road, all cells are full: one cannot go there either.
- A speedometer, with a needle a few cells wide. Whether a free road says "faster" depends on the driver's own speed,
  which positions of other cars cannot tell.

All values are between 0 and 1. As one image, `GRID.image_shape`, rows are: now right, now own, now left; before right,
before own, before left; speed. highway-env is an extra (`pip install whyact[driving]`), imported when first needed.
"""

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

ACTIONS = ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")  # positions are highway-env's numbers
LANE_WIDTH = 4.0  # highway-env's
SPEED_CHANGE = 0.75  # m/s within a step of one second; less than this is IDLE
N_FRAMES = 10  # simulated frames a second
START = 300.0  # where on the road the driver starts, in metres
WANTED_SPEED = 18.0  # of the expert, m/s
# What the meta-actions FASTER and SLOWER choose from.
TARGET_SPEEDS = tuple(3.0 * np.arange(8))

Interval = tuple[float, float]


@dataclass(frozen=True)
class TrafficGrid:
    """What the driver sees; x is forward and y to the right, as in highway-env. Lengths in metres, speeds in m/s."""

    grid_size: tuple[Interval, Interval] = ((-20.0, 80.0), (-6.0, 6.0))  # x, then y
    grid_step: tuple[float, float] = (10.0, LANE_WIDTH)
    highest_speed: float = 20.0
    needle: float = 4.0  # half the width of the speedometer's needle

    @property
    def x_edges(self) -> np.ndarray:
        return np.arange(*self.grid_size[0], self.grid_step[0]).tolist() + [self.grid_size[0][1]]

    @property
    def y_edges(self) -> np.ndarray:
        """From right to left."""
        return self.grid_size[1][1] - self.grid_step[1] * np.arange(self.frame_shape[0] + 1)

    @property
    def frame_shape(self) -> tuple[int, int]:
        lengths = [round((high - low) / step) for (low, high), step in zip(self.grid_size, self.grid_step, strict=True)]
        return lengths[1], lengths[0]

    @property
    def image_shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.frame_shape
        return 2 * n_rows + 1, n_columns

    @property
    def speed_edges(self) -> np.ndarray:
        return np.linspace(0, self.highest_speed, self.frame_shape[1] + 1)

    @property
    def column_names(self) -> list[str]:
        """A name for each column of the observations."""
        steps = list(zip(self.x_edges[:-1], self.x_edges[1:], strict=True))
        speeds = zip(self.speed_edges[:-1], self.speed_edges[1:], strict=True)
        lanes = ["right", "own", "left"]
        return [
            *(f"{time} {lane} {a:g}..{b:g} m" for time in ("now", "before") for lane in lanes for a, b in steps),
            *(f"speed {a:g}..{b:g} m/s" for a, b in speeds),
        ]
