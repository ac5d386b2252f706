"""Run several chains: each repeats the sweep, and keeps every `thin`-th draw (Sec. 4.2).

A chain goes on in segments (rng, state) -> (rng, state, draws). Where a chain is cut does not change its draws, so
neither does the number of processes.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from whyact.model import (
    Demonstrations,
    Priors,
    State,
    Target,
    draw_policies_from_prior,
    draw_substates_from_prior,
    log_joint,
    simulate,
)
from whyact.posterior import ChainDraws
from whyact.sampler.interrupts import interrupts_between_kernels
from whyact.sampler.settings import AsPublished

# The observation weight rises from this share of its value during the first part of the burn-in.
COOLEST_SHARE = 0.02
SHARE_OF_ANNEALING = 2 / 3
# Features are merged at these shares of the burn-in, if it is long enough to be worth it.
SHARES_OF_MERGING = (2 / 3, 5 / 6, 0.95)
SHORTEST_BURN_IN_WITH_MERGING = 300
N_SEGMENTS = 20
# Sweeps between two looks at the keyboard.
SWEEPS_PER_CALL = 20


class Progress(NamedTuple):
    """How far the chains are; given to the caller after each segment."""

    n_done: int  # sweeps of each chain
    n_total: int
    states: list[State]  # the present state of each chain


def start_from_prior(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start as the paper does: one feature, everything drawn from the prior.

    The feature is active everywhere, because a single entry drawn from the buffet hardly ever survives.
    """
    n_rows, n_dimensions = data.observations.shape
    values = "positive" if target.positive else "real"
    hyper = simulate(rng, 1, 1, 2, priors=priors, feature_values=values, features=np.ones((1, 1))).state
    weights = rng.exponential(size=(1, n_dimensions)) if target.positive else rng.standard_normal((1, n_dimensions))
    scale = hyper.weight_scale if target.positive else np.sqrt(hyper.weight_scale)
    return hyper._replace(
        features=scale * weights,
        substates=draw_substates_from_prior(rng, 1, n_rows, target.n_levels, priors.sparsity),
        policies=draw_policies_from_prior(rng, 1, target.n_actions, hyper.policy_concentration),
    )


def start_as_published(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start with one feature, its activations drawn from the buffet as well."""
    from whyact.sampler.births import draw_feature_from_buffet

    state = start_from_prior(rng, data, target, priors)
    feature = draw_feature_from_buffet(
        rng, data.observations.shape[1], state.ibp_concentration, state.weight_scale, target.positive
    )
    return state._replace(features=feature[None])


def anneal(n_burn_in: int, observation_weight: float) -> np.ndarray:
    """Observation weight of each sweep of the burn-in: rising geometrically, then at its value.

    A chain started at full weight freezes with one to three features too many: a poor mode, not the model.
    """
    n_annealed = int(n_burn_in * SHARE_OF_ANNEALING)
    weights = np.full(n_burn_in, observation_weight)
    weights[:n_annealed] *= np.geomspace(COOLEST_SHARE, 1.0, n_annealed) if n_annealed else 1.0
    return weights


def when_to_merge(n_burn_in: int) -> list[int]:
    """Sweeps of the burn-in after which features are merged."""
    if n_burn_in < SHORTEST_BURN_IN_WITH_MERGING:
        return []
    return [int(n_burn_in * share) for share in SHARES_OF_MERGING]


def run_segment(
    rng: np.random.Generator,
    state: State,
    weights: np.ndarray,
    first: int,
    n_burn_in: int,
    thin: int,
    data: Demonstrations,
    target: Target,
    published: AsPublished | None = None,
) -> tuple[np.random.Generator, State, ChainDraws]:
    """Run the sweeps `first` to `first + len(weights)` of a chain; keep every `thin`-th after the burn-in.

    The paper's own algorithm runs if its settings are given.
    """
    from whyact.sampler.as_published import run_sweeps_as_published
    from whyact.sampler.merging import merge_features
    from whyact.sampler.sweep import run_sweeps

    merges = [] if published else when_to_merge(n_burn_in)

    draws = ChainDraws.empty(data, target)
    done = 0
    with threadpool_limits(limits=1, user_api="blas"), interrupts_between_kernels() as deliver_interrupt:
        while done < len(weights):
            sweep = first + done
            # up to the next merge, the end of the burn-in, or the next draw to keep
            if sweep < n_burn_in:
                until = min(stop for stop in [*merges, n_burn_in] if stop > sweep)
            else:
                until = sweep + thin - (sweep - n_burn_in) % thin
            n_sweeps = min(until - sweep, SWEEPS_PER_CALL, len(weights) - done)
            stretch = weights[done : done + n_sweeps]
            if published:
                state, info = run_sweeps_as_published(rng, state, stretch, data, target, published)
            else:
                state, info = run_sweeps(rng, state, stretch, data, target)
            deliver_interrupt()
            done += n_sweeps
            sweep += n_sweeps
            if sweep in merges:
                state = merge_features(rng, state, data, target, deliver_interrupt)
            if sweep > n_burn_in and (sweep - n_burn_in) % thin == 0:
                density = log_joint(state, data, target)
                if not np.isfinite(density):
                    raise FloatingPointError(
                        f"the sampler has left the range of floating point numbers (log joint density {density}, noise "
                        f"variance {state.noise_variance:.3g}); scale X, or choose other priors."
                    )
                draws.append(state, density, info.log_action_likelihood)
    return rng, state, draws


def run_chains(
    seed: np.random.SeedSequence,
    data: Demonstrations,
    target: Target,
    priors: Priors,
    *,
    n_chains: int,
    n_burn_in: int,
    n_draws: int,
    thin: int,
    n_jobs: int | None = None,
    starts: list[State] | None = None,
    published: AsPublished | None = None,
    on_progress: Callable[[Progress], bool | None] | None = None,
) -> list[ChainDraws]:
    """Run independent chains, each with its own stream, in `n_jobs` processes.

    The paper's own algorithm runs if its settings are given as `published`; it knows no annealing.
    `on_progress` is called between segments; if it returns True, the run stops early once there are draws.
    """
    rngs = [np.random.Generator(np.random.PCG64(child)) for child in seed.spawn(n_chains)]
    start = start_as_published if published else start_from_prior
    states = starts or [start(rng, data, target, priors) for rng in rngs]
    chains = [ChainDraws.empty(data, target) for _ in rngs]
    weights = np.full(n_burn_in + n_draws, target.observation_weight)
    if not published:
        weights[:n_burn_in] = anneal(n_burn_in, target.observation_weight)
    if joblib.effective_n_jobs(n_jobs) > 1:  # compile here once, so that the processes find it in the cache
        throwaway = np.random.default_rng(0)
        run_segment(throwaway, states[0], weights[:1], 0, n_burn_in, thin, data, target, published)
    # joblib maps large arrays into its processes, by default read-only, which would be another type for the kernels
    with joblib.Parallel(n_jobs=n_jobs, mmap_mode="c") as pool:
        for first, last in split_into_segments(len(weights)):
            segments = pool(
                joblib.delayed(run_segment)(
                    rng, state, weights[first:last], first, n_burn_in, thin, data, target, published
                )
                for rng, state in zip(rngs, states, strict=True)
            )
            for i, (rng, state, draws) in enumerate(segments):
                rngs[i], states[i] = rng, state
                chains[i].extend(draws)
            if on_progress and on_progress(Progress(last, len(weights), states)) and len(chains[0]):
                break
    return chains


def split_into_segments(n_sweeps: int) -> Iterator[tuple[int, int]]:
    """Cut the run into at most N_SEGMENTS parts of about equal length."""
    edges = np.unique(np.linspace(0, n_sweeps, N_SEGMENTS + 1).astype(int))
    return zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
