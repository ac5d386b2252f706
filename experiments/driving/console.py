"""The driving study at the terminal."""

from functools import partial
from pathlib import Path

from rich.console import Console

from experiments.driving import study as driving
from experiments.driving.scenes import DrivingScene
from experiments.harness.console import run_with_bar


def run_driving(folder: Path, scene: DrivingScene, design: driving.Design, n_jobs: int) -> None:
    """Run what is left of a scene of the driving study, then show what it found."""
    from experiments.driving.tables import describe_scene, make_console_tables, read_driving

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
