"""Progress of a fit: a bar for a person who asked for it."""

import sys
from contextlib import contextmanager

import numpy as np

FEWEST_DRAWS_TO_COMPARE = 10


@contextmanager
def progress_bar(verbose: int, problem, n_sweeps: int):
    """Yield a function that shows a Progress on standard error if `verbose`, else nothing.

    A terminal gets a bar; a pipe or a log file a line at each milestone.
    """
    if not verbose:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:

        def show_line(progress):
            if progress.at_milestone:
                text = say_progress(progress, problem)
                print(f"{progress.n_done}/{progress.n_total} sweeps  {text}", file=sys.stderr, flush=True)

        yield show_line
        return
    columns = (
        BarColumn(bar_width=20),
        TextColumn("{task.completed}/{task.total} sweeps"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=n_sweeps)

        def show(progress):
            text = say_progress(progress, problem)
            bar.update(task, completed=progress.n_done, description=text)

        yield show


def say_progress(progress, problem) -> str:
    """Number of features of each chain, noise and log joint density, and whether the chains agree so far."""
    sizes = ", ".join(str(len(state.features)) for state in progress.states)
    noise = problem.unit * np.sqrt(np.mean([state.noise_variance for state in progress.states]))
    densities = [problem.algorithm.log_joint(state, problem.data, problem.target) for state in progress.states]
    return f"K {sizes}  noise {noise:.3g}  log joint {np.mean(densities):.0f}{say_agreement(progress.chains)}"


def say_agreement(chains) -> str:
    """R-hat of the log joint density of the draws so far, once there are some."""
    if len(chains) < 2 or len(chains[0]) < FEWEST_DRAWS_TO_COMPARE:
        return ""
    import arviz_stats

    r_hat = float(arviz_stats.rhat(np.stack([chain.traces["log_joint"] for chain in chains])))
    return f"  R-hat {r_hat:.2f}"
