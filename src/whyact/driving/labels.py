"""The driver's actions from the car's measured motion (Sec. 6).

Acceleration, deceleration and constant speed follow from the acceleration, smoothed over a short time: above one
threshold, below the other, or between the two.

A lane change is found by its yaw rate. The road turns the car as well, so the running median of the yaw rate over a
long time is taken as the road's and subtracted; a median follows a long bend from its first frame to its last and
is not moved by a short swing. The rest is searched for swings: runs of frames beyond a threshold to one side. Two
successive swings to opposite sides are a lane change to the side of the first if, from the beginning of the first to
the end of the second,

    heading(t) = sum of yaw rate dt                returns to about 0, and is never as large as in a turn;
    displacement = sum of speed sin(heading) dt    is about the width of a lane.

A turn at a junction does not return, a correction of the steering does not displace, so neither is a lane change.
A shift of the road itself by a lane's width looks the same to an IMU and counts as one.
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
    """Motion of the car, one value per frame.

    Attributes
    ----------
    speed : ndarray of shape (n_frames,)
        Forward, in m/s.
    acceleration : ndarray of shape (n_frames,)
        Forward, in m/s^2.
    yaw_rate : ndarray of shape (n_frames,)
        In rad/s, positive to the left.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.labels import Motion
    >>> Motion(speed=np.array([10.0, 10.1]), acceleration=np.array([1.0, 1.0]), yaw_rate=np.zeros(2)).speed
    array([10. , 10.1])
    """

    speed: np.ndarray
    acceleration: np.ndarray
    yaw_rate: np.ndarray


@dataclass(frozen=True)
class LabelRules:
    """What counts as which action, in metres, seconds and radians.

    Parameters
    ----------
    smoothing : float, default=0.5
        Length of the moving average over the acceleration and the yaw rate.
    acceleration, deceleration : float, default=0.4
        Thresholds, both positive.
    standstill : float, default=0.1
        Below this speed the car stands, which is constant speed, whatever the sensor says.
    minimum_duration : float, default=0.5
        Shorter runs of an action go to the longer of their neighbours.
    swing : float, default=0.01
        Yaw rate beyond the road's that counts as a swing.
    swing_gap : float, default=0.5
        Swings to the same side that are no farther apart are one.
    road_smoothing : float, default=12
        Length of the running median that is taken as the yaw rate of the road.
    change_duration : (float, float), default=(2, 10)
        Shortest and longest lane change.
    change_displacement : (float, float), default=(2, 6)
        Smallest and largest displacement to the side.
    change_heading : float, default=0.436 (25 degrees)
        Largest heading relative to the road during a lane change.
    final_heading : float, default=0.052 (3 degrees)
        Largest heading relative to the road at the end of a lane change.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.labels import LabelRules, label_actions
    >>> acceleration = np.repeat([0.5, 0.0], 10)
    >>> "".join(label_actions(acceleration, np.full(20, 9.0), np.zeros(20), rules=LabelRules(acceleration=0.6)))
    'CCCCCCCCCCCCCCCCCCCC'
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
                raise ArgumentError(
                    entry.name, f"{entry.name} must be a finite number and not negative, not {value!r}."
                )


def motion_from_oxts(oxts: np.ndarray, sample_frequency: float = SAMPLE_FREQUENCY) -> Motion:
    """Take speed, acceleration and yaw rate of the car from the measurements of GPS and IMU.

    A noisy acceleration is smoothed. If the column of the yaw rate is all zero, the rate comes from the heading.

    Parameters
    ----------
    oxts : ndarray of shape (n_frames, 30)
        Measurements as read by `read_oxts`.
    sample_frequency : float, default=10
        Frames per second.

    Returns
    -------
    Motion

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.kitti import OXTS_COLUMNS
    >>> from whyact.driving.labels import motion_from_oxts
    >>> oxts = np.zeros((3, 30))
    >>> oxts[:, OXTS_COLUMNS.index("vf")] = [10.0, 10.1, 10.2]
    >>> motion_from_oxts(oxts).speed
    array([10. , 10.1, 10.2])
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
    """Standard deviation of white noise on a slow signal; second differences remove the signal and scale by sqrt(6)."""
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
    """Name the action in each frame by its letter in `ACTIONS`.

    A lane change takes precedence over acceleration and deceleration.

    Parameters
    ----------
    acceleration : ndarray of shape (n_frames,)
        Forward, in m/s^2.
    speed : ndarray of shape (n_frames,)
        Forward, in m/s.
    yaw_rate : ndarray of shape (n_frames,)
        In rad/s, positive to the left.
    sample_frequency : float, default=10
        Frames per second.
    rules : LabelRules or None, default=None
        What counts as which action. None: `LabelRules()`.

    Returns
    -------
    ndarray of str of shape (n_frames,)
        "A" (acceleration), "D" (deceleration), "C" (constant speed), "L" or "R" (lane change).

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.labels import label_actions
    >>> acceleration = np.repeat([0.0, 1.0, -1.0], 10)
    >>> "".join(label_actions(acceleration, speed=np.full(30, 9.0), yaw_rate=np.zeros(30)))
    'CCCCCCCCCCAAAAAAAAAAADDDDDDDDD'
    """
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
    """Check that there is one finite value of each kind for each frame."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in motion._asdict().items()}
    n_frames = arrays["acceleration"].size
    for name, values in arrays.items():
        if values.shape != (n_frames,) or not n_frames:
            raise ArgumentError(name, f"{name} must have one value for each frame, not the shape {values.shape}.")
        if not np.isfinite(values).all():
            raise ArgumentError(name, f"{name} must be finite, but is not in frame {np.isfinite(values).argmin()}.")
    return Motion(**arrays)


class LaneChange(NamedTuple):
    """First and last frame of a lane change, and its side."""

    first: int
    last: int
    side: str


def find_lane_changes(
    speed: np.ndarray, yaw_rate: np.ndarray, sample_frequency: float, rules: LabelRules
) -> list[LaneChange]:
    """Find lane changes, in the order of time; of two that overlap, the one with the larger displacement."""
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
    """Find runs of frames beyond the threshold: first frame, last frame, and 1 (left) or -1 (right)."""
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

    Ties go to the earlier run, and to the earlier neighbour.
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
    """Find the first and last position of each run of equal values."""
    ends = [*(np.flatnonzero(values[1:] != values[:-1])).tolist(), len(values) - 1]
    return [(before + 1, end) for before, end in zip([-1, *ends[:-1]], ends, strict=True)]


def smooth(values: np.ndarray, n_frames: int) -> np.ndarray:
    """Take the centred moving average; at the ends, of the frames that exist."""
    window = np.ones(n_frames)
    counts = np.convolve(np.ones(len(values)), window)
    half = n_frames // 2
    inside = slice(half, half + len(values))
    return np.convolve(values, window)[inside] / counts[inside]


def count_frames(duration: float, sample_frequency: float) -> int:
    """Find the odd number of frames nearest to a duration, at least one."""
    return 2 * round((duration * sample_frequency - 1) / 2) + 1 if duration * sample_frequency > 1 else 1
