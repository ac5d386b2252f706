"""`whyact fit` and `whyact resume`: from a file of demonstrations to a model, even if the run is interrupted."""

import logging
import shlex
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyact.cli.arguments import (
    DemonstrationsFile,
    NJobs,
    Quiet,
    Refusal,
    check_jobs,
    check_output,
    check_shape,
    out_option,
    say,
    stop,
    user_errors,
)
from whyact.cli.fit_options import DATA, OWN_DEFAULTS, TABLE, collect, with_table
from whyact.errors import DoubtfulFitWarning
from whyact.visible import make_visible

if TYPE_CHECKING:
    from whyact.estimators.settings_file import Settings
    from whyact.storage.run_folder import Run
    from whyact.tables.demonstrations import Table


@with_table
def fit(
    demonstrations: DemonstrationsFile,
    out: Annotated[Path, out_option("Model file", ", such as model.nc")],
    *,
    no_action: Annotated[
        bool, typer.Option("--no-action", help="Learn features only, without actions.", rich_help_panel=DATA)
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with any of these settings, such as n_chains = 4; the command line wins.",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Learn why a teacher acts from a file of demonstrations, and write a model file.

    Until the model is written, the folder OUT.run holds the state of the run: if anything stops it, `whyact resume
    OUT.run` finishes it with the same draws.
    """
    check_output(out, demonstrations, endings=(".nc",))
    settings = merge_settings(config, collect(given))
    n_jobs = check_jobs(settings.parameters.pop("n_jobs"))
    with user_errors():
        # pandas and scikit-learn come in only when a command runs
        from whyact.storage.run_folder import begin_run, find_folder

        table = read_table(demonstrations, settings.data, no_action)
        if not quiet:
            say(describe_table(demonstrations, table))
            if settings.parameters.get("scale_columns") is False:
                advise_scaling(table)
        run = make_run(table, settings, demonstrations)
        if not quiet and run.available is not None:
            say(describe_available(run, settings.data["available"]))
        folder = find_folder(out)
        begin_run(folder, run)
    carry_out_run(folder, n_jobs, quiet, is_new=True)


def resume(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the run: the name of the model file plus .run.")
    ],
    n_jobs: NJobs = -1,
    quiet: Quiet = False,
) -> None:
    """Resume a run that was stopped; it ends with the same draws as one that never stopped."""
    carry_out_run(folder, n_jobs, quiet, is_new=False)


def merge_settings(config: Path | None, given: dict[str, Any]) -> "Settings":
    """Settings from the command line or, where it is silent, from the file."""
    # scikit-learn comes in only when a command runs
    from whyact.estimators.settings_file import DATA_KINDS, Settings, find_kinds, read_settings

    kinds = find_kinds()
    for row in TABLE:
        if row.name in given and row.name in kinds and not kinds[row.name].accepts(given[row.name]):
            raise Refusal(f"{row.option}: {given[row.name]!r} is not {kinds[row.name].words}.")
    with user_errors():
        parameters, data = Settings({}, {}) if config is None else read_settings(config)
    parameters.pop("verbose", None)  # --quiet decides
    values = OWN_DEFAULTS | parameters | data | given
    return Settings(
        {name: value for name, value in values.items() if name not in DATA_KINDS},
        {name: value for name, value in values.items() if name in DATA_KINDS},
    )


def read_table(path: str, data: Mapping[str, Any], no_action: bool) -> "Table":
    """The demonstrations, with their shape."""
    from whyact.tables.demonstrations import read_demonstrations  # pandas comes in only when a command runs

    table = read_demonstrations(
        path,
        action=data.get("action"),
        columns=data.get("columns"),
        ignore=data.get("ignore", ()),
        missing_action=data.get("missing_action"),
        without_actions=no_action,
        available=data.get("available"),
    )
    shape = data.get("shape", table.shape)
    check_shape(shape, table.X.shape[1])
    return table._replace(shape=shape)


def make_run(table: "Table", settings: "Settings", path: str) -> "Run":
    """What is to be fitted; here actions become numbers."""
    # scikit-learn comes in only when a command runs
    from whyact.estimators.inputs import code_actions
    from whyact.storage.run_folder import Run
    from whyact.tables.available import mask_demonstrations

    classes, actions = code_actions(None if table.y is None else table.y.to_numpy(), len(table.X))
    named = None if table.available is None else dict(table.available)
    return Run(
        parameters=settings.parameters,
        observations=table.X.to_numpy(),
        columns=table.X.columns.to_numpy(),
        classes=classes,
        actions=actions,
        shape=table.shape,
        every=float(settings.data["checkpoint_every"]),
        source=Path(path).name,
        available=mask_demonstrations(path, named, classes, actions),
    )


def carry_out_run(folder: Path, n_jobs: int, quiet: bool, *, is_new: bool) -> None:
    """Fit what is in the folder, and say what was found."""
    # scikit-learn comes in only when a command runs
    from whyact.estimators.fit_in_folder import fit_in_folder
    from whyact.explanation.describe import describe
    from whyact.sampler.interrupts import stop_on_terminate
    from whyact.storage.run_folder import find_model_path

    stop_on_terminate()  # which waits for a safe moment and leaves a checkpoint
    handler = logging.StreamHandler()  # warnings of checkpoints, on standard error
    handler.setFormatter(VisibleFormatter())
    logging.getLogger("whyact").addHandler(handler)
    with run_errors(folder, is_new), user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulFitWarning)  # the description says so
        model_path = find_model_path(folder)
        model = fit_in_folder(folder, is_new=is_new, n_jobs=n_jobs, verbose=int(not quiet))
    if not quiet:
        say("", *describe(model).split("\n"), f"Written: {model_path}")


class VisibleFormatter(logging.Formatter):
    """What is logged names files, which can be called anything."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return make_visible(super().format(record))


@contextmanager
def run_errors(folder: Path, is_new: bool) -> Iterator[None]:
    """Say how to continue a run that has ended early."""
    from whyact.storage.checkpoint import RUN_FILE  # numpy comes in only when a command runs

    resume = f"`whyact resume {folder}`"
    try:
        yield
    except KeyboardInterrupt:
        stop(f"{resume} continues from here.")
    except BrokenExecutor:
        raise Refusal(
            f"a process of the run was killed, perhaps for lack of memory; {resume} continues it; reduce --n-jobs."
        ) from None
    except Refusal as refusal:
        if is_new and (folder / RUN_FILE).is_file():
            refusal.message += f" The run is in {folder}; {resume} continues it."
        raise


def describe_table(source: str, table: "Table") -> str:
    """What was read, in one sentence."""
    n_rows, n_columns = table.X.shape
    text = f"{n_rows} demonstrations from {source}: {n_columns} observed columns"
    if table.y is None:
        return f"{text}, no actions."
    known = table.y.dropna()
    counts = known.value_counts()
    shown = ", ".join(f"{label} ({count})" for label, count in counts.head(6).items())
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    missing = f", {n_rows - len(known)} rows without an action" if len(known) < n_rows else ""
    return f"{text}; actions: {shown}{more}{missing}."


def describe_available(run: "Run", columns: Mapping[str, str]) -> str:
    """How often each action can be taken, and what to say when the model is used."""
    assert run.available is not None
    shares = zip(map(str, run.classes), run.available.sum(axis=0), strict=True)
    counts = [f"{label} in {count}" for label, count in shares if label in columns]
    repeated = ",".join(f"{action}={column}" for action, column in columns.items())
    return (
        f"Available, of {len(run.available)} rows: {', '.join(counts)}; other actions in all. The model does not keep "
        f"these columns: give --available {shlex.quote(repeated)} also to predict, explain and report --test."
    )


def advise_scaling(table: "Table") -> None:
    """Point out columns of very different size, which are not to be scaled."""
    from whyact.tables.spreads import WIDE, compare_spreads  # numpy comes in only when a command runs

    if (ratio := compare_spreads(table.X)) >= WIDE:
        say(
            f"The columns differ in scale by a factor of {ratio:.2g}, and the model mainly explains the largest; "
            "--scale-columns yes brings all of them to the same range."
        )
