"""`whyact compare`: which model suits a file of demonstrations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import whyact
from whyact.cli.arguments import (
    ACTION_HELP,
    COLUMNS_DEFAULT,
    COLUMNS_HELP,
    SCALE_COLUMNS_HELP,
    Available,
    DemonstrationsFile,
    NJobs,
    RandomState,
    check_output,
    check_picture,
    out_option,
    parse_available,
    say,
    split_names,
    stop,
    user_errors,
    write_picture,
)

if TYPE_CHECKING:
    import numpy as np

    from whyact.comparison import Comparison
    from whyact.tables.demonstrations import Table

WIDTH = 100  # of the table in a file or a pipe, which have no width of their own


def compare(
    file: DemonstrationsFile,
    action: Annotated[str, typer.Option(help=ACTION_HELP, show_default=False)],
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column, array or .npy file that says which rows belong together, such as the drive.",
            show_default="episode in NPZ and Minari",
        ),
    ] = None,
    available: Available = None,
    columns: Annotated[str | None, typer.Option(help=COLUMNS_HELP, show_default=COLUMNS_DEFAULT)] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Any of: features, features-mixture, features-product, patterns, clusters, per-action, pca, nmf, "
            "simplex, lr, lda, knn, forest, boosting, mlp and majority, separated by commas.",
            show_default="all but features-mixture, features-product, simplex, lda and mlp",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds; each is predicted from the others.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often the rows are shuffled into random folds.")] = 1,
    scale_columns: Annotated[bool, typer.Option("--scale-columns", help=SCALE_COLUMNS_HELP)] = False,
    out: Annotated[Path | None, out_option("CSV file", "; the results of each fold go to a second file")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write (PNG, SVG or PDF).", show_default=False)
    ] = None,
    n_jobs: NJobs = -1,
    random_state: RandomState = 0,
) -> None:
    """Compare models on demonstrations by cross-validation: which predicts better, and which are tied."""
    if out is not None:
        check_output(out, file)
    if picture is not None:
        check_picture(picture, file, option="--picture")
    from whyact.tables.demonstrations import read_demonstrations  # pandas comes in only when a command runs

    try:
        with user_errors():
            observed = None if columns is None else split_names(columns)
            named = None if available is None else parse_available(available)
            table = read_demonstrations(file, action=action, groups=groups, columns=observed, available=named)
            assert table.y is not None  # because an action was named
            say(
                f"{len(table.X)} demonstrations from {file}: {table.X.shape[1]} observed columns, action {action}"
                f"{'' if groups is None else f', groups {groups}'}."
            )
            comparison = whyact.compare(
                table.X,
                table.y,
                groups=table.groups,
                available=find_mask(table, file),
                models=None if models is None else split_names(models),
                n_folds=folds,
                n_repeats=repeats,
                scale=scale_columns,
                n_jobs=n_jobs,
                random_state=random_state,
                verbose=1,
            )
            print_comparison(comparison)
            write_comparison(comparison, out, picture)
    except KeyboardInterrupt:
        stop("the comparison is incomplete, and nothing was written.")


def find_mask(table: "Table", path: str) -> "np.ndarray | None":
    """Which actions can be taken in each row; None: all."""
    if table.available is None or table.y is None:
        return None
    # scikit-learn comes in only when a command runs
    from whyact.estimators.inputs import code_actions
    from whyact.tables.available import mask_demonstrations

    classes, actions = code_actions(table.y.to_numpy(), len(table.X))
    return mask_demonstrations(path, dict(table.available), classes, actions)


def print_comparison(comparison: "Comparison") -> None:
    """Print the table, as wide as the terminal."""
    from rich.console import Console  # comes in only when a command runs

    console = Console()
    comparison.print_table(console if console.is_terminal else Console(width=WIDTH))


def write_comparison(comparison: "Comparison", out: Path | None, picture: Path | None) -> None:
    """Write what was asked for, and say so."""
    written = [] if out is None else comparison.to_csv(out)
    if picture is not None:
        write_picture(comparison.plot(), picture)
        written.append(picture)
    if written:
        say(f"Written: {', '.join(map(str, written))}")
