"""Plain arrays in netCDF4 files: written whole, read with suspicion.

Written by h5netcdf, so that xarray, ArviZ and everything else that knows netCDF reads the files. Read by h5py below it,
because what a stranger may have made must be looked at before it is believed: only plain numbers and characters, no
links, no storage outside of the file, no filter but gzip, no more memory than a file of that size can need. Text is
stored as characters of a fixed number, as netCDF has always done, and not as HDF5's strings of variable length: a
wrong bit in their heap makes HDF5 run forever. After the last byte of HDF5, where no reader looks, comes a digest
of all bytes before it; a file that is truncated or has a wrong bit is refused before HDF5 sees it.
"""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyact.errors import DamagedFileError
from whyact.storage.atomic import write_whole
from whyact.storage.hdf5 import DAMAGED, Budget, check_type, get_member, read_array
from whyact.storage.memory import find_limit, find_rule

MAGIC = b"\x89HDF\r\n\x1a\n"
# The end of a file: this mark and the digest of everything before both.
MARK = b"whyact:sha256:"
N_DIGEST = 32
GZIP_LEVEL = 4
WORTH_COMPRESSING = 2**12  # bytes; a compressed array takes some kilobytes of book-keeping
MOST_OBJECTS = 5000  # groups, variables and dimensions; some twelve for each chain of a model
MOST_ATTRIBUTES = 50
DEEPEST = 3
# Names that netCDF4 keeps for itself.
INTERNAL = {
    "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates",
    "_nc3_strict", "_NCProperties",
}  # fmt: skip
NOT_A_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


class Variable(NamedTuple):
    """An array with names for its axes; values of text are arrays of str."""

    dimensions: tuple[str, ...]
    values: np.ndarray
    attributes: dict[str, Any] = {}  # noqa: RUF012 (never changed)


class Group(NamedTuple):
    """Variables and attributes; an attribute is a text, a number or a row of numbers."""

    variables: dict[str, Variable]
    attributes: dict[str, Any]


def write_netcdf(path: Path, groups: dict[str, Group], *, compress: bool = True, claim: int = 0) -> None:
    """Write a file that appears whole or not at all; the name "/" is the root. The same groups give the same bytes.

    `claim`: memory for what is made of the file, which must be within what a reader allows.
    """
    n_objects = sum(1 + 2 * len(group.variables) for group in groups.values())
    if n_objects > MOST_OBJECTS // 2:
        raise ValueError(f"{path} would hold too many arrays ({n_objects}); fit fewer chains.")
    content = encode(groups, compress=compress)
    if compress and max(declared_bytes(groups), claim) > find_rule(len(content)):
        content = encode(groups, compress=False)
    write_whole(path, content + MARK + hashlib.sha256(content).digest())


def declared_bytes(groups: dict[str, Group]) -> int:
    """Size of all arrays in memory."""
    return sum(variable.values.nbytes for group in groups.values() for variable in group.variables.values())


def encode(groups: dict[str, Group], *, compress: bool) -> bytes:
    """The groups as the bytes of a netCDF4 file."""
    import h5netcdf  # HDF5 takes its time

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for name, group in groups.items():
            place = file if name == "/" else file.create_group(name)
            for attribute, value in group.attributes.items():
                place.attrs[attribute] = encode_attribute(value)
            for variable_name, variable in group.variables.items():
                encode_variable(place, variable_name, variable, compress)
    return buffer.getvalue()


def encode_variable(place: Any, name: str, variable: Variable, compress: bool) -> None:
    """Write an array, and its dimensions if they are new."""
    dimensions, values, attributes = variable
    if values.dtype.kind == "U":
        values, dimensions = to_characters(values), (*dimensions, f"{name}_length")
        attributes = attributes | {"_Encoding": "utf-8"}
    for dimension, size in zip(dimensions, values.shape, strict=True):
        if dimension not in place.dimensions:
            place.dimensions[dimension] = size
    options: dict[str, Any] = {}
    if compress and values.nbytes >= WORTH_COMPRESSING:
        options = {"compression": "gzip", "compression_opts": GZIP_LEVEL, "shuffle": True}
    created = place.create_variable(name, dimensions, dtype=values.dtype, **options)
    if values.size:
        created[...] = values
    for attribute, value in attributes.items():
        created.attrs[attribute] = encode_attribute(value)


def encode_attribute(value: Any) -> Any:
    """Text as characters of a fixed number."""
    return np.bytes_(value.encode()) if isinstance(value, str) else value


def to_characters(texts: np.ndarray) -> np.ndarray:
    """Texts (...) as characters (..., longest) in UTF-8, filled up with zeros."""
    encoded = np.array([text.encode() for text in texts.ravel()] or [b""], dtype="S")
    width = max(encoded.itemsize, 1)
    return encoded[: texts.size].astype(f"S{width}").view("S1").reshape((*texts.shape, width))


def to_texts(characters: np.ndarray) -> np.ndarray:
    """The inverse of `to_characters`."""
    rows = np.ascontiguousarray(characters).view(f"S{characters.shape[-1]}").ravel()
    return np.array([row.decode() for row in rows], dtype=str).reshape(characters.shape[:-1])


def read_netcdf(path: Path, max_memory: float | None = None) -> dict[str, Group]:
    """Read a file that `write_netcdf` wrote.

    Raises OSError if it cannot be read, and DamagedFileError with one clause for the user if it is not in order.
    `max_memory`: bytes that it may claim; None: by the rule of `memory.py`.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DamagedFileError("it is not a regular file")
    try:
        content = path.read_bytes()
    except MemoryError:
        raise DamagedFileError("it does not fit into memory") from None
    return decode(check_digest(content), max_memory)


def check_digest(content: bytes) -> bytes:
    """Everything before the digest, if it is right."""
    if not content.startswith(MAGIC):
        raise DamagedFileError("it is another kind of file")
    if len(content) < len(MARK) + N_DIGEST or content[-len(MARK) - N_DIGEST : -N_DIGEST] != MARK:
        raise DamagedFileError("its end is missing, or another program has changed it")
    body = content[: -len(MARK) - N_DIGEST]
    if hashlib.sha256(body).digest() != content[-N_DIGEST:]:
        raise DamagedFileError("its content does not match its digest, so it is damaged")
    return body


def decode(content: bytes, max_memory: float | None = None) -> dict[str, Group]:
    """The groups of an HDF5 file that may be hostile."""
    import h5py

    reader = Reader(Budget(find_limit(len(content), max_memory)))
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            return dict(reader.read_groups(file, "/", 0))
    except DamagedFileError:
        raise
    except MemoryError:
        raise DamagedFileError("it does not fit into memory") from None
    except DAMAGED as error:
        raise DamagedFileError(f"HDF5 cannot read it ({type(error).__name__})") from None


class Reader:
    """Reads a file's objects one after the other, as long as they keep within the limits."""

    def __init__(self, budget: Budget):
        self.budget = budget
        self.n_objects = 0

    def read_groups(self, place: Any, path: str, depth: int) -> Iterator[tuple[str, Group]]:
        """A group and those below it, by their paths."""
        import h5py

        variables = {}
        groups = []
        for name in place:
            self.count_object()
            found = get_member(place, name)
            if isinstance(found, h5py.Group):
                groups.append((name, found))
            elif isinstance(found, h5py.Dataset):
                if not is_bare_dimension(found):
                    variables[name] = self.read_variable(name, found)
            else:
                raise DamagedFileError(f"{name!r} is neither a group nor an array")
        if groups and depth == DEEPEST:
            raise DamagedFileError("its groups are nested too deep")
        yield path, Group(variables, self.read_attributes(place))
        for name, group in groups:
            yield from self.read_groups(group, name if path == "/" else f"{path}/{name}", depth + 1)

    def count_object(self) -> None:
        """One more, if that is not too many."""
        self.n_objects += 1
        if self.n_objects > MOST_OBJECTS:
            raise DamagedFileError(f"it holds more than {MOST_OBJECTS} groups and arrays")

    def read_variable(self, name: str, array: Any) -> Variable:
        """An array, checked before its values are read."""
        values = read_array(name, array, self.budget)
        if values.dtype.kind == "S":
            values = to_texts(values)
        return Variable((), values, self.read_attributes(array))  # the axes are known by their order

    def read_attributes(self, place: Any) -> dict[str, Any]:
        """The attributes of a group or array, but for those that netCDF4 keeps for itself."""
        if len(place.attrs) > MOST_ATTRIBUTES:
            raise DamagedFileError(f"something in it has more than {MOST_ATTRIBUTES} attributes")
        attributes: dict[str, Any] = {}
        for name in place.attrs:
            if name in INTERNAL:
                continue
            described = place.attrs.get_id(name)
            check_type(name, described.dtype)
            self.budget.claim(name, described.shape, described.dtype)
            value = place.attrs[name]
            if isinstance(value, bytes):
                attributes[name] = value.decode()
            else:  # netCDF knows no difference between a number and an array of one
                attributes[name] = value.item() if np.size(value) == 1 else np.ravel(value)
        return attributes


def is_bare_dimension(array: Any) -> bool:
    """Whether an array stands only for the size of a dimension; nothing is stored in it."""
    if "NAME" not in array.attrs:
        return False
    described = array.attrs.get_id("NAME")
    if described.dtype.kind != "S" or described.shape != ():
        return False
    return bytes(array.attrs["NAME"]).startswith(NOT_A_VARIABLE)
