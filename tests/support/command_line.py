"""Run commands as a user does, in this process or in one of its own."""

import subprocess
import sys

from typer.testing import CliRunner

from whyact import cli

QUICK = ["--n-burn-in", "40", "--n-draws", "40", "--n-chains", "2", "--n-jobs", "1", "-q"]

runner = CliRunner()


def invoke(*arguments):
    """The result of a command in this process."""
    return runner.invoke(cli.app, [str(argument) for argument in arguments])


def call(*arguments):
    """The output of a command, which must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def said(result) -> str:
    """What a command said, without typer's frame around it."""
    return " ".join(result.output.replace("│", " ").split())


def run(*arguments, **options):
    """The result of a command in a process of its own, as a shell would run it."""
    return subprocess.run(
        [sys.executable, "-m", "whyact", *map(str, arguments)], capture_output=True, text=True, timeout=300, **options
    )
