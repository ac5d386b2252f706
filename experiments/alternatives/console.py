"""The study of alternatives at the terminal."""

from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.alternatives.study import Design, run_study
from experiments.alternatives.summary import LABELS, Results, read_results
from experiments.harness.console import run_with_bar
from experiments.harness.markdown import count


def run_and_show(folder: Path, design: Design, n_jobs: int) -> None:
    """Run what is left of the study, then show the results."""
    content = (
        f"{count(len(design.kinds), 'kind')} of data x {count(design.n_runs, 'run')} of "
        f"{count(len(design.methods), 'model')}"
    )
    run_with_bar(folder, "alternatives", content, partial(run_study, design=design, n_jobs=n_jobs))
    console = Console()
    console.print(make_table(read_results(folder)))
    console.print("K: number of features or clusters. Means over runs, ± one standard error.", highlight=False)


def make_table(results: Results) -> Table:
    """A line for each kind and model; fits 80 columns."""
    table = Table("data", "model", "runs", "accuracy", "K exact", "K found")
    for kind in results.kinds:
        for method in results.methods:
            rows = results.of(kind, method)
            counts = rows["n_found"].notna().any()
            table.add_row(
                kind,
                LABELS[method],
                str(len(rows)),
                f"{results.accuracy(kind, method):.3f}",
                f"{results.found_exactly(kind, method).value:.0%}" if counts else "",
                f"{rows['n_found'].mean():.1f} of {rows['n_true'].mean():.1f}" if counts else "",
            )
    return table
