"""The studies at the terminal: a progress bar with the time left, then the table and the picture."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from whyact.studies import alternatives, driving
from whyact.studies.driving_scenes import DrivingScene
from whyact.studies.simulations import Design, run_study
from whyact.studies.store import make_folder
from whyact.studies.summary import Results, read_results


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


def run_simulations(folder: Path, design: Design, n_jobs: int) -> None:
    """Run what is left of the simulation study, then show what it found."""
    n_cells = len(design.n_features) * len(design.snr_db)
    methods = " and ".join([*design.samplers, *(["peers"] if design.peers else [])])
    run_with_bar(
        folder,
        "simulations",
        partial(run_study, design=design, n_jobs=n_jobs),
        lambda tasks: f"{n_cells} cells x {design.n_runs} runs of {methods}",
    )
    show(read_results(folder), folder, Console())


def run_alternatives(folder: Path, design: alternatives.Design, n_jobs: int) -> None:
    """Run what is left of the study of alternatives, then show what it found."""
    from whyact.studies.alternatives_page import make_console_table, read_tables

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


def run_driving(folder: Path, scene: DrivingScene, design: driving.Design, n_jobs: int) -> None:
    """Run what is left of a scene of the driving study, then show what it found."""
    from whyact.studies.driving_tables import describe_scene, make_console_tables, read_driving

    run_with_bar(
        folder,
        f"scene {scene.name}",
        partial(driving.run_study, scene=scene, design=design, n_jobs=n_jobs),
        lambda tasks: f"scene {scene.name} ({scene.source}), {design.n_runs} x {len(driving.SPLITS)} splits",
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # the tables'; a file or a pipe has none of its own
    results = read_driving(folder)
    about = f"Scene {scene.number}, {scene.source}: {describe_scene(results, scene.name)}"
    console.print(about, highlight=False, markup=False)
    for table in make_console_tables(results, scene.name):
        console.print(table)
    console.print(
        "Means over runs, with 95% intervals for such splits of this scene; raw: on grids neither smoothed nor marked. "
        "MSE and number of features are those of ours, the paper's numbers are of LIDAR scans. Confusions: actions "
        "taken down, predicted across, of all runs.",
        highlight=False,
        markup=False,
    )
    pictures = sorted(folder.glob(f"{scene.name}-*.png"))
    drawn = f"Drawn: {', '.join(map(str, pictures))}" if pictures else "No picture: install whyact[plot]."
    console.print(drawn, highlight=False, markup=False, soft_wrap=True)


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
        from whyact.plotting import save_svg_and_png
        from whyact.studies.figure2 import plot_figure2

        paths = save_svg_and_png(lambda: plot_figure2(results), folder / "figure2")
    except ImportError:
        console.print("No picture: install whyact\\[plot].")
        return
    console.print(f"Figure 2 drawn to {' and '.join(str(path) for path in paths)}", highlight=False, soft_wrap=True)
