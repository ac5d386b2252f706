"""Rows of CSV files, block by block, so that a file can be larger than memory.

pandas turns text into numbers. It pads short lines and, where columns are chosen, cuts long ones, so the number of
fields in each line is checked first.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO

import numpy as np

from whyact.errors import ArgumentError
from whyact.tables.cells import unprotect
from whyact.tables.source import Block, NamedColumns, check_finite, reading

if TYPE_CHECKING:
    import pandas

MISSING_NUMBERS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
MISSING_LABELS = ["", "NA", "NaN", "nan"]  # "None" can be an action
TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
TAB = "\t"
BLOCK_SIZE = 2**22  # characters; larger blocks are not quicker
MANY_ROWS = 1000  # of a block, where lines are long
MAX_LINE = 2**26  # characters; a longer line is no CSV, and must not fill the memory
MOST_BLANK_LINES = 1000  # before the names of the columns
# A compressed file may hold this many times its size, and this many characters in any case: one that holds much more
# takes time and memory that its size does not tell, and whoever has made it can unpack it.
MOST_EXPANDED, SMALL = 100, 2**24
BLANK_LINES = re.compile(rb"\n[\r\n]+")  # where no carriage return stands alone
N_TO_LOOK_AT = 2**16  # characters, for how lines end
LONGEST_SHOWN = 60  # characters of an entry


class CsvFile(NamedColumns):
    """A file with the names of the columns in the first line and one row in each further line.

    Parameters
    ----------
    path : Path
        Separated by commas, or by tabs if the name ends with .tsv; compressed if it ends with .gz.
    n_needed : int, default=1
        Number of columns needed. If the file has one and more are needed, the error names the separator.
    """

    def __init__(self, path: Path, n_needed: int = 1) -> None:
        self.path = path
        with reading(path):
            self.size = path.stat().st_size
        name = path.name.lower()
        self.is_compressed = name.endswith(".gz")
        self.delimiter = TAB if name.removesuffix(".gz").endswith(".tsv") else ","
        self.newline: str | None = None
        with reading(path), self.open() as file:
            self.newline = self.find_newline(file)
        with reading(path), self.open() as file:
            self.names = self.read_records_of(file).read_names()
        self.check_names()
        if len(self.names) == 1 < n_needed:
            raise ArgumentError(
                "path", f"{path} has only one column ({self.names[0]!r}); fields must be separated by "
                f"{'tabs' if self.delimiter == TAB else 'commas'}.",
            )  # fmt: skip

    def open(self) -> TextIO:
        """Open the file as text."""
        # utf-8-sig: spreadsheets begin UTF-8 with a mark
        if self.is_compressed:
            return gzip.open(self.path, "rt", encoding="utf-8-sig", newline=self.newline)
        return self.path.open(encoding="utf-8-sig", newline=self.newline)

    def find_newline(self, file: TextIO) -> str | None:
        """How to read the ends of lines: as they are, so that quoted fields stay as they are.

        Where lines end with a carriage return alone, Python has to translate it.
        """
        with readable(self.path):
            file.read(N_TO_LOOK_AT)
        return None if file.newlines == "\r" else "\n"

    def read_records_of(self, file: IO[str]) -> "RecordReader":
        """A reader of the open file."""
        most = max(SMALL, MOST_EXPANDED * self.size) if self.is_compressed else None
        return RecordReader(self.path, file, self.delimiter, most)

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Read observed columns in the given order; labels stay as written, NaN where the field is empty."""
        is_empty = True
        with reading(self.path), self.open() as file:
            reader = self.read_records_of(file)
            reader.read_names()
            for records in reader.read_records(len(self.names)):
                frame = self.parse(records.text, list(observed), list(labels))
                if len(frame):
                    is_empty = False
                    values = self.to_numbers(frame[list(observed)], records, advice)
                    yield Block(values, {name: restore(frame[name], records.text) for name in labels})
        if is_empty:
            raise ArgumentError("path", f"{self.path} has a header, but no rows.")

    def parse(self, text: bytes, observed: list[str], labels: list[str]) -> "pandas.DataFrame":
        """Parse the text of whole records."""
        import pandas

        try:
            return pandas.read_csv(
                io.BytesIO(text),
                sep=self.delimiter,
                header=None,
                names=self.names,
                usecols=[*observed, *labels],
                dtype=dict.fromkeys(labels, str),
                keep_default_na=False,
                na_values=MISSING_LABELS if labels else MISSING_NUMBERS,  # a list for each column is slow
                skipinitialspace=b" " in text,  # it costs a third of the time
                index_col=False,
                low_memory=False,
                skip_blank_lines=len(self.names) > 1,  # in one column a blank line is a missing entry
            )
        except pandas.errors.EmptyDataError:  # nothing but blank lines
            return pandas.DataFrame(columns=[*observed, *labels])
        except (pandas.errors.ParserError, ValueError) as error:
            raise ArgumentError("path", f"{self.path} is not a CSV file: {error}.") from None

    def to_numbers(self, frame: "pandas.DataFrame", records: "Records", advice: str) -> np.ndarray:
        """Turn observed columns into numbers, or name the line of the first entry that is none."""
        frame = frame.copy(deep=False)
        for name in [name for name, dtype in zip(frame, frame.dtypes, strict=True) if dtype.kind not in "biuf"]:
            numbers, wrong = read_words(frame[name])
            if wrong.any():
                row = int(wrong.argmax())
                raise ArgumentError(
                    "columns", f"the column {name!r} of {self.path}, {self.find_line(records, row)}, is not numeric "
                    f"({shorten(frame[name].iloc[row])}){advice}.",
                )  # fmt: skip
            frame[name] = numbers
        values: np.ndarray = frame.to_numpy(float)
        check_finite(self.path, values, list(frame), lambda row: self.find_line(records, row))
        return values

    def find_line(self, records: "Records", row: int) -> str:
        """Name the line where a row ends; blank lines and line ends between quotes make this a search."""
        lines = read_fields(io.StringIO(records.text.decode()), self.delimiter)
        numbers = (lines.line_num for fields in lines if fields)
        return f"line {records.n_lines_before + next(n for i, n in enumerate(numbers) if i == row)}"


def read_words(column: "pandas.Series") -> "tuple[pandas.Series, pandas.Series]":
    """Numbers of a column that also holds words, and where a word stands for no number."""
    import pandas

    try:
        numbers = pandas.to_numeric(column, errors="coerce").astype(float)
    except OverflowError:
        numbers = pandas.to_numeric(column.map(round_whole), errors="coerce").astype(float)
    numbers = numbers.fillna(column.map(TRUTH).astype(float))
    return numbers, numbers.isna() & column.notna() & ~column.isin(MISSING_NUMBERS)


def round_whole(entry: Any) -> Any:
    """A whole number as a fraction: infinity if it has hundreds of digits, as 1e400 is."""
    try:
        return float(entry) if isinstance(entry, int) else entry
    except OverflowError:
        return math.inf if entry > 0 else -math.inf


def restore(labels: "pandas.Series", text: bytes) -> "pandas.Series":
    """Labels as they were before a writer protected them from spreadsheets."""
    return labels.map(unprotect, na_action="ignore") if b"'" in text else labels


def shorten(entry: object) -> str:
    """An entry, for a sentence."""
    text = repr(entry)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn an error about bytes that are no text, or cannot be unpacked, into one sentence that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise ArgumentError("path", f"{path} is not a CSV file: it is not text in UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArgumentError("path", f"{path} is damaged: {error}.") from None


class Records(NamedTuple):
    """Text of whole records."""

    text: bytes
    n_lines_before: int  # in the file


class RecordReader:
    """Cut an open file into whole records; quoted fields can hold line ends, so a record can span lines.

    `most` is the number of characters that the file may hold, if that is bounded.
    """

    def __init__(self, path: Path, file: IO[str], delimiter: str, most: int | None) -> None:
        self.path = path
        self.file = file
        self.delimiter = delimiter
        self.most = most
        self.n_characters = 0  # read so far
        self.others = bytes(set(range(256)) - set(f"{delimiter}\n".encode()))
        # a field that is quoted as a whole; any other use of quotes is left to the csv module
        self.quoted = re.compile(rb'"(?<=[%b\n]")[^"]*(?:""[^"]*)*"(?=[%b\r\n])' % (2 * (delimiter.encode(),)))
        self.n_lines = 0  # read so far
        self.block_size = BLOCK_SIZE

    def read_names(self) -> list[str]:
        """Read the names of the columns from the first line that is not blank."""
        text = "\n"
        while text.isspace() and self.n_lines < MOST_BLANK_LINES:
            text = self.read_lines()
        if text.isspace():
            raise ArgumentError("path", f"{self.path} begins with {MOST_BLANK_LINES} blank lines; remove them.")
        if not text:
            raise ArgumentError("path", f"{self.path} is empty.")
        text, fields = self.complete(text, None)
        # a data frame costs time for each column, so blocks need many rows
        self.block_size = min(max(BLOCK_SIZE, MANY_ROWS * len(text)), MAX_LINE)
        return [name.strip() for name in fields]

    def read_records(self, n_fields: int) -> Iterator[Records]:
        """Read the rest of the file, block by block."""
        n_lines_before = self.n_lines
        while text := self.read_lines(self.block_size):
            if not self.is_plain(text, n_fields):
                text, _ = self.complete(text, n_fields)
            yield Records(text.encode(), n_lines_before)
            n_lines_before = self.n_lines

    def read_lines(self, size: int = 0) -> str:
        """Read `size` characters and the rest of their line, or one line; empty at the end of the file."""
        with readable(self.path):
            text = self.file.read(size)
            rest = self.file.readline(MAX_LINE)
        text += rest
        self.n_characters += len(text)
        if self.most is not None and self.n_characters > self.most:
            raise ArgumentError(
                "path", f"{self.path} unpacks to more than {MOST_EXPANDED} times its size; if it should, unpack it "
                "first, and give the unpacked file.",
            )  # fmt: skip
        if len(rest) == MAX_LINE:
            self.refuse(self.n_lines + text.count("\n") + 1, f"has more than {MAX_LINE} characters")
        if "\0" in text:
            self.refuse(self.n_lines + text.count("\n", 0, text.index("\0")) + 1, "has a NUL character")
        if text and not text.endswith("\n"):
            text += "\n"
        self.n_lines += text.count("\n")
        return text

    def is_plain(self, text: str, n_fields: int) -> bool:
        """Tell by the separators alone whether all records are whole and have `n_fields` fields; if in doubt, False."""
        content = text.encode()
        if '"' in text:
            content = self.quoted.sub(b"", b"\n" + content)[1:]
            if b'"' in content:
                return False
        if content.count(b"\r") != content.count(b"\r\n"):  # pandas would end a line there
            return False
        if n_fields > 1 and (b"\n\n" in content or b"\n\r" in content or content.startswith((b"\n", b"\r"))):
            content = BLANK_LINES.sub(b"\n", b"\n" + content)[1:]  # blank lines are no rows
        separators = content.translate(None, self.others)
        line = self.delimiter.encode() * (n_fields - 1) + b"\n"
        return separators == line * (len(separators) // n_fields)

    def complete(self, text: str, n_fields: int | None) -> tuple[str, list[str]]:
        """Check the number of fields in each record, and read more lines if the text ends within one.

        Returns the text and the fields of its last record.
        """
        n_lines = text.count("\n")
        n_lines_before = self.n_lines - n_lines
        taken: list[str] = []

        def take() -> Iterator[str]:
            for line in chain(io.StringIO(text), iter(self.read_lines, "")):
                taken.append(line)
                yield line

        reader = read_fields(take(), self.delimiter)
        fields: list[str] = []
        n_read = 0
        try:
            for fields in reader:
                n_read = reader.line_num
                if fields and n_fields is not None and len(fields) != n_fields:
                    self.refuse(
                        n_lines_before + reader.line_num, f"has {len(fields)} fields, but the header has {n_fields}"
                    )
                if len(taken) >= n_lines:
                    break
        except csv.Error as error:
            self.refuse(n_lines_before + n_read + 1, f"cannot be read: {error}")
        return "".join(taken), fields

    def refuse(self, line: int, what: str) -> NoReturn:
        """Raise an error that names the line."""
        raise ArgumentError("path", f"{self.path} is not a CSV file: line {line} {what}.")


def read_fields(lines: Iterable[str], delimiter: str) -> Any:
    """Read records as lists of fields."""
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
