"""Runs that are killed: in a child process that has everything loaded and compiled, so that a kill takes no seconds."""

import os
import signal
import time
import traceback
from collections.abc import Callable


def run_and_kill(run: Callable[[], None], seconds: float | None) -> bool:
    """Run in a child process and kill it (SIGKILL) after some seconds; return whether it had ended before.

    None: let it run to its end.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, 0 if deadline is None else os.WNOHANG)
        if ended:
            if os.waitstatus_to_exitcode(status) != 0:
                raise RuntimeError(f"the run has failed ({os.waitstatus_to_exitcode(status)})")
            return True
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.001)
