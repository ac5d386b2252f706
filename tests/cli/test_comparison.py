"""`whyact compare`: what it prints and writes, and what it refuses."""

import sys

import numpy as np
import pandas
import pytest

import whyact
from tests.support.command_line import invoke, said
from whyact.cli.arguments import write_picture


@pytest.fixture
def demos(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["go", "stop", "turn"], 20)
    X = rng.normal(size=(60, 4)) + 2 * (y[:, None] == np.array(["go", "stop", "turn", "none"]))
    frame = pandas.DataFrame(X, columns=["a,b", "[red]", "c d", "e"]).assign(u=y, episode=np.arange(60) // 6)
    path = tmp_path / "demos.csv"
    frame.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


def compare(*options):
    return invoke("compare", *options)


def test_command_prints_and_writes_everything(demos, tmp_path):
    out, picture = tmp_path / "out.csv", tmp_path / "out.png"
    result = compare(
        demos, "--action", "u", "--groups", "episode", "--models", "lr, majority,nmf", "--folds", 2, "--n-jobs", 1,
        "-o", out, "--picture", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "60 demonstrations" in result.output
    assert "4 observed columns, action u, groups episode" in result.output
    assert "logistic regression" in result.output
    assert "2 folds of whole groups" in said(result)
    assert "12/12 fits" in result.stderr
    assert "Written:" in result.stdout
    assert len(pandas.read_csv(out)) == 6
    assert len(pandas.read_csv(tmp_path / "out_folds.csv")) == 12
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_columns_with_commas_can_be_chosen(demos):
    quick = ["--models", "majority", "--folds", 2, "--n-jobs", 1]
    result = compare(demos, "--action", "u", "--columns", '"a,b", e', *quick)
    assert result.exit_code == 0, result.output
    assert "2 observed columns" in result.output


def test_arrays_are_compared_as_well(demos, tmp_path):
    table = pandas.read_csv(demos)
    arrays = {"observations": table[["a,b", "e"]].to_numpy(), "u": table["u"].to_numpy(dtype=str)}
    np.savez(tmp_path / "demos.npz", **arrays)
    quick = ["--models", "majority,knn", "--folds", 2, "--n-jobs", 1]
    result = compare(tmp_path / "demos.npz", "--action", "u", *quick, "-o", tmp_path / "a.csv")
    assert result.exit_code == 0, result.output
    compare(demos, "--action", "u", "--columns", '"a,b", e', *quick, "-o", tmp_path / "b.csv")
    accuracy = [pandas.read_csv(tmp_path / name)["accuracy"].tolist() for name in ("a.csv", "b.csv")]
    assert accuracy[0] == accuracy[1]


def test_options_reach_the_comparison(demos, monkeypatch):
    seen = {}

    def keep(X, y, **options):
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(whyact, "compare", keep)
    compare(demos, "--action", "u")
    assert list(seen.pop("groups") or []) == []
    assert seen.pop("available") is None
    defaults = {"models": None, "n_folds": 5, "n_repeats": 1, "scale": False, "n_jobs": -1, "random_state": 0}
    assert seen == defaults | {"verbose": 1}
    compare(
        demos, "--action", "u", "--groups", "episode", "--models", "lr,nmf", "--folds", 3, "--repeats", 2,
        "--scale-columns", "--n-jobs", 2, "--random-state", 7,
    )  # fmt: skip
    assert len(set(seen.pop("groups"))) == 10
    assert seen.pop("available") is None
    given = {"models": ["lr", "nmf"], "n_folds": 3, "n_repeats": 2, "scale": True, "n_jobs": 2, "random_state": 7}
    assert seen == given | {"verbose": 1}


@pytest.mark.parametrize(
    ("options", "hint", "sentence"),
    [
        (["--action", "U2"], "--action", "has no column 'U2'"),
        (["--action", "u", "--groups", "epsode"], "--groups", "did you mean 'episode'"),
        (["--action", "e", "--models", "lda"], "--columns", "the column 'u' of"),
        (["--action", "u", "--columns", "zzz"], "--columns", "has no column 'zzz'"),
        (["--action", "u", "--columns", ""], "--columns", "no column left to observe"),
        (["--action", "u", "--models", "ldaa"], "--models", "did you mean 'lda'"),
        (["--action", "u", "--folds", "1"], "--folds", "at least 2"),
        (["--action", "u", "--repeats", "0"], "--repeats", "at least 1"),
        (["--action", "u", "--n-jobs", "0"], "--n-jobs", "0 jobs would never finish"),
        (["--action", "u", "--random-state", "-1"], "--random-state", "-1 is not a whole number from 0"),
        (["--action", "u", "--out", "/no/such/folder/x.csv"], "--out", "the folder /no/such/folder does not exist"),
        (["--action", "u", "--picture", "/no/such/folder/x.png"], "--picture", "does not exist"),
        (["--action", "u", "--picture", "x.txt"], "--picture", "does not end with .png"),
    ],
)
def test_bad_options_get_one_clear_sentence(demos, options, hint, sentence):
    result = compare(demos, *options)
    assert result.exit_code == 2
    assert sentence in said(result)
    assert f"{hint}: " in said(result)


def test_demonstrations_are_not_overwritten(demos):
    before = demos.read_bytes()
    result = compare(demos, "--action", "u", "--out", demos)
    assert result.exit_code == 2
    assert "is also an input file" in said(result)
    result = compare(demos, "--action", "u", "--out", demos.parent)
    assert "is a folder" in said(result)
    assert demos.read_bytes() == before


def test_one_action_and_a_missing_file(tmp_path):
    path = tmp_path / "one.csv"
    result = compare(path, "--action", "u")
    assert (result.exit_code, "there is no file" in said(result)) == (2, True)
    path.write_text("x,u\n1,a\n2,a\n")
    result = compare(path, "--action", "u", "--models", "lda")
    assert (result.exit_code, "only one action ('a')" in said(result)) == (2, True)


def test_a_stop_by_the_user_is_not_an_error(demos, monkeypatch, tmp_path):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["whyact.comparison.crossvalidation"], "tune", stop)
    result = compare(demos, "--action", "u", "--models", "lda", "--n-jobs", 1, "--out", tmp_path / "out.csv")
    assert result.exit_code == 130
    assert "stopped; the comparison is incomplete" in said(result)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_is_whole_or_as_it_was(tmp_path, ending):
    class Figure:
        def savefig(self, file, **options):
            assert options["format"] == ending
            file.write(b"half of it")
            raise OSError(28, "No space left on device")

    picture = tmp_path / f"out.{ending}"
    picture.write_text("before")
    with pytest.raises(OSError, match="No space left"):
        write_picture(Figure(), picture)
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    assert picture.read_text() == "before"
