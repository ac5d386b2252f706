"""A made-up example: a driver who reacts to what is around the car.

Nothing is measured. The driver sees a grid of 6 x 6 cells in front of the car. Five things can be in it, each to some
degree, several at a time. Each favours one action, and the driver takes the most probable one.
"""

from dataclasses import dataclass

import numpy as np

GRID = (6, 6)  # rows: distance ahead, nearest first; columns: left to right
ACTIONS = np.array(["accelerate", "brake", "keep", "steer left", "steer right"])
THINGS = {  # what is seen, where (rows, columns), and what it makes the driver do
    "car close ahead": ([(0, 2), (0, 3), (1, 2), (1, 3)], "brake"),
    "car far ahead": ([(4, 2), (4, 3), (5, 2), (5, 3)], "keep"),
    "car beside, left": ([(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1)], "steer right"),
    "cyclist, right": ([(2, 5), (3, 5), (2, 4)], "steer left"),
    "open road": ([(row, column) for row in range(6) for column in (1, 4)], "accelerate"),
}
NOISE = 0.12  # standard deviation
PEAK = 0.92  # probability of the action that a thing speaks for


@dataclass(frozen=True)
class Demo:
    """Demonstrations of a made-up driver, and the features they were made of.

    Attributes
    ----------
    X : ndarray of shape (N, 36)
        What the driver saw.
    y : ndarray of shape (N,)
        What the driver did.
    column_names : list of str
        Where each cell is.
    features : ndarray of shape (5, 36)
        The true features.
    feature_names : list of str
        What they are.

    Examples
    --------
    >>> from whyact import load_demo
    >>> demo = load_demo()
    >>> demo.feature_names
    ['car close ahead', 'car far ahead', 'car beside, left', 'cyclist, right', 'open road']
    """

    X: np.ndarray
    y: np.ndarray
    column_names: list[str]
    features: np.ndarray
    feature_names: list[str]


def load_demo(n_rows: int = 120, seed: int = 7) -> Demo:
    """Make demonstrations of a driver who reacts to what is around the car.

    Parameters
    ----------
    n_rows : int, default=120
        Number of demonstrations.
    seed : int, default=7
        Seed of the random numbers; the same seed gives the same demonstrations.

    Returns
    -------
    Demo
        Observations, actions, and the features they were made of.

    Examples
    --------
    >>> from whyact import load_demo
    >>> demo = load_demo(n_rows=4)
    >>> demo.X.shape, demo.y.tolist()
    ((4, 36), ['steer right', 'accelerate', 'keep', 'steer right'])
    """
    rng = np.random.default_rng(seed)
    features = np.zeros((len(THINGS), *GRID))
    policies = np.full((len(THINGS), len(ACTIONS)), (1 - PEAK) / (len(ACTIONS) - 1))
    for k, (cells, action) in enumerate(THINGS.values()):
        for row, column in cells:
            features[k, row, column] = rng.uniform(0.8, 1.6)
        policies[k, np.flatnonzero(action == ACTIONS)[0]] = PEAK
    flat = features.reshape(len(THINGS), -1)
    present = rng.random((n_rows, len(THINGS))) < 0.3
    present[np.arange(n_rows), rng.integers(len(THINGS), size=n_rows)] = True
    substates = np.where(present, rng.uniform(0.2, 1.0, present.shape), 0.0)
    X = substates @ flat + NOISE * rng.standard_normal((n_rows, flat.shape[1]))
    y = ACTIONS[(substates @ policies).argmax(axis=1)]
    sides = ["left 5", "left 3", "left 1", "right 1", "right 3", "right 5"]  # metres
    names = [f"ahead {5 * (row + 1)} {side}" for row in range(GRID[0]) for side in sides]
    return Demo(X, y, names, flat, list(THINGS))
