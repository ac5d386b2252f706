"""Run several chains: each repeats the sweep, and keeps every `thin`-th draw (Sec. 4.2).

A chain runs in segments (rng, state) -> (rng, state, draws). Where a chain is cut does not change its draws, so
neither does the number of processes, nor a stop in between: `Progress` is all that a run needs to continue.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from whyact.model import Demonstrations
from whyact.sampler.algorithm import Algorithm
from whyact.sampler.draws import ChainDraws, Progress
from whyact.sampler.exact import EXACT
from whyact.sampler.interrupts import interrupts_between_kernels
from whyact.sampler.limits import solvable_matrices

# The observation weight rises from this share of its value during the first part of the burn-in.
COOLEST_SHARE = 0.02
SHARE_OF_ANNEALING = 2 / 3
# Features are merged at these shares of the burn-in, if it is long enough to be worth it.
SHARES_OF_MERGING = (2 / 3, 5 / 6, 0.95)
SHORTEST_BURN_IN_WITH_MERGING = 300
# Milestones of a run, at which it may be stopped early; where they are does not depend on the clock.
N_MILESTONES = 20
# Sweeps between two looks at the keyboard.
SWEEPS_PER_CALL = 20
# About how long the chains run between two reports of their progress.
SECONDS_PER_SEGMENT = 1.0


def anneal(n_burn_in: int, observation_weight: float) -> np.ndarray:
    """Observation weight of each sweep of the burn-in: rising geometrically, then at its value.

    A chain started at full weight freezes with one to three features too many: a poor mode, not the model.
    """
    n_annealed = int(n_burn_in * SHARE_OF_ANNEALING)
    observation_weights = np.full(n_burn_in, observation_weight)
    observation_weights[:n_annealed] *= np.geomspace(COOLEST_SHARE, 1.0, n_annealed) if n_annealed else 1.0
    return observation_weights


def when_to_merge(n_burn_in: int) -> list[int]:
    """Sweeps of the burn-in after which features are merged."""
    if n_burn_in < SHORTEST_BURN_IN_WITH_MERGING:
        return []
    return [int(n_burn_in * share) for share in SHARES_OF_MERGING]


def run_segment(
    rng: np.random.Generator,
    state: Any,
    observation_weights: np.ndarray,
    first: int,
    n_burn_in: int,
    thin: int,
    data: Demonstrations,
    target: Any,
    algorithm: Algorithm = EXACT,
) -> tuple[np.random.Generator, Any, ChainDraws]:
    """Run a chain from sweep `first` on, one for each observation weight; keep every `thin`-th after the burn-in."""
    merges = when_to_merge(n_burn_in) if algorithm.merge else []
    draws = ChainDraws(state, target.n_levels)
    done = 0
    one_thread = threadpool_limits(limits=1, user_api="blas")
    with one_thread, solvable_matrices(), interrupts_between_kernels() as deliver_interrupt:
        while done < len(observation_weights):
            sweep = first + done
            # up to the next merge, the end of the burn-in, or the next draw to keep
            if sweep < n_burn_in:
                until = min(stop for stop in [*merges, n_burn_in] if stop > sweep)
            else:
                until = sweep + thin - (sweep - n_burn_in) % thin
            n_sweeps = min(until - sweep, SWEEPS_PER_CALL, len(observation_weights) - done)
            state, info = algorithm.run(rng, state, observation_weights[done : done + n_sweeps], data, target)
            deliver_interrupt()
            done += n_sweeps
            sweep += n_sweeps
            if algorithm.merge and sweep in merges:
                state = algorithm.merge(rng, state, data, target, deliver_interrupt)
            if sweep > n_burn_in and (sweep - n_burn_in) % thin == 0:
                density = find_density(algorithm, state, data, target)
                if not np.isfinite(density):
                    raise FloatingPointError(
                        f"the sampler has left the range of floating point numbers (log joint density {density}, noise "
                        f"variance {state.noise_variance:.3g}); scale X, or choose other priors."
                    )
                draws.append(state, density, info.log_action_likelihood)
    return rng, state, draws


def find_density(algorithm: Algorithm, state: Any, data: Demonstrations, target: Any) -> float:
    """The log joint density; not a number where a number of the state has no logarithm."""
    try:
        return algorithm.log_joint(state, data, target)
    except ValueError:  # of Python's logarithm
        return math.nan


def run_chains(
    seed: np.random.SeedSequence,
    data: Demonstrations,
    target: Any,
    priors: Any,
    *,
    n_chains: int,
    n_burn_in: int,
    n_draws: int,
    thin: int,
    n_jobs: int | None = None,
    starts: list[Any] | None = None,
    algorithm: Algorithm = EXACT,
    resumed: Progress | None = None,
    on_progress: Callable[[Progress], bool | None] | None = None,
) -> Progress:
    """Run independent chains, each with its own stream, in `n_jobs` processes.

    `resumed` is where an earlier run with the same arguments was; its lists are extended. `on_progress` is called
    between segments; if it returns True at a milestone, the run stops early once there are draws.
    """
    if resumed is None:
        rngs = [np.random.Generator(np.random.PCG64(child)) for child in seed.spawn(n_chains)]
        states = starts or [algorithm.start(rng, data, target, priors) for rng in rngs]
        progress = Progress(0, 0, states, rngs, [ChainDraws(state, target.n_levels) for state in states])
    else:
        progress = resumed
    n_total = n_burn_in + n_draws
    states, rngs, chains = progress.states, progress.rngs, progress.chains
    progress = progress._replace(n_total=n_total)
    observation_weights = np.full(n_total, target.observation_weight)
    if algorithm.anneals:
        observation_weights[:n_burn_in] = anneal(n_burn_in, target.observation_weight)
    if joblib.effective_n_jobs(n_jobs) > 1:  # compile here once, so that the processes find it in the cache
        throwaway = np.random.default_rng(0)
        run_segment(throwaway, states[0], observation_weights[:1], 0, n_burn_in, thin, data, target, algorithm)
    milestones = find_milestones(n_total)
    n_sweeps = SWEEPS_PER_CALL
    # joblib maps large arrays into its processes, by default read-only, which would be another type for the kernels
    with joblib.Parallel(n_jobs=n_jobs, mmap_mode="c") as pool:
        while progress.n_done < n_total:
            first = progress.n_done
            milestone = min(sweep for sweep in milestones if sweep > first)
            last = min(first + n_sweeps, milestone)
            started = time.perf_counter()
            segments = pool(
                joblib.delayed(run_segment)(
                    rng, state, observation_weights[first:last], first, n_burn_in, thin, data, target, algorithm
                )
                for rng, state in zip(rngs, states, strict=True)
            )
            per_second = (last - first) / max(time.perf_counter() - started, 1e-9)
            n_sweeps = max(1, min(2 * n_sweeps, int(per_second * SECONDS_PER_SEGMENT)))
            for i, (rng, state, draws) in enumerate(segments):
                rngs[i], states[i] = rng, state
                chains[i].extend(draws)
            progress = progress._replace(n_done=last, at_milestone=last == milestone)
            if on_progress and on_progress(progress) and progress.at_milestone and len(chains[0]):
                break
    return progress


def find_milestones(n_total: int) -> list[int]:
    """Sweeps that cut a run into at most N_MILESTONES parts of about equal length."""
    return np.unique(np.linspace(0, n_total, N_MILESTONES + 1).astype(int))[1:].tolist()
