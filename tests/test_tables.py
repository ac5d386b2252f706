"""Demonstrations from CSV files, and what is said about those that cannot be used."""

import numpy as np
import pytest

from whyact.tables import ArgumentError, read_table, suggest

GOOD = "u,speed,distance,episode\nbrake,1,2.5,a\nkeep,3,,a\n,5,6,b\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="demos.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_columns_find_their_place(write):
    table = read_table(write(GOOD), "u", "episode")
    assert list(table.X) == ["speed", "distance"]
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, np.nan], [5, 6]])
    assert table.y[:2].tolist() == ["brake", "keep"]
    assert table.y.isna().tolist() == [False, False, True]
    assert table.groups.tolist() == ["a", "a", "b"]


def test_columns_can_be_chosen(write):
    table = read_table(write(GOOD), "u", columns=["distance", "speed", "speed"])
    assert list(table.X) == ["distance", "speed"]
    assert table.groups is None


def test_labels_stay_as_they_are_written(write):
    """An action None is to do nothing, and 007 is not 7."""
    table = read_table(write("x,u,drive\n1,None,007\n2,1.0,7\n3,null,7\n4,NA,8\n"), "u", "drive")
    assert table.y[:3].tolist() == ["None", "1.0", "null"]
    assert table.y.isna().tolist() == [False, False, False, True]
    assert table.groups.tolist() == ["007", "7", "7", "8"]


def test_hostile_names_are_only_names(write):
    names = ["a,b", 'say "hi"', "[red]x[/red]", "line\nbreak", "__class__", "ü 距離", "0", "=1+1"]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in [*names, "u"])
    rows = "\n".join(",".join(["1.5"] * len(names) + [action]) for action in ("a", "b"))
    table = read_table(write(f"{header}\n{rows}\n"), "u")
    assert list(table.X) == names
    assert (table.X == 1.5).all(axis=None)


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),  # the mark of a spreadsheet's UTF-8
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        GOOD.replace(",", ", "),
        GOOD.replace("\n", "\n\n"),
    ],
)
def test_dialects_read_the_same(write, text):
    table = read_table(write(text), "u", "episode")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, np.nan], [5, 6]])
    assert table.groups.tolist() == ["a", "a", "b"]


def test_truth_values_are_numbers(write):
    assert read_table(write("x,u\nTrue,a\nFalse,b\n"), "u").X["x"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "options", "argument", "sentence"),
    [
        ("", {}, "path", r"demos\.csv is empty"),
        ("\n \n", {}, "path", "is empty"),
        (b"\x89PNG\r\n\x1a\n\xff", {}, "path", "it is not text in UTF-8"),
        ("x,u\n", {}, "path", "has a header, but no rows"),
        ("x;u\n1;a\n", {}, "path", r"one column only \('x;u'\); fields are separated by commas"),
        ("x,u\n1,a\n2,b,3\n", {}, "path", "line 3 has 3 fields, the header 2"),
        ("x,u\n1,a\n2\n", {}, "path", "line 3 has 1 fields, the header 2"),
        ('x,u\n1,"a\n', {}, "path", "is not a CSV file"),
        ("x,x,u\n1,2,a\n", {}, "path", "more than one column 'x'"),
        (",x,u\n0,2,a\n", {}, "columns", "column 1 of .* has no name"),
        ("x,U,v\n1,a,2\n", {}, "action", r"has no column 'u', did you mean 'U'\? There are x, U, v\."),
        ("x,action\n1,a\n", {}, "action", r"has no column 'u'\. There are x, action\."),
        (GOOD, {"groups": "episodes"}, "groups", "no column 'episodes', did you mean 'episode'"),
        (GOOD, {"groups": "u"}, "groups", "both the action and the groups"),
        (GOOD, {"columns": ["sped"]}, "columns", "no column 'sped', did you mean 'speed'"),
        (GOOD, {"columns": ["u"]}, "columns", "'u' holds the action"),
        (GOOD, {"columns": []}, "columns", "no column left"),
        (GOOD, {}, "columns", r"the column 'episode' .* is not numeric \('a'\); say which columns to use"),
        ("x,y,u\n1,2 m,a\n2,3,b\n", {}, "columns", r"'y' .* is not numeric \('2 m'\)"),
        ("x,u\ninf,a\n2,b\n", {}, "columns", "'x' .* holds infinity"),
    ],
)
def test_files_that_cannot_be_used_get_one_clear_sentence(write, text, options, argument, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_table(write(text), "u", **options)
    assert error.value.argument == argument
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ArgumentError, match="there is no file"):
        read_table(tmp_path / "none.csv", "u")
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        read_table(tmp_path, "u")


def test_long_lists_are_cut_short():
    assert suggest("x", [f"column {i}" for i in range(2730)]).endswith("column 19 and 2710 more.")
