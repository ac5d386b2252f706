"""Pictures of drives show what they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from whyact.driving.grids import OccupancyGrid
from whyact.driving.labels import ACTIONS, Motion
from whyact.driving.pictures import ACTION_COLOURS, choose_features, plot_actions, plot_driving_features
from whyact.errors import ArgumentError

GRID = OccupancyGrid(shape=(3, 4), lateral=(-3, 3), longitudinal=(-10, 30))


def find_texts(figure):
    return [text.get_text() for text in figure.texts] + [axis.get_title() for axis in figure.axes]


def find_images(figure):
    return [axis.images[0] for axis in figure.axes if axis.images]


@pytest.fixture
def motion():
    return Motion(np.linspace(5, 9, 60), np.sin(np.arange(60) / 9), np.zeros(60))


def test_actions_are_bands_under_the_acceleration_and_the_speed(motion):
    labels = np.array(list("A" * 20 + "C" * 25 + "R" * 15))
    figure = plot_actions(motion, labels, 10.0, "Scene $20")
    figure.draw_without_rendering()
    for axis, values in zip(figure.axes, (motion.acceleration, motion.speed), strict=True):
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), values)
        bands = [(patch.get_x(), patch.get_width(), to_hex(patch.get_facecolor())) for patch in axis.patches]
        colours = [to_hex(ACTION_COLOURS[action]) for action in "ACR"]
        assert bands == [(-0.5, 20, colours[0]), (19.5, 25, colours[1]), (44.5, 15, colours[2])]
    assert [text.get_text() for text in figure.axes[0].texts] == ["A", "C", "R"]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["A: acceleration, 33%", "C: constant speed, 42%", "R: lane change (right), 25%"]


def test_every_action_has_a_colour_of_its_own():
    assert len({ACTION_COLOURS[action] for action in ACTIONS}) == len(ACTIONS)


def test_labels_must_fit_the_motion(motion):
    with pytest.raises(ArgumentError, match="one label for each of the 60 frames"):
        plot_actions(motion, np.array(["A"]), 10.0)


def test_features_stand_in_the_row_of_their_action_by_confidence():
    policies = np.array([[0.6, 0.4, 0.0], [0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.7, 0.3, 0.0]])
    assert choose_features(policies, 3) == [[1, 3, 0], [2], []]
    assert choose_features(policies, 2) == [[1, 3], [2], []]
    assert choose_features(np.empty((0, 2)), 2) == [[], []]


def test_feature_is_drawn_from_the_top_and_below_it_what_changed():
    rng = np.random.default_rng(0)
    features = rng.random((3, 24))
    policies = np.array([[0.93, 0.05, 0.02], [0.3, 0.6, 0.1], [0.95, 0.03, 0.02]])
    figure = plot_driving_features(features, policies, ["A", "D", "R"], GRID, np.array([0.12, 0.5, 0.031]))
    figure.draw_without_rendering()
    images = find_images(figure)
    assert len(images) == 6
    for place, k in enumerate([2, 0, 1]):
        current, previous = features[k].reshape(2, 3, 4)
        above, below = images[2 * place : 2 * place + 2]
        np.testing.assert_allclose(above.get_array(), current)
        np.testing.assert_allclose(below.get_array(), current - previous)
        assert above.get_extent() == [-10, 30, -3, 3]
        assert above.origin == "lower"  # row 0, the right side, is at the bottom
        assert below.norm.vmin == -below.norm.vmax
        (host,) = above.axes.lines
        assert (host.get_xdata()[0], host.get_ydata()[0]) == (0, 0)
    texts = find_texts(figure)
    assert "A1: 0.95, in 3% of frames" in texts
    assert "A2: 0.93, in 12% of frames" in texts
    assert "D1: 0.60, in 50% of frames" in texts
    assert "lane change (right): no feature mainly favours this" in texts


def test_blue_is_positive_and_red_is_negative():
    features = np.zeros((1, 24))
    features[0, 0] = features[0, 13] = 1.0  # the first cell appeared, the second vanished
    figure = plot_driving_features(features, np.array([[1.0]]), ["A"], GRID, np.array([1.0]))
    below = find_images(figure)[1]
    red, _, blue, _ = below.cmap(below.norm(below.get_array()[0, 0]))
    assert blue > 2 * red
    red, _, blue, _ = below.cmap(below.norm(below.get_array()[0, 1]))
    assert red > 2 * blue


def test_no_features_at_all_are_drawn_too():
    figure = plot_driving_features(np.empty((0, 24)), np.empty((0, 2)), ["A", "up $1"], GRID, np.empty(0), title="none")
    figure.draw_without_rendering()
    assert sum("no feature" in text for text in find_texts(figure)) == 2


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"features": np.zeros((2, 23))}, "features"),
        ({"policies": np.zeros((2, 3))}, "policies"),
        ({"shares": np.zeros(3)}, "shares"),
        ({"n_per_action": 0}, "n_per_action"),
    ],
)
def test_what_does_not_fit_is_named(change, argument):
    good = {"features": np.zeros((2, 24)), "policies": np.zeros((2, 2)), "actions": "AC", "grid": GRID}
    with pytest.raises(ArgumentError) as error:
        plot_driving_features(**{**good, "shares": np.zeros(2), **change})
    assert error.value.argument == argument
