"""The one door: whatever comes from a file and reaches a kernel is checked here, and nowhere else.

Kernels look at no bounds. They take for granted that arrays fit each other, that an action or a level is a place in a
table, that a policy is a distribution, and that no number is so large that its square is none. Model files,
checkpoints, runs and chains that are to be continued all come through these functions; each refuses with a
DamagedFileError that completes the sentence "PATH is not ...: ".
"""

import math
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from whyact.cut_policies import CutPolicies
from whyact.errors import DamagedFileError
from whyact.model import PRODUCT, UNLIMITED, State
from whyact.sampler.algorithm import Problem
from whyact.sampler.draws import TRACES, VECTORS, ChainDraws, name_scalars

# In the sampler's unit, in which all of them are near one. An observation of 1e150, which `estimators` allow, times a
# feature, times a precision is still a number, and so is the sum of many: where one is none, a kernel may run forever.
LARGEST_OBSERVATION = 1e140
LARGEST_FEATURE = 1e40
LARGEST_PRECISION = 1e100  # weight of the observations over their noise variance
LARGEST_RANGE = 1e150  # of a column, and of its reciprocal
# Single numbers of a state are positive, and so are their reciprocals.
SCALAR_RANGE = (1e-300, 1e300)
SUM_TOLERANCE = 1e-6
GRID_TOLERANCE = 1e-6  # of a level: one divided by another is not exact
LARGEST_LOG_ODDS = 1e6


class Frame(NamedTuple):
    """What the states and draws of a run have in common: the sizes and ranges that its kernels rely on."""

    kind: type  # of a state
    n_rows: int
    n_columns: int
    n_actions: int  # columns of the policies; 0 where they are integrated out
    n_base_actions: int  # entries of the base policy; 0 if there is none
    n_levels: int
    is_positive: bool  # whether features have no negative entries
    observation_weight: float
    is_partition: bool  # whether each row holds exactly one feature, as in clusters
    min_features: int
    max_features: int


def make_frame(target: Any, n_rows: int, n_columns: int, kind: type = State, *, has_policies: bool = True) -> Frame:
    """The frame of a run on these demonstrations, by the distribution that is sampled."""
    is_product = getattr(target, "combination", None) == PRODUCT
    return Frame(
        kind=kind,
        n_rows=n_rows,
        n_columns=n_columns,
        n_actions=target.n_actions if has_policies else 0,
        n_base_actions=target.n_actions if is_product else 0,
        n_levels=target.n_levels,
        is_positive=getattr(target, "positive", False),
        observation_weight=target.observation_weight,
        is_partition="ibp_mass" not in kind._fields,  # type: ignore[attr-defined]
        min_features=getattr(target, "min_features", 1),
        max_features=getattr(target, "max_features", UNLIMITED),
    )


def frame_problem(problem: Problem) -> Frame:
    """The frame of a problem's chains."""
    n_rows, n_columns = problem.data.observations.shape
    algorithm = problem.algorithm
    return make_frame(problem.target, n_rows, n_columns, algorithm.state, has_policies=algorithm.has_policies)


# --- demonstrations -----------------------------------------------------------------------------------------


def check_demonstrations(observations: np.ndarray, actions: np.ndarray, n_classes: int) -> None:
    """Rows of numbers, NaN where missing, with the place of an action in a list of so many for each, or -1."""
    demand(observations.ndim == 2 and observations.size > 0, "'observations' has no entry")
    demand(not np.isinf(observations).any(), "'observations' are not all numbers")
    demand(actions.shape == (len(observations),), "'actions' does not match 'observations'")
    demand(((actions >= -1) & (actions < n_classes)).all(), "'actions' holds an action without a name")


def check_available(available: np.ndarray, actions: np.ndarray, n_actions: int) -> None:
    """Truth values, one at least for each row, and for the action that was taken there."""
    demand(available.shape == (len(actions), n_actions), "'available' does not match 'actions'")
    demand(np.isin(available, (0, 1)).all() and available.any(axis=1).all(), "'available' does not hold truth values")
    known = actions >= 0
    demand(available[known, actions[known]].all(), "'available' does not match 'actions'")


def check_scaling(observations: np.ndarray, unit: float, low: np.ndarray, spread: np.ndarray) -> None:
    """What observations were divided by (the unit), or will be before that (the columns, with what is taken off)."""
    demand(is_number(unit) and SCALAR_RANGE[0] <= unit <= SCALAR_RANGE[1], "'unit' is wrong")
    largest = np.fmax.reduce(np.abs(observations), axis=None, initial=0)
    demand(largest <= LARGEST_OBSERVATION * unit, "'observations' are too large")
    demand(low.shape == spread.shape == (observations.shape[1],), "'column_range' does not match 'observations'")
    demand((np.abs(low) <= LARGEST_RANGE).all(), "'column_low' is not a number for each column")
    demand(((spread >= 1 / LARGEST_RANGE) & (spread <= LARGEST_RANGE)).all(), "'column_range' is not positive")


def check_weights(observation_weight: Any, action_weight: Any) -> None:
    """How much observations and actions count."""
    least, most = SCALAR_RANGE
    demand(is_number(observation_weight) and least <= observation_weight <= most, "'observation_weight' is wrong")
    demand(is_number(action_weight) and 0 <= action_weight <= most, "'action_weight' is wrong")


# --- chains -------------------------------------------------------------------------------------------------


def check_state(state: Any, frame: Frame) -> None:
    """A state that the kernels of a run can go on from."""
    demand(type(state) is frame.kind, "the last states of its chains do not match")
    check_features(state.features, state.policies, frame)
    sizes = np.array([len(state.features)])
    check_sizes(sizes, len(state.features), frame)
    demand(state.substates.dtype == np.float64, "'substates' have an unexpected type")
    check_levels(state.substates * (frame.n_levels - 1), sizes, frame)
    for name in name_scalars(frame.kind):
        demand(is_number(getattr(state, name)), f"{name!r} is not a number")
        check_scalars(name, np.array([getattr(state, name)]), frame)
    for name in VECTORS:
        check_vectors(name, getattr(state, name, np.zeros(0))[None], 1, frame)


def check_draws(draws: dict[str, np.ndarray], frame: Frame) -> None:
    """Draws as plain arrays, as `ChainDraws.extend_by_arrays` wants them."""
    vectors = VECTORS if frame.n_base_actions else ()
    for name in ("features", "policies", "levels", "sizes", "traces", *vectors):
        demand(name in draws, f"{name!r} is missing")
    demand(not any(name in draws for name in VECTORS if name not in vectors), "it holds draws of a product")
    levels, sizes, traces = draws["levels"], draws["sizes"], draws["traces"]
    check_features(draws["features"], draws["policies"], frame)
    demand(levels.dtype == np.min_scalar_type(frame.n_levels - 1), "'substates' have an unexpected type")
    demand(sizes.ndim == 1 and sizes.dtype.kind == "i", "'sizes' has an unexpected type")
    check_sizes(sizes, len(draws["features"]), frame)
    check_levels(levels, sizes, frame)
    names = (*TRACES, *name_scalars(frame.kind))
    demand(traces.dtype == np.float64 and traces.shape == (len(sizes), len(names)), "'traces' does not match")
    demand(np.isfinite(traces).all(), "'traces' is not a number in each draw")
    demand(np.array_equal(traces[:, 0], sizes), "'n_features' does not match")
    for name, values in zip(names[len(TRACES) :], traces[:, len(TRACES) :].T, strict=True):
        check_scalars(name, values, frame)
    for name in vectors:
        check_vectors(name, draws[name], len(sizes), frame)


def check_chains(states: list[Any], chains: list[ChainDraws], frame: Frame) -> None:
    """Chains that an estimator holds, whose file may have been for other data or options."""
    for state in states:
        check_state(state, frame)
    for chain in chains:
        demand(chain.kind is frame.kind and chain.n_levels == frame.n_levels, "its draws are of another kind")
        check_draws(chain.to_arrays(), frame)


def check_features(features: np.ndarray, policies: np.ndarray, frame: Frame) -> None:
    """Features and their policies, of one draw or of many below each other."""
    for name, values, width in (
        ("features", features, frame.n_columns),
        ("policies", policies, frame.n_actions),
    ):
        demand(values.dtype == np.float64 and values.ndim == 2, f"{name!r} has an unexpected type")
        demand(values.shape == (len(features), width), f"{name!r} does not match the demonstrations")
    demand(np.isfinite(features).all(), "'features' are not all numbers")
    demand(np.abs(features).max(initial=0) <= LARGEST_FEATURE, "'features' are too large")
    demand(not frame.is_positive or (features >= 0).all(), "'features' are not positive")
    if frame.n_actions:
        check_distributions("policies", policies)


def check_levels(levels: np.ndarray, sizes: np.ndarray, frame: Frame) -> None:
    """Substates as levels of their grid, one for each feature of each draw and row."""
    demand(levels.shape == (sizes.sum(), frame.n_rows), "'substates' does not match the demonstrations")
    demand(((levels >= 0) & (levels <= frame.n_levels - 1)).all(), "'substates' are not on their grid")
    if levels.dtype.kind == "f":
        demand((np.abs(levels - np.rint(levels)) <= GRID_TOLERANCE).all(), "'substates' are not on their grid")
    if frame.is_partition and len(sizes):
        held = np.add.reduceat(levels, np.cumsum(sizes) - sizes, dtype=np.int64 if levels.dtype.kind == "u" else None)
        demand((held == 1).all(), "'substates' does not hold one cluster for each row")


def check_sizes(sizes: np.ndarray, n_features: int, frame: Frame) -> None:
    """How many features each draw has: so many in all."""
    demand(((sizes >= frame.min_features) & (sizes <= min(frame.max_features, n_features))).all(), "'sizes' is wrong")
    demand(sum(sizes.tolist()) == n_features, "'sizes' does not match 'features'")  # whatever their sum is


def check_scalars(name: str, values: np.ndarray, frame: Frame) -> None:
    """Single numbers of states: positive, and far from what a computer cannot tell from zero or infinity."""
    least, most = SCALAR_RANGE
    if name == "noise_variance" and not frame.is_partition:
        least = max(least, frame.observation_weight / LARGEST_PRECISION)
    demand(((values >= least) & (values <= most)).all(), f"{name!r} is not positive")


def check_vectors(name: str, values: np.ndarray, n_draws: int, frame: Frame) -> None:
    """What draws hold once for all features: distributions over the actions, or nothing."""
    demand(values.shape == (n_draws, frame.n_base_actions), f"{name!r} does not match the draws")
    if frame.n_base_actions:
        check_distributions(name, values)


def check_distributions(name: str, values: np.ndarray) -> None:
    """Distributions over the last axis, without a zero: their logarithms are needed."""
    demand(values.dtype == np.float64 and np.isfinite(values).all(), f"{name!r} has an unexpected type")
    demand(((values > 0) & (values <= 1 + SUM_TOLERANCE)).all(), f"{name!r} does not hold probabilities")
    demand(np.abs(values.sum(axis=-1) - 1).max(initial=0) < SUM_TOLERANCE, f"{name!r} does not sum to one")


def check_cut(cut: CutPolicies, n_actions: int) -> None:
    """The policies that predictions use; whether they match the draws is checked where these are picked."""
    for values in (cut.log_odds, cut.base, cut.chosen_log_odds, cut.chosen_base):
        demand(values.dtype == np.float64 and values.shape[-1] == n_actions, "'prediction' does not match 'action'")
        demand((np.abs(values) < LARGEST_LOG_ODDS).all(), "'prediction' does not hold log odds")
    sizes = len(cut.log_odds), len(cut.chosen_log_odds)
    demand((len(cut.means), len(cut.chosen_means)) == sizes, "'prediction' does not match itself")
    for values in (cut.means, cut.chosen_means):
        demand(values.dtype == np.float64 and ((values >= 0) & (values <= 1)).all(), "'prediction' has wrong means")


# --- in general ---------------------------------------------------------------------------------------------


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number, and not a truth value."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def demand(holds: Any, otherwise: str) -> None:
    """Refuse the file if something does not hold."""
    if not holds:
        raise DamagedFileError(otherwise)
