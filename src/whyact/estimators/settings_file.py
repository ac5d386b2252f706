"""Settings from a TOML file: parameters of the estimator, and what to read.

    action = "u"
    n_chains = 4
    [priors]
    ibp_mass = [1, 10]

What each setting may be comes from the estimator's own table of constraints; the command line checks its options
against the same kinds.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from sklearn.utils._param_validation import Interval, StrOptions

from whyact.errors import ArgumentError, suggest
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.model import Priors
from whyact.sampler.settings import AsPublished
from whyact.storage.door import is_number
from whyact.tables.source import reading

LARGEST_FILE = 2**20  # bytes; a file of settings has a few lines
MOST_PARTS = 100  # of a key such as priors.ibp_mass; Python takes the square of their number to read it
PART = rb"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
LONG_KEY = re.compile(rb"(?<![\w-])%b(?:[ \t]*\.[ \t]*%b){%d}" % (PART, PART, MOST_PARTS))
LARGEST_SEED = 2**32 - 1  # of numpy's RandomState
LARGEST_WHOLE = 2**63 - 1  # no count is larger, and no array counts further


class Settings(NamedTuple):
    """What a file says; settings that it does not mention are absent.

    Attributes
    ----------
    parameters : dict
        Parameters of `FeaturePolicyClassifier`, by name.
    data : dict
        `action`, `columns`, `ignore`, `available`, `missing_action`, `shape` and `checkpoint_every`.

    Examples
    --------
    >>> from whyact.estimators.settings_file import Settings
    >>> Settings(parameters={"n_chains": 4}, data={"action": "u"}).data["action"]
    'u'
    """

    parameters: dict[str, Any]
    data: dict[str, Any]


class Kind(NamedTuple):
    """What a value must be."""

    accepts: Callable[[Any], bool]
    words: str


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number that a computer counts with, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_WHOLE


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number; a whole one of hundreds of digits has no place among the fractions."""
    return is_whole(value) if isinstance(value, int) else is_number(value)


def is_list_of(accepts: Callable[[Any], bool], value: Any) -> bool:
    """Whether a value is a list (a tuple, from the command line) of acceptable entries."""
    return isinstance(value, list | tuple) and all(accepts(entry) for entry in value)


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


WHOLE = Kind(is_whole, "a whole number")
SEED = Kind(lambda value: is_whole(value) and 0 <= value <= LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}")
NUMBER = Kind(is_finite, "a finite number")
SECONDS = Kind(lambda value: is_finite(value) and value >= 0, "a finite number of at least 0")
TRUTH = Kind(lambda value: isinstance(value, bool), "true or false")
TEXT = Kind(is_text, "a string")
TEXTS = Kind(lambda value: is_list_of(is_text, value), "a list of strings")
PAIR = Kind(lambda value: is_list_of(is_finite, value) and len(value) == 2, "a pair of numbers")
POSITIVE = Kind(lambda value: is_whole(value) and value > 0, "a whole number above 0")
SHAPE = Kind(
    lambda value: is_list_of(POSITIVE.accepts, value) and len(value) > 1,
    "two or more whole numbers above 0, such as [8, 8]",
)
TABLE = Kind(lambda value: isinstance(value, dict), "a table")
TABLE_OF_TEXTS = Kind(
    lambda value: isinstance(value, dict) and len(value) > 0 and all(map(is_text, value.values())),
    "a table of strings, such as {car = 'CAR_AV'}",
)

DATA_KINDS = {
    "action": TEXT,
    "columns": TEXTS,
    "ignore": TEXTS,
    "available": TABLE_OF_TEXTS,
    "missing_action": TEXT,  # also a parameter of the estimator; but rows are marked while the file is read
    "shape": SHAPE,
    "checkpoint_every": SECONDS,
}
# Tables of a file, and what their entries may be.
TABLE_KINDS = {
    "priors": dict.fromkeys((field.name for field in fields(Priors)), PAIR),
    "as_published": dict.fromkeys(AsPublished._fields, NUMBER) | {"n_indicators": WHOLE},
}
# What a file says of scikit-learn's constraints that have a name; an instance of a class or None it cannot say.
NAMED_KINDS: dict[Any, Kind] = {"boolean": TRUTH, Integral: WHOLE, "random_state": SEED, "verbose": WHOLE}


def read_settings(path: Path | str) -> Settings:
    """Read settings from a TOML file.

    Keys are the parameters of `FeaturePolicyClassifier` and, about the data, `action`, `columns`, `ignore`,
    `available`, `missing_action`, `shape` and `checkpoint_every`. The table `available` names, for actions that are not
    always available, the column that says where they are. A table `[priors]` has the fields of `Priors`. A table
    `[as_published]` has those of `AsPublished` and chooses that sampler.

    Parameters
    ----------
    path : Path or str
        The file.

    Returns
    -------
    Settings
        Checked values, parameters of the estimator apart from those about the data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.estimators.settings_file import read_settings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fit.toml"
    ...     _ = path.write_text("action = 'u'\\nn_chains = 4\\n[priors]\\nibp_mass = [1, 10]\\n")
    ...     settings = read_settings(path)
    >>> settings.data, settings.parameters["n_chains"], settings.parameters["priors"].ibp_mass
    ({'action': 'u'}, 4, (1.0, 10.0))
    """
    path = Path(path)
    given = read_toml(path)
    check(path, "", given, find_kinds() | dict.fromkeys(TABLE_KINDS, TABLE))
    for name, kinds in TABLE_KINDS.items():
        check(path, f"{name}.", given.get(name, {}), kinds)
    data = {name: given.pop(name) for name in DATA_KINDS if name in given}
    if "shape" in data:
        data["shape"] = tuple(data["shape"])
    if "priors" in given:
        given["priors"] = decode_priors(path, given["priors"])
    if "as_published" in given:
        given["sampler"] = decode_published(path, given.pop("as_published"), given.get("sampler", "as-published"))
    return Settings(given, data)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file of reasonable size."""
    with reading(path, "config"), path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        refuse(path, f"a settings file may have at most {LARGEST_FILE} bytes")
    if LONG_KEY.search(content):
        refuse(path, f"it holds a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        refuse(path, "it is not text in UTF-8")
    except tomllib.TOMLDecodeError as error:
        refuse(path, f"it is not TOML: {error}")
    except RecursionError:
        refuse(path, "it is nested too deeply")
    except ValueError:  # Python reads no number of more than 4300 digits
        refuse(path, "it holds a number with too many digits")


def decode_priors(path: Path, pairs: dict[str, Any]) -> Priors:
    """The hyperpriors of a file."""
    try:
        return Priors(**pairs)
    except ValueError as error:
        refuse(path, str(error).rstrip("."))


def decode_published(path: Path, entries: dict[str, Any], sampler: str) -> AsPublished:
    """The settings of the published algorithm, which must be the sampler of the file."""
    if sampler != "as-published":
        refuse(path, f"[as_published] needs sampler = 'as-published', not {sampler!r}")
    return AsPublished(**entries)


def find_kinds() -> dict[str, Kind]:
    """What each setting must be, parameters of the estimator and about the data."""
    return find_parameter_kinds() | DATA_KINDS


def find_parameter_kinds() -> dict[str, Kind]:
    """What each parameter of the estimator must be, from the estimator's own table."""
    names = inspect.signature(FeaturePolicyClassifier).parameters
    return {
        name: join_kinds(FeaturePolicyClassifier._parameter_constraints[name])
        for name in names
        if name not in ("missing_action", "priors", "warm_start")
    }


def join_kinds(constraints: list[Any]) -> Kind:
    """The kind of value that scikit-learn's constraints allow."""
    kinds = [kind for kind in map(to_kind, constraints) if kind is not None]
    return Kind(lambda value: any(kind.accepts(value) for kind in kinds), " or ".join(kind.words for kind in kinds))


def to_kind(constraint: Any) -> Kind | None:
    """One of scikit-learn's constraints; None if no text can satisfy it."""
    if isinstance(constraint, StrOptions):
        words = " or ".join(repr(option) for option in sorted(constraint.options))
        return Kind(lambda value: isinstance(value, str) and value in constraint.options, words)
    if isinstance(constraint, Interval):
        kind = WHOLE if constraint.type is Integral else NUMBER
        return Kind(lambda value: kind.accepts(value) and value in constraint, f"{kind.words} {say_range(constraint)}")
    return NAMED_KINDS.get(constraint)


def say_range(interval: Interval) -> str:
    """The bounds of an interval."""
    if interval.right is not None:
        return f"from {interval.left:g} to {interval.right:g}"
    return f"{'of at least' if interval.closed == 'left' else 'above'} {interval.left:g}"


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
    """A value as text, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4300 digits, which hexadecimal ones can have
        return "a number with too many digits"
    return text if len(text) <= length else text[:length] + "..."


def refuse(path: Path, reason: str) -> NoReturn:
    """Say what is wrong with the file."""
    raise ArgumentError("config", f"{path}: {reason}.")
