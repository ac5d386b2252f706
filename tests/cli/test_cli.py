"""The command line as a whole: one dialect, one shape of errors, an answer at once."""

import subprocess
import sys

import pytest
import typer.main

import whyact
from tests.support.command_line import invoke
from whyact import cli
from whyact.cli.arguments import LARGEST_SEED, SCALE_AUTO_HELP
from whyact.estimators.settings_file import SEED

COMMANDS = typer.main.get_command(cli.app).commands


def list_options():
    """Each option of each command."""
    for command in COMMANDS.values():
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                yield command.name, option


def test_version():
    assert invoke("version").output.strip() == whyact.__version__
    assert invoke("--version").output.strip() == whyact.__version__


def test_the_same_option_is_called_and_explained_the_same_in_every_command():
    explained = {}
    for command, option in list_options():
        if option.name != "out":
            # `compare` scales or does not; only `fit` goes on to say what "auto" does
            explained.setdefault(option.name, {})[command] = (
                tuple(option.opts),
                option.help.removesuffix(f" {SCALE_AUTO_HELP}"),
            )
    assert {"n_jobs", "random_state", "action", "columns", "shape", "scale_columns", "prediction", "quiet"} <= {
        name for name, commands in explained.items() if len(commands) > 1
    }
    assert all(len(set(commands.values())) == 1 for commands in explained.values()), explained


def test_every_command_that_writes_does_so_with_o():
    writing = {command for command, option in list_options() if option.name == "out"}
    assert writing == {"fit", "predict", "explain", "report", "simulate", "compare", "demo"}
    assert all(option.opts == ["--out", "-o"] for _, option in list_options() if option.name == "out")


def test_seeds_are_those_that_the_estimator_takes():
    assert SEED.accepts(LARGEST_SEED)
    assert not SEED.accepts(LARGEST_SEED + 1)
    assert not SEED.accepts(-1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit"], "Missing argument 'FILE'."),
        (["fit", "d.csv"], "Missing option '--out' / '-o'."),
        (["fit", "d.csv", "-o", "m.nc", "--n-levels", "many"], "--n-levels: "),
        (["fit", "d.csv", "-o", "m.nc", "--n-levels", "1"], "--n-levels: 1 is not a whole number from 2 to 65536."),
        (["fit", "d.csv", "-o", "-"], "--out: only `predict` writes to standard output; give a file."),
        (["resume", "x", "--n-jobs", "0"], "--n-jobs: 0 jobs would never finish"),
        (["predict", "m.nc", "d.csv", "--n-jobs", "0"], "--n-jobs: 0 jobs would never finish"),
        (["predict", "m.nc", "d.csv", "--prediction", "best"], "--prediction: 'best' is not mmse or map."),
        (["explain", "m.nc", "d.csv", "--nearest", "-1"], "--nearest: "),
        (["explain", "m.nc", "d.csv", "--interval", "90"], "--interval: 90 is not between 0 and 1."),
        (["report", "m.nc", "-o", "r.html", "--kind", "pie"], "--kind: 'pie' is not bars, image or curve."),
        (["report", "m.nc", "-o", "r.html", "--origin", "left"], "--origin: 'left' is not upper or lower."),
        (["compare", "d.csv", "--action", "u", "--n-jobs", "0"], "--n-jobs: 0 jobs would never finish"),
        (["compare", "d.csv", "--action", "u", "--random-state", "-1"], "--random-state: -1 is not a whole number"),
        (["demo", "--random-state", "4294967296"], "--random-state: 4294967296 is not a whole number from 0 to 429"),
        (["demo", "-o", "demo.txt"], "--out: demo.txt does not end with .png, .svg or .pdf."),
        (["demo", "-o", "no/demo.png"], "--out: the folder no does not exist; create it first."),
        (["info", "m.nc"], "there is no file m.nc."),
        (["fit", "d.csv", "-o", "m.nc", "--jobs", "1"], "No such option: --jobs"),
        (["dmeo"], "No such command 'dmeo'"),
    ],
)
def test_errors_are_one_sentence_that_begins_with_the_option(monkeypatch, tmp_path, capfd, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["whyact", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"whyact: {sentence}")
    assert err.endswith((".\n", "?\n"))
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_nothing_heavy_is_imported_for_help():
    code = (
        "import sys; from whyact.cli import app; from typer.testing import CliRunner; "
        "assert '--n-burn-in' in CliRunner().invoke(app, ['fit', '--help']).output; "
        "heavy = [name for name in ('numpy', 'numba', 'pandas', 'sklearn', 'scipy', 'xarray') if name in sys.modules]; "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
