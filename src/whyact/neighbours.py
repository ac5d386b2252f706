"""Which rows are held out together: neighbours, as far as they are alike.

Moments of one drive, or answers of one person, are alike, so a row seems easy to predict if rows beside it were learned
from. How far this reaches, the rows tell themselves: rows with the same action are compared that are one row apart, two
rows apart, and so on, until they differ about as much as any two rows with that action. Only rows with the same action
are compared, because a table may be sorted by action, which makes neighbours alike but not dependent.
"""

import numpy as np

BLOCKS_IN_PART = 5
# Rows this far apart are no longer neighbours: their squared difference is this share of that of any two rows.
UNLIKE = 0.8
REACHES_IN_BLOCK = 2  # a block is this many times as long as neighbours are alike, or longer
LEAST_BLOCKS = 4


def find_reach(rows: np.ndarray, actions: np.ndarray) -> int:
    """How many rows apart two rows must be to differ as any two rows with the same action.

    Parameters
    ----------
    rows : ndarray (N, D)
        In the order in which they were recorded; NaN where an entry is missing.
    actions : ndarray (N,)
        Indices of actions; rows without one, -1, are compared with each other.

    Returns
    -------
    int
        1 where neighbours are no more alike than others; at most an eighth of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.neighbours import find_reach
    >>> steps = np.random.default_rng(0).standard_normal((400, 30))
    >>> find_reach(steps, np.zeros(400, int)), find_reach(np.repeat(steps[:50], 8, axis=0), np.zeros(400, int))
    (1, 7)
    """
    observed = ~np.isnan(rows)
    # a column that nothing was observed of has no mean, and takes no part
    mean = np.where(observed, rows, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    filled = np.where(observed, rows - mean, 0.0)
    spread = filled.std(axis=0)
    filled = filled[:, spread > 0] / spread[spread > 0]
    expected = np.zeros(len(rows))  # of the squared difference to any other row with the same action
    for action in np.unique(actions):
        own = actions == action
        expected[own] = 2.0 * filled[own].var(axis=0, ddof=1).sum() if own.sum() > 1 else 0.0
    most = max(1, len(rows) // (LEAST_BLOCKS * REACHES_IN_BLOCK))
    for lag in range(1, most):
        same = actions[lag:] == actions[:-lag]
        far = expected[lag:][same].sum()
        if np.square(filled[lag:] - filled[:-lag])[same].sum() >= UNLIKE * far:
            return lag
    return most


def deal_out(actions: np.ndarray, n_parts: int, reach: int = 1) -> np.ndarray:
    """Number of the part that each row is in, -1 for rows without an action.

    Neighbours go to the same part, in blocks of consecutive rows; `reach` tells how far neighbours are alike.
    """
    known = np.nonzero(actions >= 0)[0]
    parts = np.full(len(actions), -1)
    longest = max(n_parts, len(known) // (REACHES_IN_BLOCK * reach))
    n_blocks = min(BLOCKS_IN_PART * n_parts, len(known), longest)
    parts[known] = (np.arange(len(known)) * n_blocks // max(len(known), 1)) % n_parts
    return parts


def find_standard_error(values: np.ndarray, reach: int = 1) -> float:
    """Of the mean of values of consecutive rows, of which only one in `reach` says something new."""
    return float(values.std() / np.sqrt(len(values) / reach))
