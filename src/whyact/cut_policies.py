"""Policies for predictions, learned from what a new row can show.

The substates of the demonstrations have seen their actions; those of a new row have not. What is learned jointly is
therefore too sure of itself where actions are hard to tell from observations. So the policies of a product are learned
once more for predictions: for each draw of the features, what each demonstration shows of them is found from its
observation alone, exactly as for a new row (`sampler.new_rows.fit_amounts`), and the log odds are those that are most
probable given these amounts, under a Gaussian prior. This cuts the way from the actions back to the amounts.

The variance of the prior is the one with which actions are predicted best that were held out. What is judged is what
will be used, the average over draws: each draw alone may be a little too sure of itself, because where they differ,
the average is not. What each draw says of these actions also tells how much its chain should count (`stacking.py`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.linalg import solve
from scipy.special import log_softmax

from whyact.model import restrict_log_odds
from whyact.neighbours import deal_out, find_reach

# Variances of the log odds that are tried, from the one in the middle uphill.
SCALES = 10.0 ** np.arange(0.0, 4.1, 0.5)
N_PARTS = 5
N_DRAWS_FOR_SCALE = 12
N_ROWS_FOR_SCALE = 2000
# Of Newton's method, which stops where one more step would gain half of PRECISION, in nats of all rows together.
MAX_STEPS = 100
MAX_HALVINGS = 40
PRECISION = 1e-6


class CutPolicies(NamedTuple):
    """Log odds for predictions, centred over the actions."""

    log_odds: np.ndarray  # of the features of all draws that predictions average over, (sum of K, U)
    base: np.ndarray  # of the base policy in each of these draws, (draws, U)
    chosen_log_odds: np.ndarray  # of the features of the chosen draw, (K, U)
    chosen_base: np.ndarray  # (U,)
    means: np.ndarray  # how much of each feature the demonstrations show on average, as in `log_odds`, (sum of K,)
    chosen_means: np.ndarray  # as in `chosen_log_odds`, (K,)


class HeldOut(NamedTuple):
    """How well actions are predicted that policies were not learned from."""

    scale: float  # the variance of the log odds with which they are predicted best
    probabilities: np.ndarray  # of these actions with this variance, by each draw that was judged, (draws, rows)


class Rows(NamedTuple):
    """What the log odds are learned from: amounts with a first column of ones, actions, and what is available."""

    columns: np.ndarray  # (N, K + 1)
    actions: np.ndarray  # (N,), all known
    available: np.ndarray  # (N, U)

    def take(self, which: np.ndarray) -> "Rows":
        """Some of them."""
        return Rows(*(part[which] for part in self))

    def log_probabilities(self, log_odds: np.ndarray) -> np.ndarray:
        """Of each action, by log odds (K + 1, U), (N, U)."""
        return log_softmax(restrict_log_odds(self.columns @ log_odds, self.available), axis=1)

    def probabilities_of_actions(self, log_odds: np.ndarray) -> np.ndarray:
        """Of the actions taken, (N,)."""
        return np.exp(self.log_probabilities(log_odds)[np.arange(len(self.actions)), self.actions])


def make_rows(amounts: np.ndarray, actions: np.ndarray, available: np.ndarray) -> Rows:
    """The rows whose action is known."""
    known = actions >= 0
    columns = np.column_stack([np.ones(len(amounts)), amounts])
    return Rows(columns[known], actions[known], available[known])


def fit_log_odds(rows: Rows, scale: float, start: np.ndarray | None = None) -> np.ndarray:
    """The most probable log odds (K + 1, U) under a Gaussian prior with this variance; the base policy comes first.

    By Newton's method: the loss is convex, and with the prior strictly so.
    """
    n_rows, n_columns, n_actions = len(rows.actions), rows.columns.shape[1], rows.available.shape[1]
    chosen = np.arange(n_rows), rows.actions
    log_odds = np.zeros((n_columns, n_actions)) if start is None else start

    def lose(log_odds: np.ndarray) -> tuple[float, np.ndarray]:
        log_probabilities = rows.log_probabilities(log_odds)
        loss = 0.5 * float(np.vdot(log_odds, log_odds)) / scale - float(log_probabilities[chosen].sum())
        return loss, np.exp(log_probabilities)

    loss, probabilities = lose(log_odds)
    for _ in range(MAX_STEPS):
        slope = log_odds / scale + rows.columns.T @ probabilities
        np.add.at(slope.T, rows.actions, -rows.columns)
        step = solve(find_curvature(rows.columns, probabilities, scale), slope.T.ravel(), assume_a="pos")
        gain = float(slope.T.ravel() @ step)  # twice what the step gains if the loss were a parabola
        if gain < PRECISION:
            break
        step = step.reshape(n_actions, n_columns).T
        for length in 0.5 ** np.arange(MAX_HALVINGS):
            new = log_odds - length * step
            new_loss, new_probabilities = lose(new)
            if new_loss <= loss - 0.25 * length * gain:
                break
        else:
            break  # no better point can be told apart from this one
        log_odds, loss, probabilities = new, new_loss, new_probabilities
    return log_odds - log_odds.mean(axis=1, keepdims=True)


def find_curvature(columns: np.ndarray, probabilities: np.ndarray, scale: float) -> np.ndarray:
    """Second derivatives of the loss, (U (K + 1), U (K + 1)), action by action."""
    (n_rows, n_columns), n_actions = columns.shape, probabilities.shape[1]
    weighted = (probabilities[:, :, None] * columns[:, None, :]).reshape(n_rows, n_actions * n_columns)
    curvature = -(weighted.T @ weighted)
    for action in range(n_actions):
        block = slice(action * n_columns, (action + 1) * n_columns)
        curvature[block, block] += columns.T @ weighted[:, block]
    curvature.flat[:: len(curvature) + 1] += 1 / scale
    return curvature


def find_scale(draws: list[Rows], n_jobs: int | None = None) -> float:
    """The variance of the log odds with which the average over these draws best predicts actions held out."""
    return hold_out(draws, n_jobs).scale


def hold_out(draws: list[Rows], n_jobs: int | None = None) -> HeldOut:
    """Find the best variance by cross-validation, and what each of these draws then says of the actions held out."""
    actions = draws[0].actions
    parts = deal_out(actions, N_PARTS, find_reach(draws[0].columns, actions))
    trials = [(i, part) for i in range(len(draws)) for part in range(min(N_PARTS, len(actions)))]
    # nothing can be learned about an action that is in one part only
    is_judged = np.array([len(np.unique(parts[actions == action])) > 1 for action in actions], bool)
    found = [np.zeros((draws[i].columns.shape[1], draws[i].available.shape[1])) for i, _ in trials]
    run = joblib.Parallel(n_jobs=n_jobs, prefer="threads")

    @cache
    def predict(index: int) -> np.ndarray:
        # the log odds of the last scale that was tried are a good start
        found[:] = run(
            joblib.delayed(fit_log_odds)(draws[i].take(parts != part), SCALES[index], start)
            for (i, part), start in zip(trials, found, strict=True)
        )
        probabilities = np.zeros((len(draws), len(actions)))
        for (i, part), log_odds in zip(trials, found, strict=True):
            probabilities[i, parts == part] = draws[i].take(parts == part).probabilities_of_actions(log_odds)
        return probabilities[:, is_judged]

    def judge(index: int) -> float:
        averages = predict(index).sum(axis=0) / len(draws)
        return float(np.log(np.maximum(averages, np.finfo(float).tiny)).sum())

    best = len(SCALES) // 2
    for step in (1, -1):
        while 0 <= best + step < len(SCALES) and judge(best + step) > judge(best):
            best += step
    return HeldOut(float(SCALES[best]), predict(best))


def hold_out_some(
    show: Callable[[Any], np.ndarray],
    draws: Sequence[Any],
    which: np.ndarray,
    actions: np.ndarray,
    available: np.ndarray,
    n_jobs: int | None = None,
) -> HeldOut:
    """`hold_out` for some of the draws, of many rows from some; `learn_cut_policies` says what the arguments are."""
    few = spread_out(int(np.sum(actions >= 0)), N_ROWS_FOR_SCALE)
    return hold_out([make_rows(show(draws[i]), actions, available).take(few) for i in which], n_jobs)


def learn_cut_policies(
    show: Callable[[Any], np.ndarray],
    draws: Sequence[Any],
    chosen: Any,
    actions: np.ndarray,
    available: np.ndarray,
    scale: float | None = None,
    n_jobs: int | None = None,
    on_progress: Callable[[int], None] = lambda n_done: None,
) -> CutPolicies:
    """Learn the policies for predictions.

    Parameters
    ----------
    show : callable
        What the demonstrations show of the features of a draw, (N, K).
    draws : sequence
        Those that predictions average over; whatever `show` takes.
    chosen : object
        The chosen draw.
    actions : ndarray (N,)
        Indices of actions, -1 where missing.
    available : ndarray (N, U)
        Which actions are available.
    scale : float or None, default=None
        Variance of the log odds of the draws; None: the one with which `N_DRAWS_FOR_SCALE` of them predict best. The
        chosen draw, which predicts alone, always has its own.
    n_jobs : int or None, default=None
        Threads.
    on_progress : callable
        Told how many draws are done.

    Returns
    -------
    CutPolicies
    """
    if scale is None:
        which = spread_out(len(draws), N_DRAWS_FOR_SCALE)
        scale = hold_out_some(show, draws, which, actions, available, n_jobs).scale

    def learn(draw: Any) -> tuple[np.ndarray, np.ndarray]:
        amounts = show(draw)
        return fit_log_odds(make_rows(amounts, actions, available), scale), amounts.mean(axis=0)

    tasks = (joblib.delayed(learn)(draw) for draw in draws)
    found, means = [], []
    # one draw at a time: what millions of rows show of all of them would not fit into memory
    for log_odds, mean in joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
        found.append(log_odds)
        means.append(mean)
        on_progress(len(found))
    amounts = show(chosen)
    rows = make_rows(amounts, actions, available)
    few = spread_out(len(rows.actions), N_ROWS_FOR_SCALE)
    found_for_chosen = fit_log_odds(rows, find_scale([rows.take(few)], n_jobs))
    return CutPolicies(
        log_odds=np.concatenate([one[1:] for one in found]),
        base=np.stack([one[0] for one in found]),
        chosen_log_odds=found_for_chosen[1:],
        chosen_base=found_for_chosen[0],
        means=np.concatenate(means),
        chosen_means=amounts.mean(axis=0),
    )


def spread_out(n_all: int, n_most: int) -> np.ndarray:
    """At most so many indices, evenly spread."""
    return np.unique(np.linspace(0, n_all - 1, min(n_all, n_most)).round().astype(int))
