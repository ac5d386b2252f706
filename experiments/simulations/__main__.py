"""Run the simulation study: `python -m experiments.simulations`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import make_app, parse_names, parse_numbers, run_app, study_errors

app = make_app()


@app.command()
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
    from experiments.simulations.study import ACTION_RULES, N_FEATURES, SAMPLERS, SNR_DB, Design

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
    from experiments.simulations.console import run_simulations

    with study_errors(out):
        run_simulations(out, design, jobs)


if __name__ == "__main__":
    run_app(app)
