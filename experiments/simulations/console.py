"""The simulation study at the terminal."""

from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.harness.console import run_with_bar
from experiments.harness.figures import save_svg_and_png
from experiments.harness.markdown import count, list_names
from experiments.simulations.figure2 import plot_figure2
from experiments.simulations.study import Design, run_study
from experiments.simulations.summary import Results, read_results


def run_and_show(folder: Path, design: Design, n_jobs: int) -> None:
    """Run what is left of the study, then show the results."""
    n_cells = len(design.n_features) * len(design.snr_db)
    methods = list_names([*design.samplers, *(["peers"] if design.peers else [])])
    content = f"{count(n_cells, 'cell')} x {count(design.n_runs, 'run')} of {methods}"
    run_with_bar(folder, "simulations", content, partial(run_study, design=design, n_jobs=n_jobs))
    show(read_results(folder), folder, Console())


def show(results: Results, folder: Path, console: Console) -> None:
    """Print a line for each method, and draw Figure 2 into the folder."""
    table = Table("method", "runs", "accuracy", "K exact", "K off by")
    for line in results.lines():
        table.add_row(
            line.label,
            str(line.n_runs),
            f"{line.accuracy:.3f}" if line.accuracy else "",
            f"{line.exact:.1%}" if line.exact else "",
            f"{line.off_by:.2f}" if line.off_by else "",
        )
    console.print(table)
    console.print("Means over all cells, ± one standard error.", highlight=False)
    if len(results.runs) == 0:
        return
    try:
        paths = save_svg_and_png(lambda: plot_figure2(results), folder / "figure2")
    except ImportError:
        console.print("Figure 2 is not drawn, which needs matplotlib: install whyact\\[plot].")
        return
    console.print(f"Figure 2 drawn to {' and '.join(str(path) for path in paths)}", highlight=False, soft_wrap=True)
