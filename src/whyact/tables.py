"""Demonstrations from a table: one row each, numeric columns as observations, one column with the action."""

import csv
import difflib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas

MISSING_NUMBERS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
MISSING_LABELS = ["", "NA", "NaN", "nan"]  # "None" may well be an action


class ArgumentError(ValueError):
    """What the user gave cannot be used; the message is for the user, `argument` is the name of what is wrong."""

    def __init__(self, argument: str, message: str):
        super().__init__(message)
        self.argument = argument


class Table(NamedTuple):
    """Demonstrations."""

    X: "pandas.DataFrame"  # NaN where an entry is missing
    y: "pandas.Series"  # labels as they stand in the file; missing where the field is empty
    groups: "pandas.Series | None"


def read_table(path: Path, action: str, groups: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Read demonstrations from a CSV file.

    Parameters
    ----------
    path : Path
        Values separated by commas, names of the columns in the first line.
    action : name of the column with the action
    groups : name of the column that tells which rows belong together, such as the drive or the episode
    columns : names of the observed columns; None: all others, which then must be numeric
    """
    text = read_text(path)
    header = read_header(path, text)
    check_name(path, action, header, "action")
    if groups is not None:
        check_name(path, groups, header, "groups")
        if groups == action:
            raise ArgumentError("groups", f"the column {groups!r} cannot hold both the action and the groups.")
    labels = [action] if groups is None else [action, groups]
    observed = choose_columns(path, header, labels, columns)
    frame = parse(path, text, header, labels, observed)
    return Table(to_numbers(path, frame[observed]), frame[action], None if groups is None else frame[groups])


def read_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ArgumentError("path", f"there is no file {path}.") from None
    except OSError as error:
        raise ArgumentError("path", f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ArgumentError("path", f"{path} is not a CSV file: it is not text in UTF-8.") from None
    if not text.strip():
        raise ArgumentError("path", f"{path} is empty.")
    return text


def read_header(path: Path, text: str) -> list[str]:
    """Names of the columns; every line must have as many fields."""
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    header: list[str] = []
    n_rows = 0
    try:
        for line in lines:
            if not line:
                continue
            if not header:
                header = [name.strip() for name in line]
            elif len(line) != len(header):
                raise ArgumentError(
                    "path", f"{path} is not a CSV file: line {lines.line_num} has {len(line)} fields, the header "
                    f"{len(header)}.",
                )  # fmt: skip
            else:
                n_rows += 1
    except csv.Error as error:
        raise ArgumentError("path", f"{path} is not a CSV file: line {lines.line_num}, {error}.") from None
    if len(header) == 1:
        raise ArgumentError("path", f"{path} has one column only ({header[0]!r}); fields are separated by commas.")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise ArgumentError("path", f"{path} has more than one column {twice[0]!r}; give each its own name.")
    if not n_rows:
        raise ArgumentError("path", f"{path} has a header, but no rows.")
    return header


def check_name(path: Path, name: str, header: list[str], argument: str) -> None:
    if name not in header:
        raise ArgumentError(argument, f"{path} has no column {name!r}{suggest(name, header)}")


def suggest(name: str, names: Iterable[str], n_shown: int = 20) -> str:
    """The end of a sentence that says that a name is not known: the closest one, and the list."""
    names = list(names)
    close = difflib.get_close_matches(name.lower(), [known.lower() for known in names], 1)
    closest = [known for known in names if close and known.lower() == close[0]][:1]
    hint = f", did you mean {closest[0]!r}?" if closest else "."
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return f"{hint} There are {', '.join(names[:n_shown])}{more}."


def choose_columns(path: Path, header: list[str], labels: list[str], columns: Sequence[str] | None) -> list[str]:
    """Names of the observed columns."""
    if columns is None:
        observed = [name for name in header if name not in labels]
        if "" in observed:
            # often a row number that some tool has written, and in a sequence the row number is the time
            raise ArgumentError(
                "columns", f"column {header.index('') + 1} of {path} has no name; say which columns to use."
            )
    else:
        observed = list(dict.fromkeys(columns))
        for name in observed:
            check_name(path, name, header, "columns")
            if name in labels:
                raise ArgumentError("columns", f"{name!r} holds the action or the groups and cannot be observed too.")
    if not observed:
        raise ArgumentError("columns", f"{path} has no column left to observe.")
    return observed


def parse(path: Path, text: str, header: list[str], labels: list[str], observed: list[str]) -> "pandas.DataFrame":
    import pandas

    missing = {name: MISSING_LABELS if name in labels else MISSING_NUMBERS for name in header}
    try:
        return pandas.read_csv(
            io.StringIO(text),
            header=0,
            names=header,
            usecols=[*observed, *labels],
            dtype=dict.fromkeys(labels, str),
            keep_default_na=False,
            na_values=missing,
            skipinitialspace=True,
            index_col=False,
            low_memory=False,
        )
    except (pandas.errors.ParserError, ValueError) as error:
        raise ArgumentError("path", f"{path} is not a CSV file: {error}.") from None


def to_numbers(path: Path, frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """All columns as floating point numbers."""
    import numpy as np
    import pandas

    for name in frame:
        if not pandas.api.types.is_numeric_dtype(frame[name]):
            values = frame[name][pandas.to_numeric(frame[name], errors="coerce").isna() & frame[name].notna()]
            raise ArgumentError(
                "columns",
                f"the column {name!r} of {path} is not numeric ({values.iloc[0]!r}); say which columns to use.",
            )
        if np.isinf(frame[name].astype(float)).any():
            raise ArgumentError("columns", f"the column {name!r} of {path} holds infinity.")
    return frame.astype(float)
