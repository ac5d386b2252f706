"""A fitted model in one file that lasts: netCDF4, readable by xarray and ArviZ; nothing in it can run.

The schema is documented in docs/files.md. Features, substates and noise are stored as the sampler holds them, with
the netCDF attribute `scale_factor`, so that other programs read them in the unit of the observations, and loading
gives back the same bits.
"""

import json
import math
import platform
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np

from whyact.cut_policies import CutPolicies
from whyact.errors import DamagedFileError, ModelFileError
from whyact.fit_result import FitResult, ToleranceTrial
from whyact.model import COMBINATIONS, PRODUCT, State, Target
from whyact.posterior import Chosen, DrawId, Posterior
from whyact.sampler.draws import TRACES, ChainDraws, RunEnd, name_scalars
from whyact.scaling import USUAL_TOLERANCE, Scaling
from whyact.storage.codec import (
    check_texts,
    decode_ends,
    decode_entropy,
    decode_labels,
    decode_names,
    decode_settings,
    decode_shape,
    demand,
    demand_distributions,
    encode_end,
    encode_labels,
    encode_settings,
    is_number,
    take,
)
from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf
from whyact.version import __version__

# The version of the schema. A file with a larger one is refused; one with a smaller one must stay readable for ever.
SCHEMA = 6
TITLE = "whyact model"
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "h5netcdf")
GROUPS = ("posterior", "sample_stats", "features", "demonstrations", "chain_ends")
# In ArviZ, numbers about the sampling have a group of their own.
SAMPLE_STATS = {"log_joint": "lp", "log_action_likelihood": "log_action_likelihood"}
LARGEST_LOG_ODDS = 1e6
LARGEST_NUMBER_OF_TRIALS = 100
ROUNDING = 1e-9  # of a sum that must be one
# What content that no check has foreseen may lead to; DamagedFileError is none of these.
UNEXPECTED = (TypeError, KeyError, IndexError, OverflowError, MemoryError, FloatingPointError, AttributeError)

# Parameters and single numbers of a state that the first schema did not have, with what they were then.
FIRST_PARAMETERS: dict[str, Any] = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
# (parameters as stored, number of actions, number of columns, weights of observations and actions, combination,
# scaling) -> the target
MakeTarget = Callable[[dict[str, Any], int, int, dict[str, float], str, Scaling], Target]


def write_model(path: Path, result: FitResult, posterior: Posterior) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    if not path.parent.is_dir():
        raise ModelFileError(f"the folder {path.parent} does not exist.")
    groups = {
        "/": Group({}, describe_model(result)),
        "posterior": encode_traces(posterior),
        "sample_stats": encode_stats(posterior),
        "features": encode_features(result, posterior),
        "demonstrations": encode_demonstrations(result),
        **encode_run_end(result.end),
        **encode_cut(result),
    }
    try:
        write_netcdf(path, groups)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}.") from None


def read_model(path: Path, check: Callable[[dict[str, Any]], None], make_target: MakeTarget) -> FitResult:
    """Read a fitted model; everything is checked before it is used.

    Parameters
    ----------
    path : Path
    check : callable
        Raises DamagedFileError if the parameters of the estimator, as stored, are not legal.
    make_target : callable
        The distribution that was sampled, by the parameters.

    Returns
    -------
    FitResult
    """
    try:
        groups = read_netcdf(path)
        check_schema(path, groups["/"].attributes)
        try:
            return decode_model(groups, check, make_target)
        except UNEXPECTED:
            raise DamagedFileError("its content does not match") from None
    except DamagedFileError as error:
        raise ModelFileError(f"{path} is not a whyact model: {error}.") from None
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {path}.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def check_schema(path: Path, about: dict[str, Any]) -> None:
    """The file must be a model, and not of a later version."""
    schema = about.get("whyact_schema")
    if about.get("title") != TITLE or not isinstance(schema, int) or schema < 1:
        raise DamagedFileError("it is another kind of netCDF file")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer whyact ({about.get('whyact_version')}, schema {schema}; this one reads up "
            f"to {SCHEMA}): install that version."
        )


# --- writing ------------------------------------------------------------------------------------------------


def describe_model(result: FitResult) -> dict[str, Any]:
    """Attributes of the file."""
    libraries = {name: version_of(name) for name in LIBRARIES} | {"python": platform.python_version()}
    n_columns = result.observations.shape[1]
    if result.shape is not None and math.prod(result.shape) != n_columns:
        raise ModelFileError(f"shape: {result.shape} does not match the {n_columns} columns.")
    about = {
        "title": TITLE,
        "whyact_schema": SCHEMA,
        "whyact_version": __version__,
        "libraries": json.dumps(libraries),
        "settings": json.dumps(encode_settings(result.parameters)),
        "unit": result.scaling.unit,
        "noise": result.scaling.noise,
        "observation_weight": result.target.observation_weight,
        "action_weight": result.target.action_weight,
        "combination": COMBINATIONS[result.target.combination],
        "adds_up": int(result.adds_up),
        "entropy": np.array(result.end.entropy, dtype=np.int64),
        "identity": result.end.identity,
        "n_done": result.end.n_done,
    }
    if result.distance is not None:
        about["distance"] = result.distance
    if result.chain_weights is not None:
        about["chain_weights"] = result.chain_weights
    if result.choice is not None:
        about["combination_scores"] = json.dumps(result.choice)
    if result.tolerance_trials is not None:
        about["tolerance_trials"] = json.dumps(result.tolerance_trials)
    if result.source is not None:
        about["source"] = str(check_texts("source: the name", [result.source])[0])
    if result.shape is not None:
        about["shape"] = np.array(result.shape, dtype=np.int64)
    return about


def encode_traces(posterior: Posterior) -> Group:
    """One number per draw, for ArviZ."""
    variables = {}
    for name in posterior.chains[0].trace_names:
        if name in SAMPLE_STATS:
            continue
        values = np.stack([chain.traces[name] for chain in posterior.chains])
        power = posterior.unit_powers.get(name, 0)
        attributes = {"scale_factor": posterior.unit**power} if power else {}
        variables[name] = Variable(("chain", "draw"), values, attributes)
    return Group(variables | count_draws(posterior), {})


def encode_stats(posterior: Posterior) -> Group:
    """Numbers about the sampling, one per draw, for ArviZ."""
    variables = {
        stored: Variable(("chain", "draw"), np.stack([chain.traces[name] for chain in posterior.chains]))
        for name, stored in SAMPLE_STATS.items()
    }
    return Group(variables | count_draws(posterior), {})


def count_draws(posterior: Posterior) -> dict[str, Variable]:
    """Numbers of the chains and draws, the coordinates that ArviZ wants."""
    sizes = {"chain": posterior.n_chains, "draw": posterior.n_draws}
    return {name: Variable((name,), np.arange(size)) for name, size in sizes.items()}


def encode_features(result: FitResult, posterior: Posterior) -> Group:
    """The features of all draws below each other, chain after chain."""
    chains = [chain.to_arrays() for chain in posterior.chains]

    def join(name: str) -> np.ndarray:
        return np.concatenate([chain[name] for chain in chains])

    n_levels = posterior.chains[0].n_levels
    variables = {
        "features": Variable(("feature", "column"), join("features"), {"scale_factor": posterior.unit}),
        "policies": Variable(("feature", "action"), join("policies")),
        "substates": Variable(("feature", "row"), join("levels"), {"scale_factor": 1.0 / (n_levels - 1)}),
        "row_splits": Variable(("split",), np.concatenate([[0], np.cumsum(join("sizes"))])),
    }
    for name in posterior.chains[0].vectors:
        variables[name] = Variable(("chain_draw", "action"), join(name))
    (chain, draw), chosen = posterior.representatives
    variables["chosen_features"] = Variable(("chosen",), chosen.astype(np.int64), {"chain": chain, "draw": draw})
    if len(result.classes):
        variables["action"] = encode_labels("action", result.classes)
    if result.scaling.column_low is not None and result.scaling.column_range is not None:
        variables["column_low"] = Variable(("column",), result.scaling.column_low)
        variables["column_range"] = Variable(("column",), result.scaling.column_range)
    if result.columns is not None:
        variables["column"] = Variable(("column",), check_texts("X: the column name", result.columns))
    return Group(variables, {"n_levels": n_levels})


def encode_demonstrations(result: FitResult) -> Group:
    """What was learned from."""
    variables = {
        "observations": Variable(("row", "column"), np.ascontiguousarray(result.observations)),
        "actions": Variable(("row",), result.actions.astype(np.int64)),
    }
    if result.available is not None:
        variables["available"] = Variable(("row", "action"), result.available.astype(np.int8))
    return Group(variables, {"comment": "actions: index of features/action, -1 where missing"})


def encode_cut(result: FitResult) -> dict[str, Group]:
    """The policies that predictions use, if they are not those of the draws."""
    if result.cut is None:
        return {}
    axes = (("feature", "action"), ("draw", "action"), ("chosen", "action"), ("action",), ("feature",), ("chosen",))
    variables = {
        name: Variable(dimensions, values)
        for name, dimensions, values in zip(result.cut._fields, axes, result.cut, strict=True)
    }
    return {"prediction": Group(variables, {"comment": "log odds, centred over the actions; mean amounts"})}


def encode_run_end(end: RunEnd) -> dict[str, Group]:
    """The last state of each chain and of its random numbers, to draw more."""
    chains = {
        f"chain_ends/{i}": encode_end(state, rng_state)
        for i, (state, rng_state) in enumerate(zip(end.states, end.rng_states, strict=True))
    }
    return {"chain_ends": Group({}, {"comment": "in the sampler's unit; to draw more"}), **chains}


# --- reading ------------------------------------------------------------------------------------------------


def decode_model(
    groups: dict[str, Group], check: Callable[[dict[str, Any]], None], make_target: MakeTarget
) -> FitResult:
    """The content of a file, checked."""
    for name in GROUPS:
        demand(name in groups, f"the group {name!r} is missing")
    about = groups["/"].attributes
    for name in ("whyact_version", "libraries"):
        demand(isinstance(about.get(name), str), f"{name!r} is missing")
    is_first = about["whyact_schema"] == 1
    parameters = (FIRST_PARAMETERS if is_first else {}) | decode_settings(about, check)
    was_auto = parameters.get("decisiveness", "auto") == "auto" and parameters.get("sampler", "exact") == "exact"
    if about["whyact_schema"] == 2 and was_auto:
        parameters["decisiveness"] = "drawn"  # what "auto" meant then; the published algorithm has no such option
    unit = take_positive(about, "unit")
    weights = decode_weights(about)
    observations, actions, classes, names = decode_demonstrations(groups)
    n_actions = max(len(classes), 1)
    more = {"policy_scale": 1.0, "decisiveness": float(parameters["decisiveness"])} if is_first else {}
    end = decode_run_end(groups, about, observations.shape, n_actions, more)
    scaling = decode_scaling(groups["features"], parameters, unit, observations.shape[1])
    scaling = replace(scaling, noise=decode_noise(about, parameters, scaling))
    if about["whyact_schema"] < 6:
        parameters = {"start": "prior"} | parameters | {"tolerance": scaling.noise or None}  # what defaults were then
    combination: Any = "mixture" if is_first else about.get("combination")
    demand(combination in COMBINATIONS, "'combination' is wrong")
    target = make_target(parameters, n_actions, observations.shape[1], weights, combination, scaling)
    chains = decode_chains(groups, target, observations.shape, end.states, more)
    demand(
        ("prediction" in groups) == (target.combination == PRODUCT and len(classes) > 0),
        "'prediction' does not match 'combination'",
    )
    demand("source" not in about or isinstance(about["source"], str), "'source' is wrong")
    has_chosen = about["whyact_schema"] > 3
    adds_up = about.get("adds_up") if about["whyact_schema"] > 4 else 0
    demand(adds_up in (0, 1), "'adds_up' is wrong")
    return FitResult(
        parameters=parameters,
        columns=names,
        classes=classes,
        observations=observations,
        actions=actions,
        scaling=scaling,
        target=target,
        chains=chains,
        end=end,
        chosen=decode_chosen(groups["features"], chains) if has_chosen else find_chosen_as_before(chains, parameters),
        available=decode_available(groups["demonstrations"], actions, n_actions),
        cut=decode_cut(groups, n_actions),
        adds_up=adds_up == 1,
        distance=decode_distance(about),
        chain_weights=decode_chain_weights(about, len(chains)),
        choice=decode_choice(about),
        tolerance_trials=decode_tolerance_trials(about),
        shape=decode_shape(about, observations.shape[1]),
        source=about.get("source"),
    )


def decode_available(group: Group, actions: np.ndarray, n_actions: int) -> np.ndarray | None:
    """Which actions there are in each row, if not all."""
    if "available" not in group.variables:
        return None
    values = take(group, "available", 2, "i")
    demand(values.shape == (len(actions), n_actions), "'available' does not match 'actions'")
    demand(np.isin(values, (0, 1)).all() and values.any(axis=1).all(), "'available' does not hold truth values")
    known = actions >= 0
    demand(values[known, actions[known]].all(), "'available' does not match 'actions'")
    return values.astype(bool)


def decode_cut(groups: dict[str, Group], n_actions: int) -> CutPolicies | None:
    """The policies that predictions use; whether they match the draws is checked where these are picked."""
    if "prediction" not in groups:
        return None
    group = groups["prediction"]
    log_odds, base, chosen = (take(group, name, 2, "f") for name in CutPolicies._fields[:3])
    chosen_base = take(group, "chosen_base", 1, "f")
    for values in (log_odds, base, chosen, chosen_base):
        demand(values.dtype == np.float64 and values.shape[-1] == n_actions, "'prediction' does not match 'action'")
        demand((np.abs(values) < LARGEST_LOG_ODDS).all(), "'prediction' does not hold log odds")
    # the first files with this group had no means: to them, usual means that nothing else is there
    means, chosen_means = (
        take(group, name, 1, "f") if name in group.variables else np.zeros(len(odds))
        for name, odds in (("means", log_odds), ("chosen_means", chosen))
    )
    demand((len(means), len(chosen_means)) == (len(log_odds), len(chosen)), "'prediction' does not match itself")
    for values in (means, chosen_means):
        demand(values.dtype == np.float64 and ((values >= 0) & (values <= 1)).all(), "'prediction' has wrong means")
    return CutPolicies(log_odds, base, chosen, chosen_base, means, chosen_means)


def decode_distance(about: dict[str, Any]) -> float | None:
    """How far the predictions of single chains are apart, if known."""
    if "distance" not in about:
        return None
    demand(is_number(about["distance"]) and 0 <= about["distance"] <= 1, "'distance' is wrong")
    return float(about["distance"])


def decode_chain_weights(about: dict[str, Any], n_chains: int) -> np.ndarray | None:
    """How much each chain counts; None: all alike."""
    if "chain_weights" not in about:
        return None
    weights = np.atleast_1d(about["chain_weights"])  # netCDF knows no list of a single number
    demand(weights.dtype == np.float64 and weights.shape == (n_chains,), "'chain_weights' does not match its chains")
    demand(np.isfinite(weights).all() and (weights >= 0).all(), "'chain_weights' is wrong")
    demand(abs(weights.sum() - 1.0) < ROUNDING, "'chain_weights' does not add up to one")
    return weights


def decode_choice(about: dict[str, Any]) -> dict[str, float] | None:
    """Why the combination was chosen, if it was."""
    if "combination_scores" not in about:
        return None
    scores = take_json(about, "combination_scores")
    demand(isinstance(scores, dict) and set(scores) == set(COMBINATIONS), "'combination_scores' is wrong")
    demand(all(map(is_number, scores.values())), "'combination_scores' is wrong")
    return {name: float(score) for name, score in scores.items()}


def decode_tolerance_trials(about: dict[str, Any]) -> tuple[ToleranceTrial, ...] | None:
    """Why the tolerance was chosen, if it was."""
    if "tolerance_trials" not in about:
        return None
    rows = take_json(about, "tolerance_trials")
    demand(isinstance(rows, list) and 0 < len(rows) <= LARGEST_NUMBER_OF_TRIALS, "'tolerance_trials' is wrong")
    for row in rows:
        demand(isinstance(row, list) and len(row) == len(ToleranceTrial._fields), "'tolerance_trials' is wrong")
        demand(all(map(is_number, row)), "'tolerance_trials' is wrong")
    return tuple(ToleranceTrial(*map(float, row)) for row in rows)


def decode_noise(about: dict[str, Any], parameters: dict[str, Any], scaling: Scaling) -> float:
    """Where the noise was held; up to schema 5 at the usual tolerance for scaled columns, unless priors were given."""
    if about["whyact_schema"] > 5:
        noise: Any = about.get("noise")
        demand(is_number(noise) and noise >= 0, "'noise' is wrong")
        return float(noise)
    is_exact = parameters.get("sampler", "exact") == "exact"
    is_held = scaling.column_range is not None and parameters.get("priors") is None and is_exact
    return USUAL_TOLERANCE if is_held else 0.0


def decode_weights(about: dict[str, Any]) -> dict[str, float]:
    """Weights of observations and actions."""
    action_weight: Any = about.get("action_weight")
    demand(is_number(action_weight) and action_weight >= 0, "'action_weight' is wrong")
    return {"observation_weight": take_positive(about, "observation_weight"), "action_weight": float(action_weight)}


def decode_demonstrations(groups: dict[str, Group]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Observations, actions, the labels of actions, and the names of columns."""
    observations = take(groups["demonstrations"], "observations", 2, "f").astype(np.float64, copy=False)
    demand(observations.size > 0 and not np.isinf(observations).any(), "'observations' are not all numbers")
    classes, names = decode_labels(groups["features"]), decode_names(groups["features"])
    actions = take(groups["demonstrations"], "actions", 1, "i").astype(np.int64, copy=False)
    demand(len(actions) == len(observations), "'actions' does not match 'observations'")
    demand((actions >= -1).all() and (actions < len(classes)).all(), "'actions' holds an action without a name")
    demand(names is None or len(names) == observations.shape[1], "'column' does not match 'observations'")
    return observations, actions, classes, names


def decode_scaling(group: Group, parameters: dict[str, Any], unit: float, n_columns: int) -> Scaling:
    """How observations were scaled."""
    is_scaled = parameters.get("scale_columns", "auto")
    if is_scaled is False or (is_scaled == "auto" and "column_range" not in group.variables):
        return Scaling(unit)
    low, spread = (take(group, name, 1, "f") for name in ("column_low", "column_range"))
    demand(len(low) == len(spread) == n_columns, "'column_range' does not match 'observations'")
    demand((np.isfinite(low) & np.isfinite(spread) & (spread > 0)).all(), "'column_range' is not positive")
    return Scaling(unit, column_low=low, column_range=spread)


def take_json(about: dict[str, Any], name: str) -> Any:
    """What an attribute says that is written as JSON."""
    try:
        return json.loads(about[name])
    except (ValueError, TypeError, RecursionError):
        raise DamagedFileError(f"{name!r} is not JSON") from None


def take_positive(about: dict[str, Any], name: str) -> float:
    """An attribute that must be a positive number."""
    demand(is_number(about.get(name)) and about[name] > 0, f"{name!r} is wrong")
    return float(about[name])


def decode_chains(
    groups: dict[str, Group],
    target: Target,
    shape: tuple[int, ...],
    examples: list[State],
    more: dict[str, float],
) -> list[ChainDraws]:
    """The draws of each chain; `examples` are states of theirs."""
    group = groups["features"]
    arrays = decode_draws(group, target, shape)
    traces = decode_traces(groups, more)
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains == len(examples), "the last states of its chains are missing")
    splits = take(group, "row_splits", 1, "i")
    demand(
        len(splits) == n_chains * n_draws + 1 and splits[0] == 0 and splits[-1] == len(arrays["features"]),
        "'row_splits' is wrong",
    )
    sizes = np.diff(splits)
    demand((sizes >= 0).all() and np.array_equal(sizes, traces["n_features"].ravel()), "'row_splits' is wrong")
    vectors = decode_bases(group, target, n_chains * n_draws)
    demand(all(len(example.base_policy) == (target.n_actions if vectors else 0) for example in examples),
           "the last states of its chains do not match")  # fmt: skip
    chains = []
    for c, example in enumerate(examples):
        rows = slice(splits[c * n_draws], splits[(c + 1) * n_draws])
        chain = ChainDraws(example, target.n_levels)
        table = np.column_stack([traces[name][c] for name in chain.trace_names])
        draws = {name: values[rows] for name, values in arrays.items()}
        draws |= {name: values[c * n_draws : (c + 1) * n_draws] for name, values in vectors.items()}
        chain.extend_by_arrays(draws | {"sizes": sizes[c * n_draws : (c + 1) * n_draws], "traces": table})
        chains.append(chain)
    return chains


def decode_draws(group: Group, target: Target, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Features, policies and substates of all draws below each other."""
    features, policies = take(group, "features", 2, "f"), take(group, "policies", 2, "f")
    levels = take(group, "substates", 2, "u")
    for name, values, width in (
        ("features", features, shape[1]),
        ("policies", policies, target.n_actions),
        ("substates", levels, shape[0]),
    ):
        demand(values.shape == (len(features), width), f"{name!r} does not match the demonstrations")
    demand(features.dtype == policies.dtype == np.float64, "'features' have an unexpected type")
    demand(group.attributes.get("n_levels") == target.n_levels, "'n_levels' does not match 'settings'")
    demand(levels.dtype == np.min_scalar_type(target.n_levels - 1), "'substates' have an unexpected type")
    demand((levels < target.n_levels).all(), "'substates' are not on their grid")
    demand(np.isfinite(features).all(), "'features' are not all numbers")
    demand(not target.positive or (features >= 0).all(), "'features' are not positive")
    demand_distributions("policies", policies)
    return {"features": features, "policies": policies, "levels": levels}


def decode_chosen(group: Group, chains: list[ChainDraws]) -> Chosen:
    """Which features stand for those of all draws."""
    features = take(group, "chosen_features", 1, "i")
    place = [group.variables["chosen_features"].attributes.get(name) for name in ("chain", "draw")]
    demand(all(isinstance(number, int) and number >= 0 for number in place), "'chosen_features' is wrong")
    chain, draw = (int(number) for number in place if number is not None)
    demand(chain < len(chains) and draw < len(chains[chain]), "'chosen_features' is wrong")
    n_features = int(np.diff(chains[chain].row_splits)[draw])
    demand(((features >= 0) & (features < n_features)).all(), "'chosen_features' is wrong")
    demand(len(np.unique(features)) == len(features), "'chosen_features' is wrong")
    return Chosen(DrawId(chain, draw), features.astype(np.int64, copy=False))


def find_chosen_as_before(chains: list[ChainDraws], parameters: dict[str, Any]) -> Chosen:
    """What stood for all draws up to schema 3: all features of one of them."""
    is_exact = parameters.get("sampler", "exact") == "exact"
    return Posterior(chains, representative="modal" if is_exact else "joint").representatives


def decode_bases(group: Group, target: Target, n_draws: int) -> dict[str, np.ndarray]:
    """The base policies of all draws of a product."""
    if target.combination != PRODUCT:
        return {}
    values = take(group, "base_policy", 2, "f")
    demand(values.shape == (n_draws, target.n_actions), "'base_policy' does not match the draws")
    demand_distributions("base_policy", values)
    return {"base_policy": values}


def decode_traces(groups: dict[str, Group], more: dict[str, float]) -> dict[str, np.ndarray]:
    """One number per draw, arrays (chain, draw); `more` are those that the file does not hold."""
    traces = {}
    for name in (*TRACES, *name_scalars(State)):
        if name in more:
            continue
        stored = (
            take(groups["sample_stats"], SAMPLE_STATS[name], 2, "f")
            if name in SAMPLE_STATS
            else take(groups["posterior"], name, 2, "f")
        )
        demand(np.isfinite(stored).all(), f"{name!r} is not a number in each draw")
        demand(name not in State._fields or (stored > 0).all(), f"{name!r} is not positive")
        traces[name] = stored
    demand(len({trace.shape for trace in traces.values()}) == 1, "the traces have different lengths")
    traces |= {name: np.full(traces["n_features"].shape, value) for name, value in more.items()}
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains >= 1 and n_draws >= 1, "it holds no draws")
    return traces


def decode_run_end(
    groups: dict[str, Group], about: dict[str, Any], shape: tuple[int, ...], n_actions: int, more: dict[str, float]
) -> RunEnd:
    """Where the chains ended."""
    identity, n_done = about.get("identity"), about.get("n_done")
    if not isinstance(identity, str) or not isinstance(n_done, int) or n_done <= 0:
        raise DamagedFileError("'identity' or 'n_done' is wrong")
    widths = {"substates": shape[0], "features": shape[1], "policies": n_actions}
    found = decode_ends(groups, "chain_ends/{}", State, widths, more)
    states, rng_states = [state for state, _ in found], [rng_state for _, rng_state in found]
    return RunEnd(identity, decode_entropy(about.get("entropy")), n_done, states, rng_states)
