"""Folders that nobody else can write to, for files that are run: what lies in the cache of the kernels is code.

A folder is private if every folder on its path, from the root on, belongs to this user or to root, and neither the
group nor others can write to it. A sticky folder such as /tmp does not count, even where the next folder is ours:
others cannot rename that one, but what clears old files can remove it, and then anyone can put another in its place
while we run. Links are resolved first, so that what is checked is what is used.
"""

import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0


class NotPrivateError(OSError):
    """A folder is not private; the message completes the sentence "the folder cannot be used: "."""


def make_private_folder(base: Path, *names: str) -> Path:
    """Return the folder base/names..., created with mode 0700 where it is missing; NotPrivateError if others can write.

    A relative path is refused: which folder it means depends on where the program was started.
    """
    if not base.is_absolute():
        raise NotPrivateError(f"{base} is not an absolute path")
    path = Path(os.path.realpath(base)).joinpath(*names)
    for folder in (*reversed(path.parents), path):
        make_folder(folder)
        check_is_private(folder)
    return path


def make_folder(folder: Path) -> None:
    """Create one folder that only this user can enter, whatever the umask is; leave one that is there as it is."""
    try:
        folder.mkdir(mode=stat.S_IRWXU)
    except OSError:
        # it exists, or else the check fails; a mkdir in / may fail with another error than that
        return
    folder.chmod(stat.S_IRWXU)  # a strict umask takes rights away from its owner


def check_is_private(folder: Path) -> None:
    """Check one folder by itself; it must be none that a link stands for."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotPrivateError(f"{folder} is not a folder")
    if not has_user_ids():  # Windows has other rights, and profiles of users are private there
        return
    if found.st_uid not in (ROOT, os.geteuid()):
        raise NotPrivateError(f"{folder} belongs to another user")
    if found.st_mode & OTHERS_WRITE:
        raise NotPrivateError(f"others can write to {folder} (chmod go-w forbids it)")


def check_files(folder: Path) -> None:
    """Check that all that lies in a private folder was put there by this user or by root, and is no link."""
    for path in folder.rglob("*"):
        try:
            found = path.lstat()
        except FileNotFoundError:  # another process of ours has just given it its name
            continue
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise NotPrivateError(f"{path} is neither a file nor a folder")
        if has_user_ids() and found.st_uid not in (ROOT, os.geteuid()):
            raise NotPrivateError(f"{path} belongs to another user")


def has_user_ids() -> bool:
    """Whether files belong to numbered users, as everywhere but on Windows."""
    return hasattr(os, "geteuid")
