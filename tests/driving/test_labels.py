"""Actions from motion: thresholds, lane changes that are none, and runs that are too short."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kitti_scenes import find_real_data
from whyact.driving.kitti import OXTS_COLUMNS, read_oxts
from whyact.driving.labels import (
    ACTIONS,
    LabelRules,
    absorb_short_runs,
    estimate_noise,
    find_runs,
    label_actions,
    motion_from_oxts,
    smooth,
)
from whyact.errors import ArgumentError

N_FRAMES = 300
FREQUENCY = 10.0


def steer_to_another_lane(begin, duration, speed, width=3.5, side=1):
    """Yaw rate of a lane change whose lateral acceleration is one period of a sine."""
    time = np.arange(N_FRAMES) / FREQUENCY - begin
    lateral = 2 * np.pi * width / duration**2 * np.sin(2 * np.pi * time / duration)
    return side * np.where((time >= 0) & (time < duration), lateral, 0) / speed


def label(yaw_rate, speed, acceleration=None, rules=None):
    acceleration = np.zeros(len(yaw_rate)) if acceleration is None else acceleration
    return "".join(label_actions(acceleration, np.full(len(yaw_rate), float(speed)), yaw_rate, FREQUENCY, rules))


def test_acceleration_decides():
    acceleration = np.repeat([0.0, 1.0, 0.39, -0.39, -1.0, 0.0], 20)
    labels = label(np.zeros(120), 10, acceleration, LabelRules(smoothing=0))
    assert labels == "C" * 20 + "A" * 20 + "C" * 40 + "D" * 20 + "C" * 20
    assert set(labels) <= set(ACTIONS)


def test_thresholds_can_differ():
    acceleration = np.repeat([0.6, -0.6], 20)
    assert label(np.zeros(40), 10, acceleration, LabelRules(smoothing=0, acceleration=1.0)) == "C" * 20 + "D" * 20
    assert label(np.zeros(40), 10, acceleration, LabelRules(smoothing=0, deceleration=1.0)) == "A" * 20 + "C" * 20


def test_standing_car_keeps_its_speed_whatever_the_sensor_says():
    assert label(np.zeros(20), 0.05, np.full(20, 0.8)) == "C" * 20
    assert label(np.zeros(20), 0.5, np.full(20, 0.8)) == "A" * 20


def test_smoothing_keeps_a_jolt_from_being_an_action():
    acceleration = np.zeros(60)
    acceleration[30:32] = 1.5
    rules = LabelRules(smoothing=0, minimum_duration=0)
    assert Counter(label(np.zeros(60), 10, acceleration, rules)) == {"C": 58, "A": 2}
    assert label(np.zeros(60), 10, acceleration, LabelRules(smoothing=1.0, minimum_duration=0)) == "C" * 60


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("speed", "duration"), [(8, 4), (10, 6.2), (14, 3), (25, 5), (30, 6)])
@pytest.mark.parametrize("road", [0, 0.06])
def test_lane_change_is_found_also_in_a_bend(side, speed, duration, road):
    noise = np.random.default_rng(0).normal(0, 0.003, N_FRAMES)
    labels = label(steer_to_another_lane(12, duration, speed, side=side) + road + noise, speed)
    found = [run for run in find_runs(np.array(list(labels))) if labels[run[0]] != "C"]
    assert len(found) == 1
    first, last = found[0]
    assert labels[first] == ("L" if side > 0 else "R")
    assert first == pytest.approx(120, abs=12)
    assert last == pytest.approx(120 + 10 * duration, abs=12)


def test_overtaking_is_two_lane_changes():
    out_and_back = steer_to_another_lane(8, 4, 14) + steer_to_another_lane(18, 4, 14, side=-1)
    runs = [label(out_and_back, 14)[first] for first, _ in find_runs(np.array(list(label(out_and_back, 14))))]
    assert runs == ["C", "L", "C", "R", "C"]


def test_lane_change_hides_the_acceleration():
    """As in Scene 20."""
    labels = label(steer_to_another_lane(12, 5, 14, side=-1), 14, np.full(N_FRAMES, 1.0))
    assert Counter(labels).keys() == {"A", "R"}


@pytest.mark.parametrize("degrees", [10, 30, -90])
@pytest.mark.parametrize("duration", [3, 6, 15])
def test_turn_is_no_lane_change(degrees, duration):
    yaw_rate = np.zeros(N_FRAMES)
    n_turning = int(duration * FREQUENCY)
    swing = 1 - np.cos(2 * np.pi * np.arange(n_turning) / n_turning)
    yaw_rate[100 : 100 + n_turning] = np.radians(degrees) / duration * swing
    assert label(yaw_rate, 8) == "C" * N_FRAMES


@pytest.mark.parametrize(
    "options",
    [
        {"width": 0.5},  # around a pothole
        {"width": 15},  # a bend of the road and back
        {"duration": 1.0},  # swerving
    ],
)
def test_other_swings_are_no_lane_change(options):
    options = {"begin": 12, "duration": 5, "speed": 14, **options}
    assert label(steer_to_another_lane(**options), 14) == "C" * N_FRAMES


def swing_twice(first, second, n_between):
    """Yaw rate of two swings of a second each, by angles in degrees."""
    yaw_rate = np.zeros(N_FRAMES)
    yaw_rate[120:130] = np.radians(first)
    yaw_rate[130 + n_between : 140 + n_between] = np.radians(second)
    return yaw_rate


@pytest.mark.parametrize(
    ("yaw_rate", "speed", "lenient"),
    [
        (swing_twice(12, -5, 5), 8, LabelRules(final_heading=1.0)),  # a bend with its exit
        (steer_to_another_lane(12, 3, 4), 4, LabelRules(change_heading=1.0)),  # into a gap at walking speed
    ],
)
def test_heading_must_stay_near_the_roads_and_come_back_to_it(yaw_rate, speed, lenient):
    assert label(yaw_rate, speed) == "C" * N_FRAMES
    assert "L" in label(yaw_rate, speed, rules=lenient)


def test_two_swings_to_the_same_side_are_no_lane_change():
    """Though both are so slight that the heading is as good as before, and the car is 2 m to the side."""
    assert label(swing_twice(1.2, 1.2, 30), 30) == "C" * N_FRAMES
    assert "L" in label(swing_twice(1.2, -1.2, 30), 30)


def test_rules_of_a_lane_change_can_be_changed():
    around_an_obstacle = steer_to_another_lane(12, 5, 14, width=1.5)
    assert "L" not in label(around_an_obstacle, 14)
    assert "L" in label(around_an_obstacle, 14, rules=LabelRules(change_displacement=(1.0, 6.0)))


@pytest.mark.parametrize(
    ("before", "n_minimum", "after"),
    [
        ("AAAAACCDDDDDD", 3, "AAAAADDDDDDDD"),  # the longer neighbour takes it
        ("AAAACCDDDD", 3, "AAAAAADDDD"),  # of equal ones the earlier
        ("CCAAAAA", 3, "AAAAAAA"),  # at the ends there is one neighbour only
        ("AAAAACC", 3, "AAAAAAA"),
        ("AAAACDAAAA", 3, "AAAAAAAAAA"),  # the earlier of equally short runs goes first
        ("AACCDDDD", 3, "CCCCDDDD"),  # A goes to C, which then is long enough
        ("AAACCCDDD", 3, "AAACCCDDD"),
        ("ACD", 9, "CCC"),
        ("A", 9, "A"),
    ],
)
def test_short_runs_go_to_the_longer_neighbour(before, n_minimum, after):
    assert "".join(absorb_short_runs(np.array(list(before)), n_minimum)) == after


@given(labels=st.lists(st.sampled_from("ADCLR"), min_size=1, max_size=60), n_minimum=st.integers(0, 10))
def test_no_short_run_is_left(labels, n_minimum):
    labels = np.array(labels)
    absorbed = absorb_short_runs(labels, n_minimum)
    runs = find_runs(absorbed)
    assert len(runs) == 1 or min(last - first + 1 for first, last in runs) >= n_minimum
    assert set(absorbed) <= set(labels)
    np.testing.assert_array_equal(absorb_short_runs(absorbed, n_minimum), absorbed)


@pytest.mark.parametrize(("duration", "n_frames"), [(0.5, 5), (0.41, 5), (0.4, 4)])
def test_minimum_duration_is_in_seconds(duration, n_frames):
    for length in (n_frames - 1, n_frames):
        acceleration = np.zeros(40)
        acceleration[10 : 10 + length] = 1.0
        labels = label(np.zeros(40), 10, acceleration, LabelRules(smoothing=0, minimum_duration=duration))
        assert Counter(labels)["A"] == (length if length == n_frames else 0)


def test_moving_average_uses_the_frames_that_there_are():
    np.testing.assert_allclose(smooth(np.array([0.0, 3.0, 6.0, 0.0]), 3), [1.5, 3, 3, 3])
    np.testing.assert_allclose(smooth(np.array([1.0, 3.0]), 9), [2, 2])
    np.testing.assert_allclose(smooth(np.array([1.0, 3.0]), 1), [1, 3])


def make_oxts(n_frames=100, **columns):
    oxts = np.zeros((n_frames, 30))
    for name, values in columns.items():
        oxts[:, OXTS_COLUMNS.index(name)] = values
    return oxts


def test_motion_comes_from_its_columns():
    motion = motion_from_oxts(make_oxts(vf=7.0, af=0.5, wu=0.1))
    assert [values[3] for values in motion] == [7.0, 0.5, 0.1]


def test_yaw_rate_comes_from_the_heading_where_it_is_not_measured():
    """Also where the heading jumps from pi to -pi."""
    heading = 3.0 + 0.02 * np.arange(100)
    motion = motion_from_oxts(make_oxts(yaw=(heading + np.pi) % (2 * np.pi) - np.pi), 10.0)
    np.testing.assert_allclose(motion.yaw_rate, 0.2)


def test_noisy_acceleration_is_smoothed_and_a_clean_one_is_not():
    slow = np.sin(np.arange(400) / 40)
    noise = np.random.default_rng(0).normal(0, 0.5, 400)
    np.testing.assert_array_equal(motion_from_oxts(make_oxts(400, af=slow)).acceleration, slow)
    assert estimate_noise(slow + noise) == pytest.approx(0.5, rel=0.2)
    smoothed = motion_from_oxts(make_oxts(400, af=slow + noise)).acceleration
    assert np.std(smoothed - slow) < 0.6 * np.std(noise)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"speed": np.zeros(4)}, "speed"),
        ({"yaw_rate": np.zeros((5, 1))}, "yaw_rate"),
        ({"acceleration": np.array([0, 0, np.nan, 0, 0])}, "acceleration"),
        ({"sample_frequency": 0}, "sample_frequency"),
    ],
)
def test_wrong_arguments_are_named(arguments, argument):
    good = {"acceleration": np.zeros(5), "speed": np.zeros(5), "yaw_rate": np.zeros(5), "sample_frequency": 10.0}
    with pytest.raises(ArgumentError, match=rf"^{argument} must ") as error:
        label_actions(**{**good, **arguments})
    assert error.value.argument == argument


@pytest.mark.parametrize(
    "options",
    [
        {"smoothing": -1},
        {"acceleration": np.nan},
        {"minimum_duration": np.inf},
        {"change_duration": (5, 2)},
        {"change_displacement": (0, 5)},
    ],
)
def test_wrong_rules_are_named(options):
    (name,) = options
    with pytest.raises(ArgumentError, match=rf"^{name} must be"):
        LabelRules(**options)


def test_wrong_oxts_is_refused():
    with pytest.raises(ArgumentError, match=r"oxts must be .* not \(5, 29\)"):
        motion_from_oxts(np.zeros((5, 29)))


def test_real_drive_accelerates_or_keeps_its_speed():
    """It also winds through a site, 48 degrees left and 75 right, which is no lane change."""
    oxts = read_oxts(find_real_data() / "kitti-tracking" / "training" / "oxts" / "0000.txt")
    motion = motion_from_oxts(oxts)
    np.testing.assert_array_equal(motion.speed, oxts[:, 8])
    np.testing.assert_array_equal(motion.acceleration, oxts[:, 14])
    np.testing.assert_allclose(np.gradient(motion.speed, 0.1), motion.acceleration, atol=0.3)
    without = oxts.copy()
    without[:, 17:23] = 0
    np.testing.assert_allclose(motion_from_oxts(without).yaw_rate, motion.yaw_rate, atol=0.05)
    labels = label_actions(motion.acceleration, motion.speed, motion.yaw_rate)
    counts = Counter(labels.tolist())
    assert counts.keys() == {"A", "C"}
    assert 25 <= counts["A"] <= 50
    assert motion.acceleration[labels == "A"].mean() > 0.6
    assert abs(motion.acceleration[labels == "C"].mean()) < 0.2


@pytest.mark.parametrize("scene", ["0011", "0020"])
def test_labels_agree_with_those_of_the_papers_scenes(scene):
    """They were made with the same threshold; lane changes need a yaw rate, which is not there."""
    stored = np.load(find_real_data() / "kitti-boxes" / f"{scene}.npz", allow_pickle=False)
    labels = label_actions(stored["acceleration"], stored["speed"], np.zeros(len(stored["speed"])))
    known = stored["actions"] != "R"
    assert np.mean(labels[known] == stored["actions"][known]) > 0.95
