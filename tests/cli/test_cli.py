"""The command line."""

import re

from typer.testing import CliRunner

import whyact
from experiments.driving.traffic import app as traffic_app
from whyact.cli import app

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["version"])
    assert result.output.strip() == whyact.__version__


def test_demo_shows_what_was_learned(tmp_path):
    picture = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--out", str(picture)])
    assert result.exit_code == 0, result.output
    assert "12 features explain 630 demonstrations" in result.output
    assert re.search(r"Accuracy in the 210 moments of 105 episodes it has not seen: 0\.[67]", result.output)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_refuses_a_folder_that_is_not_there(tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "no" / "demo.png")])
    assert result.exit_code == 2
    assert "does not" in result.output


def test_traffic_study_writes_what_the_page_of_drives_reads(tmp_path, monkeypatch):
    from experiments.driving import traffic
    from experiments.driving.page import TRAFFIC_FILE, read_traffic

    monkeypatch.setattr(traffic, "OPTIONS", {**traffic.OPTIONS, "n_burn_in": 10, "n_draws": 10, "max_features": 5})
    out = tmp_path / TRAFFIC_FILE
    result = runner.invoke(traffic_app, ["--out", str(out), "--episodes", "2"])
    assert result.exit_code == 0, result.output
    drivers = read_traffic(tmp_path)
    assert {"learned", "expert", "random", "idle"} <= set(drivers["driver"])
    assert (drivers["n_episodes"] == 2).all()
    assert drivers["crash_rate"].between(0, 1).all()
    result = runner.invoke(traffic_app, ["--out", str(tmp_path / "no" / "x.csv")])
    assert result.exit_code == 2
