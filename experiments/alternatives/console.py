"""The study of alternatives at the terminal."""

from functools import partial
from pathlib import Path

from rich.console import Console

from experiments.alternatives import study as alternatives
from experiments.harness.console import run_with_bar


def run_alternatives(folder: Path, design: alternatives.Design, n_jobs: int) -> None:
    """Run what is left of the study of alternatives, then show what it found."""
    from experiments.alternatives.page import make_console_table, read_tables

    run_with_bar(
        folder,
        "alternatives",
        partial(alternatives.run_study, design=design, n_jobs=n_jobs),
        lambda tasks: f"{len(design.kinds)} kinds of data x {design.n_runs} runs of {len(design.methods)} models",
    )
    console = Console()
    console.print(make_console_table(read_tables(folder)))
    console.print(
        "K: number of features or clusters. Means over runs, ± one standard error.",
        highlight=False,
    )
