"""`whyact fit` and `whyact resume`: from a file of demonstrations to a model, through whatever happens."""

from pathlib import Path
from typing import Annotated, Any

import typer

from whyact.cli.arguments import Refusal, check_jobs, check_output, check_shape, parse_shape, split_names, user_errors

DATA = "What to learn from"
MODEL = "The model"
SAMPLING = "Sampling"
PREDICTING = "Predicting"


def option(help: str, panel: str, default: str | None = None, **kwargs) -> Any:
    """An option whose default is that of the estimator, or what the file of settings says."""
    return typer.Option(help=help, rich_help_panel=panel, show_default=default or False, **kwargs)


def fit(
    demonstrations: Annotated[
        str, typer.Argument(help="CSV, Parquet, NPZ or NPY file, a Minari folder, or minari:NAME.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The model file to write, such as model.nc.", show_default=False)
    ],
    action: Annotated[
        str | None, option("Column (or array, or .npy file) with the action.", DATA, "actions in NPZ and Minari")
    ] = None,
    no_action: Annotated[
        bool, typer.Option("--no-action", help="Learn features only, without actions.", rich_help_panel=DATA)
    ] = False,
    columns: Annotated[str | None, option("Observed columns, separated by commas.", DATA, "all others")] = None,
    ignore: Annotated[
        str | None, option("Columns to leave out, separated by commas; '' is one without a name.", DATA)
    ] = None,
    missing_action: Annotated[
        str | None, option("Label of actions that are not known.", DATA, "empty fields only")
    ] = None,
    shape: Annotated[str | None, option("Axes of a picture, such as 8,8 or 2,21,65; for the report.", DATA)] = None,
    config: Annotated[
        Path | None, option("TOML file of these options, such as n_chains = 4; the command line wins.", DATA)
    ] = None,
    feature_values: Annotated[str | None, option("positive or real.", MODEL, "positive")] = None,
    max_features: Annotated[int | None, option("At most so many features.", MODEL, "no bound")] = None,
    decisiveness: Annotated[
        float | None, option("Power of the mixture; about 10 for a teacher who takes the best action.", MODEL, "1")
    ] = None,
    action_weight: Annotated[
        str | None, option("How often each action counts: a number, dimensions or auto.", MODEL, "1")
    ] = None,
    observation_weight: Annotated[
        str | None, option("Power of the observations' likelihood: a number or auto.", MODEL, "1")
    ] = None,
    unit: Annotated[str | None, option("What observations are divided by: a number or auto.", MODEL, "auto")] = None,
    scale_columns: Annotated[
        bool | None,
        typer.Option(
            "--scale-columns",
            help="Bring each column to the range from 0 to 1 first, for columns of different units.",
            rich_help_panel=MODEL,
            show_default="no",
        ),
    ] = None,
    n_levels: Annotated[int | None, option("Number of values of a substate.", MODEL, "100")] = None,
    prior: Annotated[
        list[str] | None, option("A hyperprior, such as ibp_mass=1,10; may be given several times.", MODEL, "Table 1")
    ] = None,
    n_burn_in: Annotated[int | None, option("Sweeps before the first draw.", SAMPLING, "1500")] = None,
    n_draws: Annotated[int | None, option("Sweeps after them.", SAMPLING, "1500")] = None,
    thin: Annotated[int | None, option("Keep every so many of these.", SAMPLING, "5")] = None,
    n_chains: Annotated[int | None, option("Independent chains.", SAMPLING, "4")] = None,
    start: Annotated[str | None, option("prior, or rows for hundreds of columns.", SAMPLING, "prior")] = None,
    sampler: Annotated[
        str | None, option("exact, or as-published for the paper's own algorithm.", SAMPLING, "exact")
    ] = None,
    random_state: Annotated[int | None, option("Seed of the random numbers.", SAMPLING, "0", metavar="SEED")] = None,
    n_jobs: Annotated[int | None, option("Processes; the draws do not depend on it.", SAMPLING, "all cores")] = None,
    checkpoint_every: Annotated[
        float | None,
        option(
            "Seconds between two checkpoints (more if writing them would take over 2% of the time).", SAMPLING, "60"
        ),
    ] = None,
    prediction: Annotated[
        str | None, option("mmse averages over draws, map takes the best one.", PREDICTING, "mmse")
    ] = None,
    max_prediction_draws: Annotated[int | None, option("mmse takes at most so many draws.", PREDICTING, "200")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor what was learned.")] = False,
) -> None:
    """Learn why a teacher acts from a file of demonstrations, and write a model.

    What is needed to go on is kept in the folder OUT.run until the model is written: if anything stops the run,
    `whyact resume OUT.run` ends it with the same draws.
    """
    given = {
        "feature_values": feature_values,
        "max_features": max_features,
        "decisiveness": decisiveness,
        "action_weight": to_number(action_weight, "--action-weight", ("dimensions", "auto")),
        "observation_weight": to_number(observation_weight, "--observation-weight", ("auto",)),
        "unit": to_number(unit, "--unit", ("auto",)),
        "scale_columns": scale_columns,
        "n_levels": n_levels,
        "priors": parse_priors(prior),
        "n_burn_in": n_burn_in,
        "n_draws": n_draws,
        "thin": thin,
        "n_chains": n_chains,
        "start": start,
        "sampler": sampler,
        "random_state": random_state,
        "prediction": prediction,
        "max_prediction_draws": max_prediction_draws,
    }
    data = {
        "action": action,
        "columns": split_names(columns),
        "ignore": [""] if ignore == "" else split_names(ignore),  # the column without a name
        "missing_action": missing_action,
        "shape": parse_shape(shape),
        "checkpoint_every": checkpoint_every,
    }
    check_output(out, demonstrations, endings=(".nc",))
    run_fit(demonstrations, out, given, data, no_action, config, n_jobs, quiet)


def run_fit(demonstrations, out, given, data, no_action, config, n_jobs, quiet) -> None:
    from whyact.comparison.inputs import WIDE, compare_spreads
    from whyact.estimators.feature_policy import FeaturePolicyClassifier
    from whyact.estimators.settings_file import read_settings
    from whyact.storage.run_folder import Run, begin_run, find_folder
    from whyact.tables.demonstrations import read_demonstrations

    with user_errors():
        settings = ({}, {}) if config is None else read_settings(config)
        parameters = {"random_state": 0} | settings[0] | keep_given(given)
        data = settings[1] | keep_given(data)
        n_jobs = parameters.pop("n_jobs", -1) if n_jobs is None else n_jobs
        check_jobs(n_jobs)
        parameters.pop("verbose", None)
        FeaturePolicyClassifier(**parameters)._validate_params()
        every = float(data.get("checkpoint_every", 60.0))
        if not 0 <= every < float("inf"):
            raise Refusal(f"--checkpoint-every: {every:g} is not a number of seconds.")
        table = read_demonstrations(
            demonstrations,
            action=data.get("action"),
            columns=data.get("columns"),
            ignore=data.get("ignore", ()),
            missing_action=data.get("missing_action"),
            without_actions=no_action,
        )
        shape = data.get("shape", table.shape)
        check_shape(shape, table.X.shape[1])
        folder = find_folder(out)
        if not quiet:
            say(describe_table(demonstrations, table))
            if not parameters.get("scale_columns") and (ratio := compare_spreads(table.X)) >= WIDE:
                say(
                    f"The columns differ in size by a factor of {ratio:.2g}, and the model follows the largest; "
                    "--scale-columns brings all to the same range."
                )
        labels = None if table.y is None else table.y.to_numpy()
        begin_run(folder, Run(parameters, table.X, labels, shape, every, Path(demonstrations).name))
    carry_out_run(folder, n_jobs, quiet, is_new=True)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of the run: the name of the model and .run.")],
    n_jobs: Annotated[
        int, typer.Option(help="Processes; the draws do not depend on it.", show_default="all cores")
    ] = -1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor what was learned.")] = False,
) -> None:
    """Go on with a run that was stopped; it ends with the draws it would have had."""
    carry_out_run(folder, n_jobs, quiet)


def carry_out_run(folder: Path, n_jobs: int | None, quiet: bool, is_new: bool = False) -> None:
    import logging
    import signal
    import warnings
    from concurrent.futures import BrokenExecutor

    from whyact import ChainsDisagreeWarning
    from whyact.explanation.describe import describe
    from whyact.storage.checkpoint import RUN_FILE
    from whyact.storage.run_folder import carry_out, find_model_path

    check_jobs(n_jobs)
    # as Ctrl-C, which waits for a safe moment and leaves a checkpoint
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    logging.getLogger("whyact").addHandler(logging.StreamHandler())  # warnings of checkpoints, on standard error
    try:
        with user_errors(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ChainsDisagreeWarning)  # the explanation says it
            model_path = find_model_path(folder)
            model = carry_out(folder, is_new=is_new, n_jobs=n_jobs, verbose=int(not quiet))
    except KeyboardInterrupt:
        typer.echo(f"whyact: stopped; `whyact resume {folder}` goes on from here.", err=True)
        raise typer.Exit(130) from None
    except BrokenExecutor:
        raise Refusal(
            f"a process of the run was killed, perhaps for want of memory; `whyact resume {folder}` goes on, with "
            "fewer --n-jobs."
        ) from None
    except Refusal as refusal:
        if is_new and (folder / RUN_FILE).is_file():
            refusal.message += f" The run is in {folder}; `whyact resume {folder}` goes on with it."
        raise
    if not quiet:
        say(f"\n{describe(model)}\nWritten: {model_path}")


def keep_given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def to_number(text: str | None, name: str, words: tuple[str, ...]) -> float | str | None:
    """A number, or one of the words."""
    if text is None or text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise Refusal(f"{name}: {text!r} is neither a number nor {' or '.join(words)}.") from None


def parse_priors(given: list[str] | None):
    """Priors from NAME=FIRST,SECOND."""
    if not given:
        return None
    from dataclasses import fields

    from whyact.errors import suggest
    from whyact.model import Priors

    pairs = {}
    for text in given:
        name, _, numbers = text.partition("=")
        known = [field.name for field in fields(Priors)]
        if name not in known:
            raise Refusal(f"--prior: there is no prior {name!r}{suggest(name, known)}")
        try:
            pairs[name] = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            raise Refusal(f"--prior: {text!r} is not a name and two numbers, such as ibp_mass=1,10.") from None
    with user_errors():
        return Priors(**pairs)  # type: ignore[arg-type]


def describe_table(source: str, table) -> str:
    n_rows, n_columns = table.X.shape
    text = f"{n_rows} demonstrations from {source}: {n_columns} observed columns"
    if table.y is None:
        return f"{text}, no actions."
    known = table.y.dropna()
    counts = known.value_counts()
    shown = ", ".join(f"{label} {count}" for label, count in counts.head(6).items())
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    missing = f", {n_rows - len(known)} without an action" if len(known) < n_rows else ""
    return f"{text}; actions {shown}{more}{missing}."


def say(text: str) -> None:
    """To standard output, as it is."""
    typer.echo(text)
