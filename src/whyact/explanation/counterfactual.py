"""What would have to change for another action."""

import math
from typing import Any, NamedTuple

import numpy as np

# One action is more probable than another if their sums over levels differ by more than this.
ROUNDING = 1e-9


class Counterfactual(NamedTuple):
    """The smallest change of the substates, in all, that changes what the chosen draw would do."""

    before: Any  # the action of the chosen draw for the substates as they are
    action: Any  # the action after the change
    changes: dict[int, tuple[float, float]]  # feature -> its substate as it is, and after, on the grid


def overturn(levels: np.ndarray, leanings: np.ndarray, top: int, head_start: float = 0.0) -> np.ndarray | None:
    """The nearest levels in [0, top]^K with head_start + sum_k level_k leaning_k > 0, or None if there are none.

    Each step of a level costs the same and gains its |leaning|, so it is best to take the largest gains first. All
    levels that change become whole numbers. If all levels are whole already, there are none nearer; otherwise none is
    nearer by more than a step.
    """
    gains = np.abs(leanings)
    room = np.where(leanings > 0, top - levels, levels)
    order = np.argsort(-gains, kind="stable")
    margins = head_start + levels @ leanings + np.cumsum((room * gains)[order])  # with the first ones at their limits
    enough = np.nonzero(margins > ROUNDING)[0]
    if not len(enough):
        return None
    first, last = order[: enough[0]], order[enough[0]]
    changed = levels.copy()
    changed[first] = np.where(leanings[first] > 0, top, np.where(leanings[first] < 0, 0, levels[first]))
    missing = ROUNDING - (margins[enough[0]] - room[last] * gains[last])
    changed[last] = step_beyond(levels[last], missing / gains[last], int(np.sign(leanings[last])), top)
    return changed


def step_beyond(level: float, distance: float, direction: int, top: int) -> int:
    """The first whole level that is further away than this, or the last one there is."""
    if direction > 0:
        return min(math.floor(level + distance) + 1, top)
    return max(math.ceil(level - distance) - 1, 0)


def find_counterfactual(
    levels: np.ndarray,
    votes: np.ndarray,
    top: int,
    base: np.ndarray | None = None,
    available: np.ndarray | None = None,
) -> tuple[int, int, np.ndarray] | None:
    """The nearest levels (K,) at which another action is more probable: the two actions, and those levels.

    `votes` (K, U) are what the features at level `top` say: the policies of a mixture, the log odds of a product, which
    also has those of the base policy, `base` (U,). `available` (U,) tells which actions there are; None: all. Among
    equally near levels, those with the largest margin. The power tau of a mixture does not change its order, and what
    is unfamiliar speaks for all actions equally.
    """
    start = np.zeros(votes.shape[1]) if base is None else top * base
    possible = np.ones(votes.shape[1], bool) if available is None else available
    before = int(np.argmax(np.where(possible, start + levels @ votes, -np.inf)))
    found = []
    for action in np.nonzero(possible)[0].tolist():
        leanings, head_start = votes[:, action] - votes[:, before], float(start[action] - start[before])
        changed = None if action == before else overturn(levels, leanings, top, head_start)
        if changed is not None:
            margin = head_start + float(changed @ leanings)
            found.append((float(np.abs(changed - levels).sum()), -margin, action, changed))
    if not found:
        return None
    _, _, action, changed = min(found, key=lambda one: one[:3])
    tallies = np.where(possible, start + changed @ votes, -np.inf)
    if tallies.max() > tallies[action] + ROUNDING:  # on the way to a whole level, a third action got ahead
        action = int(np.argmax(tallies))
    return before, action, changed
