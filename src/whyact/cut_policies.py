"""Policies for predictions, learned from what a new row can show.

The substates of the demonstrations have seen their actions; those of a new row have not. What is learned jointly is
therefore too sure of itself where actions are hard to tell from observations. So the policies of a product are learned
once more for predictions: for each draw of the features, what each demonstration shows of them is found from its
observation alone, exactly as for a new row (`sampler.new_rows.fit_amounts`), and the log odds are those that are most
probable given these amounts, under the prior of the model. This cuts the way from the actions back to the amounts. The
variance of the log odds is the one of highest evidence, found on a few draws.
"""

from typing import NamedTuple

import joblib
import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

FIRST_SCALE = 10.0
N_DRAWS_FOR_SCALE = 8
N_STEPS_FOR_SCALE = 25
CHANGE_OF_SCALE = 0.05  # of its logarithm, below which it has settled


class CutPolicies(NamedTuple):
    """Log odds for predictions, centred over the actions."""

    log_odds: np.ndarray  # of the features of all draws that predictions average over, (sum of K, U)
    base: np.ndarray  # of the base policy in each of these draws, (draws, U)
    chosen_log_odds: np.ndarray  # of the features of the chosen draw, (K, U)
    chosen_base: np.ndarray  # (U,)


class Rows(NamedTuple):
    """What the log odds are learned from: amounts with a first column of ones, actions, and what is available."""

    columns: np.ndarray  # (N, K + 1)
    actions: np.ndarray  # (N,), all known
    available: np.ndarray  # (N, U)


def make_rows(amounts: np.ndarray, actions: np.ndarray, available: np.ndarray) -> Rows:
    """The rows whose action is known."""
    known = actions >= 0
    columns = np.column_stack([np.ones(len(amounts)), amounts])
    return Rows(columns[known], actions[known], available[known])


def fit_log_odds(rows: Rows, scale: float, start: np.ndarray | None = None) -> np.ndarray:
    """The most probable log odds (K + 1, U) under a Gaussian prior with this variance; the base policy comes first."""
    n_columns, n_actions = rows.columns.shape[1], rows.available.shape[1]
    taken = np.eye(n_actions)[rows.actions]

    def lose(flat: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds = flat.reshape(n_columns, n_actions)
        tallies = np.where(rows.available, rows.columns @ log_odds, -np.inf)
        log_probabilities = log_softmax(tallies, axis=1)
        loss = -log_probabilities[np.arange(len(taken)), rows.actions].sum() + 0.5 * np.vdot(flat, flat) / scale
        slope = rows.columns.T @ (np.exp(log_probabilities) - taken) + log_odds / scale
        return float(loss), slope.ravel()

    first = np.zeros((n_columns, n_actions)) if start is None else start
    found = minimize(lose, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 1000, "maxcor": 30})
    log_odds = found.x.reshape(n_columns, n_actions)
    return log_odds - log_odds.mean(axis=1, keepdims=True)


def find_spread(rows: Rows, log_odds: np.ndarray, scale: float) -> float:
    """Sum of the variances of the centred log odds around their mode, by the curvature there."""
    n_columns, n_actions = log_odds.shape
    tallies = np.where(rows.available, rows.columns @ log_odds, -np.inf)
    probabilities = softmax(tallies, axis=1)
    curvature = np.zeros((n_actions, n_columns, n_actions, n_columns))
    for u in range(n_actions):
        for v in range(u + 1):
            weights = probabilities[:, u] * ((u == v) - probabilities[:, v])
            block = rows.columns.T @ (weights[:, None] * rows.columns)
            curvature[u, :, v] = curvature[v, :, u] = block
    size = n_columns * n_actions
    precision = curvature.reshape(size, size) + np.eye(size) / scale
    # the common shift of a policy's log odds is no part of it, and has the prior's variance
    return max(float(np.trace(np.linalg.inv(precision))) - n_columns * scale, 0.0)


def find_scale(rows: Rows, prior: tuple[float, float]) -> float:
    """The variance of the log odds of highest evidence, by expectation and maximisation; `prior` is its own."""
    shape, rate = prior
    scale, log_odds = FIRST_SCALE, None
    n_free = rows.columns.shape[1] * (rows.available.shape[1] - 1)
    for _ in range(N_STEPS_FOR_SCALE):
        log_odds = fit_log_odds(rows, scale, log_odds)
        expected = float(np.vdot(log_odds, log_odds)) + find_spread(rows, log_odds, scale)
        new = (2 * rate + expected) / (2 * shape + n_free)
        has_settled = abs(np.log(new / scale)) < CHANGE_OF_SCALE
        scale = new
        if has_settled:
            break
    return scale


def learn_cut_policies(
    amounts: list[np.ndarray],
    chosen_amounts: np.ndarray,
    actions: np.ndarray,
    available: np.ndarray,
    prior: tuple[float, float],
    n_jobs: int | None = None,
) -> CutPolicies:
    """Learn the policies for predictions.

    Parameters
    ----------
    amounts : list of ndarray (N, K)
        What each demonstration shows of the features of each draw.
    chosen_amounts : ndarray (N, K)
        The same for the chosen draw.
    actions : ndarray (N,)
        Indices of actions, -1 where missing.
    available : ndarray (N, U)
        Which actions are available.
    prior : pair
        Of the variance of the log odds: inverse Gamma, shape and rate.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    CutPolicies
    """
    rows = [make_rows(one, actions, available) for one in [chosen_amounts, *amounts]]
    some = rows[:: max(1, len(rows) // N_DRAWS_FOR_SCALE)][:N_DRAWS_FOR_SCALE]
    run = joblib.Parallel(n_jobs=n_jobs, prefer="threads")
    scales = run(joblib.delayed(find_scale)(one, prior) for one in some)
    scale = float(np.exp(np.mean(np.log(scales))))
    found = run(joblib.delayed(fit_log_odds)(one, scale) for one in rows)
    return CutPolicies(
        log_odds=np.concatenate([one[1:] for one in found[1:]]),
        base=np.stack([one[0] for one in found[1:]]),
        chosen_log_odds=found[0][1:],
        chosen_base=found[0][0],
    )
