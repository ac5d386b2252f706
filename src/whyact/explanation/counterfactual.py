"""What would have to change for another action."""

from typing import Any, NamedTuple

import numpy as np

# One action is more probable than another if their sums over levels differ by more than this.
ROUNDING = 1e-9


class Counterfactual(NamedTuple):
    """The smallest change of the substates, in all, that changes what the chosen draw would do."""

    before: Any  # the action of the chosen draw for the substates as they are
    action: Any  # the action after the change
    changes: dict[int, tuple[float, float]]  # feature -> its substate as it is, and after, on the grid


def overturn(levels: np.ndarray, leanings: np.ndarray, top: int) -> np.ndarray | None:
    """The nearest levels in {0, ..., top}^K with sum_k level_k leaning_k > 0, or None if there are none.

    Each step of a level costs the same and gains its |leaning|, so it is best to take the largest gains first.
    """
    gains = np.abs(leanings)
    room = np.where(leanings > 0, top - levels, levels)
    order = np.argsort(-gains, kind="stable")
    margins = levels @ leanings + np.cumsum((room * gains)[order])  # with the first features at their limits
    enough = np.nonzero(margins > ROUNDING)[0]
    if not len(enough):
        return None
    last = order[enough[0]]
    steps = np.zeros(len(levels), dtype=int)
    steps[order[: enough[0]]] = room[order[: enough[0]]]
    missing = ROUNDING - (margins[enough[0]] - room[last] * gains[last])
    steps[last] = min(int(missing / gains[last]) + 1, room[last])
    return levels + np.sign(leanings).astype(int) * steps


def find_counterfactual(levels: np.ndarray, policies: np.ndarray, top: int) -> tuple[int, int, np.ndarray] | None:
    """The nearest levels (K,) at which another action is more probable: the two actions, and those levels.

    Among equally near ones, the one with the largest margin. The power tau of the mixture does not change its order,
    and what is unfamiliar speaks for all actions equally.
    """
    before = int(np.argmax(levels @ policies))
    found = []
    for action in range(policies.shape[1]):
        leanings = policies[:, action] - policies[:, before]
        changed = None if action == before else overturn(levels, leanings, top)
        if changed is not None:
            found.append((int(np.abs(changed - levels).sum()), -float(changed @ leanings), action, changed))
    if not found:
        return None
    _, _, action, changed = min(found, key=lambda one: one[:3])
    return before, action, changed
