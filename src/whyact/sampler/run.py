"""One run: several chains from a problem to their draws, through checkpoints and restarts."""

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    pass


class Ends(NamedTuple):
    """Where a run ended: with its draws, all that is needed to go on."""

    identity: str  # of the run, by `identify`
    entropy: list[int]  # what its random numbers began with
    n_done: int  # sweeps of each chain
    states: list[Any]
    rng_states: list[Any]


def identify(problem, classes: np.ndarray, thin: int, n_burn_in: int, n_chains: int) -> str:
    """A digest of all that the draws depend on, but the random numbers and the number of draws."""
    digest = hashlib.sha256()
    algorithm = problem.algorithm
    parts = [algorithm.kernel, algorithm.start.__qualname__, getattr(algorithm.run, "keywords", {}), problem.unit]
    parts += [classes.tolist(), thin, n_burn_in, n_chains, *problem.target, problem.data.observations.shape]
    digest.update(repr(parts).encode())
    for values in (problem.data.observations, problem.data.actions, problem.data.row_splits, problem.data.row_gaps):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


class Problem(NamedTuple):
    """What is given to the chains."""

    data: Any  # Demonstrations
    target: Any  # options and hyperpriors, flat for the kernels
    priors: Any
    algorithm: Any  # an Algorithm
    unit: float = 1.0  # what the observations were divided by
    center: np.ndarray | float = 0.0  # and what was taken off them before
