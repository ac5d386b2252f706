"""Names and labels made by an enemy, on their way to a terminal and to a spreadsheet."""

import csv
import io
import sys

import numpy as np
import pandas as pd
import pytest

from tests.cli.quick import QUICK
from tests.support.command_line import call, invoke, said
from tests.support.forging import forge, set_attribute
from whyact import FeaturePolicyClassifier
from whyact.errors import ArgumentError
from whyact.tables import read_demonstrations
from whyact.tables.predictions import open_predictions
from whyact.visible import UNSEEN

LABELS = ["=cmd|' /C calc'!A0", "\x1b]0;x\x07\nWritten: it", "-1+2", "-1", "'tis"]
COLUMNS = ["\x1b[31mspeed", "gap\nfile: it", "\u202enoise"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Demonstrations and a model of them; do not change them."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((50, 3)), columns=COLUMNS)
    frame["label"] = [LABELS[i] for i in rng.integers(len(LABELS), size=50)]
    frame.to_csv(folder / "demos.csv", index=False)
    fitted = call("fit", folder / "demos.csv", "--action", "label", "-o", folder / "model.nc", *QUICK[:-1])
    (folder / "said").write_text(fitted)
    return folder


def check_shown(text):
    """Nothing moves the cursor, and no name begins a line."""
    assert not UNSEEN.search(text.replace("\n", ""))
    assert not [line for line in text.split("\n") if line.startswith(("Written: it", "file: it"))]


def test_what_commands_say_is_visible(hostile):
    check_shown((hostile / "said").read_text())
    assert "\\x1b" in (hostile / "said").read_text()
    for arguments in (["info"], ["explain", hostile / "demos.csv", "--row", "0", "--row", "7"]):
        check_shown(call(arguments[0], hostile / "model.nc", *arguments[1:]))


@pytest.mark.parametrize("libraries", ["[" * 50_000, "[1]", "1" * 5000, '{"a": 1'], ids=lambda text: text[:3])
def test_a_file_may_say_anything_of_its_libraries(hostile, tmp_path, libraries):
    forge(hostile / "model.nc", set_attribute("libraries", libraries), tmp_path / "model.nc")
    assert "unknown libraries" in call("info", tmp_path / "model.nc")


def test_errors_are_visible(hostile, tmp_path):
    frame = pd.read_csv(hostile / "demos.csv")
    frame.drop(columns=COLUMNS[1]).to_csv(tmp_path / "less\x1b[2J.csv", index=False)
    frame.assign(**{COLUMNS[0]: "\x1b[2J"}).to_csv(tmp_path / "words.csv", index=False)
    for source in (tmp_path / "less\x1b[2J.csv", tmp_path / "words.csv", tmp_path / "no\nsuch\x1b.csv"):
        for command in ("predict", "explain"):
            result = invoke(command, hostile / "model.nc", source)
            assert result.exit_code == 2
            check_shown(str(result.exception) + result.output)
    result = invoke("fit", hostile / "demos.csv", "--action", "\x1b[2J", "-o", tmp_path / "m.nc")
    assert result.exit_code == 2
    check_shown(result.output)


def test_a_spreadsheet_gets_no_formula_and_whyact_gets_the_labels(hostile, tmp_path):
    for command, output in (("predict", "p.csv"), ("explain", "e.csv")):
        call(command, hostile / "model.nc", hostile / "demos.csv", "-o", tmp_path / output)
        with open(tmp_path / output, newline="") as file:
            cells = {row["action"] for row in csv.DictReader(file)}
        assert cells <= {"'" + LABELS[0], LABELS[1], "'" + LABELS[2], "-1", "''tis"}
        call(command, hostile / "model.nc", hostile / "demos.csv", "-o", tmp_path / f"raw-{output}", "--no-protect")
        with open(tmp_path / f"raw-{output}", newline="") as file:
            raw = [row["action"] for row in csv.DictReader(file)]
        assert set(raw) <= set(LABELS)
        column = "familiarity" if command == "predict" else "term"
        assert read_demonstrations(tmp_path / output, action="action", columns=[column]).y.tolist() == raw


def test_a_terminal_gets_visible_labels_and_a_pipe_the_labels(monkeypatch):
    for is_terminal in (True, False):
        out = io.TextIOWrapper(io.BytesIO())
        monkeypatch.setattr(out, "isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        monkeypatch.setattr(sys, "stdout", out)
        with open_predictions("-", ["\x1b[2J", "keep"]) as writer:
            writer.write(np.eye(2), np.ones((2, 1)), np.ones(2))
        assert (b"\x1b" in out.buffer.getvalue()) != is_terminal
        monkeypatch.undo()


def test_names_that_no_system_knows_are_refused_in_one_sentence(hostile, tmp_path):
    long = tmp_path / ("x" * 300)
    for arguments in (
        ["predict", hostile / "model.nc", hostile / "demos.csv", "-o", f"{long}.csv"],
        ["report", hostile / "model.nc", "-o", f"{long}.html"],
        ["fit", hostile / "demos.csv", "--action", "label", "-o", f"{long}.nc"],
        ["predict", f"{long}.nc", hostile / "demos.csv"],
        ["predict", hostile / "model.nc", f"{long}.csv"],
        ["resume", f"{long}.nc.run"],
    ):
        result = invoke(*arguments)
        assert isinstance(result.exception, SystemExit), arguments
        assert (result.exit_code, "too long" in said(result)) == (2, True), result.output


def test_a_closed_standard_output_is_said(hostile, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ArgumentError, match="standard output is closed"), open_predictions("-", ["a", "b"]):
        pass


def test_nothing_is_printed_before_a_refusal(hostile, monkeypatch):
    def refuse(*_, **__):
        raise ValueError("it cannot be")

    monkeypatch.setattr(FeaturePolicyClassifier, "judge", refuse)
    result = invoke("predict", hostile / "model.nc", hostile / "demos.csv")
    assert result.exit_code == 2
    assert "it cannot be" in result.output
    assert "familiarity" not in result.output


def test_numbers_beyond_all_bounds_are_refused_in_one_sentence(hostile, tmp_path):
    frame = pd.read_csv(hostile / "demos.csv")
    for number, sentence in (("1e300", "whose squares overflow"), ("1" * 400, "holds infinity")):
        lines = frame.astype({COLUMNS[0]: str})
        lines.loc[:, COLUMNS[0]] = number
        lines.to_csv(tmp_path / "huge.csv", index=False)
        result = invoke("predict", hostile / "model.nc", tmp_path / "huge.csv")
        assert (result.exit_code, sentence in result.output) == (2, True), result.output
        assert isinstance(result.exception, SystemExit)
