"""One process at a time: a lock that no kill can leave behind."""

import logging
from pathlib import Path

from filelock import FileLock, Timeout

from whyact.errors import LockedError

logger = logging.getLogger("whyact")


def lock_file(path: Path) -> FileLock:
    """Hold a lock until its `release`, or until the process ends, however that is.

    Raises LockedError if another process holds it.
    """
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(f"another process holds {path}.") from None
    except (NotImplementedError, OSError):  # a file system without locks
        logger.warning("%s cannot be locked; make sure that only one process runs in its folder.", path)
    return lock
