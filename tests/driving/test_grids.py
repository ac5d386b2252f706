"""Occupancy grids: each point finds its cell, two frames make an observation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kitti_scenes import find_real_data, make_points, make_tracking
from whyact.driving.grids import (
    OccupancyGrid,
    grid_of_scene,
    join_frames,
    rasterise_scene,
    smooth_grids,
    split_frames,
)
from whyact.driving.kitti import find_scene, read_scan
from whyact.errors import ArgumentError


def rasterise_slowly(grid, points):
    """One point after the other, as one would say it."""
    image = np.zeros(grid.shape)
    n_rows, n_columns = grid.shape
    for x, y, z in points[:, :3].astype(float).tolist():
        if not (grid.longitudinal[0] <= x < grid.longitudinal[1] and grid.lateral[0] <= y < grid.lateral[1]):
            continue
        if z <= grid.ground or (grid.ceiling is not None and z > grid.ceiling):
            continue
        if grid.own_vehicle is not None:
            (rear, front), (right, left) = grid.own_vehicle
            if rear <= x < front and right <= y < left:
                continue
        row = int((y - grid.lateral[0]) / ((grid.lateral[1] - grid.lateral[0]) / n_rows))
        column = int((x - grid.longitudinal[0]) / ((grid.longitudinal[1] - grid.longitudinal[0]) / n_columns))
        row, column = min(row, n_rows - 1), min(column, n_columns - 1)
        image[row, column] = max(image[row, column], z - grid.ground)
    return image


@st.composite
def grids(draw):
    def interval(low, high):
        begin = draw(st.floats(low, high))
        return begin, begin + draw(st.floats(0.1, high - low))

    ground = draw(st.floats(-3, 0))
    return OccupancyGrid(
        shape=(draw(st.integers(1, 30)), draw(st.integers(1, 30))),
        lateral=interval(-5, 5),
        longitudinal=interval(-20, 20),
        ground=ground,
        ceiling=draw(st.none() | st.floats(0.5, 3).map(lambda height: ground + height)),
        own_vehicle=draw(st.none() | st.just(((-1.8, 3.0), (-1.6, 1.6)))),
    )


@settings(deadline=None, max_examples=150)
@given(grid=grids(), data=st.data())
def test_grid_is_what_a_loop_over_the_points_gives(grid, data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    points = rng.uniform([-25, -7, -4, 0], [25, 7, 2, 1], (data.draw(st.integers(0, 60)), 4))
    # points on every limit
    limits = [
        [x, y, z, 0]
        for x in (*grid.longitudinal, -1.8, 3.0)
        for y in (*grid.lateral, -1.6, 1.6)
        for z in (grid.ground, grid.ceiling or 1.0)
    ]
    points = np.concatenate([points, limits, np.nextafter(limits, -np.inf)])
    points = points.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    image = grid.rasterise(points)
    np.testing.assert_array_equal(image, rasterise_slowly(grid, points))
    assert (image >= 0).all()


def test_order_of_the_points_does_not_matter():
    points = np.random.default_rng(0).uniform(-5, 5, (500, 3))
    np.testing.assert_array_equal(OccupancyGrid().rasterise(points), OccupancyGrid().rasterise(points[::-1]))


@pytest.mark.parametrize(
    ("x", "y", "cell"),
    [(-9.9, -2.9, (0, 0)), (29.9, -2.9, (0, 64)), (-9.9, 2.9, (20, 0)), (29.9, 2.9, (20, 64)), (10, 0, (10, 32))],
)
def test_rows_go_from_right_to_left_and_columns_from_rear_to_front(x, y, cell):
    """x is forward and y is left."""
    image = OccupancyGrid().rasterise([[x, y, -0.5]])
    assert image[cell] == pytest.approx(1.0)
    assert np.count_nonzero(image) == 1


def test_ground_and_the_car_itself_and_what_is_too_high_are_dropped():
    ground, own, tree, obstacle = [10, 0, -1.6], [2.5, 0.5, -0.9], [5, 0, 1.5], [15, 1, -0.3]
    points = np.array([ground, own, tree, obstacle])
    count = {
        "default": OccupancyGrid(),
        "with the car": OccupancyGrid(own_vehicle=None),
        "with a ceiling": OccupancyGrid(ceiling=1.0),
        "with the ground": OccupancyGrid(ground=-2.0),
    }
    count = {name: np.count_nonzero(grid.rasterise(points)) for name, grid in count.items()}
    assert count == {"default": 2, "with the car": 3, "with a ceiling": 1, "with the ground": 3}


def test_no_points_are_an_empty_grid():
    assert not OccupancyGrid().rasterise(np.empty((0, 4))).any()


@pytest.mark.parametrize(
    ("points", "sentence"),
    [([1, 2, 3], "must be an array"), ([[1, 2]], "3 or more"), ([[1, 2, np.nan]], "must be finite")],
)
def test_what_are_no_points_is_refused(points, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        OccupancyGrid().rasterise(points)
    assert error.value.argument == "points"


def test_resolution_and_resolved_speed_are_the_papers():
    """About 0.3 m and 0.6 m (1.2 m for Scene 20) give 3, 6 and 12 m/s at 10 Hz."""
    near, far = grid_of_scene(11), grid_of_scene("20")
    assert near.longitudinal == (-10, 30)
    assert far.longitudinal == (-40, 40)
    assert near.shape == far.shape == (21, 65)
    np.testing.assert_allclose(near.resolution, [0.3, 0.6], atol=0.02)
    np.testing.assert_allclose(far.resolution, [0.3, 1.2], atol=0.04)
    np.testing.assert_allclose(near.resolved_speed(10), [6 / 21 * 10, 40 / 65 * 10])
    np.testing.assert_allclose(far.resolved_speed(10), [3, 12], atol=0.4)
    assert grid_of_scene(0) == near == OccupancyGrid()


def test_words_of_highway_env():
    """There a grid's size and step have x first."""
    grid = OccupancyGrid(shape=(2, 4), lateral=(-1, 1), longitudinal=(0, 8))
    assert grid.grid_size == ((0, 8), (-1, 1))
    assert grid.grid_step == (2, 1)
    assert grid.resolution == (1, 2)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"shape": (0, 65)}, "shape"),
        ({"shape": (21.0, 65)}, "shape"),
        ({"shape": 21}, "shape"),
        ({"lateral": (3, -3)}, "lateral"),
        ({"lateral": (-3, np.nan)}, "lateral"),
        ({"longitudinal": (-10, np.inf)}, "longitudinal"),
        ({"longitudinal": (-10, 0, 30)}, "longitudinal"),
        ({"longitudinal": ("-10", "30")}, "longitudinal"),
        ({"ground": np.nan}, "ground"),
        ({"ceiling": -1.5}, "ceiling"),
        ({"own_vehicle": (-1, 1)}, "own_vehicle"),
        ({"own_vehicle": 2.0}, "own_vehicle"),
    ],
)
def test_wrong_parameters_are_named(options, argument):
    with pytest.raises(ArgumentError, match=rf"^{argument} must .*\.$") as error:
        OccupancyGrid(**options)
    assert error.value.argument == argument


@pytest.mark.parametrize("frequency", [0, -1, np.inf, "10"])
def test_wrong_sample_frequency_is_named(frequency):
    with pytest.raises(ArgumentError, match="sample_frequency must be positive"):
        OccupancyGrid().resolved_speed(frequency)


def test_scene_is_rasterised_in_the_order_of_its_frames(tmp_path):
    make_tracking(tmp_path, n_frames=4, lacking=(1,))
    scene = find_scene(tmp_path, 11)
    grid = OccupancyGrid(own_vehicle=None)
    images = rasterise_scene(scene, grid)
    assert images.shape == (3, 21, 65)
    for image, frame in zip(images, [0, 2, 3], strict=True):
        np.testing.assert_array_equal(image, grid.rasterise(make_points(frame)))


def test_joint_observation_is_the_current_frame_and_then_the_previous():
    images = np.arange(5 * 6).reshape(5, 2, 3)
    joint = join_frames(images, [0, 1, 3, 4, 5])
    assert joint.frames.tolist() == [1, 4, 5]
    assert joint.n_left_out == 2  # 0 is the first, 3 comes after a gap
    assert joint.observations[0].tolist() == [*range(6, 12), *range(6)]
    assert joint.observations[1].tolist() == [*range(18, 24), *range(12, 18)]


def test_splitting_undoes_joining():
    images = np.random.default_rng(0).random((4, 21, 65))
    joint = join_frames(images, np.arange(4))
    current, previous = split_frames(joint.observations, (21, 65))
    np.testing.assert_array_equal(current, images[1:])
    np.testing.assert_array_equal(previous, images[:-1])
    one = split_frames(joint.observations[1], (21, 65))
    np.testing.assert_array_equal(one, [images[2], images[1]])


def test_lone_frames_make_no_observation():
    joint = join_frames(np.zeros((3, 2, 2)), [0, 2, 4])
    assert joint.observations.shape == (0, 8)
    assert joint.n_left_out == 3


@pytest.mark.parametrize("frames", [[0, 1], [0, 1, 1], [2, 1, 0], [[0, 1, 2]]])
def test_wrong_frames_are_refused(frames):
    with pytest.raises(ArgumentError, match="frames must"):
        join_frames(np.zeros((3, 2, 2)), frames)


def test_wrong_number_of_values_is_refused():
    with pytest.raises(ArgumentError, match="21 x 65 cells have 2730 values, not 1365"):
        split_frames(np.zeros(1365), (21, 65))


# --- smoothing, and the mark of the host vehicle --------------------------------------------------------------------


def test_smoothing_spreads_a_height_along_the_road_and_keeps_its_mass():
    points = [[12.0, 0.1, -0.5, 0.0]]
    sharp, smoothed = OccupancyGrid().rasterise(points), OccupancyGrid(smoothing=1.2).rasterise(points)
    assert smoothed.sum() == pytest.approx(sharp.sum())
    (row,), (column,) = np.nonzero(sharp)
    assert np.flatnonzero(smoothed.sum(axis=1)).tolist() == [row]  # not to the side
    assert smoothed[row].argmax() == column
    centres = -10 + (np.arange(65) + 0.5) * 40 / 65
    mean = smoothed[row] @ centres / smoothed.sum()
    deviation = np.sqrt(smoothed[row] @ (centres - mean) ** 2 / smoothed.sum())
    assert mean == pytest.approx(centres[column])
    assert deviation == pytest.approx(1.2, rel=0.03)


def test_smoothing_makes_neighbouring_places_alike():
    places = [[[x, 0.1, 0.0]] for x in (10.0, 10.7, 20.0)]
    near, far = ([OccupancyGrid(smoothing=s).rasterise(place).ravel() for place in places] for s in (1.2, 0.0))
    assert np.corrcoef(near)[0, 1] > 0.8 > 0.1 > np.corrcoef(near)[0, 2]
    assert np.corrcoef(far)[0, 1] < 0.1


@pytest.mark.parametrize(("scene", "column"), [(11, 16), (20, 32)])
def test_host_vehicle_is_marked_where_the_origin_is(scene, column):
    grid = replace(grid_of_scene(scene), host_height=1.5)
    empty = grid.rasterise(np.zeros((0, 4)))
    assert grid.host_cell == (10, column)
    assert np.argwhere(empty).tolist() == [[10, column]]
    assert empty[10, column] == 1.5
    at_origin = replace(grid, own_vehicle=None, host_height=0.0).rasterise([[0.0, 0.0, 0.0]])
    assert np.argwhere(at_origin).tolist() == [[10, column]]


def test_power_is_taken_of_what_was_smoothed():
    points = [[12.0, 0.1, -0.5]]
    smoothed = OccupancyGrid(smoothing=1.2).rasterise(points)
    np.testing.assert_allclose(OccupancyGrid(smoothing=1.2, power=0.5).rasterise(points), np.sqrt(smoothed))


def test_host_vehicle_is_marked_before_the_smoothing():
    grid = OccupancyGrid(smoothing=1.2, host_height=1.5)
    empty = grid.rasterise(np.zeros((0, 4)))
    assert empty.sum() == pytest.approx(1.5)
    assert 0 < empty.max() < 0.5


def test_grids_from_elsewhere_are_treated_alike():
    points = [np.random.default_rng(n).uniform([-10, -3, -1.5], [30, 3, 1], (40, 3)) for n in range(3)]
    grid = OccupancyGrid(smoothing=1.2, host_height=1.5)
    raw = np.stack([OccupancyGrid().rasterise(frame) for frame in points])
    before = raw.copy()
    np.testing.assert_array_equal(smooth_grids(raw, grid), [grid.rasterise(frame) for frame in points])
    np.testing.assert_array_equal(smooth_grids(raw.astype(np.float32), OccupancyGrid()), raw.astype(np.float32))
    np.testing.assert_array_equal(raw, before)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"smoothing": -1.0}, "smoothing must be a finite number and not negative, not -1.0"),
        ({"smoothing": float("inf")}, "smoothing must be a finite number"),
        ({"power": 0.0}, "power must be above 0 and at most 1, not 0.0"),
        ({"power": 2.0}, "power must be above 0 and at most 1, not 2.0"),
        ({"host_height": "high"}, "host_height must be a finite number"),
        ({"host_height": 1.0, "longitudinal": (1.0, 30.0)}, "a grid that does not hold the origin"),
    ],
)
def test_wrong_smoothing_and_host_height_are_refused(options, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        OccupancyGrid(**options)


def test_grids_of_another_shape_are_refused():
    with pytest.raises(ArgumentError, match=r"grids must be an array \(..., 21, 65\), not \(3, 65, 21\)"):
        smooth_grids(np.zeros((3, 65, 21)), OccupancyGrid())


@pytest.fixture(scope="module")
def real_scene():
    return find_scene(find_real_data() / "kitti-tracking", 0)


def test_own_returns_are_gone_from_real_scans(real_scene):
    """With them, cells beside the car are occupied in nearly all frames; the road changes, the car does not."""
    beside = (slice(3, 18), slice(12, 22))  # |y| < 2.1 m, -2.6 m < x < 3.5 m
    with_car = (rasterise_scene(real_scene, OccupancyGrid(own_vehicle=None)) > 0).mean(axis=0)[beside]
    without = (rasterise_scene(real_scene, OccupancyGrid()) > 0).mean(axis=0)[beside]
    assert with_car.max() > 0.9
    assert without.max() < 0.2


def test_ground_is_cut_from_real_scans(real_scene):
    """With a cut at the height of the road itself nearly every visible cell would be occupied."""
    points = read_scan(real_scene.scans[0])
    occupied = np.count_nonzero(OccupancyGrid().rasterise(points))
    with_ground = np.count_nonzero(OccupancyGrid(ground=-2.5).rasterise(points))
    assert with_ground > 4 * occupied > 0


def test_real_scene_becomes_observations(real_scene):
    images = rasterise_scene(real_scene, grid_of_scene(0))
    assert images.shape == (154, 21, 65)
    assert 0.05 < (images > 0).mean() < 0.25
    assert images.max() < 4
    joint = join_frames(images, real_scene.frames)
    assert joint.observations.shape == (153, 2730)
    assert joint.n_left_out == 1
