"""Rows of NumPy's files, .npy and .npz, and recordings in .npz files. Nothing in them can run: pickles are refused.

A header can claim anything. The claim is checked against the size of the file, or of the member of the archive, before
memory is allocated.
"""

import io
import math
import stat
import struct
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from whyact.errors import ArgumentError, list_names, suggest
from whyact.storage.atomic import write_whole
from whyact.tables.recording import ACTIONS, EPISODE, OBSERVATIONS, Recording, check_arrays
from whyact.tables.source import MOST_COLUMNS, Block, check_finite, check_held, check_width, reading, say_row

# What NumPy and the zip format raise on damaged or hostile bytes.
UNREADABLE = (
    ValueError, OSError, EOFError, LookupError, TypeError, SyntaxError, MemoryError, RuntimeError, OverflowError,
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError,
)  # fmt: skip
HEADER_SIZE = 2**16  # bytes; NumPy itself reads no header of more than 10,000 characters
MOST_COMPRESSED = 1100  # DEFLATE turns no byte into more than 1032
N_CELLS = 2**20  # of a block


class Header(NamedTuple):
    """What a file or member claims to hold."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def n_entries(self) -> int:
        """Number of entries of the whole array."""
        return math.prod(self.shape)


class ArrayRows(ABC):
    """Rows of an array (N, ...), flattened if it has more than two axes. Columns are called x0, x1, ...

    Subclasses know where the arrays are: `read()` reads the observations, `read_header_of(label)` and
    `read_label(label)` anything else.
    """

    is_positional: bool = True
    default_action: str | None = None
    default_groups: str | None = None

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.size = path.stat().st_size
        self.header = header
        if len(header.shape) < 2 or not header.n_entries:
            raise ArgumentError("path", f"{path}: observations must be rows of numbers, not of shape {header.shape}.")
        if header.dtype.kind not in "biuf":
            raise ArgumentError("path", f"{path}: observations must be numbers, not {header.dtype}.")
        self.shape: tuple[int, ...] | None = header.shape[1:] if len(header.shape) > 2 else None
        check_width(path, math.prod(header.shape[1:]), MOST_COLUMNS)
        self.names = [f"x{column}" for column in range(math.prod(header.shape[1:]))]

    @abstractmethod
    def read(self) -> np.ndarray:
        """Read the observations, (N, ...)."""

    @abstractmethod
    def read_header_of(self, label: str, argument: str) -> Header:
        """Read the header of an array of labels."""

    @abstractmethod
    def read_label(self, label: str) -> np.ndarray:
        """Read the labels, (N,)."""

    def check_label(self, name: str, argument: str) -> None:
        """Check that an array of labels has an entry for each row, and that its entries can be labels."""
        header = self.read_header_of(name, argument)
        n_rows = self.header.shape[0]
        if header.shape != (n_rows,):
            raise ArgumentError(
                argument, f"{self.path}: {name} must have one entry for each of the {n_rows} rows of observations, not "
                f"the shape {header.shape}.",
            )  # fmt: skip
        if header.dtype.kind not in "biufU":
            raise ArgumentError(argument, f"{self.path}: {name} must be whole numbers or names, not {header.dtype}.")

    def blocks(self, observed: Sequence[str], labels: Sequence[str] = (), advice: str = "") -> Iterator[Block]:
        """Read observed columns in the given order; labels keep their type."""
        import pandas

        places = {name: place for place, name in enumerate(self.names)}
        columns = [places[name] for name in observed]
        is_whole = columns == list(range(len(self.names)))
        rows = self.read()
        series = {name: pandas.Series(self.read_label(name)) for name in labels}
        n_rows = max(1, N_CELLS // len(self.names))
        for first in range(0, len(rows), n_rows):
            part = slice(first, first + n_rows)
            values = rows[part].reshape(len(rows[part]), -1)
            values = np.array(values if is_whole else values[:, columns], dtype=float)
            check_finite(self.path, values, observed, partial(say_row, first))
            yield Block(values, {name: entries[part] for name, entries in series.items()})


class NpyFile(ArrayRows):
    """An .npy file of observations; labels are in .npy files of their own and are named by their paths."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, read_npy_header(path, "path"))

    def read(self) -> np.ndarray:
        """Map the observations into memory."""
        rows: np.ndarray = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return rows

    def read_header_of(self, label: str, argument: str) -> Header:
        """Read the header of the file with the labels."""
        return read_npy_header(Path(label), argument)

    def read_label(self, label: str) -> np.ndarray:
        """Read the file with the labels."""
        with plain(label, "path"):
            labels: np.ndarray = np.load(label, allow_pickle=False)
        return labels


class NpzFile(ArrayRows):
    """An .npz file; the observations are the array of that name, or the only one with more than one axis."""

    def __init__(self, path: Path, action: str | None = None, groups: str | None = None) -> None:
        self.archive = Archive(path)
        headers = self.archive.headers
        self.default_action = ACTIONS if ACTIONS in headers else None
        self.default_groups = EPISODE if EPISODE in headers else None
        self.observations = self.find_observations([action, groups])
        super().__init__(path, headers[self.observations])

    def find_observations(self, labels: Sequence[str | None]) -> str:
        """Name the array of the observations."""
        headers = self.archive.headers
        if OBSERVATIONS in headers:
            return OBSERVATIONS
        found = [name for name, header in headers.items() if len(header.shape) > 1 and name not in labels]
        if len(found) != 1:
            raise ArgumentError(
                "path", f"{self.archive.path} has no array {OBSERVATIONS!r}; there are {list_names([*headers])}."
            )
        return found[0]

    def read(self) -> np.ndarray:
        """Read the observations."""
        return self.archive.read(self.observations)

    def read_header_of(self, label: str, argument: str) -> Header:
        """Find the header of an array of labels."""
        others = [name for name in self.archive.headers if name != self.observations]
        if label not in others:
            raise ArgumentError(argument, f"{self.path} has no array {label!r}{suggest(label, others)}")
        return self.archive.headers[label]

    def read_label(self, label: str) -> np.ndarray:
        """Read an array of labels."""
        return self.archive.read(label)


class Archive:
    """The arrays of an .npz file. Headers are read and checked at once, an array when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members: dict[str, zipfile.ZipInfo] = {}
        self.headers: dict[str, Header] = {}
        with reading(path):
            path.open("rb").close()
        with plain(path, "path"), zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                self.check_member(member)
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as file:
                    self.headers[name] = read_header(f"the array {name!r} in {path}", "path", file, member.file_size)
                self.members[name] = member

    def check_member(self, member: zipfile.ZipInfo) -> None:
        """Check that a member is a plain array at the top level, no larger than its compressed bytes can hold."""
        name = member.filename
        if "/" in name or "\\" in name or stat.S_ISLNK(member.external_attr >> 16):
            self.refuse(f"{name!r} is a folder, in a folder, or a link")
        if not name.endswith(".npy") or name.removesuffix(".npy") in self.members:
            self.refuse(f"{name!r} is not an array, or occurs twice")
        if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.refuse(f"{name!r} is encrypted, or compressed in an unusual way")
        if member.file_size > MOST_COMPRESSED * (member.compress_size + 1):
            self.refuse(f"{name!r} claims {member.file_size} bytes, more than can be in {member.compress_size}")

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error that names the file."""
        raise ArgumentError("path", f"{self.path} is not an NPZ file of plain arrays: {reason}.")

    def read(self, name: str) -> np.ndarray:
        """Read an array."""
        n_bytes = self.members[name].file_size + 8 * self.headers[name].n_entries
        check_held(self.path, n_bytes, self.path.stat().st_size)
        with plain(self.path, "path"), zipfile.ZipFile(self.path) as archive, archive.open(self.members[name]) as file:
            return npy.read_array(file, allow_pickle=False)


def read_npy_header(path: Path, argument: str) -> Header:
    """Read and check the header of an .npy file."""
    with reading(path, argument), path.open("rb") as file:
        return read_header(str(path), argument, file, path.stat().st_size)


def read_header(source: str, argument: str, file: IO[bytes], size: int) -> Header:
    """Read shape and type of a plain array, checked against the number of bytes that there are."""
    with plain(source, argument):
        start = io.BytesIO(file.read(HEADER_SIZE))
        version = npy.read_magic(start)
        # version (3, 0) is for names of fields, which plain arrays lack
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(start)
    if any(isinstance(size, bool) for size in shape):  # which NumPy takes for a whole number
        raise ArgumentError(argument, f"{source} is damaged: it claims the shape {shape}.")
    if dtype.hasobject:
        raise ArgumentError(argument, f"{source} is not an array of plain numbers or names: it holds pickled objects.")
    header = Header(shape, dtype)
    # at least one byte per entry, so that empty texts cannot be counted without end
    if min(shape, default=0) < 0 or header.n_entries * max(dtype.itemsize, 1) > size - start.tell():
        raise ArgumentError(argument, f"{source} is damaged: it claims the shape {shape}, but has {size} bytes.")
    return header


@contextmanager
def plain(source: Path | str, argument: str) -> Iterator[None]:
    """Turn an error about damaged or hostile bytes into one sentence that names the file."""
    try:
        yield
    except ArgumentError:
        raise
    except UNREADABLE:
        raise ArgumentError(
            argument, f"{source} is not a file of plain arrays: it is damaged, or another kind of file."
        ) from None


def save_arrays(
    path: Path | str, observations: ArrayLike, actions: ArrayLike, episode: ArrayLike | None = None
) -> None:
    """Save demonstrations as plain arrays in an NPZ file.

    Parameters
    ----------
    path : Path or str
        File to write; it appears whole or not at all.
    observations : array-like of shape (N, D)
        What the teacher saw.
    actions : array-like of shape (N,)
        What the teacher did: whole numbers or names.
    episode : array-like of shape (N,) or None, default=None
        Which rows belong together. None: all do.

    See Also
    --------
    load_arrays : Load such a file, with an example.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.tables import save_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_arrays(Path(folder) / "drive.npz", [[0.1, 0.9], [0.8, 0.2]], ["keep", "brake"])
    ...     print([path.name for path in Path(folder).iterdir()])
    ['drive.npz']
    """
    observations, actions = np.asarray(observations), np.asarray(actions)
    if actions.dtype == object and all(isinstance(action, str) for action in actions.ravel()):
        actions = actions.astype(str)
    episode = np.zeros(len(actions), dtype=int) if episode is None else np.asarray(episode)
    arrays = Recording(observations, actions, episode)._asdict()
    check_arrays("the demonstrations", arrays, OBSERVATIONS)
    write_arrays(Path(path), arrays)


def load_arrays(path: Path | str) -> Recording:
    """Load demonstrations from an NPZ file of plain arrays.

    Parameters
    ----------
    path : Path or str
        File with `observations` (N, D), `actions` (N,) and, optionally, `episode` (N,), as written by `save_arrays` or
        by `np.savez_compressed(path, observations=..., actions=...)`.

    Returns
    -------
    Recording
        Without `episode` in the file, all rows are one episode.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.tables import load_arrays, save_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drive.npz"
    ...     save_arrays(path, [[0.1, 0.9], [0.8, 0.2]], ["keep", "brake"])
    ...     recording = load_arrays(path)
    >>> recording.actions.tolist(), recording.episode.tolist()
    (['keep', 'brake'], [0, 0])
    """
    arrays = read_arrays(Path(path), (OBSERVATIONS, ACTIONS))
    episode = arrays.get(EPISODE, np.zeros(len(arrays[ACTIONS]), dtype=int))
    return Recording(arrays[OBSERVATIONS].astype(float), arrays[ACTIONS], episode)


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read and check the arrays of an NPZ file, which must hold the named ones."""
    archive = Archive(path)
    missing = [name for name in names if name not in archive.headers]
    if missing:
        raise ArgumentError("path", f"{path} has no array {missing[0]!r}; there are {list_names([*archive.headers])}.")
    arrays = {name: archive.read(name) for name in archive.headers}
    check_arrays(str(path), arrays, "path")
    return arrays


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an NPZ file that appears whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise ArgumentError("path", f"{path} cannot be written: {error.strerror}.") from None
