"""From states, draws, labels and settings to plain arrays, and back with suspicion."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from whyact.errors import DamagedFileError, ModelFileError
from whyact.model import Priors
from whyact.sampler.draws import N_ARRAYS, VECTORS, ChainDraws, name_scalars
from whyact.sampler.settings import AsPublished
from whyact.storage.door import Frame, check_available, check_draws, check_state, demand
from whyact.storage.netcdf import Group, Variable
from whyact.version import __version__

SCHEMA = 2  # version of the schema of checkpoints and runs
N_ENTROPY = 5
# How a machine is used is the user's to say, not a file's: neither written nor read.
NEVER_STORED = ("n_jobs", "verbose")
# Parameters and single numbers of a state that the first schema did not have, with what they were then.
FIRST_PARAMETERS: dict[str, Any] = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}


def describe_file(what: str) -> dict[str, Any]:
    """Attributes of each file of a run."""
    return {"title": f"whyact {what}", "whyact_schema": SCHEMA, "whyact_version": __version__}


def encode_draws(chain: ChainDraws, first: int) -> Group:
    """The draws of a chain from `first` on."""
    axes = {
        "features": ("feature", "column"),
        "policies": ("feature", "action"),
        "levels": ("feature", "row"),
        "sizes": ("draw",),
        "traces": ("draw", "quantity"),
        **dict.fromkeys(VECTORS, ("draw", "action")),
    }
    return Group({name: Variable(axes[name], values) for name, values in chain.to_arrays(first).items()}, {})


def encode_end(state: Any, rng_state: Any) -> Group:
    """The last state of a chain, and that of its random numbers."""
    axes = (("feature", "row"), ("feature", "column"), ("feature", "action"))
    variables = {
        name: Variable(dimensions, getattr(state, name))
        for name, dimensions in zip(state._fields[:N_ARRAYS], axes, strict=True)
    }
    scalars = [getattr(state, name) for name in name_scalars(type(state))]
    variables["scalars"] = Variable(("scalar",), np.array(scalars, dtype=float))
    for name in VECTORS:
        if len(getattr(state, name, ())):
            variables[name] = Variable(("action",), getattr(state, name))
    variables["rng"] = Variable(("word",), encode_rng(rng_state))
    return Group(variables, {})


def decode_ends(
    groups: dict[str, Group], name: str, frame: Frame, more: dict[str, float] | None = None
) -> list[tuple[Any, dict[str, Any]]]:
    """State and random numbers of each chain, checked; the groups are called after `name` and the chain's number.

    `more` are single numbers of the state that the file does not hold, because it is older.
    """
    found: list[tuple[Any, dict[str, Any]]] = []
    while name.format(len(found)) in groups:
        found.append(decode_end(groups[name.format(len(found))], frame, more or {}))
    return found


def decode_end(group: Group, frame: Frame, more: dict[str, float]) -> tuple[Any, dict[str, Any]]:
    """A state and that of its random numbers."""
    kind: Any = frame.kind
    arrays = [take(group, name, 2, "f") for name in kind._fields[:N_ARRAYS]]
    vectors = {name: take(group, name, 1, "f") for name in VECTORS if name in group.variables}
    demand(set(vectors) <= set(kind._fields), "it holds states of another model")
    scalars = take(group, "scalars", 1, "f")
    names = [name for name in name_scalars(kind) if name not in more]
    demand(len(scalars) == len(names), "the last states of its chains do not match")
    state = kind(*arrays, **dict(zip(names, scalars.tolist(), strict=True)) | more, **vectors)
    check_state(state, frame)
    return state, decode_rng(take(group, "rng", 1, "u"))


def decode_draws(group: Group, frame: Frame) -> dict[str, np.ndarray]:
    """The inverse of `encode_draws`, checked."""
    draws = {name: found.values for name, found in group.variables.items()}
    check_draws(draws, frame)
    return draws


def decode_entropy(numbers: Any) -> list[int]:
    """What the random numbers of a run started from."""
    if not isinstance(numbers, np.ndarray) or numbers.shape != (N_ENTROPY,) or numbers.dtype.kind != "i":
        raise DamagedFileError("'entropy' is wrong")
    if not ((numbers >= 0) & (numbers < 2**31)).all():
        raise DamagedFileError("'entropy' is wrong")
    return [int(number) for number in numbers]


def take(group: Group, name: str, n_axes: int, dtype_kind: str) -> np.ndarray:
    """A variable's values, if they have this number of axes and this kind of type."""
    if name not in group.variables:
        raise DamagedFileError(f"{name!r} is missing")
    values = group.variables[name].values
    if values.ndim != n_axes or values.dtype.kind not in dtype_kind:
        raise DamagedFileError(f"{name!r} has an unexpected type")
    return values


def encode_rng(state: dict[str, Any]) -> np.ndarray:
    """PCG64's two numbers of 128 bits and its buffered half word."""
    numbers = state["state"]["state"], state["state"]["inc"]
    words = [word for number in numbers for word in (number >> 64, number & (2**64 - 1))]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def decode_rng(words: np.ndarray) -> dict[str, Any]:
    """The inverse of `encode_rng`."""
    if len(words) != 6 or words[4] > 1 or words[5] >= 2**32 or not int(words[3]) % 2:
        raise DamagedFileError("the state of the random numbers is wrong")
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(word) for word in words)
    return {
        "bit_generator": "PCG64",
        "state": {"state": (high << 64) + low, "inc": (inc_high << 64) + inc_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def encode_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator as plain data, except for those that only say how it ran."""
    settings = {}
    for name, value in parameters.items():
        if name in NEVER_STORED:
            continue
        if isinstance(value, Priors):
            value = {"priors": {field: getattr(value, field) for field in value.__dataclass_fields__}}
        elif isinstance(value, AsPublished):
            value = {"as_published": value._asdict()}
        elif name == "random_state" and not isinstance(value, int | np.integer):
            value = None  # what was drawn from it is in the attribute `entropy`
        elif isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and math.isnan(value):
            value = {"float": "nan"}
        if not isinstance(value, dict | str | int | float | None):
            raise ModelFileError(f"{name}={value!r} cannot be stored in a file.")
        settings[name] = value
    return settings


def encode_labels(name: str, labels: np.ndarray) -> Variable:
    """Actions in their own type: text, numbers or truth values."""
    if labels.dtype.kind in "US":
        return Variable((name,), check_texts("y: the action", labels))
    if labels.dtype.kind == "b":
        return Variable((name,), labels.astype(np.int8), {"kind": "bool"})
    if labels.dtype.kind in "iuf" and labels.dtype.itemsize <= 8:
        return Variable((name,), labels)
    raise ModelFileError(f"y: actions of the type {labels.dtype} cannot be stored in a file.")


def check_texts(what: str, texts: Iterable[Any]) -> np.ndarray:
    """Texts that netCDF can hold."""
    for text in texts:
        try:
            if b"\0" in str(text).encode():
                raise ModelFileError(f"{what} {text!r} cannot be stored in a file: it holds a zero character.")
        except UnicodeEncodeError:
            raise ModelFileError(f"{what} {text!r} cannot be stored in a file: it is not Unicode.") from None
    return np.array([str(text) for text in texts], dtype=str)


def decode_shape(about: dict[str, Any], n_columns: int) -> tuple[int, ...] | None:
    """Axes of an observation, if it is a picture."""
    if "shape" not in about:
        return None
    sizes = np.ravel(about["shape"])
    demand(sizes.dtype.kind == "i" and len(sizes) > 0 and (sizes > 0).all(), "'shape' is wrong")
    demand(math.prod(sizes.tolist()) == n_columns, "'shape' does not match 'observations'")
    return tuple(sizes.tolist())


def decode_settings(about: dict[str, Any], check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Parameters of the estimator; `check` raises DamagedFileError if one is unknown or has a wrong value.

    Those that say how it runs are never taken from a file.
    """
    text = about.get("settings")
    if not isinstance(text, str):
        raise DamagedFileError("'settings' is missing")
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedFileError("'settings' is not JSON") from None
    demand(isinstance(settings, dict), "'settings' is not a table")
    try:
        parameters = {str(name): decode_setting(value) for name, value in settings.items() if name not in NEVER_STORED}
    except (ValueError, TypeError, OverflowError):
        raise DamagedFileError("'settings' has an option with a wrong value") from None
    check(parameters)
    return parameters


def decode_setting(value: Any) -> Any:
    """One parameter from plain data."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"priors"}:
        return Priors(**value["priors"])
    if set(value) == {"as_published"}:
        return AsPublished(**value["as_published"])
    if value == {"float": "nan"}:
        return math.nan
    raise ValueError(value)


def decode_labels(group: Group) -> np.ndarray:
    """The actions, sorted and different; none if no action was ever seen."""
    if "action" not in group.variables:
        return np.array([])
    values = group.variables["action"].values
    demand(values.ndim == 1 and len(values) > 1 and values.dtype.kind in "iufU", "'action' has an unexpected type")
    if group.variables["action"].attributes.get("kind") == "bool":
        demand(values.tolist() == [0, 1], "'action' has an unexpected type")
        return values.astype(bool)
    demand(values.dtype.kind != "f" or np.isfinite(values).all(), "'action' has an unexpected type")
    demand(np.array_equal(np.unique(values), values), "'action' is not sorted")
    return values


def decode_available(group: Group, actions: np.ndarray, n_actions: int) -> np.ndarray | None:
    """Which actions there are in each row, if not all."""
    if "available" not in group.variables:
        return None
    values = take(group, "available", 2, "i")
    check_available(values, actions, n_actions)
    return values.astype(bool)


def decode_names(group: Group) -> np.ndarray | None:
    """Names of the columns, if they have any."""
    if "column" not in group.variables:
        return None
    names = group.variables["column"].values
    demand(names.ndim == 1 and names.dtype.kind == "U", "'column' has an unexpected type")
    demand(len(set(names.tolist())) == len(names), "'column' has a name twice")
    return names.astype(object)
