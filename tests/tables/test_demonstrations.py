"""Demonstrations from files, and what is said about those that cannot be used."""

import gzip
import io
import pickle
import struct
import sys
import zipfile
from importlib.util import find_spec

import numpy as np
import pandas
import pytest

from whyact.errors import ArgumentError, suggest
from whyact.tables import csv as csv_files
from whyact.tables import source as sources
from whyact.tables.demonstrations import read_demonstrations

GOOD = "u,speed,distance,episode\nbrake,1,2.5,a\nkeep,3,,a\n,5,6,b\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="demos.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_columns_find_their_place(write):
    table = read_demonstrations(write(GOOD), action="u", groups="episode")
    assert list(table.X) == ["speed", "distance"]
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, np.nan], [5, 6]])
    assert table.y[:2].tolist() == ["brake", "keep"]
    assert table.y.isna().tolist() == [False, False, True]
    assert table.groups.tolist() == ["a", "a", "b"]


def test_columns_can_be_chosen(write):
    table = read_demonstrations(write(GOOD), action="u", columns=["distance", "speed", "speed"])
    assert list(table.X) == ["distance", "speed"]
    assert table.groups is None


def test_labels_stay_as_they_are_written(write):
    """An action None is to do nothing, and 007 is not 7."""
    table = read_demonstrations(write("x,u,drive\n1,None,007\n2,1.0,7\n3,null,7\n4,NA,8\n"), action="u", groups="drive")
    assert table.y[:3].tolist() == ["None", "1.0", "null"]
    assert table.y.isna().tolist() == [False, False, False, True]
    assert table.groups.tolist() == ["007", "7", "7", "8"]


def test_hostile_names_are_only_names(write):
    names = ["a,b", 'say "hi"', "[red]x[/red]", "line\nbreak", "__class__", "ü 距離", "0", "=1+1"]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in [*names, "u"])
    rows = "\n".join(",".join(["1.5"] * len(names) + [action]) for action in ("a", "b"))
    table = read_demonstrations(write(f"{header}\n{rows}\n"), action="u")
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
    table = read_demonstrations(write(text), action="u", groups="episode")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, np.nan], [5, 6]])
    assert table.groups.tolist() == ["a", "a", "b"]


def test_truth_values_are_numbers(write):
    assert read_demonstrations(write("x,u\nTrue,a\nFalse,b\n"), action="u").X["x"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "options", "argument", "sentence"),
    [
        ("", {}, "path", r"demos\.csv is empty"),
        ("\n \n", {}, "path", "is empty"),
        (b"\x89PNG\r\n\x1a\n\xff", {}, "path", "it is not text in UTF-8"),
        ("x,u\n", {}, "path", "has a header, but no rows"),
        ("x;u\n1;a\n", {}, "path", r"only one column \('x;u'\); fields must be separated by commas"),
        ("x,u\n1,a\n2,b,3\n", {}, "path", "line 3 has 3 fields, but the header has 2"),
        ("x,u\n1,a\n2\n", {}, "path", "line 3 has 1 fields, but the header has 2"),
        ('x,u\n1,"a\n', {}, "path", "is not a CSV file"),
        ("x,x,u\n1,2,a\n", {}, "path", "more than one column 'x'"),
        (",x,u\n0,2,a\n", {}, "columns", "column 1 of .* has no name"),
        ("x,U,v\n1,a,2\n", {}, "action", r"has no column 'u', did you mean 'U'\? Available: x, U, v\."),
        ("x,action\n1,a\n", {}, "action", r"has no column 'u'\. Available: x, action\."),
        (GOOD, {"groups": "episodes"}, "groups", "no column 'episodes', did you mean 'episode'"),
        (GOOD, {"groups": "u"}, "groups", "both the action and the groups"),
        (GOOD, {"columns": ["sped"]}, "columns", "no column 'sped', did you mean 'speed'"),
        (GOOD, {"columns": ["u"]}, "columns", "'u' holds the action"),
        (GOOD, {"columns": []}, "columns", "no column left"),
        (
            GOOD,
            {},
            "columns",
            r"the column 'episode' .* is not numeric \('a'\); leave it out .ignore., or say which columns to use",
        ),
        ("x,y,u\n1,2 m,a\n2,3,b\n", {}, "columns", r"'y' .* is not numeric \('2 m'\)"),
        ("x,u\ninf,a\n2,b\n", {}, "columns", "'x' .* holds infinity"),
    ],
)
def test_files_that_cannot_be_used_get_one_clear_sentence(write, text, options, argument, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(write(text), action="u", **options)
    assert error.value.argument == argument
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ArgumentError, match="there is no file"):
        read_demonstrations(tmp_path / "none.csv", action="u")
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        read_demonstrations(tmp_path, action="u")


def test_long_lists_are_cut_short():
    assert suggest("x", [f"column {i}" for i in range(2730)]).endswith("column 19 and 2710 more.")


def test_tabs_and_compression_are_told_by_the_name(write):
    for text, name in (
        (GOOD.replace(",", "\t"), "demos.tsv"),
        (gzip.compress(GOOD.encode()), "demos.csv.gz"),
        (gzip.compress(GOOD.replace(",", "\t").encode()), "demos.TSV.gz"),
    ):
        table = read_demonstrations(write(text, name), action="u", groups="episode")
        np.testing.assert_array_equal(table.X, [[1, 2.5], [3, np.nan], [5, 6]])
        assert table.y.tolist() == ["brake", "keep", None]
        assert table.shape is None


def test_it_must_be_said_where_the_action_is(write):
    with pytest.raises(ArgumentError, match=r"holds the action in .*, or say that there is no .*Available: u, speed"):
        read_demonstrations(write(GOOD))
    with pytest.raises(ArgumentError, match="the action 'u' is named, but no actions are to be read"):
        read_demonstrations(write(GOOD), action="u", without_actions=True)
    table = read_demonstrations(write(GOOD), without_actions=True, ignore=["u", "episode"])
    assert list(table.X) == ["speed", "distance"]
    assert table.y is None


def test_columns_can_be_ignored(write):
    table = read_demonstrations(write(GOOD), action="u", ignore=["episode"])
    assert list(table.X) == ["speed", "distance"]
    with pytest.raises(ArgumentError, match="no column 'episodes', did you mean 'episode'") as error:
        read_demonstrations(write(GOOD), action="u", ignore=["episodes"])
    assert error.value.argument == "ignore"
    with pytest.raises(ArgumentError, match="both observed and ignored"):
        read_demonstrations(write(GOOD), action="u", columns=["speed"], ignore=["speed"])


def test_a_label_may_mark_missing_actions(write):
    table = read_demonstrations(write("x,u\n1,?\n2,go\n3,\n"), action="u", missing_action="?")
    assert table.y.tolist() == [None, "go", None]


def test_words_for_missing_numbers(write):
    words = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
    path = write("x,u\n1,a\n" + "".join(f"{word},b\n" for word in words))
    assert read_demonstrations(path, action="u").X["x"].isna().tolist() == [False] + [True] * len(words)


def test_truth_and_numbers_may_mix(write):
    """Whether rows come in one block or in many must not matter."""
    assert read_demonstrations(write("x,u\nTrue,a\n0.5,b\nfalse,b\n"), action="u").X["x"].tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (b"x,u\n1,a\n2,b\x00\n", {}, "line 3 has a NUL character"),
        (b"x,u\n1,a\n\xff,b\n", {}, "not text in UTF-8"),
        ('x,u\n1,"a""\n2,b\n', {}, "line 2 cannot be read: unexpected end of data"),
        ('x,u\n1,"a"b\n', {}, "line 2 cannot be read"),
        ("x,u\n1,a\n\n2 m,b\n", {}, r"the column 'x' of .*demos\.csv, line 4, is not numeric \('2 m'\)"),
        ('x,u,v\n1,a,"\n\n"\n2 m,b,1\n', {"columns": ["x"]}, r"line 5, is not numeric \('2 m'\)\.$"),
        ("x,u\n1,a\n-inf,b\n", {}, r"the column 'x' of .*demos\.csv, line 3, holds infinity"),
        ('"' + "x" * 200_000, {}, "field larger than field limit"),
    ],
)
def test_the_line_that_is_wrong_is_named(write, text, options, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        read_demonstrations(write(text), action="u", **options)


def test_a_line_without_end_does_not_fill_the_memory(write, monkeypatch):
    monkeypatch.setattr(csv_files, "MAX_LINE", 1000)
    with pytest.raises(ArgumentError, match="line 2 has more than 1000 characters"):
        read_demonstrations(write("x,u\n1," + "a" * 2000 + "\n"), action="u")


def test_very_many_columns_are_only_slow(write):
    """pandas takes about 0.1 ms for each, which is why there are not 100,000 in this test."""
    names = [f"x{i}" for i in range(10_000)]
    path = write(",".join([*names, "u"]) + "\n" + ",".join(["1"] * 10_000 + ["a"]) + "\n")
    assert read_demonstrations(path, action="u").X.shape == (1, 10_000)
    with pytest.raises(ArgumentError, match=r"did you mean 'x9999'\? Available: x0, .* and 9981 more\.$"):
        read_demonstrations(path, action="x99999")


# --- Parquet ------------------------------------------------------------------------------------------------------


@pytest.fixture
def write_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(**columns):
        parquet.write_table(arrow.table(columns), tmp_path / "demos.parquet", row_group_size=2)
        return tmp_path / "demos.parquet"

    return write


@pytest.mark.parametrize(
    ("actions", "read"),
    [
        (["go", "stop", "go"], ["go", "stop", "go"]),
        (["go", None, "stop"], ["go", None, "stop"]),
        ([3, 1, 3], [3, 1, 3]),
        ([3, None, 1], [3, None, 1]),
        ([3.0, None, 1.0], [3, None, 1]),
        ([True, False, True], [True, False, True]),
        (["go", "?", "stop"], ["go", None, "stop"]),
    ],
)
def test_labels_of_parquet_keep_their_type(write_parquet, actions, read):
    path = write_parquet(x=[1, None, 3], b=[True, False, None], u=actions, drive=[7, 7, 8])
    table = read_demonstrations(path, action="u", groups="drive", missing_action="?")
    assert list(table.X) == ["x", "b"]
    np.testing.assert_array_equal(table.X, [[1, 1], [np.nan, 0], [3, np.nan]])
    assert table.y.tolist() == read
    assert [type(label) for label in table.y.tolist()] == [type(label) for label in read]
    assert table.groups.tolist() == [7, 7, 8]


def test_dots_in_names_of_parquet_are_only_dots(write_parquet):
    path = write_parquet(**{"a": [1.0, 2.0], "a.b": [3.0, 4.0], "u": ["go", "stop"]})
    np.testing.assert_array_equal(read_demonstrations(path, action="u").X, [[1, 3], [2, 4]])
    assert list(read_demonstrations(path, action="u", columns=["a.b"]).X["a.b"]) == [3, 4]
    assert list(read_demonstrations(path, action="u", columns=["a"]).X["a"]) == [1, 2]


def test_categories_of_parquet_are_labels(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "u": pandas.Categorical(["go", "stop"])})
    frame.to_parquet(tmp_path / "demos.parquet")
    assert read_demonstrations(tmp_path / "demos.parquet", action="u").y.tolist() == ["go", "stop"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"x": [[1.0], [2.0]], "u": ["a", "b"]},
            "'x' of .* is not numeric .*list.*; leave it out .ignore., or say which columns to use",
        ),
        ({"x": [{"a": 1}, {"a": 2}], "u": ["a", "b"]}, "'x' of .* is not numeric .*struct"),
        ({"x": ["1", "2"], "u": ["a", "b"]}, r"'x' of .* is not numeric \(string\)"),
        ({"x": [1.0, 2.0], "u": [["a"], ["b"]]}, "'u' of .* cannot hold labels: it holds list"),
        ({"x": [1.0, 2.0], "u": [0.5, 1.0]}, r"whole numbers or names, not 0\.5"),
        ({"x": [1.0, np.inf], "u": ["a", "b"]}, "'x' of .*, row 2, holds infinity"),
        ({"x": [], "u": []}, "has no rows"),
        ({"x": [1.0], "U": ["a"]}, "no column 'u', did you mean 'U'"),
    ],
)
def test_parquet_files_that_cannot_be_used_get_one_clear_sentence(write_parquet, columns, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(write_parquet(**columns), action="u")
    assert "\n" not in str(error.value)


def test_parquet_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ArgumentError, match=r"need pyarrow: install whyact\[parquet\]"):
        read_demonstrations(write("x", "demos.parquet"), action="u")


# --- NumPy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("observations", "actions"), ("X", "y"), ("observations", "y")])
def test_arrays_find_their_place(tmp_path, names):
    images = np.arange(3 * 4, dtype=np.float32).reshape(3, 2, 2)
    np.savez(tmp_path / "demos.npz", **{names[0]: images, names[1]: ["go", "stop", "go"]})
    table = read_demonstrations(tmp_path / "demos.npz", action=None if names[1] == "actions" else names[1])
    assert list(table.X) == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(table.X, images.reshape(3, 4))
    assert table.y.tolist() == ["go", "stop", "go"]
    assert table.shape == (2, 2)


def test_some_columns_of_an_array_have_no_shape(tmp_path):
    np.savez(tmp_path / "demos.npz", observations=np.arange(12).reshape(3, 2, 2), actions=[1, 0, 1], episode=[0, 0, 1])
    table = read_demonstrations(tmp_path / "demos.npz", columns=["x2", "x0"])
    np.testing.assert_array_equal(table.X, [[2, 0], [6, 4], [10, 8]])
    assert table.shape is None
    assert table.y.tolist() == [1, 0, 1]
    assert table.groups.tolist() == [0, 0, 1]
    assert read_demonstrations(tmp_path / "demos.npz", without_actions=True).y is None


@pytest.mark.parametrize("order", ["C", "F"])
def test_pairs_of_npy_files(tmp_path, order):
    X = np.asarray(np.arange(12).reshape(3, 2, 2), order=order)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", [2, 5, 2])
    table = read_demonstrations(tmp_path / "X.npy", action=str(tmp_path / "y.npy"), missing_action="5")
    np.testing.assert_array_equal(table.X, X.reshape(3, 4))
    assert table.y.tolist() == [2, None, 2]
    assert table.shape == (2, 2)
    with pytest.raises(ArgumentError, match=r"name what holds the action in .*, or say that there is no action"):
        read_demonstrations(tmp_path / "X.npy")
    with pytest.raises(ArgumentError, match=r"there is no file .*z\.npy") as error:
        read_demonstrations(tmp_path / "X.npy", action=str(tmp_path / "z.npy"))
    assert error.value.argument == "action"


class Trap:
    def __reduce__(self):
        return exec, ("raise RuntimeError('a pickle was run')",)


def make_header(shape, descr="<f8"):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


TRAP = np.array([Trap()] * 2, dtype=object)


@pytest.mark.parametrize(
    ("arrays", "options", "argument", "sentence"),
    [
        (
            {"X": np.zeros((2, 2)), "Z": np.zeros((2, 2)), "y": [0, 1]},
            {"action": "y"},
            "path",
            "no array 'obs.*X, Z, y",
        ),
        ({"X": np.zeros((2, 2)), "y": [0, 1]}, {"action": "Y"}, "action", r"no array 'Y', did you mean 'y'\?"),
        ({"X": np.zeros((2, 2)), "y": [0, 1]}, {}, "action", "name what holds the action in "),
        ({"X": np.zeros((2, 2)), "y": [0, 1, 1]}, {"action": "y"}, "action", r"2 rows of observations, .* \(3,\)"),
        ({"X": np.zeros((2, 2)), "y": [0, 1.5]}, {"action": "y"}, "action", "whole numbers or names, not 1.5"),
        ({"X": np.zeros((2, 2)), "y": [1j, 0]}, {"action": "y"}, "action", "whole numbers or names, not complex"),
        ({"observations": [["a"]], "actions": [0]}, {}, "path", "observations must be numbers, not <U1"),
        ({"observations": [1.0, 2.0], "actions": [0, 1]}, {}, "path", r"rows of numbers, not of shape \(2,\)"),
        ({"observations": np.zeros((0, 3)), "actions": []}, {}, "path", r"rows of numbers, not of shape \(0, 3\)"),
        ({"observations": [[np.inf]], "actions": [0]}, {}, "columns", "'x0' of .*, row 1, holds infinity"),
        ({"observations": [[0.0], [1.0]], "actions": TRAP}, {}, "path", "pickled objects"),
    ],
)
def test_arrays_that_cannot_be_used_get_one_clear_sentence(tmp_path, arrays, options, argument, sentence):
    np.savez(tmp_path / "demos.npz", **arrays)
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(tmp_path / "demos.npz", **options)
    assert error.value.argument == argument
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (make_header((10**8, 10**6)), r"claims the shape \(100000000, 1000000\), but has 128 bytes"),
        (make_header((10**30, 2)), "claims the shape"),
        (make_header((-1, 2)), "claims the shape"),
        (make_header((10**15,), "<U0"), "claims the shape"),
        (make_header((2, 2)) + bytes(8), "claims the shape"),
        (make_header((2,), "|O") + pickle.dumps(TRAP), "pickled objects"),
        (make_header((2, 2))[:50], "damaged, or another kind of file"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "damaged, or another kind of file"),
        (b"\x93NUMPY\x01\x00\x08\x00((((((((", "damaged, or another kind of file"),
        (b"", "damaged, or another kind of file"),
        (pickle.dumps(Trap()), "damaged, or another kind of file"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_what_a_header_claims_is_held_against_the_file(tmp_path, content, sentence, kind):
    path = tmp_path / f"demos.{kind}"
    if kind == "npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("observations.npy", content)
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(path, without_actions=True)
    assert "demos" in str(error.value)


ZERO = make_header((1, 1)) + bytes(8)


def write_member(path, name, content=ZERO, mode=0o100644, compression=zipfile.ZIP_DEFLATED):
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr(member, content, compression)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([{"name": "../observations.npy"}], "a folder, in a folder, or a link"),
        ([{"name": "observations/", "content": b""}], "a folder, in a folder, or a link"),
        ([{"name": "observations.npy", "content": b"secret", "mode": 0o120777}], "a folder, in a folder, or a link"),
        ([{"name": "observations.npy"}, {"name": "observations.npy"}], "not an array, or occurs twice"),
        ([{"name": "notes.txt"}], "not an array, or occurs twice"),
        ([{"name": "observations.npy", "compression": zipfile.ZIP_LZMA}], "compressed in an unusual way"),
    ],
)
def test_archives_hold_arrays_and_nothing_else(tmp_path, members, sentence):
    for member in members:
        write_member(tmp_path / "demos.npz", **member)
    with pytest.raises(ArgumentError, match=sentence):
        read_demonstrations(tmp_path / "demos.npz", without_actions=True)


def test_bombs_do_not_go_off(tmp_path, monkeypatch):
    write_member(tmp_path / "demos.npz", "observations.npy", make_header((2**17, 8)) + bytes(2**23))
    assert (tmp_path / "demos.npz").stat().st_size < 20_000
    (tmp_path / "demos.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 2**21))
    monkeypatch.setattr(sources, "find_memory", lambda: 2**24)
    for name in ("demos.npz", "demos.csv.gz"):
        with pytest.raises(
            ArgumentError, match=r"would take 0\.0 GiB of memory, more than half of what this machine has"
        ):
            read_demonstrations(tmp_path / name, without_actions=True)
    monkeypatch.undo()
    content = bytearray((tmp_path / "demos.npz").read_bytes())
    place = content.index(struct.pack("<I", 2**23 + 128), content.index(b"PK\x01\x02"))
    content[place : place + 4] = struct.pack("<I", 2**31)  # what the directory says it will be
    (tmp_path / "demos.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match="claims 2147483648 bytes, more than can be in"):
        read_demonstrations(tmp_path / "demos.npz", without_actions=True)


# --- damage -------------------------------------------------------------------------------------------------------


def make_files(folder):
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 3)), rng.choice(["go", "stop"], 20)
    np.savez_compressed(folder / "a.npz", observations=X, actions=y)
    np.savez(folder / "b.npz", observations=X, actions=y)
    np.save(folder / "c.npy", X)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(u=y)
    frame.to_csv(folder / "d.csv", index=False)
    frame.to_csv(folder / "e.csv.gz", index=False)
    paths = [folder / name for name in ("a.npz", "b.npz", "c.npy", "d.csv", "e.csv.gz")]
    if find_spec("pyarrow"):
        frame.to_parquet(folder / "f.parquet")
        paths.append(folder / "f.parquet")
    return paths


def damage(rng, content):
    kind = rng.integers(4)
    place = int(rng.integers(len(content)))
    if kind == 0:
        return content[:place]
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        changed[int(rng.integers(len(content)))] = int(rng.integers(256))
    if kind == 1:
        changed[place : place + 8] = b"\xff" * 8
    return bytes(changed)


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path):
    rng = np.random.default_rng(1)
    for path in make_files(tmp_path):
        content = path.read_bytes()
        options = {"action": "u"} if path.suffix in (".csv", ".gz", ".parquet") else {}
        options = {"without_actions": True} if path.suffix == ".npy" else options
        read_demonstrations(path, **options)
        for _ in range(150):
            path.write_bytes(damage(rng, content))
            sentence = path.name
            try:
                read_demonstrations(path, **options)
            except ArgumentError as error:
                sentence = str(error)
            assert path.name in sentence
            assert "\n" not in sentence
