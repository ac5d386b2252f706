"""The study of traffic: drivers in the simulator, and the table that the page of drives reads."""

from typer.testing import CliRunner

from experiments.driving import traffic
from experiments.driving.page import TRAFFIC_FILE, read_traffic

runner = CliRunner()


def test_traffic_study_writes_what_the_page_of_drives_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(traffic, "OPTIONS", {**traffic.OPTIONS, "n_burn_in": 10, "n_draws": 10, "max_features": 5})
    out = tmp_path / TRAFFIC_FILE
    result = runner.invoke(traffic.app, ["--out", str(out), "--episodes", "2"])
    assert result.exit_code == 0, result.output
    drivers = read_traffic(tmp_path)
    assert {"learned", "expert", "random", "idle"} <= set(drivers["driver"])
    assert (drivers["n_episodes"] == 2).all()
    assert drivers["crash_rate"].between(0, 1).all()
    result = runner.invoke(traffic.app, ["--out", str(tmp_path / "no" / "x.csv")])
    assert result.exit_code == 2
