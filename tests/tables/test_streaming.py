"""Rows from files block by block, predictions into files block by block, files that appear whole or not at all."""

import csv
import gzip
import io
import os
import sys
import threading
from importlib.util import find_spec

import numpy as np
import pandas
import pytest

from whyact.errors import ArgumentError
from whyact.storage.atomic import write_streamed, write_whole
from whyact.tables import csv as csv_files
from whyact.tables import numpy as array_files
from whyact.tables import parquet as parquet_files
from whyact.tables.cells import protect
from whyact.tables.demonstrations import open_rows, read_demonstrations
from whyact.tables.predictions import PredictionWriter, open_predictions

NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks even in small files."""
    monkeypatch.setattr(csv_files, "BLOCK_SIZE", 200)
    monkeypatch.setattr(csv_files, "MANY_ROWS", 0)
    monkeypatch.setattr(csv_files, "MAX_LINE", 5000)
    monkeypatch.setattr(array_files, "N_CELLS", 30)
    monkeypatch.setattr(parquet_files, "N_CELLS", 30)


@pytest.fixture(scope="module")
def rows():
    rows = np.random.default_rng(0).random((97, 3)).round(6)
    rows[5, 1] = np.nan
    return rows


def write_rows(folder, rows, kind):
    path = folder / f"rows.{kind}"
    frame = pandas.DataFrame(rows, columns=NAMES).assign(text="some, text")[["c", "text", "a", "b"]]
    if kind in ("csv", "csv.gz", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path, row_group_size=40)
    elif kind == "npy":
        np.save(path, rows)
    elif kind == "npz":
        np.savez_compressed(path, rows=rows, actions=np.zeros(len(rows)))
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "npy", "npz"])
def test_blocks_together_are_the_rows(tmp_path, rows, kind):
    blocks = list(open_rows(write_rows(tmp_path, rows, kind), NAMES))
    assert len(blocks) > 5
    assert all(block.dtype == np.float64 for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), rows)


@pytest.mark.skipif(find_spec("minari") is None, reason="needs minari")
def test_episodes_are_blocks(tmp_path, rows, monkeypatch):
    from whyact.tables.minari import write_minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rows = np.nan_to_num(rows)
    write_minari("rows-v0", rows, ["go", "stop", *["go"] * 95], np.arange(97) // 30)
    for path in ("minari:rows-v0", tmp_path / "rows-v0", tmp_path / "rows-v0" / "data"):
        blocks = list(open_rows(path, NAMES))
        assert [len(block) for block in blocks] == [30, 30, 30, 7]
        np.testing.assert_array_equal(np.concatenate(blocks), rows)
    table = read_demonstrations("minari:rows-v0", columns=["x2"])
    np.testing.assert_array_equal(table.X["x2"], rows[:, 2])
    assert table.y.tolist()[:3] == ["go", "stop", "go"]
    assert table.groups.tolist() == (np.arange(97) // 30).tolist()
    with pytest.raises(ArgumentError, match=r"rows-v0 has no column 'u'\. Available: actions, episode") as error:
        read_demonstrations("minari:rows-v0", action="u")
    assert error.value.argument == "action"
    with pytest.raises(ArgumentError, match="there is no Minari dataset nothing-v0") as error:
        read_demonstrations("minari:nothing-v0")
    assert error.value.argument == "path"


@pytest.mark.skipif(find_spec("minari") is None, reason="needs minari")
@pytest.mark.filterwarnings("ignore::UserWarning:minari")
def test_images_of_minari_have_a_shape(tmp_path, monkeypatch):
    import minari
    from gymnasium import spaces
    from minari.data_collector.episode_buffer import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffer = EpisodeBuffer(
        observations=[np.full((2, 3), t, dtype=np.float32) for t in range(4)], actions=[0, 1, 0], rewards=[0.0] * 3,
        terminations=[False] * 3, truncations=[False] * 3,
    )  # fmt: skip
    minari.create_dataset_from_buffers(
        "images-v0", [buffer], observation_space=spaces.Box(0, 9, (2, 3)), action_space=spaces.Discrete(2)
    )
    table = read_demonstrations("minari:images-v0")
    assert table.shape == (2, 3)
    np.testing.assert_array_equal(table.X["x5"], [0, 1, 2])


def make_hostile_csv(rng, n_rows):
    """Quoted line ends, quotes, commas, blank lines, spaces, missing and truth values; and the numbers in it."""
    texts = ["plain", "line\nend", 'say "hi"', "a,b", "", "\n\n", "ü", '"']
    numbers, lines = [], []
    has_quotes = rng.random() < 0.7
    for _ in range(n_rows):
        row = rng.normal(size=2).round(4)
        cells = [f"{row[0]}", f" {row[1]}" if rng.random() < 0.3 else f"{row[1]}"]
        if rng.random() < 0.1:
            row[0], cells[0] = np.nan, rng.choice(csv_files.MISSING_NUMBERS)
        elif rng.random() < 0.1:
            row[0], cells[0] = 1.0, "True"
        text = rng.choice(texts) if has_quotes and rng.random() < 0.3 else "plain"
        quoted = io.StringIO()
        csv.writer(quoted, lineterminator="\n").writerow([text, "x"])
        lines.append(",".join([cells[0], quoted.getvalue()[:-1], cells[1]]) + "\n" * (2 if rng.random() < 0.1 else 1))
        numbers.append(row)
    text = 'a,"some\ntext",rest,b\n' + "".join(lines)
    if rng.random() < 0.3:
        text = text.rstrip("\n")
    return text.replace("\n", rng.choice(["\n", "\r\n"])), np.array(numbers)


@pytest.mark.parametrize("seed", range(60))
def test_block_ends_do_not_show(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    text, numbers = make_hostile_csv(rng, int(rng.integers(1, 60)))
    (tmp_path / "rows.csv").write_bytes(text.encode())
    for size in (1, int(rng.integers(2, 300)), 10**6):
        monkeypatch.setattr(csv_files, "BLOCK_SIZE", size)
        monkeypatch.setattr(csv_files, "MAX_LINE", max(size, 1000))
        blocks = list(open_rows(tmp_path / "rows.csv", ["b", "a"]))
        np.testing.assert_array_equal(np.concatenate(blocks), numbers[:, ::-1])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_columns_are_named_at_once(tmp_path, rows, kind):
    with pytest.raises(ArgumentError, match=r"has no column 'B', did you mean 'b'\?") as error:
        open_rows(write_rows(tmp_path, rows, kind), ["a", "B"])
    assert error.value.argument == "columns"


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_the_number_of_columns_of_arrays_must_be_right(tmp_path, rows, kind):
    with pytest.raises(ArgumentError, match=r"has 3 columns, but 2 are needed: a, b\."):
        open_rows(write_rows(tmp_path, rows, kind), ["a", "b"])


def test_a_file_may_have_one_column_if_no_more_are_needed(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    np.testing.assert_array_equal(next(open_rows(tmp_path / "rows.csv", ["a"])), [[1], [2]])
    with pytest.raises(ArgumentError, match="only one column"):
        open_rows(tmp_path / "rows.csv", ["a", "b"])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1,2,x,4", r"the column 'c' of .*, line 502, is not numeric \('x'\)\.$"),
        ("1,2,3,inf", "the column 'd' of .*, line 502, holds infinity"),
        ("1,2,3", "line 502 has 3 fields, but the header has 4"),
        ("1,2,3,4,5", "line 502 has 5 fields, but the header has 4"),
        ('1,2,3,"4', "line 502 cannot be read: unexpected end of data"),
        ("1,2,\x003,4", "line 502 has a NUL character"),
    ],
)
def test_rows_before_a_wrong_line_come_out(tmp_path, line, sentence):
    good = "".join(f"{i},1,2,3\n" for i in range(500))
    (tmp_path / "rows.csv").write_text(f"a,b,c,d\n{good}{line}\n1,2,3,4\n")
    blocks = open_rows(tmp_path / "rows.csv", ["a", "c", "d"])
    seen = [next(blocks) for _ in range(5)]
    np.testing.assert_array_equal(np.concatenate(seen)[:, 0], np.arange(sum(map(len, seen))))
    with pytest.raises(ArgumentError, match=sentence) as error:
        list(blocks)
    assert "\n" not in str(error.value)


def test_ragged_lines_that_make_up_for_each_other_are_found(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n1,2,3\n1\n")
    with pytest.raises(ArgumentError, match="line 3 has 3 fields, but the header has 2"):
        list(open_rows(tmp_path / "rows.csv", ["a", "b"]))


def test_compressed_files_that_are_cut_give_what_they_have(tmp_path):
    text = "a,b\n" + "".join(f"{number},1\n" for number in np.random.default_rng(0).random(5000))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(text.encode())[:-2000])
    blocks = open_rows(tmp_path / "rows.csv.gz", ["a", "b"])
    assert len(next(blocks))
    with pytest.raises(ArgumentError, match=r"rows\.csv\.gz is damaged"):
        list(blocks)


def test_reading_can_be_given_up(tmp_path, rows):
    before = threading.active_count()
    blocks = open_rows(write_rows(tmp_path, rows, "csv"), NAMES)
    next(blocks)
    blocks.close()
    assert threading.active_count() == before


# --- predictions --------------------------------------------------------------------------------------------------


def write_predictions(classes, probabilities, substates, familiarity, **options):
    file = io.BytesIO()
    writer = PredictionWriter(file, classes, **options)
    writer.write(np.asarray(probabilities), np.asarray(substates), np.asarray(familiarity))
    return file.getvalue().decode()


def test_a_row_says_what_is_done_and_why():
    text = write_predictions(
        ["brake", "keep"],
        [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]],
        [[0.0, 0.38, 0.62], [1.0, 0.0, 0.009], [0.0, 0.0, 0.0]],
        [0.9994, 0.49999, 0.5],
    )
    assert text == (
        "action,p(brake),p(keep),features,familiarity,unfamiliar\n"
        "keep,0.250000,0.750000,2:0.62 1:0.38,0.999,false\n"
        "brake,1.000000,0.000000,0:1.00,0.500,true\n"
        "brake,0.500000,0.500000,,0.500,false\n"
    )


def test_numbers_are_rounded_as_python_does():
    rng = np.random.default_rng(0)
    probabilities, substates, familiarity = (
        rng.dirichlet(np.full(4, 0.3), 20_000),
        rng.random((20_000, 12)),
        rng.random(20_000),
    )
    substates *= rng.random(substates.shape) < 0.3
    lines = write_predictions(range(4), probabilities, substates, familiarity).splitlines()
    assert len(lines) == 20_001
    for n in range(0, 20_000, 97):
        amounts = sorted((-value, k) for k, value in enumerate(substates[n]))
        features = " ".join(f"{k}:{-amount:.2f}" for amount, k in amounts if -amount >= 0.01)
        expected = [str(probabilities[n].argmax()), *(f"{p:.6f}" for p in probabilities[n]), features]
        expected += [f"{familiarity[n]:.3f}", str(familiarity[n] < 0.5).lower()]
        assert lines[n + 1] == ",".join(expected)


def test_labels_come_back_from_the_file(tmp_path):
    labels = ["a,b", 'say "hi"', "line\nend", " space", "ü", "=1+1", "0x00", "\r"]
    with open_predictions(tmp_path / "out.csv", labels) as writer:
        writer.write(np.eye(len(labels)), np.ones((len(labels), 1)), np.ones(len(labels)))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert rows[0] == ["action", *(f"p({label})" for label in labels), "features", "familiarity", "unfamiliar"]
    assert [row[0] for row in rows[1:]] == [protect(label) for label in labels]


def test_without_actions_there_are_features_only():
    text = write_predictions([], np.empty((2, 0)), [[1.0, 0.0], [0.2, 0.6]], [1.0, np.nan], feature_names=["A", "Bee"])
    assert text == "features,familiarity,unfamiliar\nA:1.00,1.000,false\nBee:0.60 A:0.20,,true\n"
    assert write_predictions([0], [[1.0]], np.empty((1, 0)), [1.0]).endswith("0,1.000000,,1.000,false\n")
    assert write_predictions([0], np.empty((0, 1)), np.empty((0, 2)), []).count("\n") == 1
    with pytest.raises(ArgumentError, match="'two words' would not be one word"):
        write_predictions([], np.empty((1, 0)), [[1.0]], [1.0], feature_names=["two words"])


def test_predictions_go_to_standard_output(capfdbinary):
    with open_predictions("-", ["go"]) as writer:
        writer.write(np.ones((1, 1)), np.ones((1, 1)), np.ones(1))
    assert capfdbinary.readouterr().out.endswith(b"go,1.000000,0:1.00,1.000,false\n")


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(TypeError), write_streamed(path) as file:
        file.write("not bytes")
    assert path.read_text() == "old"
    with write_streamed(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "x")


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    write_whole(tmp_path / "link", "content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "content"


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_pipes_are_written_to_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=write_whole, args=(tmp_path / "pipe", "content"))
    writer.start()
    assert (tmp_path / "pipe").read_text() == "content"
    writer.join()
    assert (tmp_path / "pipe").is_fifo()
    write_whole(tmp_path.joinpath("/dev/null"), "content")


def test_a_blank_line_of_one_column_is_a_missing_entry(tmp_path):
    (tmp_path / "one.csv").write_text("a\n1\n\n3\n")
    rows = np.concatenate(list(open_rows(tmp_path / "one.csv", ["a"])))
    assert np.array_equal(rows[:, 0], [1, np.nan, 3], equal_nan=True)
