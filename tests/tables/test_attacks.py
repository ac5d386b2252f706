"""Files of demonstrations made to crash a reader, or to take more time and memory than their size tells."""

import gzip
import struct
import time

import numpy as np
import pytest

from whyact.errors import ArgumentError
from whyact.tables import csv as csv_files
from whyact.tables import numpy as numpy_files
from whyact.tables import open_rows, read_demonstrations, source


@pytest.mark.parametrize("digits", [310, 400, 4300, 5000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_of_hundreds_of_digits_is_refused(tmp_path, digits, sign):
    path = tmp_path / "long.csv"
    path.write_text(f"x,y,u\n1,2,a\n{sign}{'1' * digits},4,b\n")
    with pytest.raises(ArgumentError, match=r"column 'x' of .*, line 3, (holds infinity|is not numeric)") as error:
        read_demonstrations(path, action="u")
    assert len(str(error.value)) < 400 + len(str(path))


def test_whole_numbers_that_no_computer_counts_with_are_rounded(tmp_path):
    (tmp_path / "a.csv").write_text(f"x,y\n{'1' * 25},2\n{'9' * 300},4\n")
    (rows,) = open_rows(tmp_path / "a.csv", ["x", "y"])
    assert rows[:, 0] == pytest.approx([1.1111111111111111e24, 1e300])


@pytest.mark.parametrize("shape", ["(True, 8)", "(8, True)", "(False, 8)"])
def test_a_truth_value_is_no_size(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64))
    with pytest.raises(ArgumentError, match="is damaged: it claims the shape"):
        read_demonstrations(path, without_actions=True)


def test_a_sentence_is_short_however_many_arrays_there_are(tmp_path):
    np.savez(tmp_path / "many.npz", **{f"x{i}": np.zeros((2, 2)) for i in range(300)})
    with pytest.raises(ArgumentError, match=r"has no array 'observations'; .* and 280 more") as error:
        read_demonstrations(tmp_path / "many.npz", without_actions=True)
    assert len(str(error.value)) < 400 + len(str(tmp_path))


def write_compressed(path, head, part, times):
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(head)
        for _ in range(times):
            file.write(part)


@pytest.mark.parametrize(
    ("head", "part"),
    [(b"", b"\n"), (b"", b"\r\n"), (b"x,y\n", b"\n"), (b"x,y\n1,2\n", b"\n"), (b"x,y\n", b"0,0\n"), (b"x,y\n1,", b"0")],
    ids=["line breaks", "line breaks of Windows", "no rows", "one row", "rows of zeros", "a number"],
)
def test_a_small_file_that_unpacks_to_much_is_refused_soon(tmp_path, monkeypatch, head, part):
    """At a hundredth of the usual bound, so that the test itself is short."""
    monkeypatch.setattr(csv_files, "SMALL", 2**18)
    path = tmp_path / "bomb.csv.gz"
    write_compressed(path, head, part * 2**18, 64)
    started = time.process_time()
    with pytest.raises(ArgumentError, match=r"unpacks to more than 100 times its size|blank lines; remove them"):
        for _ in open_rows(path, ["x", "y"]):
            pass
    assert time.process_time() - started < 10


def test_a_compressed_file_of_usual_content_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "SMALL", 2**10)
    X = np.random.default_rng(0).random((2000, 5)).round(2)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("a,b,c,d,e\n" + "\n".join(",".join(map(str, row)) for row in X.tolist()))
    assert np.array_equal(np.concatenate(list(open_rows(tmp_path / "a.csv.gz", list("abcde")))), X)


def test_blank_lines_are_passed_over_quickly(tmp_path):
    """In a file that is not compressed they are as many as they are."""
    path = tmp_path / "blank.csv"
    path.write_bytes(b"x,y\n" + b"\n" * 2**25 + b"1,2\n" + b"\r\n" * 1000 + b"3,4\n")
    started = time.process_time()
    assert np.concatenate(list(open_rows(path, ["x", "y"]))).tolist() == [[1, 2], [3, 4]]
    assert time.process_time() - started < 10


def test_blank_lines_hide_no_line_with_too_few_fields(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n\n1,2\n\n\nabc\n\n")
    with pytest.raises(ArgumentError, match="line 6 has 1 fields"):
        list(open_rows(tmp_path / "a.csv", ["x", "y"]))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
def test_lines_may_end_in_any_way(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["x,y,u", '1,2,"a b"', "", "3,4,c", ""]).encode())
    table = read_demonstrations(path, action="u")
    assert table.X.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert table.y.tolist() == ["a b", "c"]


def test_a_carriage_return_in_a_line_is_no_end_of_it(tmp_path):
    """pandas alone would read another row there."""
    (tmp_path / "a.csv").write_bytes(b"x,y\n1\r2,3\n")
    with pytest.raises(ArgumentError, match="line 2 cannot be read"):
        list(open_rows(tmp_path / "a.csv", ["x", "y"]))
    (tmp_path / "b.csv").write_bytes(b'x,u\n1,"a\rb"\n2,"a\r\nb"\n')
    assert read_demonstrations(tmp_path / "b.csv", action="u").y.tolist() == ["a\rb", "a\r\nb"]


# --- tables that hold more than their size says -------------------------------------------------------------


def write_zeros(folder):
    """Small numbers that become large ones."""
    np.savez_compressed(folder / "a.npz", observations=np.zeros((1000, 1000), np.uint8), actions=np.arange(1000) % 2)
    return folder / "a.npz"


def write_texts(folder):
    """Long texts of one character."""
    np.savez_compressed(folder / "a.npz", observations=np.zeros((1000, 2)), actions=np.zeros(1000, "U2000"))
    return folder / "a.npz"


def write_parquet(folder, **columns):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), folder / "a.parquet", compression="zstd")
    return folder / "a.parquet"


def write_repeated_rows(folder):
    """A Parquet file says of equal rows only how many they are."""
    return write_parquet(folder, x=np.zeros(10**6, np.int8), actions=np.zeros(10**6, np.int8))


def write_repeated_label(folder):
    """One long text that each row refers to: 6 kB became 13 GB."""
    arrow = pytest.importorskip("pyarrow")
    labels = arrow.DictionaryArray.from_arrays(np.zeros(10**4, np.int32), arrow.array(["a" * 10**5]))
    return write_parquet(folder, x=np.zeros(10**4, np.int8), actions=labels)


@pytest.mark.parametrize("write", [write_zeros, write_texts, write_repeated_rows, write_repeated_label])
def test_a_small_table_cannot_ask_for_much_memory(tmp_path, monkeypatch, write):
    """With a smaller allowance, so that the test itself takes little."""
    path = write(tmp_path)
    monkeypatch.setattr(source, "ALLOWANCE_OF_TABLE", 2**20)
    with pytest.raises(ArgumentError, match=r"asks for .* of memory to be read, .* set WHYACT_MAX_MEMORY=1G\."):
        read_demonstrations(path, action="actions")
    if write is not write_repeated_label:  # which is too long for the user's memory, too
        monkeypatch.setenv("WHYACT_MAX_MEMORY", "1G")
        assert len(read_demonstrations(path, action="actions").X) >= 1000


def test_rows_are_streamed_however_many_a_small_file_holds(tmp_path, monkeypatch):
    path = write_repeated_rows(tmp_path)
    monkeypatch.setattr(source, "ALLOWANCE_OF_TABLE", 2**20)
    assert sum(map(len, open_rows(path, ["x"]))) == 10**6


def test_labels_of_parquet_are_made_once(tmp_path):
    """And only from texts and numbers, however they are stored."""
    arrow = pytest.importorskip("pyarrow")
    words = arrow.array(["go", None, "stop", "go"])
    for labels in (words, words.dictionary_encode(), words.cast("large_string")):
        table = read_demonstrations(write_parquet(tmp_path, x=np.arange(4.0), u=labels), action="u")
        assert table.y.tolist() == ["go", None, "stop", "go"]
    coded = arrow.array([b"go", b"\xff"]).dictionary_encode()
    with pytest.raises(ArgumentError, match="cannot hold labels: it holds binary"):
        read_demonstrations(write_parquet(tmp_path, x=np.arange(2.0), u=coded), action="u")


@pytest.mark.parametrize("ending", ["npz", "npy", "csv.gz"])
def test_an_observation_has_not_any_number_of_columns(tmp_path, monkeypatch, ending):
    for module, name in ((numpy_files, "MOST_COLUMNS"), (source, "MOST_NAMED")):
        monkeypatch.setattr(module, name, 1000)
    path = tmp_path / f"wide.{ending}"
    if ending == "npz":
        np.savez_compressed(path, observations=np.zeros((1, 1001), np.uint8))
    elif ending == "npy":
        np.save(path, np.zeros((1, 1001), np.uint8))
    else:
        write_compressed(path, ",".join(map(str, range(1001))).encode() + b"\n", b"0," * 1000 + b"0\n", 1)
    with pytest.raises(ArgumentError, match=r"has 1001 columns; at most 1000 can be read\."):
        read_demonstrations(path, without_actions=True)
