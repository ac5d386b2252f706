"""Demonstrations from files: one row each, numeric columns as observations, one column with the action."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyact.errors import ArgumentError as ArgumentError
from whyact.errors import list_names
from whyact.errors import suggest as suggest
from whyact.tables.source import Block, Source, check_fits, check_name

if TYPE_CHECKING:
    import pandas

MINARI = "minari:"
MINARI_FILES = ("metadata.json", "data/metadata.json")


class Table(NamedTuple):
    """Demonstrations."""

    X: "pandas.DataFrame"  # NaN where an entry is missing
    y: "pandas.Series | None"  # labels as they stand in the file, None where one is missing; or no actions at all
    groups: "pandas.Series | None"
    shape: tuple[int, ...] | None = None  # of one observation, if it had more than one axis


def read_table(path: Path, action: str, groups: str | None = None, columns: Sequence[str] | None = None) -> Table:
    """Read demonstrations whose actions are known; see `read_demonstrations`."""
    return read_demonstrations(path, action=action, groups=groups, columns=columns)


def read_demonstrations(
    path: Path | str,
    *,
    action: str | None = None,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    groups: str | None = None,
    missing_action: str | None = None,
    without_actions: bool = False,
) -> Table:
    """Read demonstrations from a file.

    Parameters
    ----------
    path : Path or str
        - CSV (.csv, .tsv, also .gz), names of the columns in the first line; a name that ends otherwise is taken for it
        - Parquet (.parquet), needs pyarrow
        - NPZ (.npz) with `observations` (N, ...), or one array of more than one axis, and arrays of labels (N,)
        - NPY (.npy) with observations (N, ...)
        - Minari: the folder of a dataset, or "minari:" and its name
    action : str or None
        Name of the column or array with the action, or path of an .npy file; None: `actions` of NPZ and Minari.
    columns : names of the observed columns; None: all others, which then must be numeric
        Those of arrays are called x0, x1, ...
    ignore : names of columns that are not observed, if `columns` is None
    groups : str or None
        Name of the column, array or .npy file that tells which rows belong together, such as the drive or the episode;
        None: `episode` of NPZ and Minari.
    missing_action : str or None
        The label, as text, that says that an action is not known, besides an empty field.
    without_actions : bool
        No actions are known or wanted. Otherwise it is an error not to say where they are.
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
    observed = choose_columns(path, source, labels, columns, ignore)
    advice = "; leave it out (ignore), or say which columns to use" if columns is None else ""
    X, found = gather(path, source.blocks(observed, labels, advice), observed, labels)
    return Table(
        X,
        None if action is None else tidy_labels(path, found[action], "action", missing_action),
        None if groups is None else tidy_labels(path, found[groups], "groups", None),
        source.shape if observed == source.names else None,
    )


def open_rows(path: Path | str, columns: Sequence[str]) -> Iterator[np.ndarray]:
    """Read observations block by block, in memory that does not grow with the file.

    NPZ is read as a whole, though, Parquet by its groups of rows, and Minari by episodes.

    A thread reads one block ahead. What is wrong with the names is said at once, what is wrong with a row when it is
    its turn.

    Parameters
    ----------
    path : Path or str
        As for `read_demonstrations`.
    columns : names of the observed columns
        Other columns of the file are ignored. Columns of arrays have no names; their number must be right.

    Returns
    -------
    iterator of ndarray (n, D) of float64, columns in the given order, NaN where missing
    """
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
    return read_ahead(block.values for block in source.blocks(columns))


def read_ahead(blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The same blocks; the next one is read while one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def open_source(path: Path | str, action: str | None, groups: str | None, n_needed: int) -> Source:
    """The reader for a file, by its name."""
    if str(path).startswith(MINARI) or any((Path(path) / name).is_file() for name in MINARI_FILES):
        return open_minari_rows(path)
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".xlsx", ".xls", ".ods"):
        raise ArgumentError("path", f"{path} is a spreadsheet, which is not read; save it as CSV.")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ArgumentError("path", f"{path} is not a file; what comes from a pipe cannot be read.")
    if ending == ".parquet":
        from whyact.tables.parquet import ParquetFile

        return ParquetFile(path)
    if ending == ".npz":
        from whyact.tables.numpy import NpzFile

        return NpzFile(path, action, groups)
    if ending == ".npy":
        from whyact.tables.numpy import NpyFile

        return NpyFile(path)
    from whyact.tables.csv import CsvFile

    return CsvFile(path, n_needed)


def open_minari_rows(path: Path | str) -> Source:
    from whyact.tables.minari import MinariRows

    try:
        return MinariRows(str(path).removeprefix(MINARI))
    except ImportError as error:
        raise ArgumentError("path", str(error)) from None


def choose_action(path: Path | str, source: Source, action: str | None, without_actions: bool) -> str | None:
    """What holds the actions, or None where there shall be none."""
    if without_actions:
        if action is not None:
            raise ArgumentError("action", f"give either the action {action!r} or that there are none.")
        return None
    chosen = source.default_action if action is None else action
    if chosen is None:
        there = "" if source.is_positional else f" There are {list_names(source.names)}."
        raise ArgumentError("action", f"say what in {path} holds the action, or that there is no action.{there}")
    return chosen


def choose_columns(
    path: Path | str, source: Source, labels: Sequence[str], columns: Sequence[str] | None, ignore: Sequence[str]
) -> list[str]:
    """Names of the observed columns."""
    for name in ignore:
        check_name(path, name, source.names, "ignore")
    if columns is None:
        observed = [name for name in source.names if name not in {*labels, *ignore}]
        if "" in observed:
            # often a row number that some tool has written, and in a sequence the row number is the time
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
                raise ArgumentError("columns", f"{name!r} holds the action or the groups and cannot be observed too.")
            if name in ignore:
                raise ArgumentError("columns", f"{name!r} cannot be both observed and ignored.")
    if not observed:
        raise ArgumentError("columns", f"{path} has no column left to observe.")
    return observed


def gather(
    path: Path | str, blocks: Iterator[Block], observed: list[str], labels: list[str]
) -> "tuple[pandas.DataFrame, dict[str, pandas.Series]]":
    """All rows together, if they fit into memory; a small compressed file may hold very many."""
    import pandas

    parts = []
    n_bytes = 0
    for block in blocks:
        parts.append(block)
        n_bytes += block.values.nbytes
        check_fits(path, n_bytes)
    values = parts[0].values if len(parts) == 1 else np.concatenate([part.values for part in parts])
    found = {name: pandas.concat([part.labels[name] for part in parts], ignore_index=True) for name in labels}
    return pandas.DataFrame(values, columns=observed), found


def tidy_labels(path: Path | str, labels: "pandas.Series", argument: str, missing: str | None) -> "pandas.Series":
    """Labels as they are, None where they are missing; whole numbers that became fractions are whole again."""
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
