"""The command line."""

from typer.testing import CliRunner

import whyact
from whyact.cli import app

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["version"])
    assert result.output.strip() == whyact.__version__


def test_demo_shows_what_was_learned(tmp_path):
    picture = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--out", str(picture)])
    assert result.exit_code == 0, result.output
    assert "5 features explain 80 demonstrations" in result.output
    assert "Accuracy on the 40 moments" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_refuses_a_folder_that_is_not_there(tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "no" / "demo.png")])
    assert result.exit_code == 2
    assert "does not" in result.output
