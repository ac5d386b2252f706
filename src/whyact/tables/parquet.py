"""Rows of Parquet files, batch by batch. pyarrow is an extra (`pip install whyact[parquet]`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whyact.errors import ArgumentError
from whyact.tables.source import Block, NamedColumns, check_finite, check_held, reading, say_row

if TYPE_CHECKING:
    import pandas

N_CELLS = 2**20  # of a batch
TEXTS = ("string", "large_string")


class ParquetFile(NamedColumns):
    """A file of plain columns: numbers and truth values can be observed; labels can also be names.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            path.open("rb").close()  # pyarrow's own message is long
            self.size = path.stat().st_size
        parquet = import_parquet()
        with self.undamaged(), parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            self.types = dict(zip(schema.names, map(find_values, schema.types), strict=True))
        self.names = list(schema.names)
        self.check_names()

    def check_label(self, name: str, argument: str) -> None:
        """Check that there is a column of this name, and that its entries can be labels."""
        super().check_label(name, argument)
        kind = self.types[name]
        if not is_of(kind, "integer", "floating", "boolean", *TEXTS, "null"):
            raise ArgumentError(argument, f"the column {name!r} of {self.path} cannot hold labels: it holds {kind}.")

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Read observed columns in the given order; labels keep their type, None where one is missing."""
        for name in observed:
            if not is_of(self.types[name], "integer", "floating", "boolean", "decimal", "null"):
                raise ArgumentError(
                    "columns", f"the column {name!r} of {self.path} is not numeric ({self.types[name]}){advice}."
                )
        batch_size = max(1, N_CELLS // len(observed))
        n_before = 0
        texts = [name for name in labels if is_of(self.types[name], *TEXTS)]  # each is held once
        with self.undamaged(), import_parquet().ParquetFile(self.path, read_dictionary=texts) as file:
            for batch in self.iterate(file, batch_size, [*observed, *labels]):
                values = np.column_stack([to_numbers(batch.column(name)) for name in observed])
                check_finite(self.path, values, observed, partial(say_row, n_before))
                n_before += len(values)
                n_text = sum(count_text(batch.column(name)) for name in texts)
                yield Block(values, {name: to_labels(batch.column(name)) for name in labels}, n_text)
        if not n_before:
            raise ArgumentError("path", f"{self.path} has no rows.")

    def iterate(self, file: Any, batch_size: int, columns: list[str]) -> Iterator[Any]:
        """Read batches of rows."""
        # group by group: asked for all groups at once, pyarrow keeps what it has read
        for group in range(file.num_row_groups):
            # of all columns: pyarrow ends the process where it is asked for one whose description is damaged
            check_held(self.path, file.metadata.row_group(group).total_byte_size, self.size)
            yield from file.iter_batches(batch_size, row_groups=[group], columns=columns)

    @contextmanager
    def undamaged(self) -> Iterator[None]:
        """Turn an error of pyarrow into one sentence that names the file."""
        import pyarrow

        try:
            yield
        except ArgumentError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise ArgumentError("path", f"{self.path} is damaged, or not a Parquet file: {reason}.") from None


def find_values(type_: Any) -> Any:
    """The type of the entries of a column, also where each different one is held once."""
    return type_.value_type if is_of(type_, "dictionary") else type_


def is_of(type_: Any, *kinds: str) -> bool:
    """Whether an Arrow type is one of the kinds."""
    from pyarrow import types

    return any(getattr(types, f"is_{kind}")(type_) for kind in kinds)


def to_numbers(column: Any) -> np.ndarray:
    """Entries of a column as floats, NaN where one is missing."""
    import pyarrow

    numbers: np.ndarray = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def count_text(column: Any) -> int:
    """Bytes of the texts of a column, each as often as it occurs."""
    from pyarrow import compute

    lengths = compute.binary_length(column.dictionary)
    total = compute.sum(lengths.take(column.indices)).as_py()
    return int(total or 0)


def to_labels(column: Any) -> "pandas.Series":
    """Entries of a column as labels, None or NaN where one is missing."""
    import pandas

    if is_of(column.type, "dictionary"):  # each text is made once, however often it occurs
        words = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        places = column.indices.cast("int64").fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
        return pandas.Series(words[places], dtype=object)
    if is_of(column.type, "floating"):
        return pandas.Series(to_numbers(column))
    # to_pandas would turn whole numbers into fractions where one is missing
    return pandas.Series(column.to_pylist(), dtype=object)


def import_parquet() -> Any:
    """Import pyarrow's module, or say what to install."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ArgumentError("path", "Parquet files need pyarrow: install whyact[parquet].") from None
    return parquet
