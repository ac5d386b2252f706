"""One run: from a problem to the draws of its chains, through checkpoints and restarts."""

import copy
import hashlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from whyact.sampler.algorithm import Problem
from whyact.sampler.chain import run_chains
from whyact.sampler.draws import ChainDraws, Progress, RunEnd, make_rng

N_CHAIN_ENTROPY = 4  # the numbers of the entropy that the chains start from; the last one is for predictions


class RunLength(NamedTuple):
    """How long the chains run."""

    n_burn_in: int
    n_draws: int  # sweeps after the burn-in
    n_chains: int
    thin: int  # every thin-th sweep is kept

    @property
    def n_sweeps(self) -> int:
        """Sweeps of each chain."""
        return self.n_burn_in + self.n_draws


class Checkpoints(Protocol):
    """Where a run keeps its progress; `storage.checkpoint` has them in a folder."""

    def read(self, problem: Problem) -> tuple[list[int], Progress] | None:
        """What the run started from and how far it was; None if it has not started."""

    def keep(self, progress: Progress, entropy: list[int]) -> None:
        """Write the progress if it is time to."""

    def write(self, progress: Progress, entropy: list[int]) -> None:
        """Write the progress."""


def identify(problem: Problem, classes: np.ndarray, length: RunLength) -> str:
    """A digest of all that the draws depend on, except for the random numbers and the number of draws."""
    digest = hashlib.sha256()
    algorithm = problem.algorithm
    parts = [algorithm.kernel, algorithm.start.__qualname__, getattr(algorithm.run, "keywords", {}), problem.unit]
    parts += [classes.tolist(), length.thin, length.n_burn_in, length.n_chains]
    parts += [*problem.target, problem.data.observations.shape]
    digest.update(repr(parts).encode())
    for values in (problem.data.observations, problem.data.actions, problem.data.row_splits, problem.data.row_gaps):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def run_problem(
    problem: Problem,
    length: RunLength,
    identity: str,
    entropy: list[int],
    *,
    is_seeded: bool = False,
    earlier: tuple[RunEnd, list[ChainDraws]] | None = None,
    checkpoints: Checkpoints | None = None,
    n_jobs: int | None = None,
    on_progress: Callable[[Progress], bool | None] | None = None,
) -> tuple[RunEnd, list[ChainDraws]]:
    """Run the chains to their end, from the start or from where they were.

    Parameters
    ----------
    problem : Problem
    length : RunLength
    identity : str
        Of the run, by `identify`.
    entropy : list of int
        What the random numbers start from, unless an earlier run is continued.
    is_seeded : bool, default=False
        Whether the user has fixed the random numbers, so that an earlier run must have started from the same.
    earlier : tuple (RunEnd, list of ChainDraws) or None, default=None
        The last fit, to draw more from the same posterior.
    checkpoints : Checkpoints or None, default=None
        Where progress is kept, and looked for first.
    n_jobs : int or None, default=None
    on_progress : callable or None, default=None
        As in `run_chains`.

    Returns
    -------
    end : RunEnd
    chains : list of ChainDraws
    """
    found = checkpoints.read(problem) if checkpoints else None
    if found is None and earlier is not None:
        found = continue_earlier(*earlier, identity)
    if found is not None:
        check_earlier(*found, length, entropy if is_seeded else None)
        entropy = found[0]

    def report(progress: Progress) -> bool | None:
        if checkpoints:
            checkpoints.keep(progress, entropy)
        return on_progress(progress) if on_progress else None

    progress = run_chains(
        np.random.SeedSequence(entropy[:N_CHAIN_ENTROPY]),
        problem.data,
        problem.target,
        problem.priors,
        **length._asdict(),
        n_jobs=n_jobs,
        algorithm=problem.algorithm,
        resumed=found[1] if found else None,
        on_progress=report,
    )
    if checkpoints:
        checkpoints.write(progress, entropy)
    rng_states = [rng.bit_generator.state for rng in progress.rngs]
    return RunEnd(identity, entropy, progress.n_done, progress.states, rng_states), progress.chains


def continue_earlier(end: RunEnd, chains: list[ChainDraws], identity: str) -> tuple[list[int], Progress]:
    """Where the last fit ended; a copy, so that a fit that fails leaves the last one as it was."""
    if end.identity != identity:
        raise ValueError(
            "warm_start=True draws more from the same posterior, so the data and all options but n_draws must be "
            "the same as in the last fit; set warm_start=False to start over."
        )
    rngs = [make_rng(state) for state in end.rng_states]
    return end.entropy, Progress(end.n_done, end.n_done, list(end.states), rngs, copy.deepcopy(chains))


def check_earlier(started_from: list[int], resumed: Progress, length: RunLength, entropy: list[int] | None) -> None:
    """An earlier run must hold the draws that its state counts, have the same seed, and not be longer than asked."""
    n_kept = max(resumed.n_done - length.n_burn_in, 0) // length.thin
    if len(resumed.chains) != length.n_chains or any(len(chain) != n_kept for chain in resumed.chains):
        raise ValueError("checkpoint: the draws in the folder do not match its state.")
    if entropy is not None and started_from != entropy:
        raise ValueError("random_state differs from that of the earlier run.")
    if resumed.n_done > length.n_sweeps:
        raise ValueError(
            f"n_draws asks for {length.n_sweeps} sweeps in all, but the earlier run has already done {resumed.n_done}."
        )
