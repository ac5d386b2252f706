"""What whyact raises and warns about. Every message is one sentence for the user."""

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from types import FrameType

from whyact.visible import make_visible


class WhyactError(Exception):
    """Base of whyact's own errors; a wrong value of a parameter is a plain ValueError, as in scikit-learn.

    A message names things that come from files, so it is made visible.
    """

    def __init__(self, message: str = ""):
        super().__init__(make_visible(message))


class ArgumentError(WhyactError, ValueError):
    """An argument cannot be used; `argument` is its name."""

    def __init__(self, argument: str, message: str):
        super().__init__(message)
        self.argument = argument


class DamagedFileError(WhyactError, ValueError):
    """A file is not what it should be; the message completes the sentence "PATH is not ...: "."""


class ClaimError(DamagedFileError):
    """A file asks for more memory than it may claim; the message completes the sentence "PATH ..."."""


class ModelFileError(WhyactError, ValueError):
    """A model file cannot be used; the message names the file."""


class CheckpointError(WhyactError, ValueError):
    """A run cannot continue from this folder."""


class RunError(WhyactError, ValueError):
    """The folder of a run cannot be used."""


class LockedError(WhyactError):
    """Another process holds the lock."""


class DoubtfulFitWarning(UserWarning):
    """Something speaks against a fitted model; `print(model)` says what helps."""


class ChainsDisagreeWarning(DoubtfulFitWarning):
    """The chains have not found the same answer, beside what else speaks against the fitted model."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code, whatever decorators scikit-learn puts between."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("whyact", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(make_visible(message), category, stacklevel=level)


def suggest(name: str, names: Iterable[str], n_shown: int = 20) -> str:
    """The end of a sentence about an unknown name: the closest known one, and the list."""
    names = list(names)
    close = difflib.get_close_matches(name.lower(), [known.lower() for known in names], 1)
    closest = [known for known in names if close and known.lower() == close[0]][:1]
    hint = f", did you mean {closest[0]!r}?" if closest else "."
    return f"{hint} Available: {list_names(names, n_shown)}."


def list_names(names: Sequence[str], n_shown: int = 20) -> str:
    """The names, or the first of many."""
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return f"{', '.join(names[:n_shown]) or 'none'}{more}"


def say_options(**values: float | str) -> str:
    """How to set parameters, in Python and on the command line, as in `thin=2 (--thin 2 on the command line)`."""
    listed, flags = [], []
    for name, value in values.items():
        python, typed = say_value(value)
        listed.append(f"{name}={python}")
        flags.append(f"--{name.replace('_', '-')} {typed}")
    return f"{' and '.join(listed)} ({' '.join(flags)} on the command line)"


def say_value(value: float | str) -> tuple[str, str]:
    """A value in Python and on the command line."""
    if isinstance(value, bool):
        return str(value), "yes" if value else "no"
    return (f'"{value}"', value) if isinstance(value, str) else (f"{value:g}", f"{value:g}")
