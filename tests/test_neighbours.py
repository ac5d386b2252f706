"""Which rows are held out together."""

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

from whyact.neighbours import BLOCKS_IN_PART, REACHES_IN_BLOCK, deal_out, find_reach, find_standard_error


def test_neighbours_are_held_out_together():
    actions = np.where(np.arange(150) % 3 == 0, -1, np.arange(150) % 2)
    parts = deal_out(actions, 4)
    assert (parts[::3] == -1).all()
    known = parts[parts >= 0]
    assert np.bincount(known).tolist() == [25, 25, 25, 25]
    assert np.sum(np.diff(known) != 0) == 4 * BLOCKS_IN_PART - 1  # five rows in a row
    assert deal_out(np.array([1, -1, 0]), 4).tolist() == [0, -1, 1]
    assert deal_out(np.array([-1, -1]), 4).tolist() == [-1, -1]


def test_blocks_are_longer_than_neighbours_are_alike():
    parts = deal_out(np.zeros(200, int), 4, reach=12)
    ends = np.flatnonzero(np.diff(parts)) + 1
    assert np.diff([0, *ends, 200]).min() >= REACHES_IN_BLOCK * 12
    assert np.unique(deal_out(np.zeros(200, int), 4, reach=200)).tolist() == [0, 1, 2, 3]  # all parts have some


def draw_recording(rng, keeps, n_rows=600, n_columns=20):
    """Rows of which each keeps this share of the one before; lag L is alike by keeps^L."""
    return lfilter([1.0], [1.0, -keeps], rng.standard_normal((n_rows, n_columns)), axis=0)


@pytest.mark.parametrize("keeps", [0.5, 0.8, 0.9])
def test_the_reach_of_a_recording_is_that_of_its_correlation(keeps):
    """The squared difference of two rows is 1 - keeps^lag of that of any two, so 0.8 where keeps^lag is 0.2."""
    rng = np.random.default_rng(0)
    found = find_reach(draw_recording(rng, keeps), rng.integers(0, 2, 600))
    assert found == pytest.approx(np.log(0.2) / np.log(keeps), rel=0.25, abs=1)


def test_rows_in_random_order_have_no_neighbours():
    rng = np.random.default_rng(1)
    rows, actions = draw_recording(rng, 0.9), rng.integers(0, 3, 600)
    order = rng.permutation(600)
    assert find_reach(rows[order], actions[order]) == 1


def test_a_table_sorted_by_action_has_no_neighbours():
    """Rows of one action are alike because of the action."""
    rng = np.random.default_rng(2)
    actions = np.repeat([0, 1, 2], 50)
    rows = 5.0 * np.eye(3)[actions] + rng.standard_normal((150, 3))
    assert find_reach(rows, actions) == 1
    assert find_reach(rows, np.zeros(150, int)) > 10


def test_units_gaps_and_constant_columns_do_not_matter():
    rng = np.random.default_rng(3)
    rows, actions = draw_recording(rng, 0.9), rng.integers(0, 2, 600)
    reach = find_reach(rows, actions)
    changed = np.column_stack([rows * np.logspace(-6, 6, 20) + 3.0, np.full(600, 7.0)])
    assert find_reach(changed, actions) == reach
    changed[rng.random(changed.shape) < 0.02] = np.nan
    assert abs(find_reach(changed, actions) - reach) <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_reach(np.column_stack([rows, np.full(600, np.nan)]), actions) == reach


@pytest.mark.parametrize("rows", [np.zeros((40, 3)), np.zeros((1, 2)), np.arange(6.0).reshape(3, 2)])
def test_little_to_compare_is_no_reason_to_fail(rows):
    assert find_reach(rows, np.zeros(len(rows), int)) == 1
    assert find_reach(rows, np.arange(len(rows))) == 1


def test_rows_that_are_alike_say_less():
    values = np.random.default_rng(4).standard_normal(100)
    assert find_standard_error(values) == pytest.approx(values.std() / 10)
    assert find_standard_error(values, 4) == pytest.approx(values.std() / 5)
