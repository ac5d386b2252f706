"""The driving study at the terminal."""

from functools import partial
from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.driving.scenes import DrivingScene
from experiments.driving.study import Design, run_study
from experiments.driving.summary import Results, describe_scene, list_confusions, make_lines, read_results
from experiments.harness.console import run_with_bar
from whyact.comparison.folds import SPLITS


def run_and_show(folder: Path, scene: DrivingScene, design: Design, n_jobs: int) -> None:
    """Run what is left of a scene, then show the results."""
    content = f"scene {scene.name} ({scene.source}), {design.n_runs} x {len(SPLITS)} splits"
    run = partial(run_study, scene=scene, design=design, n_jobs=n_jobs)
    run_with_bar(folder, f"scene {scene.name}", content, run)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # what the tables need; a file or a pipe has no width of its own
    results = read_results(folder)
    about = f"Scene {scene.number}, {scene.source}: {describe_scene(results, scene.name)}"
    console.print(about, highlight=False, markup=False)
    for table in make_tables(results, scene.name):
        console.print(table)
    console.print(
        "Means over runs, with 95% intervals for such splits of this scene; raw: on grids neither smoothed nor marked. "
        "MSE and number of features are those of our model; the paper's numbers are for LIDAR scans. Confusions: "
        "actions taken down, predicted across, summed over runs.",
        highlight=False,
        markup=False,
    )
    pictures = sorted(folder.glob(f"{scene.name}-*.png"))
    drawn = f"Drawn: {', '.join(map(str, pictures))}" if pictures else "No pictures: install whyact[plot]."
    console.print(drawn, highlight=False, markup=False, soft_wrap=True)


def make_tables(results: Results, scene: str) -> list[Table | Columns]:
    """The table of a scene, and its confusion matrices next to the paper's; fits 80 columns."""
    header, *lines = make_lines(results, scene)
    table = Table(*header)
    for line in lines:
        table.add_row(*map(escape, line))
    confusions = []
    for title, (actions, matrix) in list_confusions(results, scene, "map").items():
        confusion = Table("taken", *actions, title=title, title_justify="left")
        for action, row in zip(actions, matrix, strict=True):
            confusion.add_row(action, *(str(count) for count in row))
        confusions.append(confusion)
    return [table, Columns(confusions, padding=(0, 2))]
