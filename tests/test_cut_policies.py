"""Policies for predictions: the optimum against scikit-learn's, masks, and the scale that predicts best."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from whyact.cut_policies import find_scale, fit_log_odds, learn_cut_policies, make_rows


def draw_rows(rng, n_rows=300, n_actions=3, sharpness=3.0):
    amounts = rng.random((n_rows, 4)) * (rng.random((n_rows, 4)) < 0.7)
    log_odds = sharpness * rng.standard_normal((5, n_actions))
    probabilities = softmax(log_odds[0] + amounts @ log_odds[1:], axis=1)
    actions = (rng.random((n_rows, 1)) >= np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
    return amounts, actions


def test_log_odds_are_those_of_a_ridge_regression():
    amounts, actions = draw_rows(np.random.default_rng(0))
    rows = make_rows(amounts, actions, np.ones((300, 3), bool))
    found = fit_log_odds(rows, 5.0)
    other = LogisticRegression(C=5.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows.columns, actions)
    assert np.allclose(found, other.coef_.T - other.coef_.T.mean(axis=1, keepdims=True), atol=1e-4)


def test_rows_without_an_action_do_not_count():
    amounts, actions = draw_rows(np.random.default_rng(1))
    everything = np.ones((300, 3), bool)
    hidden = np.where(np.arange(300) < 100, -1, actions)
    some = fit_log_odds(make_rows(amounts, hidden, everything), 5.0)
    assert np.allclose(some, fit_log_odds(make_rows(amounts[100:], actions[100:], everything[100:]), 5.0))


def test_what_is_not_available_says_nothing():
    """With only two of three actions available everywhere, the third keeps its prior mode."""
    amounts, actions = draw_rows(np.random.default_rng(2), n_actions=2)
    available = np.tile([True, True, False], (300, 1))
    found = fit_log_odds(make_rows(amounts, actions, available), 5.0)
    two = fit_log_odds(make_rows(amounts, actions, available[:, :2]), 5.0)
    assert np.allclose(found[:, 1] - found[:, 0], two[:, 1] - two[:, 0], atol=1e-3)
    assert np.allclose(found[:, 2], 0.0, atol=1e-3)


@pytest.mark.parametrize("sharpness", [0.5, 4.0])
def test_the_scale_follows_how_sharp_the_teacher_is(sharpness):
    scales = []
    for seed in range(6):
        amounts, actions = draw_rows(np.random.default_rng(seed), 800, sharpness=sharpness)
        scales.append(find_scale([make_rows(amounts, actions, np.ones((800, 3), bool))]))
    # each optimum is flat, and found on a grid with a step of three
    assert sharpness**2 / 10 < np.median(scales) < 10 * sharpness**2


def test_the_average_over_draws_is_judged():
    """Draws that show different noise are each too sure of themselves, their average is not: the scale may grow."""
    rng = np.random.default_rng(4)
    amounts, actions = draw_rows(rng, 60)
    draws = [
        make_rows(np.column_stack([amounts, rng.random((60, 12))]), actions, np.ones((60, 3), bool)) for _ in range(12)
    ]
    alone = [find_scale([draw]) for draw in draws]
    assert find_scale(draws) > np.median(alone)


def test_the_number_of_threads_changes_nothing():
    amounts, actions = draw_rows(np.random.default_rng(5))
    args = (lambda draw: amounts[:, :draw], [2, 3, 4], 4, actions, np.ones((300, 3), bool))
    one, two = (learn_cut_policies(*args, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_an_action_in_one_part_only_is_not_judged():
    """It is the last row's alone, so no scale can predict it, and none must lose by that."""
    amounts, actions = draw_rows(np.random.default_rng(6), 200, n_actions=2, sharpness=4.0)
    everything = np.ones((200, 3), bool)
    with_rare = np.where(np.arange(200) == 199, 2, actions)
    assert find_scale([make_rows(amounts, with_rare, everything)]) == pytest.approx(
        find_scale([make_rows(amounts[:-1], actions[:-1], everything[:-1])]), rel=2.5
    )


def test_every_draw_gets_its_own_policies():
    rng = np.random.default_rng(3)
    amounts, actions = draw_rows(rng)
    draws = [amounts[:, :2], amounts, amounts[:, :0]]
    done = []
    cut = learn_cut_policies(
        lambda shown: shown, draws, amounts, actions, np.ones((300, 3), bool), on_progress=done.append
    )
    assert done == [1, 2, 3]
    assert cut.log_odds.shape == (6, 3)
    assert cut.base.shape == (3, 3)
    assert np.allclose(cut.log_odds[2:6], cut.chosen_log_odds, atol=0.5)
    assert np.allclose(cut.log_odds.sum(axis=1), 0.0, atol=1e-9)
    shares = np.bincount(actions, minlength=3) / 300
    assert np.allclose(softmax(cut.base[2]), shares, atol=0.02)  # without any feature: how often each action is taken
