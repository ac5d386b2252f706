"""`whyact predict`, `explain`, `report` and `info`: what can be done with a model file."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from whyact.cli.arguments import (
    ACTION_DEFAULT,
    ACTION_HELP,
    PREDICTION_HELP,
    SHAPE_HELP,
    Available,
    ModelFile,
    NJobs,
    Protect,
    Refusal,
    RowsFile,
    check_output,
    check_shape,
    check_word,
    load_model,
    out_option,
    parse_available,
    parse_shape,
    say,
    user_errors,
)
from whyact.errors import list_names

if TYPE_CHECKING:
    import numpy as np
    import pandas

    from whyact.estimators.feature_policy import FeaturePolicyClassifier
    from whyact.explanation.text import Explanations
    from whyact.tables.demonstrations import RowBlock

Item = TypeVar("Item")
Result = TypeVar("Result")

EXPLAINED_AT_ONCE = 100  # rows
ROW_OPTIONS = {"available": "--available"}  # the columns are those of the model, and no option changes them


def predict(
    model: ModelFile,
    file: RowsFile,
    out: Annotated[str, out_option("CSV file", default="standard output")] = "-",
    prediction: Annotated[
        str | None, typer.Option(help=PREDICTION_HELP, metavar="mmse|map", show_default="as fitted")
    ] = None,
    available: Available = None,
    protect: Protect = True,
    n_jobs: NJobs = -1,
) -> None:
    """Predict the action for each row of a file of any length.

    Each row gets the most probable action, the probability of every action (0 where it is not available), how much of
    which features is in it (from 0 to 1, as `whyact explain` says), how much of the observation the features explain
    (familiarity), and whether that is too little to rely on the prediction (unfamiliar).
    """
    if out != "-":
        check_output(Path(out), file, model)
    check_word("--prediction", prediction, "mmse", "map")
    columns = None if available is None else parse_available(available)
    learned = load_model(model)
    with user_errors(ROW_OPTIONS):
        # numpy comes in only when a command runs
        from whyact.tables.predictions import open_predictions

        blocks = open_blocks(learned, file, columns)
        first = next(blocks)  # a file without rows is an error before anything is written
        with open_predictions(out, list(learned.classes_), protect_labels=protect) as writer:

            def predict_block(block: "RowBlock") -> bytes:
                judged = learned.judge(as_frame(learned, block.values), prediction, block.available)
                return writer.format(judged.probabilities, judged.substates, judged.familiarity)

            for text in map_in_threads(predict_block, chain([first], blocks), n_jobs):
                writer.append(text)


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> Iterator[Result]:
    """Results in the order of the items, only a few of which are held at a time."""
    import joblib  # comes in only when a command runs

    n_threads = joblib.effective_n_jobs(n_jobs)
    coming: deque[Future[Result]] = deque()
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


def open_blocks(
    model: "FeaturePolicyClassifier", file: str, available: Mapping[str, str] | None
) -> "Iterator[RowBlock]":
    """The rows of a file that a model is asked about, with the actions that can be taken in them."""
    from whyact.tables.demonstrations import open_row_blocks  # numpy comes in only when a command runs

    return open_row_blocks(file, find_columns(model), available, list(model.classes_))


def find_columns(model: "FeaturePolicyClassifier") -> list[str]:
    """Names of the columns that a model was fitted to."""
    from whyact.explanation.names import find_names  # numpy comes in only when a command runs

    return list(find_names(model))


def as_frame(model: "FeaturePolicyClassifier", block: "np.ndarray") -> "np.ndarray | pandas.DataFrame":
    """A block as the data frame that scikit-learn expects for a model fitted to one."""
    if not hasattr(model, "feature_names_in_"):
        return block
    import pandas  # comes in only when a command runs

    return pandas.DataFrame(block, columns=model.feature_names_in_, copy=False)


def explain(
    model: ModelFile,
    file: RowsFile,
    row: Annotated[
        list[int] | None,
        typer.Option(help="Row number, counted from 0; repeatable, reported in file order.", show_default="all rows"),
    ] = None,
    out: Annotated[Path | None, out_option("CSV file", ", with all terms", default="text on standard output")] = None,
    nearest: Annotated[int, typer.Option(min=0, help="Number of similar demonstrations to name.")] = 3,
    interval: Annotated[float, typer.Option(help="Probability that each interval covers.")] = 0.9,
    available: Available = None,
    protect: Protect = True,
) -> None:
    """Explain predictions: what each feature favours, what no feature explains, and what would change the action."""
    if out is not None:
        check_output(out, file, model, endings=(".csv",))
    if row and min(row) < 0:
        raise Refusal(f"--row: {min(row)} is less than 0, the number of the first row.")
    if not 0 < interval < 1:
        raise Refusal(f"--interval: {interval:g} is not between 0 and 1.")
    columns = None if available is None else parse_available(available)
    learned = load_model(model)
    with user_errors(ROW_OPTIONS):
        # numpy comes in only when a command runs
        from whyact.storage.atomic import write_streamed
        from whyact.tables.cells import protect as protect_cell
        from whyact.tables.predictions import encode

        picked = pick_rows(open_blocks(learned, file, columns), row)
        explained = explain_blocks(learned, picked, n_nearest=nearest, interval=interval)
        if out is None:
            for reasons in explained:
                say(*str(reasons).split("\n"))
            return
        with write_streamed(out) as stream:
            for number, reasons in enumerate(explained):
                frame = reasons.to_frame()
                if protect:
                    frame["action"] = [protect_cell(str(label)) for label in frame["action"]]
                stream.write(encode(frame.to_csv(index=False, header=number == 0)))
    say(f"Written: {out}")


def pick_rows(blocks: "Iterable[RowBlock]", wanted: list[int] | None) -> "Iterator[tuple[np.ndarray, RowBlock]]":
    """Numbers and content of the wanted rows of a file, or of all, in file order, some at a time."""
    import numpy as np  # comes in only when a command runs

    left = set(wanted) if wanted else None
    first = 0
    for block in blocks:
        n_rows = len(block.values)
        for start in range(0, n_rows, EXPLAINED_AT_ONCE):
            places = np.arange(start, min(start + EXPLAINED_AT_ONCE, n_rows))
            if left is not None:
                places = places[np.isin(first + places, list(left))]
                left -= set((first + places).tolist())
            if len(places):
                yield first + places, block.pick(places)
        first += n_rows
        if left is not None and not left:
            return
    if left:
        raise Refusal(f"--row: there is no row {min(left)}; the file has {first} rows, from 0 to {first - 1}.")


def explain_blocks(
    model: "FeaturePolicyClassifier", picked: "Iterable[tuple[np.ndarray, RowBlock]]", **options: Any
) -> "Iterator[Explanations]":
    """Explanations that carry the row numbers of the file."""
    from whyact.explanation.text import Explanations  # numpy comes in only when a command runs

    for numbers, block in picked:
        reasons = model.explain(as_frame(model, block.values), available=block.available, **options)
        yield Explanations([replace(one, row=int(number)) for number, one in zip(numbers, reasons, strict=True)])


def report(
    model: ModelFile,
    out: Annotated[Path, out_option("HTML file")],
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Held-out demonstrations to evaluate on; --action names their action.",
            show_default=False,
        ),
    ] = None,
    action: Annotated[str | None, typer.Option(help=ACTION_HELP, show_default=ACTION_DEFAULT)] = None,
    available: Available = None,
    shape: Annotated[str | None, typer.Option(help=SHAPE_HELP, show_default="as fitted")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="bars|image|curve",
            help="How to draw an observation; curve is for columns that follow each other in time.",
            show_default="image if there is a shape, otherwise bars",
        ),
    ] = None,
    origin: Annotated[
        str, typer.Option(metavar="upper|lower", help="Where the first row of a picture goes.")
    ] = "upper",
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default="name of the model file")] = None,
    tolerances: Annotated[
        bool,
        typer.Option("--tolerances", help="Count features at several tolerances, with short chains; takes a while."),
    ] = False,
    n_jobs: NJobs = -1,
) -> None:
    """Write a report on a model: what it found, what explains each demonstration, and how far to trust it.

    The report is a single HTML file that needs no network.
    """
    check_output(out, model, *([] if test is None else [test]), endings=(".html", ".htm"))
    sizes = None if shape is None else parse_shape(shape)
    check_word("--kind", kind, "bars", "image", "curve")
    check_word("--origin", origin, "upper", "lower")
    if available is not None and test is None:
        raise Refusal("--available: it is about the rows of --test, which is missing.")
    columns = None if available is None else parse_available(available)
    learned = load_model(model)
    check_shape(sizes, learned.n_features_in_)
    if kind in ("bars", "curve"):
        sizes = None
    elif sizes is None:
        sizes = getattr(learned, "shape_", None)
    with user_errors(ROW_OPTIONS | {"action": "--action", "shape": "--shape"}):
        # numpy comes in only when a command runs
        from joblib import parallel_config

        from whyact.estimators.tolerance_curve import count_features_over_tolerance
        from whyact.report import write_report

        held_out = None if test is None else read_test(learned, test, action, columns)
        curve: Any = False
        if tolerances:
            with parallel_config(n_jobs=n_jobs):  # chains run in processes
                curve = count_features_over_tolerance(learned, verbose=1)
        with parallel_config("threading", n_jobs=n_jobs):
            write_report(
                learned, out, shape=sizes, kind=kind, origin=origin, test=held_out, title=title or model.name,
                source=getattr(learned, "source_", None), tolerances=curve,
            )  # fmt: skip
    say(f"Written: {out}")


def read_test(
    model: "FeaturePolicyClassifier", path: str, action: str | None, available: Mapping[str, str] | None
) -> tuple[Any, ...]:
    """Observations and actions that were not learned from and, if given, the actions that could be taken."""
    # pandas comes in only when a command runs
    from whyact.tables.available import make_mask
    from whyact.tables.demonstrations import read_demonstrations

    table = read_demonstrations(path, action=action, columns=find_columns(model), available=available)
    assert table.y is not None
    known = table.y.notna().to_numpy()
    # the same action is text in a CSV file and may be a number in an array
    spelled = {str(label): label for label in model.classes_}
    labels = [spelled.get(str(label), label) for label in table.y[known]]
    rows = as_frame(model, table.X[known].to_numpy())
    if table.available is None:
        return rows, labels
    mask = make_mask(path, dict(table.available), list(model.classes_))
    check_test(model, path, mask, table.y)
    return rows, labels, mask[known]


def check_test(model: "FeaturePolicyClassifier", path: str, mask: "np.ndarray", y: "pandas.Series") -> None:
    """Nobody can have taken an action that was not available, if the model knows it."""
    # numpy comes in only when a command runs
    import numpy as np

    from whyact.tables.available import check_taken

    numbers = {str(label): number for number, label in enumerate(model.classes_)}
    check_taken(path, mask, np.array([numbers.get(str(label), -1) for label in y]), list(model.classes_))


def info(model: ModelFile) -> None:
    """Show what is in a model file: what it was fitted to, how and with which version, and what it found."""
    learned = load_model(model)
    with user_errors():
        # numpy comes in only when a command runs
        from whyact.explanation.describe import describe
        from whyact.storage.netcdf import read_netcdf

        for name, text in list_facts(model, learned, read_netcdf(model)["/"].attributes).items():
            say(f"{name + ':':14}{text}")
        say(*describe(learned).split("\n"))


def list_facts(path: Path, model: "FeaturePolicyClassifier", about: dict[str, Any]) -> dict[str, str]:
    """Facts about a model and its file, by name."""
    import numpy as np  # comes in only when a command runs

    n_rows, n_columns = model.observations_.shape
    n_missing = np.isnan(model.observations_).sum()
    posterior = model.posterior_
    changed = [
        f"{name}={value}" for name, value in json.loads(about["settings"]).items() if differs(model, name, value)
    ]
    facts = {
        "file": f"{path}, {path.stat().st_size / 1e6:.2f} MB, schema {about['whyact_schema']}",
        "written by": f"whyact {about['whyact_version']} with {say_versions(about['libraries'])}",
        "learned from": f"{n_rows} demonstrations of {n_columns} columns{say_shape(model)}{say_source(model)}",
        "missing": f"{n_missing} of {n_rows * n_columns} entries, {(model.actions_ < 0).sum()} of {n_rows} actions",
        "columns": list_names(find_columns(model), 10),
        "actions": list_names([str(label) for label in model.classes_], 10),
        "chains": f"{posterior.n_chains}, each with {posterior.n_draws} draws from {about['n_done']} sweeps",
        "options": ", ".join(changed) or "defaults",
    }
    if hasattr(model, "available_"):
        facts["available"] = say_available(model)
    return facts


def say_available(model: "FeaturePolicyClassifier") -> str:
    """Which actions could not be taken, and how often."""
    n_rows = len(model.available_)
    n_missing = n_rows - model.available_.sum(axis=0)
    listed = [f"{label} in {n_rows - n}" for label, n in zip(model.classes_, n_missing, strict=True) if n]
    return f"of {n_rows} demonstrations, {list_names(listed, 10)}; other actions in all"


def differs(model: "FeaturePolicyClassifier", name: str, value: Any) -> bool:
    """Whether an option is not at its default."""
    return bool(value != signature(type(model)).parameters[name].default)


def say_versions(text: str) -> str:
    """Libraries and their versions, from JSON."""
    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
    except (ValueError, AttributeError, RecursionError):
        return "unknown libraries"


def say_shape(model: "FeaturePolicyClassifier") -> str:
    """The axes of an observation that is a picture, in brackets."""
    shape = getattr(model, "shape_", None)
    return "" if shape is None else f" ({' x '.join(map(str, shape))})"


def say_source(model: "FeaturePolicyClassifier") -> str:
    """Where the demonstrations come from."""
    return f" in {model.source_}" if getattr(model, "source_", "") else ""
