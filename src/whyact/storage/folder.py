"""A folder that is ours, known by what it is and not by its name: whoever puts another one in its place loses nothing.

While a run goes on, minutes or days, its folder can be renamed and another one take its name. So a folder is opened
once and recognised by its device and inode. Files are removed through the open folder, one by one, only regular files
with a name that is ours, and never a folder below it.
"""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from whyact.storage.atomic import HIDDEN

# Whether the system removes files by an open folder; where it does not, the folder is looked at before each.
BY_HANDLE = os.unlink in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")


class Inode(NamedTuple):
    """What a file or folder is, whatever it is called."""

    device: int
    number: int


def find_inode(path: Path) -> Inode | None:
    """Of a folder; None if there is none, or a link to one."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return Inode(found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


class OpenFolder:
    """A folder, held from the moment when it was opened.

    Parameters
    ----------
    path : Path

    Raises
    ------
    OSError
        If there is no such folder, or it is a link.
    """

    def __init__(self, path: Path):
        self.path = path
        self._place = path  # where it is now, as far as we have moved it
        self._handle: int | None = None
        if BY_HANDLE:
            self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            found = os.fstat(self._handle)
        else:
            found = os.lstat(path)
            if not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(20, os.strerror(20), str(path))
        self.inode = Inode(found.st_dev, found.st_ino)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def is_at(self, path: Path) -> bool:
        """Whether the folder has this path now."""
        return find_inode(path) == self.inode

    def list_names(self) -> list[str]:
        """Names of what is in it."""
        if self._handle is not None:
            return os.listdir(self._handle)
        return os.listdir(self._place) if self.is_at(self._place) else []

    def remove(self, is_ours: Callable[[str], bool]) -> bool:
        """Remove the files that are ours by their name, and the folder if nothing else is in it.

        For others it disappears at once, under a hidden name, so that none of them finds half of it.

        Returns
        -------
        bool
            Whether the folder is gone. If not, it is where it was, with all that is not ours.
        """
        if not self.is_at(self.path):  # somebody has moved it, and may want it
            return False
        if not all(is_ours(name) and self._is_file(name) for name in self.list_names()):
            self._remove_files(is_ours)
            return False
        hidden = self.path.with_name(f"{HIDDEN}{secrets.token_hex(8)}")
        if not self._move(self.path, hidden):
            return False
        self._remove_files(is_ours)
        try:
            hidden.rmdir()
        except OSError:  # something has come into it in this moment
            self._move(hidden, self.path)
            return False
        return True

    def _move(self, old: Path, new: Path) -> bool:
        """Rename the folder; if it turns out to have been another one, that one gets its name back."""
        if os.path.lexists(new):
            return False
        try:
            old.rename(new)
        except OSError:
            return False
        if self.is_at(new):
            self._place = new
            return True
        with suppress(OSError):
            if not os.path.lexists(old):
                new.rename(old)
        return False

    def _remove_files(self, is_ours: Callable[[str], bool]) -> None:
        """Remove the files that are ours: `state.nc` before the draws that it counts."""
        for name in sorted(self.list_names(), reverse=True):
            if is_ours(name) and self._is_file(name):
                with suppress(OSError):
                    if self._handle is not None:
                        os.unlink(name, dir_fd=self._handle)
                    else:
                        (self._place / name).unlink()

    def _is_file(self, name: str) -> bool:
        """Whether it is a regular file, and no link to one."""
        try:
            if self._handle is not None:
                found = os.stat(name, dir_fd=self._handle, follow_symlinks=False)
            else:
                found = os.lstat(self._place / name)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode)
