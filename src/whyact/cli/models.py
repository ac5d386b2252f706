"""`whyact predict`, `explain`, `report` and `info`: what a model file knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from whyact.cli.arguments import Refusal, check_jobs, check_output, check_shape, load, parse_shape, user_errors

EXPLAINED_AT_ONCE = 100  # rows
NO_OPTIONS: dict[str, str] = {}  # columns and the like are the model's, not the user's to say

Model = Annotated[Path, typer.Argument(help="Model file that `whyact fit` wrote.", show_default=False)]
Rows = Annotated[
    str,
    typer.Argument(
        help="File of observations, as for `whyact fit`; other columns are ignored.", show_default=False, metavar="FILE"
    ),
]


def predict(
    model: Model,
    file: Rows,
    out: Annotated[
        str, typer.Option("--out", "-o", help="CSV file to write; - for standard output.", show_default=False)
    ] = "-",
    prediction: Annotated[
        str | None, typer.Option(help="mmse averages over draws, map is quick.", show_default="as fitted")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Threads.", show_default="all cores")] = -1,
) -> None:
    """Predict the action for each row of a file of any length.

    Writes the action, the probability of each, the features that spoke with their shares, how much of the observation
    the features explain (familiarity), and whether that is so little that nobody should rely on it (unfamiliar).
    """
    if out != "-":
        check_output(Path(out), file, model)
    check_jobs(n_jobs)
    found = load(model)
    if prediction is not None:
        found.set_params(prediction=prediction)
    with user_errors(NO_OPTIONS):
        from itertools import chain

        from whyact.tables.demonstrations import open_rows
        from whyact.tables.predictions import open_predictions

        found._validate_params()
        blocks = open_rows(file, find_columns(found))
        first = next(blocks)  # a file without rows is an error before anything is written
        with open_predictions(out, found.classes_) as writer:

            def predict_block(block):
                judged = found.judge(name_columns(found, block))
                return writer.format(judged.probabilities, judged.substates, judged.familiarity)

            for text in map_in_threads(predict_block, chain([first], blocks), n_jobs):
                writer.file.write(text)


def map_in_threads(function, items, n_jobs: int) -> Iterator:
    """Results in the order of the items, of which only a few are held at a time."""
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    import joblib

    n_threads = joblib.effective_n_jobs(n_jobs)
    coming: deque = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                coming.append(pool.submit(function, item))
                if len(coming) > n_threads:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for task in coming:
                task.cancel()


def find_columns(model) -> list[str]:
    return list(getattr(model, "feature_names_in_", [f"x{d}" for d in range(model.n_features_in_)]))


def name_columns(model, block):
    """A block as the data frame that scikit-learn expects of a model fitted to one."""
    if not hasattr(model, "feature_names_in_"):
        return block
    import pandas

    return pandas.DataFrame(block, columns=model.feature_names_in_, copy=False)


def explain(
    model: Model,
    file: Rows,
    row: Annotated[
        list[int] | None,
        typer.Option(
            help="Number of a row, the first is 0; may be given several times, said in the order of the file."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file for all terms, instead of a text.", show_default=False),
    ] = None,
    nearest: Annotated[int, typer.Option(min=0, help="How many similar demonstrations to name.")] = 3,
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
) -> None:
    """Say why the teacher would act so: what each feature speaks for, what nothing explains, what would change it.

    Without --row all rows are explained.
    """
    if out is not None:
        check_output(out, file, model, endings=(".csv",))
    if row and min(row) < 0:
        raise Refusal(f"--row: {min(row)} is less than 0, the number of the first row.")
    found = load(model)
    with user_errors(NO_OPTIONS):
        from whyact.storage.atomic import write_streamed
        from whyact.tables.demonstrations import open_rows

        picked = pick_rows(open_rows(file, find_columns(found)), row)
        explained = explain_blocks(found, picked, n_nearest=nearest, interval=interval)
        if out is None:
            for reasons in explained:
                typer.echo(str(reasons))
            return
        with write_streamed(out) as stream:
            for number, reasons in enumerate(explained):
                stream.write(reasons.to_frame().to_csv(index=False, header=number == 0).encode())
    typer.echo(f"Written: {out}")


def pick_rows(blocks, wanted: list[int] | None) -> Iterator:
    """Numbers and values of the wanted rows of a file, or of all, in the order of the file, some at a time."""
    import numpy as np

    left = None if wanted is None else set(wanted)
    first = 0
    for block in blocks:
        for start in range(0, len(block), EXPLAINED_AT_ONCE):
            values = block[start : start + EXPLAINED_AT_ONCE]
            numbers = np.arange(first + start, first + start + len(values))
            if left is not None:
                chosen = np.isin(numbers, list(left))
                numbers, values = numbers[chosen], values[chosen]
                left -= set(numbers.tolist())
            if len(numbers):
                yield numbers, values
        first += len(block)
        if left is not None and not left:
            return
    if left:
        raise Refusal(f"--row: there is no row {min(left)}; the file has {first} rows, from 0 to {first - 1}.")


def explain_blocks(model, picked, **options) -> Iterator:
    """Explanations with the numbers of their rows in the file."""
    from dataclasses import replace

    from whyact.explanation.text import Explanations

    for numbers, values in picked:
        reasons = model.explain(name_columns(model, values), **options)
        yield Explanations([replace(one, row=int(number)) for number, one in zip(numbers, reasons, strict=True)])


def report(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.", show_default=False)],
    test: Annotated[
        str | None,
        typer.Option(help="Demonstrations that were not learned from, to measure honestly.", show_default=False),
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Column with the action in --test.", show_default="actions in NPZ and Minari")
    ] = None,
    shape: Annotated[
        str | None, typer.Option(help="Axes of a picture, such as 8,8 or 2,21,65.", show_default="as in fit")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="bars, image, or curve for columns that follow each other in time.")
    ] = None,
    origin: Annotated[str, typer.Option(help="Where the first row of a picture is: upper or lower.")] = "upper",
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default="name of the file")] = None,
) -> None:
    """Write one page about a model: what was found, why each demonstration went as it did, how far to trust it.

    The page is one file that needs no network.
    """
    check_output(out, model, *([] if test is None else [test]), endings=(".html", ".htm"))
    sizes = parse_shape(shape)
    if kind not in (None, "bars", "image", "curve"):
        raise Refusal(f"--kind: {kind!r} is not one of bars, image and curve.")
    found = load(model)
    check_shape(sizes, found.n_features_in_)
    if kind in ("bars", "curve"):
        sizes = None
    elif sizes is None:
        sizes = getattr(found, "shape_", None)
    with user_errors({"action": "--action", "shape": "--shape"}):
        from whyact.report import write_report

        held_out = None if test is None else read_test(found, test, action)
        write_report(
            found, out, shape=sizes, kind=kind, origin=origin, test=held_out, title=title or model.name,
            source=getattr(found, "source_", None),
        )  # fmt: skip
    typer.echo(f"Written: {out}")


def read_test(model, path: str, action: str | None):
    """Observations and actions that were not learned from."""
    from whyact.tables.demonstrations import read_demonstrations

    table = read_demonstrations(path, action=action, columns=find_columns(model))
    assert table.y is not None
    known = table.y.notna().to_numpy()
    # the same action is text in a CSV file and may be a number in an array
    spelled = {str(label): label for label in model.classes_}
    labels = [spelled.get(str(label), label) for label in table.y[known]]
    return name_columns(model, table.X[known].to_numpy()), labels


def info(model: Model) -> None:
    """Say what is in a model file: from what, how and with which version it was fitted, and what it found."""
    found = load(model)
    with user_errors():
        import json

        import numpy as np

        from whyact.explanation.describe import describe
        from whyact.storage.netcdf import read_netcdf

        about = read_netcdf(model)["/"].attributes
        n_rows, n_columns = found.observations_.shape
        changed = {name: value for name, value in json.loads(about["settings"]).items() if differs(name, value)}
        lines = {
            "file": f"{model}, {model.stat().st_size / 1e6:.2f} MB, schema {about['whyact_schema']}",
            "written by": f"whyact {about['whyact_version']} with {say_versions(about['libraries'])}",
            "learned from": f"{n_rows} demonstrations of {n_columns} columns{say_shape(found)}{say_source(found)}",
            "missing": f"{np.isnan(found.observations_).sum()} entries, {(found.actions_ < 0).sum()} actions",
            "columns": shorten(find_columns(found)),
            "actions": shorten([str(label) for label in found.classes_]) or "none",
            "chains": f"{found.posterior_.n_chains} of {found.posterior_.n_draws} draws, {about['n_done']} sweeps each",
            "options": ", ".join(f"{name}={value}" for name, value in changed.items()) or "all as by default",
        }
        for name, text in lines.items():
            typer.echo(f"{name + ':':14}{text}")
        typer.echo(describe(found))


def differs(name: str, value) -> bool:
    """Whether an option is not what it is by default."""
    from inspect import signature

    from whyact.estimators.feature_policy import FeaturePolicyClassifier

    return value != signature(FeaturePolicyClassifier).parameters[name].default


def say_versions(text: str) -> str:
    import json

    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
    except (ValueError, AttributeError):
        return "unknown libraries"


def say_shape(model) -> str:
    shape = getattr(model, "shape_", None)
    return "" if shape is None else f" ({' x '.join(map(str, shape))})"


def say_source(model) -> str:
    return f" in {model.source_}" if getattr(model, "source_", "") else ""


def shorten(names: list[str], n_shown: int = 10) -> str:
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return ", ".join(names[:n_shown]) + more
