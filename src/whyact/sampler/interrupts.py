"""Ctrl-C at a safe moment.

numba runs Python code while it passes arguments to a kernel and takes back the result. If a signal handler raises
there, as Python's own does for Ctrl-C, the process crashes. So the signal is remembered, and delivered between kernels.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_between_kernels() -> Iterator[Callable[[], None]]:
    """Yield a function to call between kernels: it delivers a Ctrl-C that has arrived in the meantime."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: None  # signals arrive in the main thread only, and an ignored one stays ignored
        return
    caught: list[tuple[int, Any]] = []

    def deliver() -> None:
        if caught:
            handler(*caught.pop())

    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)
        deliver()
