"""What the commands share: arguments in words, and errors in one sentence."""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer

# Option of the command line for each argument that those below may complain about.
OPTIONS = {
    "path": "",
    "dataset": "",
    "action": "--action",
    "y": "--action",
    "groups": "--groups",
    "columns": "--columns",
    "ignore": "--ignore",
    "X": "--columns",
    "config": "--config",
    "shape": "--shape",
    "missing_action": "--missing-action",
}


class Refusal(typer.BadParameter):
    """One sentence for the user."""

    def format_message(self) -> str:
        return self.message


@contextmanager
def user_errors(options: Mapping[str, str] = OPTIONS) -> Iterator[None]:
    """Turn what is wrong with the user's input into one sentence, with the option that it is about."""
    from whyact.errors import ArgumentError

    try:
        yield
    except ArgumentError as error:
        option = options.get(error.argument, "")
        raise Refusal(f"{option}: {error}" if option else str(error)) from None
    except ImportError as error:  # an extra that is not installed
        raise Refusal(f"{str(error).rstrip('.')}.") from None
    except (ValueError, FloatingPointError, MemoryError) as error:
        raise Refusal(str(error) or "there is not enough memory.") from None
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        name = f"{error.filename}: " if error.filename else ""
        raise Refusal(f"{name}{error.strerror or error}.") from None


def split_names(text: str | None) -> list[str] | None:
    """Names separated by commas; as in a CSV file, one that holds a comma can be quoted."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """Sizes of the axes of a picture, such as 2,21,65."""
    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        shape = ()
    if len(shape) < 2 or min(shape) < 1:
        raise Refusal(f"--shape: {text!r} is not two or more sizes separated by commas, such as 8,8 or 2,21,65.")
    return shape


def check_shape(shape: tuple[int, ...] | None, n_columns: int) -> None:
    from math import prod

    if shape is not None and prod(shape) != n_columns:
        sizes = " x ".join(map(str, shape))
        raise Refusal(f"--shape: {sizes} is {prod(shape)}, but there are {n_columns} observed columns.")


def check_output(path: Path, *inputs: Path | str, option: str = "--out", endings: tuple[str, ...] = ()) -> None:
    """Say what is wrong with a file to write before the work, not after it.

    A name must end as what is written, so that a slip does not overwrite the data.
    """
    if str(path) == "-":
        raise Refusal(f"{option}: give a file; only `predict` writes to standard output.")
    if endings and path.suffix.lower() not in endings:
        raise Refusal(f"{option}: {path} does not end with {' or '.join(endings)}.")
    if not path.parent.is_dir():
        raise Refusal(f"{option}: the folder {path.parent} does not exist.")
    if path.is_dir():
        raise Refusal(f"{option}: {path} is a folder.")
    for source in inputs:
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise Refusal(f"{option}: {path} is the file to read from.")


def check_jobs(n_jobs: int | None) -> None:
    if n_jobs == 0:
        raise Refusal("--n-jobs: 0 at a time would never end.")


def load(path: Path):
    """The model in a file."""
    import whyact

    with user_errors():
        return whyact.load(path)
