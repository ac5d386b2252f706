"""The simulation study at the terminal: a progress bar with the time left, then the table and the picture."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from whyact.studies.simulations import Design, run_study
from whyact.studies.store import make_folder
from whyact.studies.summary import Results, read_results


def run_simulations(folder: Path, design: Design, n_jobs: int) -> None:
    """Run what is left of the study, then show what it found."""
    console = Console()
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
            n_cells = len(design.n_features) * len(design.snr_db)
            methods = " and ".join([*design.samplers, *(["peers"] if design.peers else [])])
            console.print(
                f"{n_cells} cells x {design.n_runs} runs of {methods}: {len(undone)} to do, "
                f"{len(tasks) - len(undone)} done before; rows go to {folder}",
                highlight=False,
                soft_wrap=True,
            )
            bar.update(task, total=len(undone), description="simulations")

        def on_done(done):
            bar.update(task, advance=1)

        run_study(folder, design, n_jobs=n_jobs, on_start=on_start, on_done=on_done)
    show(read_results(folder), folder, console)


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
        from whyact.studies.figure2 import save_figure2

        paths = save_figure2(results, folder / "figure2")
    except ImportError:
        console.print("No picture: install whyact\\[plot].")
        return
    console.print(f"Figure 2 drawn to {' and '.join(str(path) for path in paths)}", highlight=False, soft_wrap=True)
