"""Ctrl-C, and a request to terminate, at a safe moment.

numba runs Python code while it passes arguments to a kernel and takes back the result. If a signal handler raises
there, as Python's own does for Ctrl-C, the process crashes. So the signal is remembered, and delivered between kernels.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_between_kernels() -> Iterator[Callable[[], None]]:
    """Yield a function to call between kernels: it delivers what has arrived in the meantime, each to its handler."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # signals arrive in the main thread only
        return
    # one that is ignored stays ignored, and one that ends the process at once still does
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in STOPPING}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    caught: list[tuple[int, FrameType | None]] = []

    def remember(number: int, frame: FrameType | None) -> None:
        caught.append((number, frame))

    def deliver() -> None:
        if caught:
            number, frame = caught.pop()
            handlers[number](number, frame)

    for number in handlers:
        signal.signal(number, remember)
    try:
        yield deliver
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        deliver()


def stop_on_terminate() -> None:
    """Let a request to terminate end the work as Ctrl-C does, also where Ctrl-C is ignored.

    It is ignored in what a script starts in the background, and under many schedulers, which ask by SIGTERM.
    """
    signal.signal(signal.SIGTERM, stop_work)


def stop_work(number: int, frame: FrameType | None) -> NoReturn:
    """The handler: what Python does for Ctrl-C where it is not ignored."""
    raise KeyboardInterrupt
