"""Labels that a spreadsheet would run are written as text, and read as they were."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyact.tables import read_demonstrations
from whyact.tables.cells import protect, unprotect
from whyact.tables.predictions import PredictionWriter

FORMULAS = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\x00=1", "＝1+1", "=cmd|' /C calc'!A0",
    "+49 30 1",
]  # fmt: skip
PLAIN = ["brake", "-1", "+1", "-1.5", "-.5", "+1.5e-3", "1-2", "a=b", "", " ", "left turn", "’tis"]
STARTS_WITH_APOSTROPHE = ["'", "''", "'tis", "'=1", "''=1", "'-1"]


@pytest.mark.parametrize("label", FORMULAS)
def test_a_formula_becomes_a_text(label):
    assert protect(label) == "'" + label


@pytest.mark.parametrize("label", PLAIN)
def test_other_labels_and_numbers_stay(label):
    assert protect(label) == label


@given(st.text() | st.text(alphabet="'=+-@ \t\r\n1.e"))
def test_reading_undoes_writing(label):
    assert unprotect(protect(label)) == label


def write_labels(path, labels, **options):
    """Predictions with the given labels, one in each row."""
    file = io.BytesIO()
    writer = PredictionWriter(file, labels, **options)
    writer.write(np.eye(len(labels)), np.zeros((len(labels), 0)), np.ones(len(labels)))
    path.write_bytes(file.getvalue())


def read_labels(path):
    return read_demonstrations(path, action="action", columns=["familiarity"]).y.tolist()


def test_labels_in_a_file_come_back(tmp_path):
    labels = [label for label in FORMULAS + PLAIN + STARTS_WITH_APOSTROPHE if label.strip() and "\0" not in label]
    write_labels(tmp_path / "out.csv", labels)
    with open(tmp_path / "out.csv", newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert all(cell[0] not in "=@\t\r\n" for cell in cells)
    assert all(cell[0] not in "+-" or float(cell) is not None for cell in cells)
    assert read_labels(tmp_path / "out.csv") == labels


@settings(deadline=None, max_examples=50)
@given(labels=st.lists(st.text(alphabet="'=+-@ \t\r\n1a,\"", min_size=1).filter(str.strip), min_size=2, unique=True))
def test_any_labels_in_a_file_come_back(labels, tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "out.csv"
    write_labels(path, labels)
    assert read_labels(path) == labels


def test_labels_can_be_written_as_they_are(tmp_path):
    write_labels(tmp_path / "out.csv", ["=1+1", "brake"], protect_labels=False)
    assert pd.read_csv(tmp_path / "out.csv")["action"].tolist() == ["=1+1", "brake"]


def test_a_file_of_another_tool_keeps_its_apostrophes(tmp_path):
    (tmp_path / "in.csv").write_text("x,action\n1,'tis\n2,'quoted'\n3,'=1\n")
    assert read_demonstrations(tmp_path / "in.csv", action="action").y.tolist() == ["'tis", "'quoted'", "=1"]
