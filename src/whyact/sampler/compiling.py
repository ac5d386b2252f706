"""Compile the kernels lazily, and keep them in a cache that can never be stale.

numba's own cache has two gaps: it looks only at the file of the calling function, so a changed callee in another file
meets a stale caller; and it raises at import where no folder is writable. Both are closed here: the cache folder is
named after a digest of all kernel files, and without a folder that only this user can write to (`private_folders.py`)
the kernels are compiled in memory.
"""

import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba

from whyact.sampler.private_folders import NotPrivateError, check_files, make_private_folder

logger = logging.getLogger("whyact")

# No fastmath: it breaks reproducibility and NaN handling.
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}


def digest_of_kernels() -> str:
    """A name for the present state of all files with kernels, and of what compiles them."""
    config: Any = numba.config
    # kernels that check bounds must not be met by who did not ask for it, nor the others by who did
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {config.BOUNDSCHECK}".encode())
    for path in find_kernel_files(Path(__file__).parents[1]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def find_kernel_files(package: Path) -> list[Path]:
    """All files in packages with kernels, at any depth, and the model, whose tuples the kernels are compiled for."""
    rooms = (package / "sampler", package / "alternatives")
    return [package / "model.py", *sorted(path for room in rooms for path in room.rglob("*.py"))]


class Cache(NamedTuple):
    """Where compiled kernels are kept."""

    folder: Path | None  # None: nowhere, so they are compiled in memory
    reason: str = ""  # why not


def find_base_folder() -> Path:
    """The folder for caches of all kinds, as the user or the system sets it."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    return Path(os.path.expanduser("~")) / ".cache"  # without a home it is relative, and refused


def find_cache() -> Cache:
    """Find the folder for the kernels as they are now.

    It is never a folder that others can write to, or that holds what others have put there: what lies in a cache is
    code that will be run.
    """
    try:
        folder = make_private_folder(find_base_folder(), "whyact", digest_of_kernels())
        check_files(folder)
        with tempfile.TemporaryFile(dir=folder):
            return Cache(folder)
    except NotPrivateError as error:
        return Cache(None, f"no private cache folder: {error}")
    except OSError:
        return Cache(None, "no writable cache folder")


CACHE = find_cache()


def kernel(function: Callable[..., Any]) -> Any:
    """Decorate a function as a compiled kernel; compilation happens at its first call."""
    if CACHE.folder is None:
        return numba.njit(**OPTIONS)(function)
    config: Any = numba.config
    configured = config.CACHE_DIR
    config.CACHE_DIR = str(CACHE.folder)
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba found no place for its cache after all
        return numba.njit(**OPTIONS)(function)
    finally:
        config.CACHE_DIR = configured


def inlined(function: Callable[..., Any]) -> Any:
    """Decorate a small function whose body is copied into each kernel that calls it.

    For what is asked in inner loops: to pass tuples of arrays, and to count their references, costs more than the
    answer. A sweep of a decisive mixture takes 0.6 times as long with the bodies of `combining.py` copied.
    """
    return numba.njit(inline="always", **OPTIONS)(function)


def is_compiled(name: str) -> bool:
    """Whether an earlier run has left this kernel in the cache."""
    return CACHE.folder is not None and any(CACHE.folder.rglob(f"*.{name}-*.nbi"))


def announce_compilation(verbose: int, name: str) -> None:
    """Say once that the first fit compiles: on stderr if that is a terminal or with verbose, and always to the log.

    `name` is that of the kernel that runs the sweeps.
    """
    if is_compiled(name):
        return
    kept = "later runs take them from the cache" if CACHE.folder else f"{CACHE.reason}; so every run compiles"
    sentence = f"whyact: compiling the sampler's kernels, which takes a minute or two ({kept})."
    logger.info(sentence)
    if verbose or sys.stderr.isatty():
        print(sentence, file=sys.stderr)
