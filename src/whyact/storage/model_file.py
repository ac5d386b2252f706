"""A fitted model in one file that lasts: netCDF4, readable by xarray and ArviZ; nothing in it can run.

The schema is documented in docs/files.md. Features, substates and noise are stored as the sampler holds them, with
the netCDF attribute `scale_factor`, so that other programs read them in the unit of the observations, and loading
gives back the same bits. `model_reader.py` reads it.
"""

import json
import math
import platform
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import numpy as np

from whyact.errors import ModelFileError
from whyact.fit_result import FitResult
from whyact.model import COMBINATIONS
from whyact.posterior import Posterior
from whyact.sampler.draws import RunEnd
from whyact.storage.codec import check_texts, encode_end, encode_labels, encode_settings
from whyact.storage.memory import estimate_predictions
from whyact.storage.netcdf import Group, Variable, write_netcdf
from whyact.version import __version__

# The version of the schema. A file with a larger one is refused; one with a smaller one must stay readable for ever.
SCHEMA = 6
TITLE = "whyact model"
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "h5netcdf")
# In ArviZ, numbers about the sampling have a group of their own.
SAMPLE_STATS = {"log_joint": "lp", "log_action_likelihood": "log_action_likelihood"}


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
        write_netcdf(path, groups, claim=find_claim(result))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}.") from None


def find_claim(result: FitResult) -> int:
    """Bytes of what predictions make of a model."""
    sizes = np.concatenate([np.diff(chain.row_splits) for chain in result.chains])
    n_rows, n_columns = result.observations.shape
    max_draws = int(result.parameters["max_prediction_draws"])
    return estimate_predictions(sizes, n_rows, n_columns, max(len(result.classes), 1), max_draws)


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
