"""What the readers of all kinds of files have in common."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from whyact.errors import ArgumentError, suggest

if TYPE_CHECKING:
    import pandas

ASSUMED_MEMORY = 2**33  # bytes, on systems that do not say


class Block(NamedTuple):
    """Some rows that follow each other."""

    values: np.ndarray  # (n, D) of float64, NaN where missing
    labels: "Mapping[str, pandas.Series]"  # each (n,); None or NaN where missing


class Source(Protocol):
    """A file with rows."""

    names: list[str]  # of the columns that can be observed
    shape: tuple[int, ...] | None  # of one observation, if it has more than one axis
    is_positional: bool  # the names are no more than numbers
    default_action: str | None  # what holds the actions if nothing is said
    default_groups: str | None

    def check_label(self, name: str, argument: str) -> None:
        """Whether there is something of this name that may hold actions or groups."""

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Columns by name, in the given order; `advice` ends the sentence about what is not a number."""


class NamedColumns:
    """What files have in common whose columns have names: each column may be observed or hold labels."""

    shape: tuple[int, ...] | None = None
    is_positional: bool = False
    default_action: str | None = None
    default_groups: str | None = None
    path: Path
    names: list[str]

    def check_names(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ArgumentError("path", f"{self.path} has more than one column {twice[0]!r}; give each its own name.")

    def check_label(self, name: str, argument: str) -> None:
        check_name(self.path, name, self.names, argument)


def check_name(path: Path | str, name: str, names: Sequence[str], argument: str) -> None:
    if name not in names:
        raise ArgumentError(argument, f"{path} has no column {name!r}{suggest(name, names)}")


def check_finite(path: Path | str, values: np.ndarray, names: Sequence[str], where: Callable[[int], str]) -> None:
    """No entry may be infinite; `where` says in words where a row is."""
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ArgumentError("columns", f"the column {names[column]!r} of {path}, {where(int(row))}, holds infinity.")


def say_row(n_before: int, row: int) -> str:
    return f"row {n_before + row + 1}"


def check_fits(path: Path | str, n_bytes: int) -> None:
    """What a small file claims to hold may be larger than any memory."""
    if n_bytes > find_memory() // 2:
        raise ArgumentError("path", f"{path} would take {n_bytes / 2**30:.1f} GiB of memory, more than half of it.")


def find_memory() -> int:
    """Bytes that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ASSUMED_MEMORY


@contextmanager
def reading(path: Path | str, argument: str = "path") -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise ArgumentError(argument, f"there is no file {path}.") from None
    except OSError as error:
        raise ArgumentError(argument, f"{path} cannot be read: {error.strerror or error}.") from None
