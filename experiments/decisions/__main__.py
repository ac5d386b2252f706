"""Run the study of real decisions: `python -m experiments.decisions`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.harness.commands import check_least, make_app, parse_names, run_app, study_errors
from whyact.cli.arguments import NJobs, RandomState, Refusal, user_errors

if TYPE_CHECKING:
    from experiments.decisions.study import Tables

app = make_app()


@app.command()
def main(
    runs: Annotated[int, typer.Option(help="Fresh random splits of each data set.")] = 5,
    tables: Annotated[
        str | None,
        typer.Option(
            help="Data sets: some of swissmetro, mtc, modechoice, fair, anes96, cartpole, mountaincar, acrobot, "
            "traffic, iris, wine, cancer and digits, separated by commas.",
            show_default="all",
        ),
    ] = None,
    contestants: Annotated[
        str | None,
        typer.Option(
            help="Some of ours, lr, forest, boosting, nmf-lr, ebm, majority and, for --few-labels, self-training and "
            "label-spreading, separated by commas; also ours-mixture and ours-product, if whyact has them.",
            show_default="all",
        ),
    ] = None,
    few_labels: Annotated[
        bool,
        typer.Option("--few-labels", help="Also learn from 20, 50, 100 and 200 actions, the others being hidden."),
    ] = False,
    train_rows: Annotated[int, typer.Option(help="Rows to learn from, at most.")] = 600,
    test_rows: Annotated[int, typer.Option(help="Rows to predict, at most.")] = 1000,
    sweeps: Annotated[
        int | None,
        typer.Option(help="For trials: sweeps of each of our chains, half of them burn-in.", show_default="as usual"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with swissmetro.csv.gz and MTCwork.csv.gz, which are not part of whyact.",
            show_default="../shared/data/decisions beside the repository",
        ),
    ] = None,
    n_jobs: NJobs = -1,
    random_state: RandomState = 0,
    out: Annotated[Path, typer.Option(help="Folder of the rows.")] = Path("results/decisions"),
) -> None:
    """Predict the decisions of people and controllers, beside existing tools on the same splits.

    Every finished fit is written at once; the same command resumes a study that was stopped.
    """
    check_least("--runs", runs, 1)
    check_least("--train-rows", train_rows, 20)
    check_least("--test-rows", test_rows, 1)
    check_least("--sweeps", sweeps, 10)
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.decisions.console import run_and_show
    from experiments.decisions.study import Design, list_contestants

    names = parse_names(contestants, "--contestants", list_contestants())
    options = {} if sweeps is None else {"n_burn_in": sweeps // 2, "n_draws": sweeps - sweeps // 2}
    design = Design(runs, names, few_labels, train_rows, test_rows, options, random_state)
    found, left_out = prepare(tables, names, data)
    with study_errors(out):
        run_and_show(out, found, left_out, design, n_jobs)


def prepare(tables: str | None, contestants: tuple[str, ...], data: Path | None) -> "tuple[Tables, list[str]]":
    """The data sets, and why some are left out; extras that are not installed are missed now and not in the runs."""
    # pandas and scikit-learn take seconds, which --help need not wait for
    from experiments.decisions.contestants import VERSIONS, make_peer
    from experiments.decisions.tables import DATA, SOURCES, load_tables

    with user_errors():
        for name in contestants:
            if name not in VERSIONS:
                make_peer(name, n_most=2, seed=0)
        found, left_out = load_tables(parse_names(tables, "--tables", tuple(SOURCES)), data or DATA)
    if not found:
        raise Refusal(" ".join(left_out))
    return found, left_out


if __name__ == "__main__":
    run_app(app)
