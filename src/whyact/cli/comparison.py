"""`whyact compare`: which model fits to a file of demonstrations."""

from pathlib import Path
from typing import Annotated

import typer

from whyact.cli.arguments import split_names

# Option of the command line for each argument that `read_table` and `compare` may complain about.
OPTIONS = {
    "path": "FILE",
    "action": "--action",
    "y": "--action",
    "groups": "--groups",
    "columns": "--columns",
    "X": "--columns",
    "models": "--models",
    "n_folds": "--folds",
    "n_repeats": "--repeats",
}


def compare(
    file: Annotated[
        Path, typer.Argument(help="CSV file: one demonstration a line, names of the columns in the first.")
    ],
    action: Annotated[str, typer.Option(help="Column with the action.")],
    groups: Annotated[
        str | None, typer.Option(help="Column that tells which rows belong together, such as the drive.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Observed columns, separated by commas.", show_default="all others")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Some of features, patterns, clusters, per-action, pca, nmf, simplex, lr, lda, knn, forest, boosting, "
            "mlp and majority, separated by commas.",
            show_default="all but simplex, lda and mlp",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the rows, each of which is predicted from the others.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often rows are shuffled into random folds.")] = 1,
    scale: Annotated[
        bool, typer.Option("--scale", help="Bring all columns to one range; for columns of different units.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="CSV file for the results; each fold's go beside it.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Where to draw the results (PNG, SVG or PDF).")] = None,
    jobs: Annotated[int, typer.Option(help="Fits at a time; -1 means one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Seed of the folds and of the models.")] = 0,
) -> None:
    """Compare models on demonstrations by cross-validation: whose predictions are better, and what is a tie."""
    check_outputs(file, out, picture)
    if jobs == 0:
        raise typer.BadParameter("0 fits at a time would never end.", param_hint="--jobs")
    if not 0 <= seed < 2**32:
        raise typer.BadParameter(f"{seed} is not between 0 and 2^32 - 1.", param_hint="--seed")
    from whyact.errors import ArgumentError

    try:
        run_compare(file, action, groups, columns, models, folds, repeats, scale, out, picture, jobs, seed)
    except ArgumentError as error:
        raise typer.BadParameter(str(error), param_hint=OPTIONS[error.argument]) from None
    except KeyboardInterrupt:
        typer.echo("Stopped before the end of the comparison.", err=True)
        raise typer.Exit(130) from None


def check_outputs(file: Path, out: Path | None, picture: Path | None) -> None:
    """Say what is wrong with the files to write before a long run, not after it."""
    from importlib.util import find_spec

    for option, path in (("--out", out), ("--picture", picture)):
        if path is None:
            continue
        if not path.parent.is_dir():
            raise typer.BadParameter(f"the folder {path.parent} does not exist.", param_hint=option)
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a folder.", param_hint=option)
        if path.resolve() == file.resolve():
            raise typer.BadParameter(f"{path} is the file with the demonstrations.", param_hint=option)
    if picture is not None:
        if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise typer.BadParameter(f"{picture} does not end with .png, .svg or .pdf.", param_hint="--picture")
        if find_spec("matplotlib") is None:
            raise typer.BadParameter("the picture needs matplotlib: install whyact[plot].", param_hint="--picture")


def run_compare(file, action, groups, columns, models, folds, repeats, scale, out, picture, jobs, seed) -> None:
    from rich.console import Console

    from whyact import compare
    from whyact.tables.demonstrations import read_table

    table = read_table(file, action, groups, split_names(columns))
    console = Console()
    if not console.is_terminal:
        console = Console(width=100)  # the table's; a file or a pipe has none of its own
    console.print(
        f"{len(table.X)} demonstrations from {file}: {table.X.shape[1]} observed columns, action {action}"
        f"{'' if groups is None else f', groups {groups}'}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    comparison = compare(
        table.X,
        table.y,
        groups=table.groups,
        models=None if models is None else [name.strip() for name in models.split(",")],
        n_folds=folds,
        n_repeats=repeats,
        scale=scale,
        n_jobs=jobs,
        random_state=seed,
        verbose=1,
    )
    comparison.print_table(console)
    written = []
    if out is not None:
        written += comparison.to_csv(out)
    if picture is not None:
        comparison.plot().savefig(picture, dpi=110)
        written.append(picture)
    if written:
        console.print(
            f"Written: {', '.join(str(path) for path in written)}", highlight=False, markup=False, soft_wrap=True
        )
