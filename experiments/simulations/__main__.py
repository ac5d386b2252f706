"""Run the simulation study: `python -m experiments.simulations`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import check_least, make_app, parse_names, parse_numbers, run_app, study_errors
from whyact.cli.arguments import NJobs, RandomState, Refusal, check_word

app = make_app()


@app.command()
def main(
    runs: Annotated[int | None, typer.Option(help="Data sets in each cell.", show_default="1")] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(
            help="Sweeps of each chain, half of them burn-in.", show_default="3,000 exact, 10,000 as published"
        ),
    ] = None,
    snr: Annotated[
        str | None, typer.Option(help="SNR in dB, separated by commas.", show_default="10,15,20,25,30")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="True numbers of features, separated by commas.", show_default="5,7,9,12,15,18")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(help="exact, as-published or none; several are separated by commas.", show_default="all"),
    ] = None,
    peers: Annotated[bool, typer.Option(help="Also run existing tools on the same data.")] = True,
    n_jobs: NJobs = -1,
    random_state: RandomState = 0,
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

    Every finished run is written at once; the same command resumes a study that was stopped.
    """
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.simulations.console import run_and_show
    from experiments.simulations.study import N_FEATURES, SAMPLERS, SNR_DB, Design

    check_least("--runs", runs, 1)
    check_least("--sweeps", sweeps, 2)
    check_word("--actions", actions, "most-probable", "drawn")
    design = Design(
        n_features=parse_numbers(features, "--features", int, N_FEATURES),
        snr_db=parse_numbers(snr, "--snr", float, SNR_DB),
        n_runs=runs or (20 if full else 1),
        samplers=() if sampler == "none" else parse_names(sampler, "--sampler", SAMPLERS),
        sweeps=sweeps or (10_000 if full else None),
        peers=peers,
        seed=random_state,
        peak=peak,
        action_rule=actions,
    )
    check_design(design.n_features, design.snr_db, peak)
    if not design.samplers and not peers:
        raise Refusal("--sampler: without a sampler and without peers there is nothing to run.")
    with study_errors(out):
        run_and_show(out, design, n_jobs)


def check_design(n_features: tuple[int, ...], snr_db: tuple[float, ...], peak: float) -> None:
    """Refuse data sets that cannot be drawn."""
    for number in n_features:
        if not 2 <= number <= 30:
            raise Refusal(
                f"--features: {number} is not between 2, below which there is only one action, and 30, the dimension "
                "of the observations."
            )
    for snr in snr_db:
        if not -100 <= snr <= 200:
            raise Refusal(f"--snr: {snr:g} dB is not between -100 and 200 dB.")
    if not 0.25 < peak <= 1:
        raise Refusal(f"--peak: {peak:g} is not between 0.25, where no action is a favourite, and 1.")


if __name__ == "__main__":
    run_app(app)
