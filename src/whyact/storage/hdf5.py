"""HDF5 that may come from a stranger, read object by object: looked at before it is believed.

Only plain numbers and characters of a fixed number, no links, no storage outside of the file, no filter but gzip, no
more memory than the file may claim. Model files, checkpoints and runs are read with it (`netcdf.py`), and so are Minari
datasets.
"""

import math
from typing import Any

import numpy as np

from whyact.errors import DamagedFileError

LARGEST_CHUNK = 2**26
BYTES_PER_TEXT = 64  # that Python takes for each, beside its characters
# What h5py raises for files that are not in order; HDF5's own errors are among the first four.
DAMAGED = (
    OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, MemoryError,
    RecursionError, NotImplementedError, UnicodeError, SystemError,
)  # fmt: skip


class Budget:
    """Bytes that a file may still declare."""

    def __init__(self, memory: int):
        self.memory = memory

    def claim(self, name: str, shape: tuple[int, ...] | None, dtype: np.dtype) -> None:
        """Take the declared bytes off what is left."""
        if shape is None:
            raise DamagedFileError(f"{name!r} is empty")
        self.memory -= math.prod(shape) * dtype.itemsize
        if dtype.kind == "S":
            self.memory -= math.prod(shape[:-1]) * BYTES_PER_TEXT
        if self.memory < 0:
            raise DamagedFileError(f"{name!r} declares a size that the file cannot hold")


def get_member(place: Any, name: str) -> Any:
    """What a group holds under this name, if that is in the same file."""
    import h5py

    link = place.get(name, getlink=True)
    if link is None:
        raise DamagedFileError(f"{name!r} is missing")
    if not isinstance(link, h5py.HardLink):
        raise DamagedFileError(f"{name!r} is a link to elsewhere")
    return place[name]


def read_array(name: str, array: Any, budget: Budget, kinds: str = "iufS") -> np.ndarray:
    """The values of an array, which is checked before they are read; `kinds` of types that are expected."""
    import h5py

    if not isinstance(array, h5py.Dataset):
        raise DamagedFileError(f"{name!r} is not an array")
    check_type(name, array.dtype, kinds)
    check_storage(name, array)
    budget.claim(name, array.shape, array.dtype)
    values: np.ndarray = array[...]
    return values


def check_type(name: str, dtype: np.dtype, kinds: str = "iufS") -> None:
    """Plain numbers and text only."""
    is_small = dtype.itemsize <= 8 or dtype.kind == "S"
    if dtype.kind not in kinds or not is_small or dtype.subdtype is not None:
        raise DamagedFileError(f"{name!r} holds neither numbers nor text")


def check_storage(name: str, array: Any) -> None:
    """Inside of the file, and read by nothing but gzip: another filter is a plug-in that HDF5 would load and run."""
    import h5py

    properties = array.id.get_create_plist()
    if properties.get_layout() not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        raise DamagedFileError(f"{name!r} is stored in other files")
    if properties.get_external_count():
        raise DamagedFileError(f"{name!r} is stored in other files")
    for i in range(properties.get_nfilters()):
        if properties.get_filter(i)[0] not in (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE):
            raise DamagedFileError(f"{name!r} needs a filter that is not known")
    if array.chunks is not None and math.prod(array.chunks) * array.dtype.itemsize > LARGEST_CHUNK:
        raise DamagedFileError(f"{name!r} is stored in pieces that are too large")
