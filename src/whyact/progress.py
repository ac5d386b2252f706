"""The progress bar of fits, comparisons and studies: a bar for a terminal, lines for a pipe or a log file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from whyact.sampler.algorithm import Problem
from whyact.sampler.draws import ChainDraws, Progress
from whyact.visible import make_visible

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[int, str], None]  # (number done, text)

FEWEST_DRAWS_TO_COMPARE = 10
N_LINES = 20  # about how many lines a log file gets,
N_LINES_IN_PASSING = 4  # and how many of something that does not take long


@contextmanager
def progress_bar(verbose: int, problem: Problem, n_sweeps: int) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows how far the chains of a fit are; it does nothing unless `verbose`."""
    # sweeps get quicker or slower during a run, so the time left is estimated from the last half minute
    with open_bar(verbose, n_sweeps, "sweeps", "starting", text_first=False, memory=30.0) as show:
        yield lambda progress: show(progress.n_done, say_progress(progress, problem)) if verbose else None


@contextmanager
def open_bar(
    verbose: int,
    n_total: int,
    unit: str,
    text: str = "preparing",
    *,
    text_first: bool = True,
    memory: float = 3600.0,
    n_lines: int = N_LINES,
) -> Iterator[Show]:
    """Yield a function that shows progress on standard error; it does nothing unless `verbose`.

    A terminal gets a bar, a pipe or a log file about `n_lines` lines. `memory` is how many seconds back the speed is
    measured for the time left.
    """
    if not verbose:
        yield lambda n_done, text: None
        return
    # rich stays unloaded for those who do not ask for a bar
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield make_line_printer(n_total, unit, n_lines)
        return
    with make_bar(console, unit, text_first, memory) as bar:
        task = bar.add_task(text, total=n_total)
        yield lambda n_done, text: bar.update(task, completed=n_done, description=escape(make_visible(text)))


def make_bar(console: "Console", unit: str, text_first: bool, memory: float) -> Any:
    """A rich progress bar with the time elapsed and the time left."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    text = TextColumn("{task.description}")
    bar = BarColumn() if text_first else BarColumn(bar_width=20)
    count = TextColumn(f"{{task.completed}}/{{task.total}} {unit}")
    columns = [bar, count, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]
    columns = [text, *columns] if text_first else [*columns, text]
    return Bar(*columns, console=console, speed_estimate_period=memory)


def make_line_printer(n_total: int, unit: str, n_lines: int) -> Show:
    """A function that prints a line each time another part is done."""
    milestones = np.unique(np.linspace(0, n_total, n_lines + 1).astype(int))[1:]
    n_passed = 0

    def show_line(n_done: int, text: str) -> None:
        nonlocal n_passed
        n_before, n_passed = n_passed, int(np.searchsorted(milestones, n_done, side="right"))
        if n_passed > n_before:
            print(f"{n_done}/{n_total} {unit}  {make_visible(text)}", file=sys.stderr, flush=True)

    return show_line


def say_progress(progress: Progress, problem: Problem) -> str:
    """Number of features of each chain, noise and log joint density, and whether the chains agree so far."""
    sizes = ", ".join(str(len(state.features)) for state in progress.states)
    noise = problem.unit * np.sqrt(np.mean([state.noise_variance for state in progress.states]))
    densities = [problem.algorithm.log_joint(state, problem.data, problem.target) for state in progress.states]
    return f"K {sizes}  noise {noise:.3g}  log joint {np.mean(densities):.0f}{say_agreement(progress.chains)}"


def say_agreement(chains: list[ChainDraws]) -> str:
    """R-hat of the log joint density of the draws so far, once there are some."""
    if len(chains) < 2 or len(chains[0]) < FEWEST_DRAWS_TO_COMPARE:
        return ""
    import arviz_stats  # takes a second, which a fit without progress need not wait for

    r_hat = float(arviz_stats.rhat(np.stack([chain.traces["log_joint"] for chain in chains])))
    return f"  R-hat {r_hat:.2f}"
