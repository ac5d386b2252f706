"""What the commands share: options that mean the same everywhere, and errors in one sentence.

Every error reads `--option: what is wrong; what to do.`, whichever module found it.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import whyact
from whyact.errors import ArgumentError, WhyactError
from whyact.visible import make_visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from whyact.estimators.feature_policy import FeaturePolicyClassifier

LARGEST_SEED = 2**32 - 1  # of numpy's RandomState, as everywhere in scikit-learn
LONGEST_SHOWN = 60  # characters of what was given
LARGEST_PICTURE = 2**40  # entries of an observation; larger ones are slips
PICTURES = (".png", ".svg", ".pdf")
RESOLUTION = 110  # dots of a picture per inch

# Option of the command line for each argument of the library that may be refused.
OPTIONS = {
    "action": "--action",
    "y": "--action",
    "groups": "--groups",
    "columns": "--columns",
    "X": "--columns",
    "ignore": "--ignore",
    "available": "--available",
    "missing_action": "--missing-action",
    "shape": "--shape",
    "config": "--config",
    "models": "--models",
    "n_folds": "--folds",
    "n_repeats": "--repeats",
}

# --- what is said -------------------------------------------------------------------------------------------


def say(*lines: str, err: bool = False) -> None:
    """Print lines: the one way of a command to a terminal. A name in a line cannot end it."""
    typer.echo("\n".join(make_visible(line) for line in lines), err=err)


# --- errors -------------------------------------------------------------------------------------------------


class Refusal(typer.BadParameter):
    """What is wrong with the user's input, in one sentence."""

    def format_message(self) -> str:
        """The sentence as it is, without typer's introduction."""
        return self.message


@contextmanager
def user_errors(options: Mapping[str, str] = OPTIONS) -> Iterator[None]:
    """Turn errors about the user's input into a Refusal that begins with the option in question."""
    try:
        yield
    except ArgumentError as error:
        option = options.get(error.argument, "")
        raise Refusal(f"{option}: {error}" if option else str(error)) from None
    except ImportError as error:  # an extra that is not installed
        raise Refusal(f"{str(error).rstrip('.')}.") from None
    except (WhyactError, ValueError, FloatingPointError, MemoryError) as error:
        raise Refusal(str(error) or "there is not enough memory.") from None
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        name = f"{error.filename}: " if error.filename else ""
        raise Refusal(f"{name}{error.strerror or error}.") from None


def stop(advice: str) -> NoReturn:
    """End a command that the user has interrupted."""
    say(f"whyact: stopped; {advice}", err=True)
    raise typer.Exit(130) from None


# --- checks before the work ---------------------------------------------------------------------------------


def check_jobs(n_jobs: int) -> int:
    """Refuse a number of parallel jobs that means nothing."""
    if n_jobs == 0:
        raise Refusal("--n-jobs: 0 jobs would never finish; give 1 or more, or -1 for one per core.")
    return n_jobs


def check_seed(random_state: int) -> int:
    """Refuse a seed that numpy does not take."""
    if not 0 <= random_state <= LARGEST_SEED:
        raise Refusal(f"--random-state: {random_state} is not a whole number from 0 to {LARGEST_SEED}.")
    return random_state


def check_word(option: str, word: str | None, *words: str) -> None:
    """Refuse a word that is none of those known."""
    if word is not None and word not in words:
        raise Refusal(f"{option}: {word!r} is not {join_words(words)}.")


def check_shape(shape: tuple[int, ...] | None, n_columns: int) -> None:
    """Refuse a shape that does not match the observed columns."""
    if shape is not None and prod(shape) != n_columns:
        sizes = " x ".join(map(str, shape))
        raise Refusal(f"--shape: {sizes} is {prod(shape)}, but there are {n_columns} observed columns.")


def check_output(path: Path, *inputs: Path | str, option: str = "--out", endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written, before the work and not after it.

    Its name must end like those of its kind, so that a slip does not overwrite the data.
    """
    if str(path) == "-":
        raise Refusal(f"{option}: only `predict` writes to standard output; give a file.")
    if endings and path.suffix.lower() not in endings:
        raise Refusal(f"{option}: {path} does not end with {join_words(endings)}.")
    with user_errors():  # a name may be too long for the system to look for it
        if not path.parent.is_dir():
            raise Refusal(f"{option}: the folder {path.parent} does not exist; create it first.")
        if path.is_dir():
            raise Refusal(f"{option}: {path} is a folder; give a file.")
        for source in inputs:
            if path.exists() and Path(source).exists() and path.samefile(source):
                raise Refusal(f"{option}: {path} is also an input file; give another name.")


def check_picture(path: Path, *inputs: Path | str, option: str) -> None:
    """Refuse a picture that cannot be drawn, before the work and not after it."""
    check_output(path, *inputs, option=option, endings=PICTURES)
    if find_spec("matplotlib") is None:
        raise Refusal(f"{option}: pictures need matplotlib; install whyact[plot].")


def write_picture(figure: "Figure", path: Path) -> None:
    """Draw a picture into a file that appears whole or not at all."""
    from whyact.storage.atomic import write_streamed  # numpy comes in only when a command runs

    with write_streamed(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".").lower(), dpi=RESOLUTION)


def join_words(words: tuple[str, ...]) -> str:
    """Alternatives, as in "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# --- options with one meaning in every command --------------------------------------------------------------

ACTION_HELP = "Column, array or .npy file with the action."
ACTION_DEFAULT = "actions in NPZ and Minari"
COLUMNS_HELP = "Observed columns, separated by commas."
COLUMNS_DEFAULT = "all others"
SHAPE_HELP = "Shape of an observation that is an image, such as 8,8 or 2,21,65."
SCALE_COLUMNS_HELP = "First scale each column to the range from 0 to 1, for columns with different units."
SCALE_AUTO_HELP = "auto: if they look like a table, not like one kind of signal, or if a tolerance is given."
AVAILABLE_HELP = "Columns that are 1 where an action can be taken and 0 elsewhere, such as car=CAR_AV,bus=BUS_AV."
AVAILABLE_DEFAULT = "all actions are, in all rows"
AVAILABLE_METAVAR = "ACTION=COLUMN,..."
PREDICTION_HELP = "mmse averages over draws; map takes the consensus of the chains and is faster."
RANDOM_STATE_HELP = "Seed of the random numbers."
N_JOBS_HELP = "Parallel jobs; -1 means one per core. The results do not depend on it."
N_JOBS_DEFAULT = "all cores"

DemonstrationsFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Demonstrations: a CSV, Parquet, NPZ or NPY file, a Minari folder, or minari:NAME.",
        show_default=False,
    ),
]
RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Observations, in any format of `whyact fit`; columns unknown to the model are ignored.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file from `whyact fit`.", show_default=False)]
NJobs = Annotated[int, typer.Option("--n-jobs", callback=check_jobs, help=N_JOBS_HELP, show_default=N_JOBS_DEFAULT)]
RandomState = Annotated[
    int, typer.Option("--random-state", callback=check_seed, metavar="SEED", help=RANDOM_STATE_HELP)
]
Available = Annotated[
    str | None,
    typer.Option("--available", metavar=AVAILABLE_METAVAR, help=AVAILABLE_HELP, show_default=AVAILABLE_DEFAULT),
]
Protect = Annotated[
    bool,
    typer.Option(
        "--protect/--no-protect",
        help="In CSV, write an apostrophe before labels that a spreadsheet would run as a formula.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor what was learned.")]


def out_option(kind: str, more: str = "", default: str | bool = False) -> Any:
    """The option for the file that a command writes."""
    return typer.Option("--out", "-o", help=f"{kind} to write{more}.", show_default=default)


# --- from text to values ------------------------------------------------------------------------------------


def split_names(text: str) -> list[str]:
    """Names separated by commas; as in a CSV file, one that holds a comma can be quoted."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def parse_available(text: str) -> dict[str, str]:
    """The column of each action that is not always available, from texts such as car=CAR_AV,bus=BUS_AV."""
    columns: dict[str, str] = {}
    for part in split_names(text):
        action, sign, column = (piece.strip() for piece in part.partition("="))
        if not (action and sign and column):
            raise Refusal(f"--available: {part!r} is not an action and its column, such as car=CAR_AV.")
        if action in columns:
            raise Refusal(f"--available: the action {action!r} is named twice.")
        columns[action] = column
    if not columns:
        raise Refusal("--available: name actions and their columns, such as car=CAR_AV,bus=BUS_AV.")
    return columns


def parse_shape(text: str) -> tuple[int, ...]:
    """Sizes of the axes of a picture, such as 2,21,65."""
    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        shape = ()
    if len(shape) < 2 or min(shape) < 1 or prod(shape) > LARGEST_PICTURE:
        shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
        raise Refusal(f"--shape: {shown!r} is not two or more sizes separated by commas, such as 8,8 or 2,21,65.")
    return shape


def load_model(path: Path) -> "FeaturePolicyClassifier":
    """The model in a file."""
    with user_errors():
        return whyact.load(path)
