"""What the commands of all studies share: options in words, errors in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TypeVar

import typer

from experiments.harness.store import StudyError
from whyact.cli import run_command_line
from whyact.cli.arguments import Refusal

Number = TypeVar("Number", int, float)


def make_app() -> typer.Typer:
    """An empty command line for one study."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich")


def run_app(app: typer.Typer) -> None:
    """Run a study's command line as `whyact` runs its own: errors in one sentence."""
    run_command_line(app)


def parse_numbers(text: str | None, option: str, kind: type[Number], default: tuple[Number, ...]) -> tuple[Number, ...]:
    """Numbers separated by commas."""
    if text is None:
        return default
    return tuple(dict.fromkeys(parse_number(part.strip(), option, kind) for part in text.split(",")))


def parse_number(text: str, option: str, kind: type[Number]) -> Number:
    """A finite number."""
    try:
        number = kind(text)
        if isfinite(number):
            return number
    except (ValueError, OverflowError):
        pass
    raise Refusal(f"{option}: {text!r} is not {'a whole number' if kind is int else 'a number'}.")


def parse_names(text: str | None, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names separated by commas; all that are known if none is given."""
    if text is None:
        return known
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            raise Refusal(f"{option}: {name!r} is not one of {', '.join(known)}.")
    return names


def check_least(option: str, number: int | None, least: int) -> None:
    """Refuse a number that is too small."""
    if number is not None and number < least:
        raise Refusal(f"{option}: {number} is less than {least}.")


@contextmanager
def study_errors(out: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a study's folder, or that the study was stopped."""
    try:
        yield
    except StudyError as error:
        raise Refusal(f"--out: {error}") from None
    except KeyboardInterrupt:
        typer.echo(f"Stopped. The finished runs are in {out}; the same command continues from there.", err=True)
        raise typer.Exit(130) from None
