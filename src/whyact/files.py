"""Files that appear whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    with write_streamed(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def write_streamed(path: Path) -> Iterator[IO[bytes]]:
    """Write a file bit by bit; it appears at the end, whole, or not at all if anything goes wrong.

    Until then a hidden file beside it is written to. Where `path` is a symbolic link, the link stays and the file that
    it points to is replaced. What is no regular file, such as a pipe or /dev/stdout, is written to directly.
    """
    if is_special(path):
        with path.open("ab") as file:  # /dev/stdout may be a file that already has content
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():  # os.replace would only say so at the end
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".whyact-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def is_special(path: Path) -> bool:
    in_dev = path.is_absolute() and path.parts[1:2] == ("dev",)
    return path.exists() and not path.is_dir() and (in_dev or not path.is_file())


def sync_folder(folder: Path) -> None:
    """Make sure that a new name is on the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
