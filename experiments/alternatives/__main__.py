"""Run the study of alternatives: `python -m experiments.alternatives`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import make_app, parse_names, run_app, study_errors

app = make_app()


@app.command()
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
    from experiments.alternatives.console import run_alternatives
    from experiments.alternatives.study import KINDS, METHODS, Design

    chosen_kinds = parse_names(kinds, "--kinds", tuple(KINDS))
    chosen_models = parse_names(models, "--models", METHODS)
    for option, number, least in (("--runs", runs, 1), ("--sweeps", sweeps, 10), ("--seed", seed, 0)):
        if number < least:
            raise typer.BadParameter(f"{number} is less than {least}.", param_hint=option)
    if jobs == 0:
        raise typer.BadParameter("0 fits at a time would never end.", param_hint="--jobs")
    with study_errors(out):
        run_alternatives(out, Design(runs, chosen_kinds, chosen_models, sweeps, seed), jobs)


if __name__ == "__main__":
    run_app(app)
