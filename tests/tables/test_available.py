"""Which actions can be taken in each row, as columns of a file say."""

import numpy as np
import pandas
import pytest

from whyact.errors import ArgumentError
from whyact.tables.available import check_taken, make_mask, read_truth
from whyact.tables.demonstrations import open_row_blocks, read_demonstrations

TABLE = """speed,can brake,distance,can turn,u
1,1,2,true,brake
3,0,4,False,keep
5,1,,TRUE,turn
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "drive.csv"
    path.write_text(TABLE)
    return path


def test_columns_that_say_what_is_available_are_not_observed(path):
    table = read_demonstrations(path, action="u", available={"turn": "can turn", "brake": "can brake"})
    assert table.X.columns.tolist() == ["speed", "distance"]
    assert np.array_equal(table.X, [[1, 2], [3, 4], [5, np.nan]], equal_nan=True)
    assert table.available.to_dict("list") == {"turn": [True, False, True], "brake": [True, False, True]}
    assert read_demonstrations(path, action="u", ignore=["can brake", "can turn"]).available is None


def test_actions_may_share_a_column(path):
    table = read_demonstrations(path, action="u", ignore=["can turn"], available=dict.fromkeys("ab", "can brake"))
    assert table.available["a"].equals(table.available["b"])


def test_rows_to_predict_know_what_is_available(path):
    [block] = open_row_blocks(path, ["distance", "speed"], {"brake": "can brake"}, ["brake", "keep", "turn"])
    assert np.array_equal(block.values, [[2, 1], [4, 3], [np.nan, 5]], equal_nan=True)
    assert block.available.tolist() == [[True, True, True], [False, True, True], [True, True, True]]
    assert block.pick(np.array([1])).available.tolist() == [[False, True, True]]
    [block] = open_row_blocks(path, ["speed"])
    assert block.available is None
    assert block.pick(np.array([0, 2])).values.tolist() == [[1], [5]]


def test_rows_are_counted_through_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("whyact.tables.csv.BLOCK_SIZE", 100)
    monkeypatch.setattr("whyact.tables.csv.MANY_ROWS", 1)
    path = tmp_path / "long.csv"
    path.write_text("x,av\n" + "1,1\n" * 200 + "1,0\n" + "1,?\n")
    blocks = open_row_blocks(path, ["x"], {"go": "av"}, ["go", "stop"])
    with pytest.raises(ArgumentError, match="holds '\\?' in row 202"):
        for _ in blocks:
            pass
    path.write_text("x,av\n" + "1,1\n" * 200 + "1,0\n")
    blocks = open_row_blocks(path, ["x"], {"go": "av", "stop": "av"}, ["go", "stop"])
    with pytest.raises(
        ArgumentError, match=r"no action is available in row 201 of .*long\.csv; rows are counted from 1"
    ):
        for _ in blocks:
            pass


def test_arrays_say_what_is_available_in_arrays_of_their_own(tmp_path):
    can = np.array([1, 0, 1])
    np.savez(tmp_path / "d.npz", observations=np.ones((3, 4)), actions=[0, 1, 0], can=can, sure=can == 1)
    table = read_demonstrations(tmp_path / "d.npz", available={"0": "can", "1": "sure"})
    assert table.X.shape == (3, 4)
    assert table.available.to_dict("list") == {"0": [True, False, True], "1": [True, False, True]}
    [block] = open_row_blocks(tmp_path / "d.npz", list("abcd"), {"0": "can"}, [0, 1])
    assert block.available.tolist() == [[True, True], [False, True], [True, True]]
    np.save(tmp_path / "X.npy", np.ones((3, 4)))
    np.save(tmp_path / "can.npy", can.astype(float))
    [block] = open_row_blocks(tmp_path / "X.npy", list("abcd"), {"1": str(tmp_path / "can.npy")}, [0, 1])
    assert block.available[:, 1].tolist() == [True, False, True]


def test_parquet_says_it_as_csv_does(path):
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(path)
    frame["can turn"] = frame["can turn"].astype(str).str.lower() == "true"
    frame.to_parquet(path.with_suffix(".parquet"))
    given = {"turn": "can turn", "brake": "can brake"}
    tables = [read_demonstrations(p, action="u", available=given) for p in (path, path.with_suffix(".parquet"))]
    assert tables[0].available.equals(tables[1].available)


@pytest.mark.parametrize(
    ("options", "argument", "sentence"),
    [
        ({"available": {"turn": "can trun"}}, "available", "has no column 'can trun', did you mean 'can turn'"),
        ({"available": {"turn": "speed"}}, "available", "the column 'speed' of .* holds '3' in row 2, not 0, 1, true"),
        ({"available": {"turn": "distance"}}, "available", "the column 'distance' of .* holds '2' in row 1"),
        (
            {"available": {"turn": "u"}},
            "available",
            "'u' holds the action or the groups and cannot also say what is av",
        ),
        ({"available": {"turn": "can turn"}, "columns": ["can turn"]}, "columns", "'can turn' holds .* cannot also be"),
        ({"available": {"turn": "can turn"}, "action": None, "without_actions": True}, "available", "no actions"),
    ],
)
def test_what_cannot_be_used_gets_one_sentence(path, options, argument, sentence):
    with pytest.raises(ArgumentError, match=sentence) as error:
        read_demonstrations(path, **{"action": "u"} | options)
    assert error.value.argument == argument
    assert "\n" not in str(error.value)


def test_an_observation_of_the_model_cannot_say_what_is_available(path):
    with pytest.raises(ArgumentError, match="'can brake' is an observation of the model and cannot also"):
        open_row_blocks(path, ["can brake"], {"turn": "can brake"}, ["turn"])


def test_words_for_yes_and_no():
    words = pandas.Series(["1", "0", "1.0", "0.0", " true", "FALSE", True, False, 1, 0.0], dtype=object)
    assert read_truth("f", "c", words).tolist() == [True, False] * 5
    for entry, held in ((None, "nothing"), (np.nan, "nothing"), ("", "''"), (2, "'2'"), ("yes", "'yes'")):
        with pytest.raises(ArgumentError, match=f"the column 'c' of f holds {held} in row 12, not 0, 1, true or false"):
            read_truth("f", "c", pandas.Series(["1", entry], dtype=object), n_before=10)


def test_actions_must_be_known_available_and_there():
    can = {"turn": np.array([True, False])}
    classes = np.array(["brake", "turn"])
    mask = make_mask("f.csv", can, classes)
    assert mask.tolist() == [[True, True], [True, False]]
    check_taken("f.csv", mask, np.array([1, -1]), classes)
    with pytest.raises(ArgumentError, match=r"there is no action 'turn'; the actions are: left, right\."):
        make_mask("f.csv", can, ["left", "right"])
    with pytest.raises(
        ArgumentError, match=r"no action is available in row 2 of f\.csv; rows are counted from 1, with"
    ):
        make_mask("f.csv", can, ["turn"])
    with pytest.raises(
        ArgumentError, match=r"'turn' was taken in row 2 of f\.csv, where it is not available; rows are"
    ):
        check_taken("f.csv", mask, np.array([0, 1]), classes)
    with pytest.raises(ArgumentError, match=r"in row 1 of .*not available \(2 rows are like that\)"):
        check_taken("f.csv", ~mask, np.array([0, 0]), classes)
