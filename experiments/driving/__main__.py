"""Run the driving study: `python -m experiments.driving`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.harness.commands import check_least, make_app, run_app, study_errors
from whyact.cli.arguments import NJobs, RandomState, Refusal, user_errors

if TYPE_CHECKING:
    from experiments.driving.scenes import DrivingScene

# Option for each argument of a scene that may be refused.
SCENE_OPTIONS = {"boxes": "--boxes", "frames": "--frames", "scene": "--scene", "smoothing": "--smoothing"}

app = make_app()


@app.command()
def main(
    kitti: Annotated[
        Path | None, typer.Option(help="Folder of KITTI's tracking benchmark or raw drives; not part of whyact.")
    ] = None,
    scene: Annotated[str | None, typer.Option(help="Number of the sequence or drive in --kitti.")] = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Instead of --kitti: .npz file of grids cast from labelled boxes, not LIDAR.")
    ] = None,
    frames: Annotated[int | None, typer.Option(help="Use only the first frames.", show_default="all")] = None,
    runs: Annotated[int, typer.Option(help="Number of random hold-outs, and of blocked ones.")] = 10,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the smoothing along the road, in metres.", show_default="2.5"),
    ] = None,
    n_jobs: NJobs = -1,
    random_state: RandomState = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows and the pictures; may hold several scenes.")] = Path(
        "results/driving"
    ),
) -> None:
    """Predict a driver's actions in a scene of KITTI (Sec. 6), beside existing tools on the same splits.

    Every finished fit is written at once; the same command resumes a study that was stopped.
    """
    check_least("--runs", runs, 1)
    check_least("--frames", frames, 2)
    found = read_scene(kitti, scene, boxes, frames, smoothing)
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.driving.console import run_and_show
    from experiments.driving.study import Design

    with study_errors(out):
        run_and_show(out, found, Design(runs, random_state), n_jobs)


def read_scene(
    kitti: Path | None, scene: str | None, boxes: Path | None, frames: int | None, smoothing: float | None
) -> "DrivingScene":
    """A scene from LIDAR scans or from labelled boxes."""
    from experiments.driving.scenes import read_boxes_scene, read_kitti_scene  # numpy and scipy, not for --help

    with user_errors(SCENE_OPTIONS):
        if kitti is not None and boxes is None:
            if scene is None:
                raise Refusal("--scene: say which scene of --kitti.")
            return read_kitti_scene(kitti, scene, frames, smoothing)
        if boxes is not None and kitti is None:
            if scene is not None:
                raise Refusal("--scene: a file of boxes holds only one scene; leave the option out.")
            return read_boxes_scene(boxes, frames, smoothing)
    raise Refusal("--kitti or --boxes: give one of the two.")


if __name__ == "__main__":
    run_app(app)
