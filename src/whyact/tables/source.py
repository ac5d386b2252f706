"""What all readers share: the protocol of a source of rows, and checks of names, numbers, memory and access."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from whyact.errors import ArgumentError, ClaimError, suggest
from whyact.storage.memory import ALLOWANCE_OF_TABLE, check_claim, find_limit

if TYPE_CHECKING:
    import pandas

ASSUMED_MEMORY = 2**33  # bytes, where the system does not tell
MOST_COLUMNS = 2**20  # numbers in one observation; a few bytes can claim any number of them
MOST_NAMED = 2**16  # columns with names, for which pandas takes time by the square of their number


class Block(NamedTuple):
    """Consecutive rows of a file."""

    values: np.ndarray  # (n, D) of float64, NaN where missing
    labels: "Mapping[str, pandas.Series]"  # each (n,); None or NaN where missing
    n_text: int = 0  # bytes of the labels that are texts, each as often as it occurs, where the file holds it once


class Source(Protocol):
    """A file with rows."""

    names: list[str]  # of the columns that can be observed
    size: int  # bytes of the file
    shape: tuple[int, ...] | None  # of one observation, if it has more than one axis
    is_positional: bool  # columns have numbers, not names
    default_action: str | None  # what holds the actions if the caller does not say
    default_groups: str | None

    def check_label(self, name: str, argument: str) -> None:
        """Check that something of this name can hold actions or groups."""

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Read the named columns, in the given order; `advice` ends the sentence about an entry that is no number."""


class NamedColumns:
    """Base of the readers of files whose columns have names: each column can be observed or hold labels."""

    shape: tuple[int, ...] | None = None
    is_positional: bool = False
    default_action: str | None = None
    default_groups: str | None = None
    path: Path
    size: int
    names: list[str]

    def check_names(self) -> None:
        """Check that there are not too many columns, and no two with the same name."""
        check_width(self.path, len(self.names), MOST_NAMED)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ArgumentError(
                "path", f"{self.path} has more than one column {twice[0]!r}; give each column its own name."
            )

    def check_label(self, name: str, argument: str) -> None:
        """Check that there is a column of this name."""
        check_name(self.path, name, self.names, argument)


def check_name(path: Path | str, name: str, names: Sequence[str], argument: str) -> None:
    """Check that a column exists; the error suggests a similar name."""
    if name not in names:
        raise ArgumentError(argument, f"{path} has no column {name!r}{suggest(name, names)}")


def check_finite(path: Path | str, values: np.ndarray, names: Sequence[str], where: Callable[[int], str]) -> None:
    """Check that no entry is infinite; `where` says in words where a row is."""
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ArgumentError("columns", f"the column {names[column]!r} of {path}, {where(int(row))}, holds infinity.")


def say_row(n_before: int, row: int) -> str:
    """Name a row of a block by its number in the file, from 1."""
    return f"row {n_before + row + 1}"


def check_width(path: Path | str, n_columns: int, most: int) -> None:
    """Check that an observation does not have more numbers than anything can be done with."""
    if n_columns > most:
        raise ArgumentError("path", f"{path} has {n_columns} columns; at most {most} can be read.")


def check_held(path: Path | str, n_bytes: int, size: int) -> None:
    """Check that what is read from a file of this size is no more than it may claim, and fits into memory."""
    try:
        check_claim(n_bytes, find_limit(size, allowance=ALLOWANCE_OF_TABLE), "to be read")
    except ClaimError as error:
        raise ArgumentError("path", f"{path} {error}.") from None
    check_fits(path, n_bytes)


def check_fits(path: Path | str, n_bytes: int) -> None:
    """Check that an array fits into memory; a small file can claim to hold more than any machine has."""
    if n_bytes > find_memory() // 2:
        raise ArgumentError(
            "path", f"{path} would take {n_bytes / 2**30:.1f} GiB of memory, more than half of what this machine has; "
            "read fewer rows or columns.",
        )  # fmt: skip


def find_memory() -> int:
    """Memory of this machine, in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return ASSUMED_MEMORY


@contextmanager
def reading(path: Path | str, argument: str = "path") -> Iterator[None]:
    """Turn an error of the operating system into one sentence that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise ArgumentError(argument, f"there is no file {path}.") from None
    except OSError as error:
        raise ArgumentError(argument, f"{path} cannot be read: {error.strerror or error}.") from None
