"""How decisive the teacher is, learned from what a new row can show.

A mixture of policies is never surer than its surest feature, while the teacher may well be: predictions therefore take
the mixture to the power of tau, the decisiveness. If tau is drawn with all the rest, features get free of the actions:
one more feature that holds a little of everything no longer dilutes the mixture, so nothing speaks against it, the
number of features grows and chains disagree. So the sampler keeps the paper's mixture, and tau is found afterwards:
the most probable one, given the actions of the demonstrations, with their substates drawn without their actions as for
a new row. As for the policies of a product (`cut_policies.py`), what is judged is what will be used, the average over
draws:

    log p(tau) + sum_n log mean over draws and rounds of  m_n(u_n)^tau / sum_v m_n(v)^tau.

By the same measure it is chosen how loudly features speak: by their substates alone, or as parts of a whole
(`strengths.py`).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from whyact.cut_policies import spread_out
from whyact.model import restrict_log_odds

N_DRAWS = 60
N_ROWS = 600
ROWS_AT_ONCE = 50  # to bound the memory for the substates of all draws
RANGE = (0.1, 300.0)
PRECISION = 1e-3  # of log tau
SMALLEST = 1e-300


class Decisiveness(NamedTuple):
    """The most probable tau, and the log density there, up to a constant."""

    value: float
    log_density: float


def log_mixtures(substates: np.ndarray, votes: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """Log of the mixture m(u) up to a constant for each row, (N, rounds, draws, U), by flat substates and votes.

    Zero for all actions where no feature is present: the action is uniform then, whatever tau is.
    """
    parts = [substates[:, :, first:last] @ votes[first:last] for first, last in pairwise(splits)]
    mixtures = np.stack(parts, axis=2)
    mixtures[mixtures.sum(axis=3) == 0] = 1.0
    return np.log(np.maximum(mixtures, SMALLEST))


def find_decisiveness(
    logs: np.ndarray, actions: np.ndarray, available: np.ndarray, shape: float, rate: float
) -> Decisiveness:
    """The most probable tau under a Gamma prior.

    Parameters
    ----------
    logs : ndarray (N, rounds, draws, U)
        Log of the mixtures, as `log_mixtures` gives them.
    actions : ndarray (N,)
        Indices of the actions, all known.
    available : ndarray (N, U)
        Which actions are available.
    shape, rate : float
        Of the prior.

    Returns
    -------
    Decisiveness
    """
    masked = restrict_log_odds(logs, available[:, None, None, :])
    masked -= masked.max(axis=3, keepdims=True)
    rows = np.arange(len(actions))

    def lose(log_tau: float) -> float:
        tau = np.exp(log_tau)
        own = log_softmax(tau * masked, axis=3)[rows, :, :, actions]
        averaged = logsumexp(own, axis=(1, 2)) - np.log(own[0].size)
        return float(rate * tau - (shape - 1) * log_tau - averaged.sum())

    found = minimize_scalar(lose, bounds=np.log(RANGE), method="bounded", options={"xatol": PRECISION})
    return Decisiveness(float(np.exp(found.x)), -float(found.fun))


def learn_decisiveness(
    show: Callable[[np.ndarray], np.ndarray],
    candidates: list[np.ndarray],
    splits: np.ndarray,
    actions: np.ndarray,
    available: np.ndarray | None,
    shape: float,
    rate: float,
) -> list[Decisiveness]:
    """Learn the decisiveness from demonstrations, of many rows from some, for each of several ways to vote.

    Parameters
    ----------
    show : callable
        Substates of these rows (indices) without their actions, (rows, rounds, sum of K).
    candidates : list of ndarray (sum of K, U)
        Votes of the features of all draws: their policies, times how loudly they speak.
    splits : ndarray (draws + 1,)
        Where the features of each draw begin.
    actions : ndarray (N,)
        Indices of actions, -1 where missing.
    available : ndarray (N, U) or None
        Which actions are available; None: all.
    shape, rate : float
        Of the Gamma prior.

    Returns
    -------
    list of Decisiveness
        One for each candidate.
    """
    known = np.nonzero(actions >= 0)[0]
    rows = known[spread_out(len(known), N_ROWS)]
    blocks = np.array_split(rows, -(-len(rows) // ROWS_AT_ONCE))
    everything = np.ones((len(rows), candidates[0].shape[1]), bool)
    there = everything if available is None else available[rows]

    def mix(substates: np.ndarray) -> list[np.ndarray]:
        return [log_mixtures(substates, votes, splits) for votes in candidates]

    logs = [np.concatenate(parts) for parts in zip(*(mix(show(block)) for block in blocks), strict=True)]
    return [find_decisiveness(of_candidate, actions[rows], there, shape, rate) for of_candidate in logs]
