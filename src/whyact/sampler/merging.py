"""Merging features that say the same, during the burn-in (Sec. 4.2).

Two features may share what one could hold: both point the same way, or both are in the same rows. Gibbs steps seldom
join them, because every row would have to move at once. The paper merges features of high correlation. Here a pair is
replaced by the best single feature, the leading singular vectors of s_i f_i + s_j f_j; some sweeps fit it in; and the
result is kept if it is the better explanation. This is no valid Markov move, so it belongs to the burn-in, where it
leads to a better start; no draw is kept before the burn-in is over.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import nnls

from whyact.model import Demonstrations, State, Target

N_PAIRS = 6
N_SWEEPS = 20


def loss_of_merging(substates: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Squared error of replacing each pair by one feature, (K, K): the smaller eigenvalue of the two Gram blocks.

    The singular values of s_i f_i' + s_j f_j' are the square roots of the eigenvalues of the product of the blocks of
    S'S and F F'.
    """
    s, f = substates @ substates.T, features @ features.T
    s_own, f_own = np.diag(s), np.diag(f)
    trace = s_own[:, None] * f_own[:, None] + s_own * f_own + 2 * s * f
    determinant = (np.outer(s_own, s_own) - s**2) * (np.outer(f_own, f_own) - f**2)
    root = np.sqrt(np.maximum(trace**2 / 4 - determinant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # determinant over the larger eigenvalue: no cancellation
        loss = np.where(trace > 0, determinant / (trace / 2 + root), 0.0)
    return np.maximum(loss, 0.0)


def merge_pair(state: State, i: int, j: int, n_levels: int) -> State:
    """Replace the features i and j by the best single one; its substates are put on the grid."""
    pair = [i, j]
    # singular vectors of an N x D matrix of rank two, from its two thin factors
    left, left_square = np.linalg.qr(state.substates[pair].T)
    right, right_square = np.linalg.qr(state.features[pair].T)
    u, values, v = np.linalg.svd(left_square @ right_square.T)
    column, row = left @ u[:, 0] * values[0], right @ v[0]
    if column.sum() < 0:
        column, row = -column, -row
    largest = column.max()
    if not largest > 0:
        return drop_feature(state, j)
    column = np.rint(np.clip(column / largest, 0.0, 1.0) * (n_levels - 1)) / (n_levels - 1)
    row = np.where(state.features[pair].any(axis=0), row * largest, 0.0)
    if not np.any(state.features < 0):
        row = np.maximum(row, 0.0)
    share = state.substates[pair].sum(axis=1)
    policy = share @ state.policies[pair] / share.sum() if share.sum() > 0 else state.policies[i]
    rest = np.delete(np.arange(len(state.features)), pair)
    return state._replace(
        substates=np.vstack([state.substates[rest], column]),
        features=np.vstack([state.features[rest], row]),
        policies=np.vstack([state.policies[rest], policy]),
    )


def drop_feature(state: State, k: int) -> State:
    """The state without feature k."""
    return state._replace(
        substates=np.delete(state.substates, k, axis=0),
        features=np.delete(state.features, k, axis=0),
        policies=np.delete(state.policies, k, axis=0),
    )


def score_explanation(state: State, data: Demonstrations, target: Target, log_joint: Callable[..., float]) -> float:
    """Log joint density times the width of the weights' conditionals: a rough evidence, comparable between K.

    Policies are taken in logarithms, where their density has a bound; those of a product are in log odds already.
    """
    precision = target.observation_weight / state.noise_variance * np.sum(state.substates**2, axis=1)
    n_active = np.count_nonzero(state.features, axis=1)
    held = precision > 0
    volume = 0.5 * np.sum(n_active[held] * np.log(2 * math.pi / precision[held]))
    in_logs = 0.0 if len(state.base_policy) else np.log(state.policies).sum()
    return log_joint(state, data, target) + float(in_logs + volume)


def keep_what_explains_better(
    propose: Callable[[State, int], State | None],
    rng: np.random.Generator,
    state: State,
    data: Demonstrations,
    target: Target,
    run: Callable[..., Any],
    log_joint: Callable[..., float],
    between_kernels: Callable[[], None],
) -> State:
    """Try the best proposals, each fitted in by some sweeps; after one that explains better, start over from it.

    `propose(state, rank)` is the state changed in the best way (rank 0), the second best (rank 1) and so on, or None if
    there are no more; `run` and `log_joint` are those of the `Algorithm`.
    """
    observation_weights = np.full(N_SWEEPS, target.observation_weight)
    tried = 0
    n_left = len(state.features)  # at most this many changes
    while tried < N_PAIRS and n_left > 0 and len(state.features) > 1:
        changed = propose(state, tried)
        if changed is None:
            break
        candidate, _ = run(rng, changed, observation_weights, data, target)
        between_kernels()
        if score_explanation(candidate, data, target, log_joint) > score_explanation(state, data, target, log_joint):
            state, tried, n_left = candidate, 0, n_left - 1
        else:
            tried += 1
    return state


def merge_features(
    rng: np.random.Generator,
    state: State,
    data: Demonstrations,
    target: Target,
    run: Callable[..., Any],
    log_joint: Callable[..., float],
    between_kernels: Callable[[], None],
) -> State:
    """Try to merge the pairs that lose least; keep what explains better."""

    def propose(state: State, rank: int) -> State | None:
        loss = loss_of_merging(state.substates, state.features)
        first, second = np.triu_indices(len(loss), 1)
        order = np.argsort(loss[first, second], kind="stable")
        if rank >= len(order):
            return None
        pick = order[rank]
        return merge_pair(state, int(first[pick]), int(second[pick]), target.n_levels)

    state, _ = run(rng, state, np.full(N_SWEEPS, target.observation_weight), data, target)
    return keep_what_explains_better(propose, rng, state, data, target, run, log_joint, between_kernels)


def loss_of_dropping(state: State) -> np.ndarray:
    """Squared error of replacing each feature by a sum of others in the rows that hold it, (K,)."""
    loss = np.empty(len(state.features))
    for k, feature in enumerate(state.features):
        _, distance = nnls(np.delete(state.features, k, axis=0).T, feature)
        loss[k] = distance**2 * np.sum(state.substates[k] ** 2)
    return loss


def drop_features(
    rng: np.random.Generator,
    state: State,
    data: Demonstrations,
    target: Target,
    run: Callable[..., Any],
    log_joint: Callable[..., float],
    between_kernels: Callable[[], None],
) -> State:
    """Try to do without the features that others can replace; keep what explains better.

    Where substates are 0 or 1, the rows with two features may hold a third one that is their sum. No two of the three
    can be merged, but without the third the rows are free to hold the other two.
    """

    def propose(state: State, rank: int) -> State | None:
        if rank >= len(state.features):
            return None
        return drop_feature(state, int(np.argsort(loss_of_dropping(state), kind="stable")[rank]))

    return keep_what_explains_better(propose, rng, state, data, target, run, log_joint, between_kernels)
