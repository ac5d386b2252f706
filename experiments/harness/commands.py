"""What the commands of all studies share: options in words, errors in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path

import typer

from whyact.cli import run_command_line


def make_app() -> typer.Typer:
    """An empty command line for one study."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich")


def run_app(app: typer.Typer) -> None:
    """Run a study's command line as `whyact` runs its own: errors in one sentence."""
    run_command_line(app)


def parse_numbers(text: str | None, option: str, kind: type) -> tuple | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    numbers = []
    for part in text.split(","):
        try:
            number = kind(part)
            fits = isfinite(number)
        except (ValueError, OverflowError):
            fits = False
        if not fits:
            name = "a whole number" if kind is int else "a number"
            raise typer.BadParameter(f"{part.strip()!r} is not {name}.", param_hint=option)
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))


def parse_names(text: str | None, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names separated by commas; all that are known if none is given."""
    if text is None:
        return known
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.", param_hint=option)
    return names


@contextmanager
def study_errors(out: Path) -> Iterator[None]:
    """Say in one sentence what is wrong with a study's folder, or that it was stopped."""
    from experiments.harness.store import StudyError

    try:
        yield
    except StudyError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None
    except KeyboardInterrupt:
        typer.echo(f"Stopped. The finished runs are in {out}; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
