"""Files of demonstrations made to crash a reader, or to take more time and memory than their size tells."""

import gzip
import struct
import time

import numpy as np
import pytest

from whyact.errors import ArgumentError
from whyact.tables import csv as csv_files
from whyact.tables import open_rows, read_demonstrations


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
    with pytest.raises(ArgumentError, match="has no array 'observations'; there are .* and 280 more") as error:
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
