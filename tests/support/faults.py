"""File systems that fail: in a child process, the n-th change that is asked of one fails, or is never asked for.

Python announces each change before it is made (`sys.audit`), so none is missed, whichever module makes it. What is
written in between is another matter: `limit_files` lets it fail after so many bytes.
"""

import errno
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

# What is announced of changes; the first argument is a path, and a later one may be the folder that it is relative to.
CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.link")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FAILED = 99  # exit code of a child in which something was raised that nobody has foreseen

Fault = Callable[[int], None]  # called with the number of each change, before it


def fail_once(number: int, code: int = errno.EIO) -> Fault:
    """One change fails; those after it are made."""
    return lambda n: fail(code) if n == number else None


def fail_from(number: int, code: int = errno.EROFS) -> Fault:
    """One change fails, and all after it: the disk has become read-only."""
    return lambda n: fail(code) if n >= number else None


def kill_at(number: int) -> Fault:
    """The process is killed instead of making the change."""
    return lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == number else None


def fail(code: int) -> None:
    """What the system says."""
    raise OSError(code, os.strerror(code))


def run_with(fault: Fault, folder: Path, run: Callable[[], int]) -> int:
    """What `run` returns in a child process with a fault of all that is below a folder; -9 if it was killed."""
    return run_apart(lambda: watch(folder, fault), run)


def run_apart(prepare: Callable[[], object], run: Callable[[], int]) -> int:
    """What `run` returns in a child process that was prepared for it; a number below zero if a signal has ended it."""
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            prepare()
            code = run()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_changes(folder: Path, run: Callable[[], int]) -> int:
    """How many changes `run` makes below a folder."""
    reading, writing = os.pipe()
    run_with(lambda n: os.write(writing, b"."), folder, run) and fail(errno.EINVAL)
    os.close(writing)
    with os.fdopen(reading, "rb") as counted:
        return len(counted.read())


def watch(folder: Path, fault: Fault) -> None:
    """Call `fault` before each change below a folder, in this process, for the rest of its life."""
    numbers = iter(range(10**9))

    def hear(event: str, arguments: tuple) -> None:
        if event in CHANGES and is_change(event, arguments, str(folder)):
            fault(next(numbers))

    sys.addaudithook(hear)


def is_change(event: str, arguments: tuple, folder: str) -> bool:
    """Whether something below the folder is changed; what is relative to an open folder is taken to be below it."""
    if event == "open" and not arguments[2] & WRITING:
        return False
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    is_relative_to_handle = event == "os.remove" and arguments[1] != -1
    return is_relative_to_handle or os.fsdecode(path).startswith(folder)


def limit_memory(n_bytes: int) -> None:
    """Let this process have so many bytes of address space more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def limit_files(n_bytes: int) -> None:
    """Let each file have so many bytes at most, in this process: what would be written after them fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
