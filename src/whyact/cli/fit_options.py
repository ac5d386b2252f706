"""The options of `whyact fit`: one table, from which the command line is built and the settings are collected.

Every parameter of `FeaturePolicyClassifier` has a row, or stands in NOT_OPTIONS with a reason. Defaults are text for
--help, which must not wait for scikit-learn; a test compares them with the estimator's signature.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from whyact.cli.arguments import (
    ACTION_DEFAULT,
    ACTION_HELP,
    AVAILABLE_DEFAULT,
    AVAILABLE_HELP,
    AVAILABLE_METAVAR,
    COLUMNS_DEFAULT,
    COLUMNS_HELP,
    N_JOBS_DEFAULT,
    N_JOBS_HELP,
    PREDICTION_HELP,
    RANDOM_STATE_HELP,
    SCALE_AUTO_HELP,
    SCALE_COLUMNS_HELP,
    SHAPE_HELP,
    Refusal,
    check_word,
    parse_available,
    parse_shape,
    split_names,
)
from whyact.errors import suggest

if TYPE_CHECKING:
    from whyact.model import Priors

DATA = "What to learn from"
MODEL = "The model"
SAMPLING = "Sampling"
PREDICTING = "Predicting"

# Parameters of the estimator without an option, and why.
NOT_OPTIONS = {
    "warm_start": "continues a fit in the same process; `whyact resume` continues a run from its folder",
    "verbose": "is the opposite of --quiet",
}
# Defaults that the estimator leaves open: the same command gives the same model, on all cores, with checkpoints.
OWN_DEFAULTS = {"random_state": 0, "n_jobs": -1, "checkpoint_every": 60.0}


class FitOption(NamedTuple):
    """One row of the table."""

    name: str  # of the setting; the option is this with dashes
    kind: Any  # what typer reads: int, float, str, bool or list[str]
    default: str  # as --help shows it; nothing if empty
    help: str
    panel: str  # of --help
    parse: Callable[[Any], Any] | None = None  # from what typer reads to the value
    flag: str = ""  # if not the name with dashes
    metavar: str | None = None

    @property
    def option(self) -> str:
        """As typed by the user."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    def to_parameter(self) -> Parameter:
        """As typer reads it from the signature of a command; None means not given."""
        option = typer.Option(
            self.option,
            help=self.help,
            rich_help_panel=self.panel,
            show_default=self.default or False,
            metavar=self.metavar,
        )
        return Parameter(
            self.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[self.kind | None, option]
        )


def to_number(text: str) -> float | str:
    """A number, or a word as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def to_truth(text: str) -> bool | str:
    """Whether columns are scaled, or auto."""
    check_word("--scale-columns", text, "auto", "yes", "no")
    return text if text == "auto" else text == "yes"


def split_ignored(text: str) -> list[str]:
    """Names separated by commas; an empty text is the column without a name."""
    return split_names(text) if text else [""]


def parse_priors(texts: list[str]) -> "Priors | None":
    """Priors from texts such as ibp_mass=1,10."""
    # numpy comes in only when a command runs
    from whyact.model import Priors

    known = [field.name for field in fields(Priors)]
    pairs: dict[str, Any] = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        if name not in known:
            raise Refusal(f"--prior: there is no prior {name!r}{suggest(name, known)}")
        try:
            pairs[name] = tuple(float(number) for number in numbers.split(","))
        except ValueError:
            raise Refusal(f"--prior: {text!r} is not a name and two numbers, such as ibp_mass=1,10.") from None
    try:
        return Priors(**pairs) if pairs else None
    except ValueError as error:
        raise Refusal(f"--prior: {error}") from None


NUMBER_OR_AUTO = "NUMBER|auto"

TABLE = (
    FitOption("action", str, ACTION_DEFAULT, ACTION_HELP, DATA),
    FitOption("columns", str, COLUMNS_DEFAULT, COLUMNS_HELP, DATA, split_names),
    FitOption(
        "ignore", str, "", "Columns to leave out, separated by commas; '' means the unnamed column.", DATA,
        split_ignored,
    ),
    FitOption("available", str, AVAILABLE_DEFAULT, AVAILABLE_HELP, DATA, parse_available, metavar=AVAILABLE_METAVAR),
    FitOption("missing_action", str, "empty fields only", "Label that marks an action as unknown.", DATA),
    FitOption("shape", str, "", SHAPE_HELP, DATA, parse_shape),
    FitOption(
        "feature_values", str, "positive", "Whether entries of a feature are positive or real.", MODEL,
        metavar="positive|real",
    ),
    FitOption("n_components", int, "inferred", "Fix the number of features, if you know it.", MODEL),
    FitOption("max_features", int, "no limit", "Upper limit on the number of features.", MODEL),
    FitOption(
        "combination", str, "auto",
        "How policies combine; a product lets features also speak against actions; auto: what predicts better.", MODEL,
        metavar="auto|mixture|product",
    ),
    FitOption(
        "decisiveness", str, "auto",
        "Exponent of the mixture, above 1 for a teacher who takes the best action; drawn: with all the rest.", MODEL,
        to_number, metavar="NUMBER|auto|drawn",
    ),
    FitOption(
        "action_weight", str, "1",
        "How many times each action counts; dimensions: the number of columns; auto: 1 or 10.", MODEL,
        to_number, metavar="NUMBER|dimensions|auto",
    ),
    FitOption(
        "observation_weight", str, "1", "Exponent of the observations' likelihood; auto: 1, 0.3, 0.1 or 0.03.", MODEL,
        to_number, metavar=NUMBER_OR_AUTO,
    ),
    FitOption(
        "unit", str, "auto", "What observations are divided by; auto brings their root mean square to 1/4.", MODEL,
        to_number, metavar=NUMBER_OR_AUTO,
    ),
    FitOption(
        "scale_columns", str, "auto", f"{SCALE_COLUMNS_HELP} {SCALE_AUTO_HELP}", MODEL, to_truth, metavar="auto|yes|no",
    ),
    FitOption(
        "tolerance", str, "auto",
        "Share of a column's range that need not be explained; auto: in a table 5%, or 10% or 20% where "
        "predictions surely stay as good; free: the noise is learned.", MODEL, to_number, metavar="NUMBER|auto|free",
    ),
    FitOption("n_levels", int, "100", "Number of values that a substate can take.", MODEL),
    FitOption(
        "priors", list[str], "Table 1 of the paper", "A hyperprior, such as ibp_mass=1,10; repeatable.", MODEL,
        parse_priors, flag="--prior", metavar="NAME=A,B",
    ),
    FitOption(
        "n_burn_in", int, "1500", "Sweeps of each chain before its first draw; 100 if it starts from rows.", SAMPLING
    ),
    FitOption("n_draws", int, "1500", "Sweeps of each chain after the burn-in; 100 if it starts from rows.", SAMPLING),
    FitOption("thin", int, "5", "Keep every thin-th sweep after the burn-in.", SAMPLING),
    FitOption("n_chains", int, "4", "Independent chains; 8 if they start from rows.", SAMPLING),
    FitOption(
        "start", str, "auto", "Where chains start; auto: from rows, if there are 300 columns or more.", SAMPLING,
        metavar="auto|prior|rows",
    ),
    FitOption(
        "sampler", str, "exact", "as-published is the algorithm of the paper, for comparison.", SAMPLING,
        metavar="exact|as-published",
    ),
    FitOption("random_state", int, "0", RANDOM_STATE_HELP, SAMPLING, metavar="SEED"),
    FitOption("n_jobs", int, N_JOBS_DEFAULT, N_JOBS_HELP, SAMPLING),
    FitOption(
        "checkpoint_every", float, "60",
        "Seconds between checkpoints; longer where writing them would take over 2% of the time.", SAMPLING,
    ),
    FitOption("prediction", str, "mmse", PREDICTION_HELP, PREDICTING, metavar="mmse|map"),
    FitOption("max_prediction_draws", int, "200", "mmse averages over at most this many draws.", PREDICTING),
)  # fmt: skip


def with_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the table in place of its `**given`."""
    own = [parameter for parameter in signature(command).parameters.values() if parameter.kind != Parameter.VAR_KEYWORD]
    first = [parameter for parameter in own if parameter.kind != Parameter.KEYWORD_ONLY]
    parameters = [*first, *(row.to_parameter() for row in TABLE), *own[len(first) :]]
    command.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def collect(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the user has given, as values."""
    rows = [row for row in TABLE if given.get(row.name) is not None]
    parsed = {row.name: row.parse(given[row.name]) if row.parse else given[row.name] for row in rows}
    return {name: value for name, value in parsed.items() if value is not None}
