"""The command line. Each module holds the commands for one purpose; here they come together.

Only typer is imported before a command runs, so that `whyact --help` answers at once.
"""

import os
import sys
from typing import Annotated, Any

import typer

from whyact.cli.arguments import say
from whyact.cli.comparison import compare
from whyact.cli.demo import demo
from whyact.cli.fitting import fit, resume
from whyact.cli.models import explain, info, predict, report
from whyact.cli.simulating import simulate
from whyact.version import __version__
from whyact.visible import make_visible

app = typer.Typer(help="Learn why a teacher acts.", no_args_is_help=True)
for command in (fit, resume, predict, explain, report, info, simulate, compare, demo):
    app.command()(command)


@app.command()
def version() -> None:
    """Print the version."""
    say(__version__)


def print_version(asked: bool) -> None:
    """What --version does."""
    if asked:
        version()
        raise typer.Exit


@app.callback()
def callback(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn why a teacher acts."""


# typer has its own copy of click in later versions, so the exception is found where it is.
UserError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main() -> None:
    """What the command `whyact` runs."""
    run_command_line(app)


def run_command_line(app: typer.Typer) -> None:
    """Run a command line; errors are one sentence on standard error.

    Exit codes: 0 done; 1 failed for a reason that is not the user's doing; 2 wrong options, or a file that cannot be
    used; 130 stopped by Ctrl-C.
    """
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            say(f"whyact: {describe_error(error)}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        say("whyact: stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # the reader of a pipe has left, as `head` does; Python would complain once more when it closes its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def describe_error(error: Any) -> str:
    """One sentence; what typer says about an option gets the shape of our own messages."""
    text = error.format_message()
    if type(error) is typer.BadParameter:
        name = error.param_hint or (error.param.opts[0] if error.param else "")
        text = f"{name}: {error.message}" if name else error.message
    text = make_visible(" ".join(text.split()))
    return text if text.endswith((".", "?")) else f"{text}."
