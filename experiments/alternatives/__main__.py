"""Run the study of alternatives: `python -m experiments.alternatives`."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.harness.commands import check_least, make_app, parse_names, run_app, study_errors
from whyact.cli.arguments import NJobs, RandomState

app = make_app()


@app.command()
def main(
    runs: Annotated[int, typer.Option(help="Data sets of each kind.")] = 3,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Kinds of demonstrations: some of features, patterns, few-patterns, clusters, per-action, single and "
            "paper, separated by commas.",
            show_default="all",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Some of features, patterns, clusters, per-action, pca, nmf and lr, separated by commas.",
            show_default="all",
        ),
    ] = None,
    sweeps: Annotated[int, typer.Option(help="Sweeps of each chain, half of them burn-in.")] = 2000,
    n_jobs: NJobs = -1,
    random_state: RandomState = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows.")] = Path("results/alternatives"),
) -> None:
    """Put the paper's arguments about other models (Sec. 2.4) to the test.

    Every model learns from the demonstrations that each of them assumes.

    Every finished fit is written at once; the same command resumes a study that was stopped.
    """
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.alternatives.console import run_and_show
    from experiments.alternatives.demonstrations import KINDS
    from experiments.alternatives.study import METHODS, Design

    check_least("--runs", runs, 1)
    check_least("--sweeps", sweeps, 10)
    design = Design(
        n_runs=runs,
        kinds=parse_names(kinds, "--kinds", tuple(KINDS)),
        methods=parse_names(models, "--models", METHODS),
        sweeps=sweeps,
        seed=random_state,
    )
    with study_errors(out):
        run_and_show(out, design, n_jobs)


if __name__ == "__main__":
    run_app(app)
