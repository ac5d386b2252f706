"""Run the driving study: `python -m experiments.driving`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import make_app, run_app, study_errors

# Option for each argument that the scenes of the driving study may complain about.
SCENE_OPTIONS = {"boxes": "--boxes", "frames": "--frames", "scene": "--scene", "smoothing": "--smoothing"}


app = make_app()


@app.command()
def driving(
    kitti: Annotated[
        Path | None, typer.Option(help="Folder of KITTI's tracking benchmark or raw drives; not part of whyact.")
    ] = None,
    scene: Annotated[str | None, typer.Option(help="Number of the sequence or drive in --kitti.")] = None,
    boxes: Annotated[
        Path | None, typer.Option(help="Instead of --kitti: .npz file of grids cast from labelled boxes, not LIDAR.")
    ] = None,
    frames: Annotated[int | None, typer.Option(help="Use the first frames only.", show_default="all")] = None,
    runs: Annotated[int, typer.Option(help="Random and blocked hold-outs, each.")] = 10,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the smoothing along the road, in metres.", show_default="2.5"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Fits at a time; -1 means one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the models.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows and the pictures; may hold several scenes.")] = Path(
        "results/driving"
    ),
) -> None:
    """Predict a driver's actions in a scene of KITTI (Sec. 6), beside existing tools on the same splits.

    Every finished fit is written at once; the same command goes on where a stopped study was.
    """
    from experiments.driving.console import run_driving
    from experiments.driving.scenes import read_boxes_scene, read_kitti_scene
    from experiments.driving.study import Design
    from whyact.driving.kitti import KittiError
    from whyact.errors import ArgumentError

    if (kitti is None) == (boxes is None):
        raise typer.BadParameter("give one of the two.", param_hint="--kitti or --boxes")
    if boxes is not None and scene is not None:
        raise typer.BadParameter("the file of boxes holds one scene only.", param_hint="--scene")
    if kitti is not None and scene is None:
        raise typer.BadParameter("say which scene of --kitti.", param_hint="--scene")
    for option, number, least in (("--runs", runs, 1), ("--frames", frames, 2), ("--seed", seed, 0)):
        if number is not None and number < least:
            raise typer.BadParameter(f"{number} is less than {least}.", param_hint=option)
    if seed >= 2**32:
        raise typer.BadParameter(f"{seed} is not below 2^32.", param_hint="--seed")
    if jobs == 0:
        raise typer.BadParameter("0 fits at a time would never end.", param_hint="--jobs")
    try:
        if kitti is not None and scene is not None:
            found = read_kitti_scene(kitti, scene, frames, smoothing)
        elif boxes is not None:
            found = read_boxes_scene(boxes, frames, smoothing)
    except KittiError as error:
        raise typer.BadParameter(str(error), param_hint="--kitti" if boxes is None else "--boxes") from None
    except ArgumentError as error:
        raise typer.BadParameter(str(error), param_hint=SCENE_OPTIONS[error.argument]) from None
    with study_errors(out):
        run_driving(out, found, Design(runs, seed), jobs)


if __name__ == "__main__":
    run_app(app)
