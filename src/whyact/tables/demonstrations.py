"""Demonstrations from files: one row each, numeric columns as observations, one column with the action.

The end of a file's name picks its reader. `read_demonstrations` reads a file whole, `open_rows` block by block.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from whyact.errors import ArgumentError, list_names
from whyact.tables.available import make_mask, read_truth
from whyact.tables.csv import CsvFile
from whyact.tables.minari import MinariRows
from whyact.tables.numpy import NpyFile, NpzFile
from whyact.tables.parquet import ParquetFile
from whyact.tables.source import Block, Source, check_held, check_name

if TYPE_CHECKING:
    import pandas

MINARI = "minari:"  # before the name of a dataset
MINARI_FILES = ("metadata.json", "data/metadata.json")  # one of them is in the folder of every dataset
SPREADSHEETS = (".xlsx", ".xls", ".ods")

Item = TypeVar("Item")


class Table(NamedTuple):
    """Demonstrations from a file, as the estimators' `fit` takes them.

    Attributes
    ----------
    X : DataFrame of shape (N, D)
        Observations, NaN where an entry is missing.
    y : Series of length N, or None
        Actions as the file spells them, None where one is missing; None if the file has no actions at all.
    groups : Series of length N, or None
        Which rows belong together.
    shape : tuple of int or None
        Shape of one observation, if it had more than one axis in the file.
    available : DataFrame of shape (N, A) of bool, or None
        Where each of the actions that are not always available can be taken; columns are called like these actions.

    See Also
    --------
    whyact.tables.Recording : Plain arrays, without names of columns or missing entries.

    Examples
    --------
    >>> import pandas
    >>> from whyact.tables import Table
    >>> table = Table(pandas.DataFrame({"speed": [3.0, 12.0]}), pandas.Series(["keep", "brake"]), groups=None)
    >>> dict(zip(table.y, table.X["speed"]))
    {'keep': 3.0, 'brake': 12.0}
    """

    X: "pandas.DataFrame"
    y: "pandas.Series | None"
    groups: "pandas.Series | None"
    shape: tuple[int, ...] | None = None
    available: "pandas.DataFrame | None" = None


class RowBlock(NamedTuple):
    """Consecutive rows to predict."""

    values: np.ndarray  # (n, D), NaN where missing
    available: np.ndarray | None  # which actions can be taken, (n, U); None: all

    def pick(self, rows: np.ndarray) -> "RowBlock":
        """Some of the rows."""
        return RowBlock(self.values[rows], None if self.available is None else self.available[rows])


def read_demonstrations(
    path: Path | str,
    *,
    action: str | None = None,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    groups: str | None = None,
    missing_action: str | None = None,
    without_actions: bool = False,
    available: Mapping[str, str] | None = None,
) -> Table:
    """Read demonstrations from a file.

    Parameters
    ----------
    path : Path or str
        - CSV (.csv or .tsv, also with .gz) with the names of the columns in the first line; names with an ending not
          listed here are read as CSV
        - Parquet (.parquet), needs pyarrow
        - NPZ (.npz) with `observations` (N, ...), or one array of more than one axis, and arrays of labels (N,)
        - NPY (.npy) with observations (N, ...)
        - Minari: the folder of a dataset, or "minari:" and its name
    action : str or None, default=None
        Name of the column or array with the action, or path of an .npy file. None: `actions` of NPZ and Minari.
    columns : sequence of str or None, default=None
        Names of the observed columns; those of arrays are called x0, x1, ... None: all columns that are not otherwise
        used, which must be numeric.
    ignore : sequence of str, default=()
        Names of columns that are not observed, if `columns` is None.
    groups : str or None, default=None
        Name of the column, array or .npy file that tells which rows belong together, such as the drive or the episode.
        None: `episode` of NPZ and Minari.
    missing_action : str or None, default=None
        Label, as text, that marks an unknown action; an empty field always does.
    without_actions : bool, default=False
        Read no actions. Otherwise it is an error if nothing says where they are.
    available : mapping of str to str, or None, default=None
        For each action that is not always available, the name of the column, array or .npy file that says where it is:
        1 or true, otherwise 0 or false. These columns are not observed.

    Returns
    -------
    Table
        Observations, actions, groups, and which actions are available.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.tables import read_demonstrations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drive.csv"
    ...     _ = path.write_text("speed,distance,driver,did\\n12,8.5,Ann,brake\\n7,,Ann,keep\\n9,4,Bob,\\n")
    ...     table = read_demonstrations(path, action="did", groups="driver")
    >>> table.X
       speed  distance
    0   12.0       8.5
    1    7.0       NaN
    2    9.0       4.0
    >>> table.y.tolist(), table.groups.tolist()
    (['brake', 'keep', None], ['Ann', 'Ann', 'Bob'])
    """
    source = open_source(path, action, groups, n_needed=1 if without_actions else 2)
    action = choose_action(path, source, action, without_actions)
    groups = source.default_groups if groups is None else groups
    for name, argument in ((action, "action"), (groups, "groups")):
        if name is not None:
            source.check_label(name, argument)
    if groups is not None and groups == action:
        raise ArgumentError("groups", f"the column {groups!r} cannot hold both the action and the groups.")
    labels = [name for name in (action, groups) if name is not None]
    if available and without_actions:
        raise ArgumentError("available", "there are no actions that could be unavailable; leave one of the two out.")
    labels += check_available(source, available, labels, "holds the action or the groups")
    observed = choose_columns(path, source, labels, columns, ignore)
    advice = "; leave it out (ignore), or say which columns to use" if columns is None else ""
    X, found = gather(path, source.size, source.blocks(observed, labels, advice), observed, labels)
    return Table(
        X,
        None if action is None else tidy_labels(path, found[action], "action", missing_action),
        None if groups is None else tidy_labels(path, found[groups], "groups", None),
        source.shape if observed == source.names else None,
        gather_available(path, found, available) if available else None,
    )


def check_available(source: Source, available: Mapping[str, str] | None, others: Sequence[str], use: str) -> list[str]:
    """Names of what says where actions are available, each once; columns in `others` already have a use."""
    names = list(dict.fromkeys((available or {}).values()))
    for name in names:
        source.check_label(name, "available")
        if name in others:
            raise ArgumentError("available", f"the column {name!r} {use} and cannot also say what is available.")
    return names


def gather_available(
    path: Path | str, found: "Mapping[str, pandas.Series]", available: Mapping[str, str]
) -> "pandas.DataFrame":
    """Where each of the named actions can be taken."""
    import pandas

    return pandas.DataFrame({action: read_truth(path, name, found[name]) for action, name in available.items()})


def open_rows(path: Path | str, columns: Sequence[str]) -> Iterator[np.ndarray]:
    """Read observations block by block, in memory that does not grow with the file.

    Exceptions are NPZ, which is read whole, Parquet, which is read by its groups of rows, and Minari, by episodes.

    A thread reads one block ahead. An error in the names is raised at once, an error in a row when its block is due.

    Parameters
    ----------
    path : Path or str
        As for `read_demonstrations`.
    columns : sequence of str
        Names of the observed columns. Other columns of the file are ignored. Columns of arrays have no names; only
        their number must match.

    Returns
    -------
    iterator of ndarray of shape (n, D)
        Blocks of rows as float64, columns in the given order, NaN where an entry is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.tables import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.csv"
    ...     _ = path.write_text("speed,note,distance\\n12,wet,8.5\\n7,dry,\\n")
    ...     for block in open_rows(path, ["distance", "speed"]):
    ...         print(block)
    [[ 8.5 12. ]
     [ nan  7. ]]
    """
    return (block.values for block in open_row_blocks(path, columns))


def open_row_blocks(
    path: Path | str, columns: Sequence[str], available: Mapping[str, str] | None = None, classes: Sequence[Any] = ()
) -> Iterator[RowBlock]:
    """Read observations as `open_rows` does, and which of the actions `classes` can be taken in each row."""
    columns = list(columns)
    source = open_source(path, None, None, n_needed=len(columns))
    if source.is_positional:
        if len(source.names) != len(columns):
            raise ArgumentError(
                "columns", f"{path} has {len(source.names)} columns, but {len(columns)} are needed: "
                f"{list_names(columns)}.",
            )  # fmt: skip
        columns = source.names
    for name in columns:
        check_name(path, name, source.names, "columns")
    labels = check_available(source, available, columns, "is an observation of the model")
    return read_ahead(judge_blocks(path, source.blocks(columns, labels), available or {}, classes))


def judge_blocks(
    path: Path | str, blocks: Iterable[Block], available: Mapping[str, str], classes: Sequence[Any]
) -> Iterator[RowBlock]:
    """Find which actions can be taken in the rows of each block."""
    n_before = 0
    for block in blocks:
        named = {action: read_truth(path, name, block.labels[name], n_before) for action, name in available.items()}
        yield RowBlock(block.values, make_mask(path, named, classes, n_before) if named else None)
        n_before += len(block.values)


def read_ahead(blocks: Iterator[Item]) -> Iterator[Item]:
    """Pass blocks on; the next one is read while one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def open_source(path: Path | str, action: str | None, groups: str | None, n_needed: int) -> Source:
    """Open a file with the reader that its name calls for."""
    if str(path).startswith(MINARI) or any((Path(path) / name).is_file() for name in MINARI_FILES):
        return open_minari_rows(path)
    path = Path(path)
    ending = path.suffix.lower()
    if ending in SPREADSHEETS:
        raise ArgumentError("path", f"{path} is a spreadsheet, which whyact cannot read; save it as CSV.")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ArgumentError("path", f"{path} is not a file, and a pipe cannot be read; save its rows to a file first.")
    if ending == ".parquet":
        return ParquetFile(path)
    if ending == ".npz":
        return NpzFile(path, action, groups)
    if ending == ".npy":
        return NpyFile(path)
    return CsvFile(path, n_needed)


def open_minari_rows(path: Path | str) -> Source:
    """Open a Minari dataset by the path of its folder or by its name."""
    try:
        return MinariRows(str(path).removeprefix(MINARI))
    except ImportError as error:
        raise ArgumentError("path", str(error)) from None


def choose_action(path: Path | str, source: Source, action: str | None, without_actions: bool) -> str | None:
    """Name what holds the actions; None if there are to be none."""
    if without_actions:
        if action is not None:
            raise ArgumentError(
                "action", f"the action {action!r} is named, but no actions are to be read; leave one of the two out."
            )
        return None
    chosen = source.default_action if action is None else action
    if chosen is None:
        there = "" if source.is_positional else f" Available: {list_names(source.names)}."
        raise ArgumentError("action", f"name what holds the action in {path}, or say that there is no action.{there}")
    return chosen


def choose_columns(
    path: Path | str, source: Source, labels: Sequence[str], columns: Sequence[str] | None, ignore: Sequence[str]
) -> list[str]:
    """Names of the observed columns, checked."""
    for name in ignore:
        check_name(path, name, source.names, "ignore")
    if columns is None:
        observed = [name for name in source.names if name not in {*labels, *ignore}]
        if "" in observed:
            # often a row number that a tool has written, and in a sequence the row number is the time
            raise ArgumentError(
                "columns",
                f"column {source.names.index('') + 1} of {path} has no name; leave it out (ignore ''), or say which "
                "columns to use.",
            )
    else:
        observed = list(dict.fromkeys(columns))
        for name in observed:
            check_name(path, name, source.names, "columns")
            if name in labels:
                raise ArgumentError(
                    "columns",
                    f"{name!r} holds the action, the groups or what is available, and cannot also be observed.",
                )
            if name in ignore:
                raise ArgumentError("columns", f"{name!r} cannot be both observed and ignored.")
    if not observed:
        raise ArgumentError("columns", f"{path} has no column left to observe.")
    return observed


def gather(
    path: Path | str, size: int, blocks: Iterator[Block], observed: list[str], labels: list[str]
) -> "tuple[pandas.DataFrame, dict[str, pandas.Series]]":
    """Put all blocks together, if a file of this size may claim so much; a small one can hold very many rows."""
    import pandas

    parts = []
    n_bytes = 0
    for block in blocks:
        parts.append(block)
        n_bytes += block.values.nbytes + block.n_text + sum(series.nbytes for series in block.labels.values())
        check_held(path, n_bytes, size)
    values = parts[0].values if len(parts) == 1 else np.concatenate([part.values for part in parts])
    found = {name: pandas.concat([part.labels[name] for part in parts], ignore_index=True) for name in labels}
    return pandas.DataFrame(values, columns=observed), found


def tidy_labels(path: Path | str, labels: "pandas.Series", argument: str, missing: str | None) -> "pandas.Series":
    """Set missing labels to None, and make whole numbers that pandas turned into fractions whole again."""
    import pandas

    absent = labels.isna()
    if pandas.api.types.is_float_dtype(labels):
        broken = ~absent & (labels % 1 != 0)
        if broken.any():
            raise ArgumentError(
                argument, f"{path}: labels must be whole numbers or names, not {labels[broken].iloc[0]}."
            )
        labels = labels.where(~absent, 0).astype(np.int64)
    if missing is not None:
        absent |= labels.astype(str) == missing
    if not absent.any():
        return labels.infer_objects()
    tidy = labels.astype(object)
    tidy[absent] = None
    return tidy
