"""A recording of a teacher as arrays, which NPZ files and Minari datasets are loaded into and saved from."""

from typing import NamedTuple

import numpy as np

from whyact.errors import ArgumentError

# Names of the arrays in an NPZ file, and of what a Minari dataset holds.
OBSERVATIONS = "observations"
ACTIONS = "actions"
EPISODE = "episode"
STEP = "step"


class Recording(NamedTuple):
    """What a teacher saw and did, as plain arrays.

    Attributes
    ----------
    observations : ndarray of shape (N, D)
        What the teacher saw.
    actions : ndarray of shape (N,)
        What the teacher did: whole numbers or names.
    episode : ndarray of shape (N,)
        Which rows belong together: whole numbers.

    See Also
    --------
    whyact.tables.Table : Rows of a file of any kind, with names of columns and missing entries.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.tables import Recording
    >>> recording = Recording(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array(["keep", "brake"]), np.array([0, 0]))
    >>> recording.observations[recording.actions == "brake"]
    array([[0.8, 0.2]])
    """

    observations: np.ndarray
    actions: np.ndarray
    episode: np.ndarray


def check_arrays(source: str, arrays: dict[str, np.ndarray], argument: str) -> None:
    """Check that observations are rows of numbers, with one action and one episode for each row."""
    observations, actions = arrays[OBSERVATIONS], arrays[ACTIONS]
    if observations.ndim != 2 or not observations.size:
        raise ArgumentError(
            argument, f"{source}: observations must be rows of numbers, not of shape {observations.shape}."
        )
    if observations.dtype.kind not in "biuf":
        raise ArgumentError(argument, f"{source}: observations must be numbers, not {observations.dtype}.")
    if actions.dtype.kind not in "iuUb":
        raise ArgumentError(argument, f"{source}: actions must be whole numbers or names, not {actions.dtype}.")
    for name in (ACTIONS, EPISODE, STEP):
        if name in arrays and arrays[name].shape != (len(observations),):
            raise ArgumentError(
                argument, f"{source}: {name} must have one entry for each of the {len(observations)} rows of "
                f"observations, not the shape {arrays[name].shape}.",
            )  # fmt: skip
        if name in (EPISODE, STEP) and name in arrays and arrays[name].dtype.kind not in "iu":
            raise ArgumentError(argument, f"{source}: {name} must be whole numbers, not {arrays[name].dtype}.")
