"""The studies at the terminal: what is left to do, then a progress bar with the time left."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.harness.store import make_folder
from whyact.progress import Show, open_bar


def run_with_bar(folder: Path, name: str, content: str, run: Callable[..., None]) -> None:
    """Run what is left of a study: `run(folder, on_start=, on_done=)`. `content` says what the study consists of."""
    make_folder(folder)  # complains before anything else is printed
    bar: list[Show] = []  # opened once the number of runs is known
    n_done = count(1)
    with ExitStack() as stack:

        def on_start(tasks: Sequence[Any], undone: Sequence[Any]) -> None:
            Console().print(
                f"{content}: {len(undone)} to do, {len(tasks) - len(undone)} already done; rows go to {folder}",
                highlight=False,
                soft_wrap=True,
            )
            bar.append(stack.enter_context(open_bar(1, len(undone), "runs", name)))

        run(folder, on_start=on_start, on_done=lambda task: bar[0](next(n_done), name))
