"""Files that appear whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

HIDDEN = ".whyact-"  # prefix of the names of files that are not complete yet


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file that appears whole or not at all."""
    with write_streamed(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def write_streamed(path: Path) -> Iterator[IO[bytes]]:
    """Write a file bit by bit; it appears at the end, whole, or not at all if anything goes wrong.

    Until then a hidden file beside it is written to. Where `path` is a symbolic link, the link stays and the file that
    it points to is replaced. Anything but a regular file, such as a pipe or /dev/stdout, is written to directly.
    """
    if is_special(path):
        with path.open("ab") as file:  # /dev/stdout may be a file that already has content
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():  # os.replace would only say so at the end
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    hidden = target.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
    try:
        with hidden.open("xb") as file:
            if target.exists():  # its permissions stay; a new file gets the system's default
                os.chmod(hidden, target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, target)
    except BaseException as error:
        with suppress(OSError):  # the first error says what is wrong
            hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(hidden):
            error.filename, error.filename2 = str(path), None  # the name that the caller knows
        raise
    sync_folder(target.parent)


def is_special(path: Path) -> bool:
    """Whether a path is a device, a pipe or a name for an open file."""
    is_open_file = str(path) in ("/dev/stdout", "/dev/stderr") or path.is_relative_to("/dev/fd")
    return path.exists() and not path.is_dir() and (is_open_file or not path.is_file())


def sync_folder(folder: Path) -> None:
    """Make sure that a new name is on the disk, where the system supports it; the file is there in any case."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
