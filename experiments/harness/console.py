"""The studies at the terminal: a progress bar with the time left, then the table and the picture."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.harness.store import make_folder


def run_with_bar(folder: Path, name: str, run: Callable, describe: Callable[[list], str]) -> None:
    """Run what is left of a study: `run(folder, on_start=, on_done=)`. `describe(tasks)` says what it consists of."""
    make_folder(folder)  # what is wrong with it is said before a bar appears
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as bar:
        task = bar.add_task("preparing", total=None)

        def on_start(tasks, undone):
            Console().print(
                f"{describe(tasks)}: {len(undone)} to do, {len(tasks) - len(undone)} done before; rows go to {folder}",
                highlight=False,
                soft_wrap=True,
            )
            bar.update(task, total=len(undone), description=name)

        def on_done(done):
            bar.update(task, advance=1)

        run(folder, on_start=on_start, on_done=on_done)
