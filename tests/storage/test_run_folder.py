"""Runs in folders: what is removed is ours, and only once the model can be read."""

import os

import numpy as np
import pytest

import whyact
from tests.support.forging import forge, put, set_attribute, set_setting, set_values
from tests.support.plain import PLAIN
from whyact.errors import CheckpointError, ModelFileError, RunError
from whyact.estimators import fit_in_folder as fitting
from whyact.estimators.fit_in_folder import fit_in_folder
from whyact.storage import checkpoint, folder
from whyact.storage.checkpoint import is_our_name
from whyact.storage.folder import OpenFolder
from whyact.storage.run_folder import Run, begin_run

pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
QUICK = {**PLAIN, "n_burn_in": 6, "n_draws": 4, "thin": 1, "n_chains": 1, "random_state": 0}


@pytest.fixture
def run(demo, tmp_path):
    """The folder of a run that has not started."""
    classes, actions = np.unique(demo.y[:30], return_inverse=True)
    names = np.array(demo.column_names)
    begin_run(tmp_path / "m.nc.run", Run(dict(QUICK), demo.X[:30], names, classes, actions, None, 0.0, "demo.csv"))
    return tmp_path / "m.nc.run"


def resume(path):
    return fit_in_folder(path, is_new=False, n_jobs=1, verbose=0)


def after_fit(monkeypatch, act):
    """Do something between the last checkpoint and the end of the run."""
    fit_run = fitting.fit_run

    def fit_and_act(*arguments):
        fit_run(*arguments)
        act()

    monkeypatch.setattr(fitting, "fit_run", fit_and_act)


def test_a_finished_run_leaves_its_model_only(run):
    resume(run)
    assert [path.name for path in run.parent.iterdir()] == ["m.nc"]


def test_a_folder_that_took_its_place_is_not_touched(run, monkeypatch):
    """The first version removed whatever had the name at the end, with all that was in it."""

    def swap():
        run.rename(run.parent / "moved")
        run.mkdir()
        (run / "thesis.txt").write_text("mine")
        (run / "state.nc").write_text("mine")

    after_fit(monkeypatch, swap)
    resume(run)
    assert (run / "thesis.txt").read_text() == "mine"
    assert (run / "state.nc").read_text() == "mine"
    assert (run.parent / "moved" / "run.nc").exists()
    assert whyact.load(run.parent / "m.nc").posterior_.n_draws == 4


def test_nothing_is_written_into_a_folder_that_took_its_place(run, demo, monkeypatch):
    write = checkpoint.Checkpoints._write

    def swap_and_write(self, *arguments):
        if not (run.parent / "moved").exists():
            run.rename(run.parent / "moved")
            run.mkdir()
        write(self, *arguments)

    monkeypatch.setattr(checkpoint.Checkpoints, "_write", swap_and_write)
    resume(run)
    assert not list(run.iterdir())
    assert (run.parent / "m.nc").exists()


def test_the_files_of_others_stay(run, monkeypatch, caplog):
    def leave_things():
        (run / "thesis.txt").write_text("mine")
        (run / "sub").mkdir()
        (run / "sub" / "state.nc").write_text("mine")
        (run.parent / "far.nc").write_text("mine")
        (run / "draws-99999.nc").symlink_to(run.parent / "far.nc")

    after_fit(monkeypatch, leave_things)
    resume(run)
    assert sorted(path.name for path in run.iterdir()) == ["draws-99999.nc", "sub", "thesis.txt"]
    assert (run / "sub" / "state.nc").read_text() == "mine"
    assert (run.parent / "far.nc").read_text() == "mine"
    assert "other files are in it" in caplog.text


@pytest.mark.parametrize("by_handle", [True, False])
def test_a_folder_swapped_in_the_last_moment_gets_its_name_back(tmp_path, by_handle, monkeypatch):
    if by_handle and not folder.BY_HANDLE:
        pytest.skip("this system removes nothing by a handle")
    monkeypatch.setattr(folder, "BY_HANDLE", by_handle)
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "run.nc").write_text("x")
    is_at = OpenFolder.is_at
    answers = iter([True])  # the first look still sees it

    with OpenFolder(ours) as opened:
        ours.rename(tmp_path / "moved")
        ours.mkdir()
        (ours / "thesis.txt").write_text("mine")
        monkeypatch.setattr(OpenFolder, "is_at", lambda self, path: next(answers, None) or is_at(self, path))
        opened.remove(is_our_name)
    assert (ours / "thesis.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved", "ours"]


@pytest.mark.parametrize("by_handle", [True, False])
def test_a_folder_is_removed_with_its_files(tmp_path, by_handle, monkeypatch):
    monkeypatch.setattr(folder, "BY_HANDLE", by_handle and folder.BY_HANDLE)
    ours = tmp_path / "ours"
    ours.mkdir()
    for name in ("run.nc", "state.nc", "draws-00000.nc", "lock", ".whyact-12"):
        (ours / name).write_text("x")
    with OpenFolder(ours) as opened:
        assert opened.remove(is_our_name)
    assert not list(tmp_path.iterdir())
    with OpenFolder(tmp_path) as opened:
        os.rmdir(tmp_path)
        assert not opened.remove(is_our_name)


def test_a_run_stays_until_its_model_can_be_read(run, monkeypatch):
    def refuse(path, **options):
        raise ModelFileError(f"{path} is not a whyact model: it was damaged.")

    monkeypatch.setattr(fitting, "load", refuse)
    with pytest.raises(RunError, match=r"cannot be read \(.*it was damaged\.\) The run is kept in .*m\.nc\.run"):
        resume(run)
    assert {"run.nc", "state.nc", "draws-00000.nc"} <= {path.name for path in run.iterdir()}
    monkeypatch.undo()
    resume(run)
    assert [path.name for path in run.parent.iterdir()] == ["m.nc"]


def test_a_link_to_a_folder_is_refused(run):
    (run.parent / "n.nc.run").symlink_to(run)
    with pytest.raises(RunError, match="is a symbolic link"):
        resume(run.parent / "n.nc.run")
    with pytest.raises(RunError, match="holds no run"):
        resume(run.parent / "o.nc.run")


# --- hostile runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (set_values("/", "observations", put((0, 0), np.inf)), "'observations' are not all numbers"),
        (set_values("/", "observations", lambda v: v[:0].copy()), "'observations' has no entry"),
        (set_values("/", "actions", put(0, 5)), "an action without a name"),
        (set_values("/", "actions", lambda v: v[:-1].copy()), "'actions' does not match"),
        (set_values("/", "column", lambda v: v[:-1].copy()), "'column' does not match"),
        (set_attribute("every", -1.0), "'every' is wrong"),
        (set_attribute("whyact_schema", "x"), "another kind of netCDF file"),
        (set_attribute("whyact_schema", 1000), "a newer whyact has written it"),
        (set_setting("n_burn_in", True), "an option with a wrong value"),
        (set_setting("n_components", 10**7), r"asks for .* of memory to start, more than the .* that a file"),
        (set_setting("n_components", 10**30), "a value that is too large"),
        (set_setting("n_burn_in", 9 * 10**8), r"asks for .* of memory to start"),
        (set_setting("n_chains", 10**6), r"asks for .* of memory to start"),
        (set_setting("sampler", {"as_published": {"n_indicators": 10**15}}), "a value that is too large"),
    ],
)
def test_a_hostile_run_is_refused(run, edit, sentence):
    forge(run / "run.nc", edit)
    with pytest.raises(RunError, match=rf"run\.nc .*{sentence}") as error:
        resume(run)
    assert "\n" not in str(error.value)
    assert (run / "run.nc").exists()


def test_the_threads_are_the_users(run):
    forge(run / "run.nc", set_setting("n_jobs", 3008))
    assert resume(run).n_jobs == 1


def test_hostile_draws_make_no_model(run, monkeypatch):
    """A run that was stopped just before its model was written, with draws that somebody has changed then."""

    def stop():
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        after_fit(context, stop)
        with pytest.raises(KeyboardInterrupt):
            resume(run)
    forge(run / "draws-00000.nc", set_values("chain-0", "levels", put((0, 0), 255)))
    with pytest.raises(CheckpointError, match="not on their grid"):
        resume(run)
    assert not (run.parent / "m.nc").exists()
    assert {"run.nc", "state.nc", "draws-00000.nc"} <= {path.name for path in run.iterdir()}
