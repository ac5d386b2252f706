"""Settings from a TOML file: parameters of the estimator, and what to read.

    action = "u"
    n_chains = 4
    [priors]
    ibp_mass = [1, 10]

Types are checked here, ranges by those who use the values.
"""

import inspect
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard

from whyact.errors import ArgumentError, suggest
from whyact.tables.source import reading

LARGEST_FILE = 2**20  # bytes; a file of settings has a few lines


class Settings(NamedTuple):
    """What a file says; what it does not mention is not there."""

    parameters: dict[str, Any]  # of FeaturePolicyClassifier
    data: dict[str, Any]  # action, columns, ignore, missing_action, shape, checkpoint_every


class Kind(NamedTuple):
    """What a value must be."""

    accepts: Callable[[Any], bool]
    words: str


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def is_list_of(accepts: Callable[[Any], bool], value: Any) -> bool:
    return isinstance(value, list) and all(accepts(entry) for entry in value)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


WHOLE = Kind(is_whole, "a whole number")
NUMBER = Kind(is_number, "a finite number")
TRUTH = Kind(lambda value: isinstance(value, bool), "true or false")
TEXT = Kind(is_text, "a text")
TEXTS = Kind(lambda value: is_list_of(is_text, value), "a list of texts")
PAIR = Kind(lambda value: is_list_of(is_number, value) and len(value) == 2, "a pair of numbers")
POSITIVE = Kind(lambda value: is_whole(value) and value > 0, "a whole number above 0")
SHAPE = Kind(
    lambda value: is_list_of(POSITIVE.accepts, value) and len(value) > 1, "two or more whole numbers above 0, as [8, 8]"
)
TABLE = Kind(lambda value: isinstance(value, dict), "a table")

DATA_KINDS = {
    "action": TEXT,
    "columns": TEXTS,
    "ignore": TEXTS,
    "missing_action": TEXT,  # also a parameter of the estimator; whoever reads the file marks such rows
    "shape": SHAPE,
    "checkpoint_every": NUMBER,
}


def read_settings(path: Path | str) -> Settings:
    """Read settings from a TOML file.

    Keys are the parameters of `FeaturePolicyClassifier` and, about the data, `action`, `columns`, `ignore`,
    `missing_action`, `shape` and `checkpoint_every`. A table `[priors]` has the fields of `Priors`, `[as_published]`
    those of `AsPublished`, which then is the sampler.
    """
    from whyact.model import Priors
    from whyact.sampler.settings import AsPublished

    path = Path(path)
    given = read_toml(path)
    tables = {"priors": dict.fromkeys((field.name for field in fields(Priors)), PAIR)}
    tables["as_published"] = dict.fromkeys(AsPublished._fields, NUMBER) | {"n_indicators": WHOLE}
    kinds = find_parameter_kinds() | DATA_KINDS | dict.fromkeys(tables, TABLE)
    check(path, "", given, kinds)
    for name, entries in tables.items():
        check(path, f"{name}.", given.get(name, {}), entries)
    data = {name: given.pop(name) for name in DATA_KINDS if name in given}
    if "shape" in data:
        data["shape"] = tuple(data["shape"])
    if "priors" in given:
        try:
            given["priors"] = Priors(**given["priors"])
        except ValueError as error:
            refuse(path, str(error).rstrip("."))
    if "as_published" in given:
        if given.get("sampler", "as-published") != "as-published":
            refuse(path, f"[as_published] needs sampler = 'as-published', not {given['sampler']!r}")
        given["sampler"] = AsPublished(**given.pop("as_published"))
    return Settings(given, data)


def read_toml(path: Path) -> dict[str, Any]:
    with reading(path, "config"), path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        refuse(path, f"a file of settings has at most {LARGEST_FILE} bytes")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        refuse(path, "it is not text in UTF-8")
    except tomllib.TOMLDecodeError as error:
        refuse(path, f"it is not TOML: {error}")
    except RecursionError:
        refuse(path, "it is nested too deeply")


def find_parameter_kinds() -> dict[str, Kind]:
    """What each parameter of the estimator must be, from the estimator's own table."""
    from whyact.estimators.feature_policy import FeaturePolicyClassifier

    names = inspect.signature(FeaturePolicyClassifier).parameters
    return {
        name: join_kinds(FeaturePolicyClassifier._parameter_constraints[name])
        for name in names
        if name not in ("missing_action", "priors", "warm_start")
    }


def join_kinds(constraints: list) -> Kind:
    """What a TOML file can say of what scikit-learn's constraints allow."""
    from sklearn.utils._param_validation import Interval, StrOptions

    kinds, options = [], []
    for constraint in constraints:
        if isinstance(constraint, StrOptions):
            options = sorted(constraint.options)
        elif isinstance(constraint, Interval):
            kinds.append(WHOLE if constraint.type is Integral else NUMBER)
        elif constraint == "boolean":
            kinds.append(TRUTH)
        elif constraint in (Integral, "random_state", "verbose"):
            kinds.append(WHOLE)
    words = [kind.words for kind in kinds] + [repr(option) for option in options]
    return Kind(
        lambda value: (isinstance(value, str) and value in options) or any(kind.accepts(value) for kind in kinds),
        " or ".join(words),
    )


def check(path: Path, prefix: str, given: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Every key must be known, and its value of the right kind."""
    for name, value in given.items():
        if name not in kinds:
            raise ArgumentError(
                "config", f"{path}: there is no setting {prefix + name!r}{suggest(name, kinds, len(kinds))}"
            )
        if not kinds[name].accepts(value):
            refuse(path, f"{prefix}{name} must be {kinds[name].words}, not {shorten(value)}")


def shorten(value: Any, length: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= length else text[:length] + "..."


def refuse(path: Path, reason: str) -> NoReturn:
    raise ArgumentError("config", f"{path}: {reason}.")
