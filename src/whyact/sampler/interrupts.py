"""Ctrl-C at a safe moment.

numba runs Python code while it hands arguments to a kernel and takes its result. If a signal handler raises just there,
as Python's own does for Ctrl-C, the process crashes. So the signal is remembered, and delivered between two kernels.
"""

import signal
import threading
from contextlib import contextmanager


@contextmanager
def interrupts_between_kernels():
    """Yield a function to call between kernels: it delivers a Ctrl-C that has come in the meantime."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: None  # signals arrive in the main thread only; and one that is ignored stays so
        return
    caught: list[tuple] = []

    def deliver():
        if caught:
            handler(*caught.pop())

    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)
        deliver()
