"""What a chain needs to know about a sampler: one small tuple for each model and way to sample it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from whyact.model import Demonstrations, State


class Algorithm(NamedTuple):
    """A sampler as plain functions of modules, which other processes find by name.

    A state begins with `substates` (K, N), `features` (K, D) and `policies` (K, any number of columns); single
    numbers follow. The target has `n_levels`, the number of values of a substate, and `observation_weight`.
    """

    kernel: str  # name of the kernel that runs the sweeps: what is compiled first
    start: Callable[..., Any]  # (rng, data, target, priors) -> state
    run: Callable[..., Any]  # (rng, state, observation weight of each sweep, data, target) -> (state, info)
    log_joint: Callable[..., float]  # (state, data, target)
    merge: Callable[..., Any] | None = None  # in the burn-in: (rng, state, data, target, between_kernels) -> state
    anneals: bool = True  # whether the observation weight rises in the burn-in
    state: type = State
    has_policies: bool = True  # whether a state holds a policy for each feature, or they are integrated out


class Problem(NamedTuple):
    """What is given to the chains."""

    data: Demonstrations
    target: Any  # options and hyperpriors, flat for the kernels
    priors: Any
    algorithm: Algorithm
    unit: float = 1.0  # what the observations were divided by
    noise: float = 0.0  # where the noise is held, in the unit of the observations; 0: it is free
    tolerance_trials: tuple[Any, ...] | None = None  # what was tried, if a tolerance was to be chosen
    choice: dict[str, float] | None = None  # log score of each way to combine policies, if it was to be chosen
    weight_scores: dict[Any, float] | None = None  # of the weights that were tried, if they were to be chosen
