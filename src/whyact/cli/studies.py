"""`whyact study`: the paper's experiments."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

study = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)


def parse_numbers(text: str | None, option: str, kind: type) -> tuple | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    numbers = []
    for part in text.split(","):
        try:
            number = kind(part)
            fits = isfinite(number)
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            name = "a whole number" if kind is int else "a number"
            raise typer.BadParameter(f"{part.strip()!r} is not {name}.", param_hint=option)
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))


def parse_names(text: str | None, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names separated by commas; all that are known if none is given."""
    if text is None:
        return known
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.", param_hint=option)
    return names


@study.command()
def simulations(
    runs: Annotated[int | None, typer.Option(help="Data sets in each cell; 1 if not given.")] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(help="Sweeps of each chain, half of them burn-in; each sampler's default if not given."),
    ] = None,
    snr: Annotated[
        str | None, typer.Option(help="SNR in dB, separated by commas.", show_default="10,15,20,25,30")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="True numbers of features, separated by commas.", show_default="5,7,9,12,15,18")
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help="exact, as-published, none, or some separated by commas.", show_default="all")
    ] = None,
    peers: Annotated[bool, typer.Option(help="Also run existing tools on the same data.")] = True,
    jobs: Annotated[int, typer.Option(help="Runs at a time; -1 means one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Seed of the data sets.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows and the figure.")] = Path("results/simulations"),
    full: Annotated[
        bool, typer.Option("--full", help="The paper's size: 20 runs of 10,000 sweeps in each cell.")
    ] = False,
    peak: Annotated[
        float, typer.Option(help="Probability of each feature's favourite action (not in the paper).")
    ] = 0.95,
    actions: Annotated[
        str, typer.Option(help="The teacher's actions: most-probable, or drawn (not in the paper).")
    ] = "most-probable",
) -> None:
    """Run the paper's simulation study (Sec. 5) and draw its Figure 2.

    Every finished run is written at once; the same command goes on where a stopped study was.
    """
    from whyact.studies.simulations import ACTION_RULES, N_FEATURES, SAMPLERS, SNR_DB, Design

    chosen = () if sampler == "none" else parse_names(sampler, "--sampler", SAMPLERS)
    n_features = parse_numbers(features, "--features", int) or N_FEATURES
    for number in n_features:
        if not 2 <= number <= 30:
            raise typer.BadParameter(
                f"{number} is not between 2, below which there is one action only, and 30, the dimension of the "
                "observations.",
                param_hint="--features",
            )
    snr_db = parse_numbers(snr, "--snr", float) or SNR_DB
    for number in snr_db:
        if not -100 <= number <= 200:
            raise typer.BadParameter(f"{number:g} dB is not between -100 and 200 dB.", param_hint="--snr")
    for option, number, least in (("--runs", runs, 1), ("--sweeps", sweeps, 2), ("--seed", seed, 0)):
        if number is not None and number < least:
            raise typer.BadParameter(f"{number} is less than {least}.", param_hint=option)
    if not 0.25 < peak <= 1:
        raise typer.BadParameter(
            f"{peak:g} is not between 0.25, where no action is a favourite, and 1.", param_hint="--peak"
        )
    if actions not in ACTION_RULES:
        raise typer.BadParameter(f"{actions!r} is not one of {', '.join(ACTION_RULES)}.", param_hint="--actions")
    if not chosen and not peers:
        raise typer.BadParameter("without a sampler and without peers there is nothing to run.", param_hint="--sampler")
    if jobs == 0:
        raise typer.BadParameter("0 runs at a time would never end.", param_hint="--jobs")
    design = Design(
        n_features=n_features,
        snr_db=snr_db,
        n_runs=runs or (20 if full else 1),
        samplers=chosen,
        sweeps=sweeps or (10_000 if full else None),
        peers=peers,
        seed=seed,
        peak=peak,
        action_rule=actions,
    )
    from whyact.studies.console import run_simulations

    with study_errors(out):
        run_simulations(out, design, jobs)


@study.command()
def alternatives(
    runs: Annotated[int, typer.Option(help="Data sets of each kind.")] = 3,
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of demonstrations, separated by commas.", show_default="all")
    ] = None,
    models: Annotated[str | None, typer.Option(help="Models, separated by commas.", show_default="all")] = None,
    sweeps: Annotated[int, typer.Option(help="Sweeps of each chain, half of them burn-in.")] = 2000,
    jobs: Annotated[int, typer.Option(help="Fits at a time; -1 means one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Seed of the data sets.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows.")] = Path("results/alternatives"),
) -> None:
    """Put the paper's arguments about other models (Sec. 2.4) to the test.

    Every model learns from demonstrations that each of them assumes. Every finished fit is written at once; the same
    command goes on where a stopped study was.
    """
    from whyact.studies.alternatives import KINDS, METHODS, Design
    from whyact.studies.console import run_alternatives

    chosen_kinds = parse_names(kinds, "--kinds", tuple(KINDS))
    chosen_models = parse_names(models, "--models", METHODS)
    for option, number, least in (("--runs", runs, 1), ("--sweeps", sweeps, 10), ("--seed", seed, 0)):
        if number < least:
            raise typer.BadParameter(f"{number} is less than {least}.", param_hint=option)
    if jobs == 0:
        raise typer.BadParameter("0 fits at a time would never end.", param_hint="--jobs")
    with study_errors(out):
        run_alternatives(out, Design(runs, chosen_kinds, chosen_models, sweeps, seed), jobs)


# Option for each argument that the scenes of the driving study may complain about.
SCENE_OPTIONS = {"boxes": "--boxes", "frames": "--frames", "scene": "--scene", "smoothing": "--smoothing"}


@study.command()
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
    from whyact.driving.kitti import KittiError
    from whyact.studies.console import run_driving
    from whyact.studies.driving import Design
    from whyact.studies.driving_scenes import read_boxes_scene, read_kitti_scene
    from whyact.tables import ArgumentError

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


@study.command()
def traffic(
    out: Annotated[
        Path, typer.Option(help="CSV file for the results; in a folder of `study driving`, its page has them.")
    ],
    episodes: Annotated[int, typer.Option(min=2, help="Episodes that each driver drives through.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the scenes and of the sampler.")] = 0,
) -> None:
    """Let what was learned from the shipped traffic drive in the simulator, beside other drivers."""
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    try:
        from whyact.studies.traffic import run_traffic
    except ImportError as error:
        raise typer.BadParameter(str(error)) from None
    run_traffic(out, episodes, seed)


@contextmanager
def study_errors(out: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a study's folder, or that it was stopped."""
    from whyact.studies.store import StudyError

    try:
        yield
    except StudyError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None
    except KeyboardInterrupt:
        typer.echo(f"Stopped. The finished runs are in {out}; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None


@study.command()
def page(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The Markdown file to write; the figure goes beside it.", show_default="name of the study"),
    ] = None,
) -> None:
    """Write the page of results from the rows of a study."""
    from whyact.studies import alternatives_page, driving_page, results_page
    from whyact.studies.store import SETTINGS_FILE, StudyError, read_settings

    writers = {
        "simulations": results_page.write_page,
        "alternatives": alternatives_page.write_page,
        "driving": driving_page.write_page,
    }
    try:
        if not (folder / SETTINGS_FILE).exists():
            raise StudyError(f"the folder {folder} holds no study.")
        name = str(read_settings(folder).get("study"))
        if name not in writers:
            raise StudyError(f"the folder {folder} holds the study {name!r}, of which there is no page.")
        written = writers[name](folder, out or Path(f"{name}.md"))
    except StudyError as error:
        raise typer.BadParameter(str(error), param_hint="FOLDER or --out") from None
    except ImportError:
        raise typer.BadParameter("the figure needs matplotlib: install whyact[plot].", param_hint="--out") from None
    typer.echo(f"Written: {', '.join(str(path) for path in written)}")
