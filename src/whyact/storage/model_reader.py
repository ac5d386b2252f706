"""Reading model files with suspicion; what `model_file.py` writes is what comes back.

What reaches a kernel is checked by `door.py`, what the file may claim by `memory.py`; here is the rest.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from whyact.cut_policies import CutPolicies
from whyact.errors import ClaimError, DamagedFileError, ModelFileError
from whyact.fit_result import FitResult, ToleranceTrial
from whyact.model import COMBINATIONS, PRODUCT, Target
from whyact.posterior import Chosen, DrawId, Posterior
from whyact.sampler.draws import TRACES, VECTORS, ChainDraws, RunEnd, name_scalars
from whyact.scaling import USUAL_TOLERANCE, Scaling
from whyact.storage.codec import (
    FIRST_PARAMETERS,
    decode_available,
    decode_ends,
    decode_entropy,
    decode_labels,
    decode_names,
    decode_settings,
    decode_shape,
    take,
)
from whyact.storage.door import (
    Frame,
    check_cut,
    check_demonstrations,
    check_draws,
    check_scaling,
    check_weights,
    demand,
    is_number,
    make_frame,
)
from whyact.storage.memory import check_claim, find_limit
from whyact.storage.model_file import SAMPLE_STATS, SCHEMA, TITLE, find_claim
from whyact.storage.netcdf import Group, read_netcdf

PER_FEATURE = ("features", "policies", "levels")  # arrays that do not have a row for each draw
GROUPS = ("posterior", "sample_stats", "features", "demonstrations", "chain_ends")
LARGEST_NUMBER_OF_TRIALS = 100
ROUNDING = 1e-9  # of a sum that must be one
# What content that no check has foreseen may lead to; DamagedFileError is none of these.
UNEXPECTED = (TypeError, KeyError, IndexError, OverflowError, MemoryError, FloatingPointError, AttributeError)

# (parameters as stored, number of actions, number of columns, weights of observations and actions, combination,
# scaling) -> the target
MakeTarget = Callable[[dict[str, Any], int, int, dict[str, float], str, Scaling], Target]


def read_model(
    path: Path,
    check: Callable[[dict[str, Any]], None],
    make_target: MakeTarget,
    max_memory: float | None = None,
) -> FitResult:
    """Read a fitted model; everything is checked before it is used.

    Parameters
    ----------
    path : Path
    check : callable
        Raises DamagedFileError if the parameters of the estimator, as stored, are not legal.
    make_target : callable
        The distribution that was sampled, by the parameters.
    max_memory : float or None, default=None
        Bytes that the file may claim; None: by the rule of `memory.py`.

    Returns
    -------
    FitResult
    """
    try:
        groups = read_netcdf(path, max_memory)
        check_schema(path, groups["/"].attributes)
        try:
            result = decode_model(groups, check, make_target)
        except UNEXPECTED:
            raise DamagedFileError("its content does not match") from None
        check_claim(find_claim(result), find_limit(path.stat().st_size, max_memory), "to predict")
        return result
    except ClaimError as error:
        raise ModelFileError(f"{path} {error}.") from None
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
    weights = decode_weights(about)
    observations, actions, classes, names = decode_demonstrations(groups)
    n_actions = max(len(classes), 1)
    more = {"policy_scale": 1.0, "decisiveness": float(parameters["decisiveness"])} if is_first else {}
    scaling = decode_scaling(groups["features"], about, parameters, observations)
    noise = decode_noise(about, parameters, scaling)
    scaling = scaling.with_noise(noise, parameters.get("tolerance", "auto"), observations)
    if about["whyact_schema"] < 6:
        parameters = {"start": "prior"} | parameters | {"tolerance": scaling.noise or None}  # what defaults were then
    combination: Any = "mixture" if is_first else about.get("combination")
    demand(combination in COMBINATIONS, "'combination' is wrong")
    target = make_target(parameters, n_actions, observations.shape[1], weights, combination, scaling)
    frame = make_frame(target, *observations.shape)
    n_levels = groups["features"].attributes.get("n_levels")
    demand(n_levels == frame.n_levels, "'n_levels' does not match 'settings'")
    end = decode_run_end(groups, about, frame, more)
    chains = decode_chains(groups, frame, end.states, more)
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


def decode_cut(groups: dict[str, Group], n_actions: int) -> CutPolicies | None:
    """The policies that predictions use; whether they match the draws is checked where these are picked."""
    if "prediction" not in groups:
        return None
    group = groups["prediction"]
    log_odds, base, chosen = (take(group, name, 2, "f") for name in CutPolicies._fields[:3])
    chosen_base = take(group, "chosen_base", 1, "f")
    # the first files with this group had no means: to them, usual means that nothing else is there
    means, chosen_means = (
        take(group, name, 1, "f") if name in group.variables else np.zeros(len(odds))
        for name, odds in (("means", log_odds), ("chosen_means", chosen))
    )
    cut = CutPolicies(log_odds, base, chosen, chosen_base, means, chosen_means)
    check_cut(cut, n_actions)
    return cut


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
    weights = {name: about.get(name) for name in ("observation_weight", "action_weight")}
    check_weights(**weights)
    return {name: float(weight) for name, weight in weights.items() if weight is not None}


def decode_demonstrations(groups: dict[str, Group]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Observations, actions, the labels of actions, and the names of columns."""
    observations = take(groups["demonstrations"], "observations", 2, "f").astype(np.float64, copy=False)
    classes, names = decode_labels(groups["features"]), decode_names(groups["features"])
    actions = take(groups["demonstrations"], "actions", 1, "i").astype(np.int64, copy=False)
    check_demonstrations(observations, actions, len(classes))
    demand(names is None or len(names) == observations.shape[1], "'column' does not match 'observations'")
    return observations, actions, classes, names


def decode_scaling(
    group: Group, about: dict[str, Any], parameters: dict[str, Any], observations: np.ndarray
) -> Scaling:
    """How observations were scaled."""
    unit: Any = about.get("unit")
    is_scaled = parameters.get("scale_columns", "auto")
    if is_scaled is False or (is_scaled == "auto" and "column_range" not in group.variables):
        n_columns = observations.shape[1]
        check_scaling(observations, unit, np.zeros(n_columns), np.ones(n_columns))
        return Scaling(float(unit))
    low, spread = (take(group, name, 1, "f") for name in ("column_low", "column_range"))
    check_scaling(observations, unit, low, spread)
    return Scaling(float(unit), column_low=low, column_range=spread)


def take_json(about: dict[str, Any], name: str) -> Any:
    """What an attribute says that is written as JSON."""
    try:
        return json.loads(about[name])
    except (ValueError, TypeError, RecursionError):
        raise DamagedFileError(f"{name!r} is not JSON") from None


def decode_chains(
    groups: dict[str, Group], frame: Frame, examples: list[Any], more: dict[str, float]
) -> list[ChainDraws]:
    """The draws of each chain; `examples` are states of theirs."""
    group = groups["features"]
    traces = decode_traces(groups, frame.kind, more)
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains == len(examples), "the last states of its chains are missing")
    arrays = {
        "features": take(group, "features", 2, "f"),
        "policies": take(group, "policies", 2, "f"),
        "levels": take(group, "substates", 2, "u"),
    }
    splits = take(group, "row_splits", 1, "i")
    is_whole = len(splits) == n_chains * n_draws + 1 and splits[0] == 0 and splits[-1] == len(arrays["features"])
    # compared before they are subtracted, which could overflow
    demand(is_whole and (splits[1:] >= splits[:-1]).all() and (splits >= 0).all(), "'row_splits' is wrong")
    arrays["sizes"] = np.diff(splits)
    demand(np.array_equal(arrays["sizes"], traces["n_features"].ravel()), "'row_splits' is wrong")
    arrays["traces"] = np.stack([trace.ravel() for trace in traces.values()], axis=1)
    arrays |= {name: take(group, name, 2, "f") for name in VECTORS if frame.n_base_actions}
    check_draws(arrays, frame)
    chains = []
    for c, example in enumerate(examples):
        draws = slice(c * n_draws, (c + 1) * n_draws)
        rows = slice(splits[draws.start], splits[draws.stop])
        chain = ChainDraws(example, frame.n_levels)
        chain.extend_by_arrays(
            {name: values[rows if name in PER_FEATURE else draws] for name, values in arrays.items()}
        )
        chains.append(chain)
    return chains


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


def decode_traces(groups: dict[str, Group], kind: type, more: dict[str, float]) -> dict[str, np.ndarray]:
    """One number per draw, arrays (chain, draw), in their order; `more` are those that the file does not hold."""
    traces = {}
    names = (*TRACES, *name_scalars(kind))
    for name in names:
        if name in more:
            continue
        stored = (
            take(groups["sample_stats"], SAMPLE_STATS[name], 2, "f")
            if name in SAMPLE_STATS
            else take(groups["posterior"], name, 2, "f")
        )
        demand(np.isfinite(stored).all(), f"{name!r} is not a number in each draw")
        traces[name] = stored
    demand(len({trace.shape for trace in traces.values()}) == 1, "the traces have different lengths")
    traces |= {name: np.full(traces["n_features"].shape, value) for name, value in more.items()}
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains >= 1 and n_draws >= 1, "it holds no draws")
    return {name: traces[name] for name in names}


def decode_run_end(groups: dict[str, Group], about: dict[str, Any], frame: Frame, more: dict[str, float]) -> RunEnd:
    """Where the chains ended."""
    identity, n_done = about.get("identity"), about.get("n_done")
    if not isinstance(identity, str) or not isinstance(n_done, int) or n_done <= 0:
        raise DamagedFileError("'identity' or 'n_done' is wrong")
    found = decode_ends(groups, "chain_ends/{}", frame, more)
    states, rng_states = [state for state, _ in found], [rng_state for _, rng_state in found]
    return RunEnd(identity, decode_entropy(about.get("entropy")), n_done, states, rng_states)
