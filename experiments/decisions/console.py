"""The study of decisions at the terminal."""

from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.decisions.contestants import LABELS
from experiments.decisions.study import Design, Tables, run_study
from experiments.decisions.summary import Results, find_means, read_results
from experiments.decisions.tables import SOURCES
from experiments.harness.console import run_with_bar
from experiments.harness.markdown import count


def run_and_show(folder: Path, tables: Tables, left_out: list[str], design: Design, n_jobs: int) -> None:
    """Run what is left of the study, then show the results."""
    console = Console()
    for reason in left_out:
        console.print(reason, highlight=False, markup=False, soft_wrap=True)
    content = (
        f"{count(len(tables), 'data set')} x {count(design.n_runs, 'run')} of "
        f"{count(len(design.contestants), 'contestant')}{', few labels as well' * design.few_labels}"
    )
    run_with_bar(folder, "decisions", content, partial(run_study, tables=tables, design=design, n_jobs=n_jobs))
    console.print(make_table(read_results(folder)))
    console.print("Means over runs with all actions on record.", highlight=False)


def make_table(results: Results) -> Table:
    """A line for each data set and contestant; fits 80 columns."""
    table = Table("data set", "contestant", "accuracy", "log score", "calibr. error")
    means = [find_means(results.runs, measure) for measure in ("accuracy", "log_score", "calibration_error")]
    for name in means[0].index:
        for contestant in means[0].loc[name].dropna().index:
            table.add_row(
                SOURCES[name].label, LABELS[contestant], *(f"{frame.loc[name, contestant]:.3f}" for frame in means)
            )
    return table
