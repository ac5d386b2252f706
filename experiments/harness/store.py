"""Rows on disk that survive: a study killed at any time resumes where it was.

Each finished run is appended to a CSV file at once. A line cut short by a kill is dropped when the study resumes, and
its run is done again. At the end the rows are put in order, so that a study that was stopped and one that was not leave
the same file. The settings that all rows share are kept in `study.json`, and only a study with the same settings may
resume.
"""

import csv
import io
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from whyact.errors import LockedError, WhyactError
from whyact.storage.atomic import write_whole
from whyact.storage.lock import lock_file

SETTINGS_FILE = "study.json"
LOCK_FILE = ".lock"

Row = dict[str, Any]  # the value of each column; None for an empty field


class StudyError(WhyactError):
    """A study cannot continue."""


def make_folder(folder: Path) -> None:
    """Make the folder of a study, or check that it can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StudyError(f"the folder {folder} cannot be written: {error.strerror}.") from None


def check_settings(folder: Path, settings: dict[str, Any], may_change: Collection[str] = ()) -> None:
    """Write the settings of a new study, or check that the study in the folder was started with the same ones.

    Those that `may_change` names, because no row depends on them, are written anew.
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        if any(folder.glob("*.csv")):
            raise StudyError(f"the folder {folder} holds CSV files, but no {SETTINGS_FILE}; choose another folder.")
        write_whole(path, json.dumps(settings, indent=2) + "\n")
        return
    stored = read_settings(folder)
    for name, value in settings.items():
        if stored.get(name) != value and name not in may_change:
            raise StudyError(
                f"the study in {folder} was started with {name} = {stored.get(name)}, not {value}; choose another "
                "folder."
            )
    if stored != (changed := stored | settings):
        write_whole(path, json.dumps(changed, indent=2) + "\n")


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings that all rows of a folder share."""
    path = folder / SETTINGS_FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise StudyError(f"{path} is not the JSON file of a study.") from None
    if not isinstance(settings, dict):
        raise StudyError(f"{path} is not the JSON file of a study.")
    return settings


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other studies out of the folder; the lock ends with the process, however that ends."""
    try:
        lock = lock_file(folder / LOCK_FILE)
    except LockedError:
        raise StudyError(f"another study is writing to {folder}.") from None
    try:
        yield
    finally:
        lock.release()


class RowStore:
    """One CSV file of rows.

    Parameters
    ----------
    path : Path
        The file.
    columns : dict
        Name of each column in the code, and the type of its values; an empty field becomes None.
    keys : tuple of str
        Names of the columns that tell which run a row belongs to.
    units : dict
        Units of the columns that have one; they appear in the header, as in "snr [dB]".
    """

    def __init__(self, path: Path, columns: dict[str, type], keys: tuple[str, ...], units: dict[str, str]) -> None:
        self.path = path
        self.columns = columns
        self.keys = keys
        self.header = [f"{name} [{units[name]}]" if name in units else name for name in columns]

    def read(self) -> list[Row]:
        """All complete rows."""
        if not self.path.exists():
            return []
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise StudyError(f"{self.path} cannot be read as a CSV file.") from None
        whole = text[: text.rfind("\n") + 1]
        lines = list(csv.reader(io.StringIO(whole)))
        if not lines:
            return []
        if lines[0] != self.header:
            raise StudyError(f"{self.path} has other columns than this version of the study writes.")
        return [self.parse(number, line) for number, line in enumerate(lines[1:], start=2)]

    def parse(self, number: int, line: list[str]) -> Row:
        """The row of a line."""
        try:
            values = [kind(value) if value else None for kind, value in zip(self.columns.values(), line, strict=True)]
        except ValueError:
            raise StudyError(f"{self.path}, line {number}, is not a row of a study.") from None
        return dict(zip(self.columns, values, strict=True))

    def key(self, row: Row) -> tuple[Any, ...]:
        """Which run a row belongs to."""
        return tuple(row[name] for name in self.keys)

    def format(self, rows: Iterable[Row]) -> str:
        """The lines of some rows."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows(["" if row[name] is None else row[name] for name in self.columns] for row in rows)
        return text.getvalue()

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Write the whole file: one row for each key (the last one), in the order of the keys."""
        by_key = {self.key(row): row for row in rows}
        ordered = [by_key[key] for key in sorted(by_key)]
        write_whole(self.path, ",".join(self.header) + "\n" + self.format(ordered))

    @contextmanager
    def appending(self) -> Iterator["Appender"]:
        """Open the file for more rows; a line that a kill has cut short is dropped first."""
        rows = self.read()
        self.rewrite(rows)
        with self.path.open("ab") as file:
            yield Appender(self, file)
        self.rewrite(self.read())


class Appender:
    """Appends rows to an open store, each safe on disk before the next."""

    def __init__(self, store: RowStore, file: IO[bytes]) -> None:
        self.store = store
        self.file = file

    def append(self, row: Row) -> None:
        """Write a row to the disk."""
        self.file.write(self.store.format([row]).encode())
        self.file.flush()
        os.fsync(self.file.fileno())
