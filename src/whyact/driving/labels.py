"""The driver's actions from the car's measured motion (Sec. 6).

Acceleration, deceleration and constant speed follow from the acceleration, smoothed over a short time: above one
threshold, below the other, or between.

A lane change is found by its yaw rate. The road turns the car as well, so the running median of the yaw rate over a
long time is taken to be the road's and subtracted; a median follows a long bend from its first frame to its last and
is not moved by a short swing. What is left is searched for swings: runs of frames beyond a threshold to one side. Two
successive swings to opposite sides are a lane change to the side of the first if, from the begin of the first to the
end of the second,

    heading(t) = sum of yaw rate dt          comes back to about 0, and never is as large as in a turn;
    displacement = sum of speed sin(heading) dt    is about a lane.

A turn at a junction does not come back, a correction of the steering does not displace, and neither is a lane change.
A shift of the road itself by a lane's width looks the same to an IMU and is taken for one.
"""

import math
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyact.driving.kitti import OXTS_COLUMNS, SAMPLE_FREQUENCY
from whyact.errors import ArgumentError

ACCELERATION, DECELERATION, CONSTANT_SPEED, CHANGE_LEFT, CHANGE_RIGHT = "A", "D", "C", "L", "R"
ACTIONS = {
    ACCELERATION: "acceleration",
    DECELERATION: "deceleration",
    CONSTANT_SPEED: "constant speed",
    CHANGE_LEFT: "lane change (left)",
    CHANGE_RIGHT: "lane change (right)",
}

NOISE = 0.1  # standard deviation of the noise in an acceleration, in m/s^2, that calls for smoothing
NOISE_SMOOTHING = 0.5  # in seconds


class Motion(NamedTuple):
    """Motion of the car, one value a frame."""

    speed: np.ndarray  # m/s, forward
    acceleration: np.ndarray  # m/s^2, forward
    yaw_rate: np.ndarray  # rad/s, positive to the left


@dataclass(frozen=True)
class LabelRules:
    """What counts as which action. Times are in seconds, all else in metres, seconds and radians.

    Parameters
    ----------
    smoothing : length of the moving average over the acceleration and the yaw rate
    acceleration, deceleration : thresholds, both positive
    standstill : below this speed the car stands, which is constant speed, whatever the sensor says
    minimum_duration : runs of an action that are shorter go to the longer of their neighbours
    swing : yaw rate beyond the road's that counts as a swing
    swing_gap : swings to the same side that are no farther apart are one
    road_smoothing : length of the running median that is taken for the yaw rate of the road
    change_duration : shortest and longest lane change
    change_displacement : smallest and largest displacement to the side
    change_heading : largest heading relative to the road during a lane change
    final_heading : largest heading relative to the road at its end
    """

    smoothing: float = 0.5
    acceleration: float = 0.4
    deceleration: float = 0.4
    standstill: float = 0.1
    minimum_duration: float = 0.5
    swing: float = 0.01
    swing_gap: float = 0.5
    road_smoothing: float = 12.0
    change_duration: tuple[float, float] = (2.0, 10.0)
    change_displacement: tuple[float, float] = (2.0, 6.0)
    change_heading: float = math.radians(25)
    final_heading: float = math.radians(3)

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in ("change_duration", "change_displacement"):
                if not (len(value) == 2 and 0 < value[0] < value[1] < math.inf):
                    raise ArgumentError(
                        entry.name, f"{entry.name} must be two positive numbers, the smaller one first, not {value!r}."
                    )
            elif not 0 <= value < math.inf:
                raise ArgumentError(entry.name, f"{entry.name} must be a number and not negative, not {value!r}.")


def motion_from_oxts(oxts: np.ndarray, sample_frequency: float = SAMPLE_FREQUENCY) -> Motion:
    """Speed, acceleration and yaw rate of the car from the measurements of GPS and IMU.

    An acceleration with much noise is smoothed. Where the column of the yaw rate is all zero, the rate comes from the
    heading.
    """
    oxts = np.asarray(oxts, dtype=np.float64)
    if oxts.ndim != 2 or oxts.shape[1] != len(OXTS_COLUMNS) or len(oxts) < 2:
        raise ArgumentError("oxts", f"oxts must be an array (2 or more frames, {len(OXTS_COLUMNS)}), not {oxts.shape}.")
    columns = dict(zip(OXTS_COLUMNS, oxts.T, strict=True))
    acceleration = columns["af"]
    if estimate_noise(acceleration) > NOISE:
        acceleration = smooth(acceleration, count_frames(NOISE_SMOOTHING, sample_frequency))
    yaw_rate = columns["wu"]
    if not yaw_rate.any():
        yaw_rate = np.gradient(np.unwrap(columns["yaw"]), 1 / sample_frequency)
    return Motion(columns["vf"].copy(), acceleration.copy(), yaw_rate.copy())


def estimate_noise(values: np.ndarray) -> float:
    """Standard deviation of white noise on a slow signal: second differences hide the signal and scale by sqrt(6)."""
    if len(values) < 3:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(values, 2))) / math.sqrt(6))


def label_actions(
    acceleration: np.ndarray,
    speed: np.ndarray,
    yaw_rate: np.ndarray,
    sample_frequency: float = SAMPLE_FREQUENCY,
    rules: LabelRules | None = None,
) -> np.ndarray:
    """Name the action in each frame by its letter in ACTIONS; a lane change hides acceleration and deceleration."""
    rules = rules or LabelRules()
    if not 0 < sample_frequency < math.inf:
        raise ArgumentError("sample_frequency", f"sample_frequency must be positive, not {sample_frequency!r}.")
    motion = check_motion(Motion(speed, acceleration, yaw_rate))
    smoothed = smooth(motion.acceleration, count_frames(rules.smoothing, sample_frequency))
    labels = np.full(len(smoothed), CONSTANT_SPEED)
    moves = motion.speed >= rules.standstill
    labels[moves & (smoothed > rules.acceleration)] = ACCELERATION
    labels[moves & (smoothed < -rules.deceleration)] = DECELERATION
    for first, last, side in find_lane_changes(motion.speed, motion.yaw_rate, sample_frequency, rules):
        labels[first : last + 1] = side
    return absorb_short_runs(labels, math.ceil(rules.minimum_duration * sample_frequency - 1e-9))


def check_motion(motion: Motion) -> Motion:
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in motion._asdict().items()}
    n_frames = arrays["acceleration"].size
    for name, values in arrays.items():
        if values.shape != (n_frames,) or not n_frames:
            raise ArgumentError(name, f"{name} must have one value for each frame, not the shape {values.shape}.")
        if not np.isfinite(values).all():
            raise ArgumentError(name, f"{name} must be finite, and is not in frame {np.isfinite(values).argmin()}.")
    return Motion(**arrays)


class LaneChange(NamedTuple):
    """Frames of a lane change."""

    first: int
    last: int
    side: str


def find_lane_changes(
    speed: np.ndarray, yaw_rate: np.ndarray, sample_frequency: float, rules: LabelRules
) -> list[LaneChange]:
    """Lane changes in the order of time; of two that overlap, the one with the larger displacement."""
    from scipy.ndimage import median_filter

    window = count_frames(rules.road_smoothing, sample_frequency)
    relative = smooth(yaw_rate, count_frames(rules.smoothing, sample_frequency))
    relative = relative - median_filter(relative, window, mode="nearest")
    swings = find_swings(relative, rules.swing, math.floor(rules.swing_gap * sample_frequency))
    candidates = []
    for (first, _, side), (_, last, back) in pairwise(swings):
        duration = (last - first + 1) / sample_frequency
        heading = np.cumsum(relative[first : last + 1]) / sample_frequency
        displacement = np.sum(speed[first : last + 1] * np.sin(heading)) / sample_frequency * side
        if (
            side == -back
            and rules.change_duration[0] <= duration <= rules.change_duration[1]
            and rules.change_displacement[0] <= displacement <= rules.change_displacement[1]
            and np.abs(heading).max() <= rules.change_heading
            and abs(heading[-1]) <= rules.final_heading
        ):
            candidates.append((displacement, LaneChange(first, last, CHANGE_LEFT if side > 0 else CHANGE_RIGHT)))
    chosen: list[LaneChange] = []
    for _, change in sorted(candidates, key=lambda entry: -entry[0]):
        if all(change.last < other.first or change.first > other.last for other in chosen):
            chosen.append(change)
    return sorted(chosen)


def find_swings(relative: np.ndarray, threshold: float, n_gap: int) -> list[tuple[int, int, int]]:
    """Runs of frames beyond the threshold: first frame, last frame, and 1 (left) or -1 (right)."""
    sides = np.sign(relative) * (np.abs(relative) > threshold)
    swings: list[tuple[int, int, int]] = []
    for first, last in find_runs(sides):
        side = int(sides[first])
        if not side:
            continue
        if swings and swings[-1][2] == side and first - swings[-1][1] - 1 <= n_gap:
            swings[-1] = (swings[-1][0], last, side)
        else:
            swings.append((first, last, side))
    return swings


def absorb_short_runs(labels: np.ndarray, n_minimum: int) -> np.ndarray:
    """Give runs of fewer than `n_minimum` frames to the longer of their neighbours, the shortest run first.

    Of equally short runs the earlier goes first, and of equally long neighbours the earlier one takes it.
    """
    labels = labels.copy()
    while True:
        runs = find_runs(labels)
        lengths = [last - first + 1 for first, last in runs]
        shortest = int(np.argmin(lengths))
        if lengths[shortest] >= n_minimum or len(runs) == 1:
            return labels
        neighbours = [run for run in (shortest - 1, shortest + 1) if 0 <= run < len(runs)]
        longer = max(neighbours, key=lambda run: (lengths[run], -run))
        labels[runs[shortest][0] : runs[shortest][1] + 1] = labels[runs[longer][0]]


def find_runs(values: np.ndarray) -> list[tuple[int, int]]:
    """First and last position of each run of equal values."""
    ends = [*(np.flatnonzero(values[1:] != values[:-1])).tolist(), len(values) - 1]
    return [(before + 1, end) for before, end in zip([-1, *ends[:-1]], ends, strict=True)]


def smooth(values: np.ndarray, n_frames: int) -> np.ndarray:
    """Centred moving average; at the ends, of those frames that there are."""
    window = np.ones(n_frames)
    counts = np.convolve(np.ones(len(values)), window)
    half = n_frames // 2
    inside = slice(half, half + len(values))
    return np.convolve(values, window)[inside] / counts[inside]


def count_frames(duration: float, sample_frequency: float) -> int:
    """Odd number of frames nearest to a duration, at least one."""
    return 2 * round((duration * sample_frequency - 1) / 2) + 1 if duration * sample_frequency > 1 else 1
