"""A fitted model in one file that lasts: netCDF4, readable by xarray and ArviZ, nothing in it can run.

The schema is documented in docs/files.md. Features, substates and noise are stored as the sampler holds them, with
the netCDF attribute `scale_factor`, so that other programs read them in the unit of the observations, and loading
gives back the same bits.
"""

import json
import math
import platform
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whyact.errors import DamagedFileError, ModelFileError
from whyact.estimators.settings_file import is_number
from whyact.model import Priors, State, make_target
from whyact.posterior import Posterior
from whyact.sampler.draws import TRACES, ChainDraws
from whyact.storage.codec import (
    check_texts,
    decode_labels,
    decode_names,
    decode_settings,
    decode_shape,
    demand,
    encode_labels,
    encode_settings,
)
from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf

if TYPE_CHECKING:
    from whyact.estimators.feature_policy import FeaturePolicyClassifier
    from whyact.sampler.run import Ends

# The version of the schema; a file with a larger one is refused, one with a smaller one must be readable for ever.
SCHEMA = 1
TITLE = "whyact model"
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "h5netcdf")
# In ArviZ, numbers about the sampling have a group of their own.
SAMPLE_STATS = {"log_joint": "lp", "log_action_likelihood": "log_action_likelihood"}
SUM_TOLERANCE = 1e-6
# What content that no check has foreseen may lead to; DamagedFileError is none of these.
UNEXPECTED = (TypeError, KeyError, IndexError, OverflowError, MemoryError, FloatingPointError, AttributeError)


def save(model: "FeaturePolicyClassifier", path: Path | str) -> None:
    """Write a fitted model; see `FeaturePolicyClassifier.save`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    path = Path(path)
    if not path.parent.is_dir():
        raise ModelFileError(f"the folder {path.parent} does not exist.")
    groups = {
        "/": Group({}, describe_model(model)),
        "posterior": encode_traces(model.posterior_),
        "sample_stats": encode_stats(model.posterior_),
        "features": encode_features(model),
        "demonstrations": encode_demonstrations(model),
        **encode_ends(model),
    }
    try:
        write_netcdf(path, groups)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}.") from None


def load(path: Path | str) -> "FeaturePolicyClassifier":
    """Read a model that `FeaturePolicyClassifier.save` or `whyact fit` wrote.

    It predicts the same numbers, bit by bit. Nothing in the file is run, and a file that is damaged, or made to do
    harm, is refused in one sentence (`ModelFileError`, a ValueError).

    Parameters
    ----------
    path : path

    Returns
    -------
    FeaturePolicyClassifier
        Fitted; with `warm_start=True` it can draw more.
    """
    path = Path(path)
    try:
        groups = read_netcdf(path)
        check_schema(path, groups["/"].attributes)
        try:
            return decode_model(groups)
        except UNEXPECTED:
            raise DamagedFileError("its content does not fit together") from None
    except DamagedFileError as error:
        raise ModelFileError(f"{path} is not a model of whyact: {error}.") from None
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {path}.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def check_schema(path: Path, about: dict[str, Any]) -> None:
    schema = about.get("whyact_schema")
    if about.get("title") != TITLE or not isinstance(schema, int) or schema < 1:
        raise DamagedFileError("it is another kind of netCDF file")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer whyact ({about.get('whyact_version')}, schema {schema}; this one reads up "
            f"to {SCHEMA}): install that version."
        )


# --- writing ------------------------------------------------------------------------------------------------


def describe_model(model) -> dict[str, Any]:
    """Attributes of the file."""
    from whyact.version import __version__

    libraries = {name: version_of(name) for name in LIBRARIES} | {"python": platform.python_version()}
    if hasattr(model, "shape_") and math.prod(model.shape_) != model.n_features_in_:
        raise ModelFileError(f"shape_: {model.shape_} does not fit to {model.n_features_in_} columns.")
    # what was set after the fit has no effect on the model, but for the way to predict
    settings = model._fitted_parameters | {"prediction": model.prediction}
    about = {
        "title": TITLE,
        "whyact_schema": SCHEMA,
        "whyact_version": __version__,
        "libraries": json.dumps(libraries),
        "settings": json.dumps(encode_settings(settings)),
        "unit": model.unit_,
        "observation_weight": model.observation_weight_,
        "action_weight": model.action_weight_,
        "entropy": np.array(model._ends.entropy, dtype=np.int64),
        "identity": model._ends.identity,
        "n_done": model._ends.n_done,
    }
    if hasattr(model, "source_"):
        about["source"] = str(check_texts("source_: the name", [model.source_])[0])
    if hasattr(model, "shape_"):
        about["shape"] = np.array(model.shape_, dtype=np.int64)
    return about


def encode_traces(posterior: Posterior) -> Group:
    """One number a draw, for ArviZ."""
    variables = {}
    for name in posterior.chains[0].trace_names:
        if name in SAMPLE_STATS:
            continue
        values = np.stack([chain.traces[name] for chain in posterior.chains])
        power = posterior.unit_powers.get(name, 0)
        attributes = {"scale_factor": posterior.unit**power} if power else {}
        variables[name] = Variable(("chain", "draw"), values, attributes)
    for name, size in (("chain", posterior.n_chains), ("draw", posterior.n_draws)):
        variables[name] = Variable((name,), np.arange(size))
    return Group(variables, {})


def encode_stats(posterior: Posterior) -> Group:
    variables = {
        stored: Variable(("chain", "draw"), np.stack([chain.traces[name] for chain in posterior.chains]))
        for name, stored in SAMPLE_STATS.items()
    }
    for name, size in (("chain", posterior.n_chains), ("draw", posterior.n_draws)):
        variables[name] = Variable((name,), np.arange(size))
    return Group(variables, {})


def encode_features(model) -> Group:
    """The features of all draws below each other, chain after chain."""
    posterior = model.posterior_
    chains = [chain.to_arrays() for chain in posterior.chains]

    def join(name):
        return np.concatenate([chain[name] for chain in chains])

    n_levels = posterior.chains[0].n_levels
    variables = {
        "features": Variable(("feature", "column"), join("features"), {"scale_factor": posterior.unit}),
        "policies": Variable(("feature", "action"), join("policies")),
        "substates": Variable(("feature", "row"), join("levels"), {"scale_factor": 1.0 / (n_levels - 1)}),
        "row_splits": Variable(("split",), np.concatenate([[0], np.cumsum(join("sizes"))])),
    }
    if len(model.classes_):
        variables["action"] = encode_labels("action", model.classes_)
    if hasattr(model, "column_range_"):
        variables["column_low"] = Variable(("column",), model.column_low_)
        variables["column_range"] = Variable(("column",), model.column_range_)
    if hasattr(model, "feature_names_in_"):
        variables["column"] = Variable(("column",), check_texts("X: the column name", model.feature_names_in_))
    return Group(variables, {"n_levels": n_levels})


def encode_demonstrations(model) -> Group:
    variables = {
        "observations": Variable(("row", "column"), np.ascontiguousarray(model.observations_)),
        "actions": Variable(("row",), model.actions_.astype(np.int64)),
    }
    return Group(variables, {"comment": "actions: index of features/action, -1 where missing"})


def encode_ends(model) -> dict[str, Group]:
    """The last state of each chain and of its random numbers, to draw more."""
    from whyact.storage.codec import encode_end

    ends = model._ends
    chains = {
        f"chain_ends/{i}": encode_end(state, rng_state)
        for i, (state, rng_state) in enumerate(zip(ends.states, ends.rng_states, strict=True))
    }
    return {"chain_ends": Group({}, {"comment": "in the sampler's unit; to draw more"}), **chains}


# --- reading ------------------------------------------------------------------------------------------------


def decode_model(groups: dict[str, Group]) -> "FeaturePolicyClassifier":
    """The fitted model; everything is looked at before it is believed."""
    from whyact.estimators.feature_policy import FeaturePolicyClassifier
    from whyact.sampler.run import Problem
    from whyact.storage.codec import take

    for name in ("posterior", "sample_stats", "features", "demonstrations", "chain_ends"):
        demand(name in groups, f"the group {name!r} is missing")
    about = groups["/"].attributes
    for name in ("whyact_version", "libraries"):
        demand(isinstance(about.get(name), str), f"{name!r} is missing")
    model = FeaturePolicyClassifier(**decode_settings(about))
    unit = take_positive(about, "unit")
    action_weight: Any = about.get("action_weight")
    demand(is_number(action_weight) and action_weight >= 0, "'action_weight' is wrong")

    observations = take(groups["demonstrations"], "observations", 2, "f").astype(np.float64, copy=False)
    demand(observations.size > 0 and not np.isinf(observations).any(), "'observations' are not all numbers")
    classes, names = decode_labels(groups["features"]), decode_names(groups["features"])
    n_actions = max(len(classes), 1)
    actions = take(groups["demonstrations"], "actions", 1, "i").astype(np.int64, copy=False)
    demand(len(actions) == len(observations), "'actions' does not fit to 'observations'")
    demand((actions >= -1).all() and (actions < len(classes)).all(), "'actions' holds an action without a name")

    ends = decode_run(groups, about, observations.shape, n_actions)
    chains = decode_chains(groups, model, observations.shape, n_actions, ends.states)
    priors = Priors() if model.priors is None else model.priors
    target = make_target(
        priors,
        n_actions=n_actions,
        n_dimensions=observations.shape[1],
        n_levels=model.n_levels,
        feature_values=model.feature_values,
        decisiveness=model.decisiveness,
        max_features=model.max_features,
        observation_weight=take_positive(about, "observation_weight"),
        action_weight=float(action_weight),
    )
    problem = Problem(None, target, priors, None, unit)  # nothing is sampled, so it needs neither data nor algorithm
    model.n_features_in_ = observations.shape[1]
    if names is not None:
        demand(len(names) == observations.shape[1], "'column' does not fit to 'observations'")
        model.feature_names_in_ = names
    if model.scale_columns:
        low, spread = (take(groups["features"], name, 1, "f") for name in ("column_low", "column_range"))
        demand(len(low) == len(spread) == observations.shape[1], "'column_range' does not fit to 'observations'")
        demand((np.isfinite(low) & np.isfinite(spread) & (spread > 0)).all(), "'column_range' is not positive")
        model.column_low_, model.column_range_ = low, spread
    model._set_fitted(model._summarise(problem, chains), problem, classes, ends.entropy[4])
    model._keep_run(observations, actions, ends)
    shape = decode_shape(about, observations.shape[1])
    if shape is not None:
        model.shape_ = shape
    if "source" in about:
        demand(isinstance(about["source"], str), "'source' is wrong")
        model.source_ = about["source"]
    return model


def take_positive(about: dict[str, Any], name: str) -> float:
    demand(is_number(about.get(name)) and about[name] > 0, f"{name!r} is wrong")
    return float(about[name])


def decode_chains(
    groups: dict[str, Group], model, shape: tuple[int, int], n_actions: int, examples: list[State]
) -> list[ChainDraws]:
    """The draws of each chain; `examples` are states of theirs."""
    from whyact.storage.codec import take

    group = groups["features"]
    features, policies = take(group, "features", 2, "f"), take(group, "policies", 2, "f")
    levels, splits = take(group, "substates", 2, "u"), take(group, "row_splits", 1, "i")
    n_levels = model.n_levels
    for name, values, width in (
        ("features", features, shape[1]),
        ("policies", policies, n_actions),
        ("substates", levels, shape[0]),
    ):
        demand(values.shape == (len(features), width), f"{name!r} does not fit to the demonstrations")
    demand(features.dtype == policies.dtype == np.float64, "'features' are of another kind")
    demand(group.attributes.get("n_levels") == n_levels, "'n_levels' does not fit to 'settings'")
    demand(levels.dtype == np.min_scalar_type(n_levels - 1), "'substates' are of another kind")
    demand((levels < n_levels).all(), "'substates' are not on their grid")
    demand(np.isfinite(features).all(), "'features' are not all numbers")
    demand(model.feature_values == "real" or (features >= 0).all(), "'features' are not positive")
    demand(((policies > 0) & (policies <= 1 + SUM_TOLERANCE)).all(), "'policies' are no probabilities")
    demand(np.abs(policies.sum(axis=1) - 1).max(initial=0) < SUM_TOLERANCE, "a policy does not sum to one")

    traces = decode_traces(groups)
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains == len(examples), "the last states of its chains are missing")
    demand(
        len(splits) == n_chains * n_draws + 1 and splits[0] == 0 and splits[-1] == len(features),
        "'row_splits' is wrong",
    )
    sizes = np.diff(splits)
    demand((sizes >= 0).all() and np.array_equal(sizes, traces["n_features"].ravel()), "'row_splits' is wrong")
    chains = []
    for c, example in enumerate(examples):
        rows = slice(splits[c * n_draws], splits[(c + 1) * n_draws])
        chain = ChainDraws(example, n_levels)
        table = np.column_stack([traces[name][c] for name in chain.trace_names])
        chain.extend_by_arrays({
            "features": features[rows], "policies": policies[rows], "levels": levels[rows],
            "sizes": sizes[c * n_draws : (c + 1) * n_draws], "traces": table,
        })  # fmt: skip
        chains.append(chain)
    return chains


def decode_traces(groups: dict[str, Group]) -> dict[str, np.ndarray]:
    """One number a draw, arrays (chain, draw)."""
    from whyact.storage.codec import take

    traces = {}
    for name in (*TRACES, *State._fields[3:]):
        stored = (
            take(groups["sample_stats"], SAMPLE_STATS[name], 2, "f")
            if name in SAMPLE_STATS
            else take(groups["posterior"], name, 2, "f")
        )
        demand(np.isfinite(stored).all(), f"{name!r} is not a number in each draw")
        demand(name not in State._fields or (stored > 0).all(), f"{name!r} is not positive")
        traces[name] = stored
    demand(len({trace.shape for trace in traces.values()}) == 1, "the traces have different lengths")
    n_chains, n_draws = traces["n_features"].shape
    demand(n_chains >= 1 and n_draws >= 1, "it holds no draws")
    return traces


def decode_run(groups: dict[str, Group], about: dict[str, Any], shape: tuple[int, int], n_actions: int) -> "Ends":
    """Where the chains ended."""
    from whyact.sampler.run import Ends
    from whyact.storage.codec import decode_ends, decode_entropy

    identity, n_done = about.get("identity"), about.get("n_done")
    demand(isinstance(identity, str) and isinstance(n_done, int) and n_done > 0, "'identity' or 'n_done' is wrong")
    widths = {"substates": shape[0], "features": shape[1], "policies": n_actions}
    found = decode_ends(groups, "chain_ends/{}", State, widths)
    states, rng_states = [state for state, _ in found], [rng_state for _, rng_state in found]
    return Ends(str(identity), decode_entropy(about.get("entropy")), n_done, states, rng_states)  # type: ignore[arg-type]
