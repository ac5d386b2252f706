"""`whyact fit` and `whyact resume`, as somebody without Python uses them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import whyact
from tests.cli.quick import PAPER, QUICK
from tests.support.command_line import call, invoke, run, said
from whyact import FeaturePolicyClassifier, cli
from whyact.estimators import fit_in_folder
from whyact.estimators.inputs import code_actions
from whyact.explanation.suitability import list_doubts
from whyact.sampler import chain
from whyact.storage import model_file
from whyact.storage.checkpoint import LOCK_FILE
from whyact.storage.lock import lock_file
from whyact.storage.netcdf import read_netcdf
from whyact.storage.run_folder import Run, begin_run


def start_fit(demonstrations, out, *arguments, **options):
    """A fit in a process of its own that is left running."""
    command = [sys.executable, "-m", "whyact", "fit", str(demonstrations), "-o", str(out), *arguments]
    return subprocess.Popen(command, **options)


def ignore_ctrl_c():
    """As a shell does for what a script starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def wait_until(happened):
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- fit ----------------------------------------------------------------------------------------------------


def test_a_model_is_what_python_would_have_fitted(folder):
    table = pd.read_csv(folder / "demos.csv")
    paper = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
    model = FeaturePolicyClassifier(n_burn_in=40, n_draws=40, n_chains=2, random_state=0, **paper)
    model.fit(table.drop(columns="kind"), [None if pd.isna(kind) else kind for kind in table["kind"]])
    loaded = whyact.load(folder / "model.nc")
    assert list(loaded.feature_names_in_) == list(table.columns[1:])
    assert np.array_equal(
        loaded.predict_proba(table.drop(columns="kind")), model.predict_proba(table.drop(columns="kind"))
    )
    assert not (folder / "model.nc.run").exists()


def test_fit_says_what_it_reads_and_finds(folder, tmp_path):
    out = call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK[:-1])
    assert "89 demonstrations from" in out
    assert "13 observed columns; actions: class_1 (" in out
    assert re.search(r"oth chains find (all|none|\d+) of them;( [^;]*;)* draws have \d", out)
    *lines, last = out.strip().splitlines()
    assert last.startswith("Written: ")
    doubts = list_doubts(whyact.load(tmp_path / "m.nc"))
    assert doubts  # such short chains do not agree
    assert lines[-len(doubts) :] == [f"! {doubt}" for doubt in doubts]


def test_scaling_is_advised_only_where_it_was_refused(folder, tmp_path):
    table = pd.read_csv(folder / "demos.csv")
    table["proline"] *= 1000
    table.to_csv(tmp_path / "d.csv", index=False)
    for given in ("no", "yes", "auto"):
        arguments = ["--action", "kind", "-o", tmp_path / f"{given}.nc", *QUICK[:-1], "--scale-columns", given]
        out = call("fit", tmp_path / "d.csv", *arguments)
        assert ("--scale-columns yes brings all of them to the same range" in out) == (given == "no")
        assert hasattr(whyact.load(tmp_path / f"{given}.nc"), "column_range_") == (given != "no")


def test_options_reach_the_model(folder, tmp_path):
    config = tmp_path / "fit.toml"
    config.write_text('action = "kind"\nn_levels = 50\nthin = 2\nignore = ["hue"]\n[priors]\nibp_mass = [2, 5]\n')
    given = [
        "--thin", "4", "--decisiveness", "3", "--prediction", "map", "--action-weight", "dimensions", "--unit", "2",
    ]  # fmt: skip
    call("fit", folder / "demos.csv", "--config", config, "-o", tmp_path / "m.nc", *QUICK, *given)
    model = whyact.load(tmp_path / "m.nc")
    assert (model.n_levels, model.thin, model.decisiveness, model.unit) == (50, 4, 3.0, 2.0)
    assert model.priors.ibp_mass == (2.0, 5.0)
    assert model.action_weight_ == 12
    assert "hue" not in model.feature_names_in_


def test_arrays_and_pictures(tmp_path, demo):
    np.save(tmp_path / "X.npy", demo.X[:60].reshape(60, 6, 6))
    np.save(tmp_path / "u.npy", demo.y[:60])
    call("fit", tmp_path / "X.npy", "--action", tmp_path / "u.npy", "-o", tmp_path / "m.nc", *QUICK)
    assert whyact.load(tmp_path / "m.nc").shape_ == (6, 6)
    call("predict", tmp_path / "m.nc", tmp_path / "X.npy", "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 60


def test_features_without_actions(folder, tmp_path):
    columns = "alcohol,hue,flavanoids,proline"
    call("fit", folder / "demos.csv", "--no-action", "--columns", columns, "-o", tmp_path / "m.nc", *QUICK)
    out = call("predict", tmp_path / "m.nc", folder / "new.csv")
    assert out.splitlines()[0] == "features,familiarity,unfamiliar"
    assert "actions:      none" in call("info", tmp_path / "m.nc")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no.csv", "--action", "kind"], r"there is no file no\.csv\."),
        (["demos.csv", "--action", "kin"], r"--action: demos\.csv has no column 'kin', did you mean 'kind'\?"),
        (["demos.csv"], "action"),
        (["demos.csv", "--action", "kind", "--columns", "alcohl"], "--columns: .* did you mean 'alcohol'"),
        (["demos.csv", "--action", "kind", "--n-levels", "1"], "--n-levels: 1 is not a whole number from 2 to 65536"),
        (["demos.csv", "--action", "kind", "--n-levels", "many"], "--n-levels: "),
        (["demos.csv", "--action", "kind", "--unit", "metre"], "--unit: 'metre' is not a finite number above 0 or 'a"),
        (["demos.csv", "--action", "kind", "--prior", "ibp_mas=1,1"], "--prior: .* did you mean 'ibp_mass'"),
        (["demos.csv", "--action", "kind", "--prior", "ibp_mass=1"], "--prior: .*pair of positive"),
        (["demos.csv", "--action", "kind", "--config", "bad.toml"], r"bad\.toml: .*'n_chain', did you mean 'n_chains'"),
        (["demos.csv", "--action", "kind", "--shape", "3,3"], "--shape: 3 x 3 is 9, but there are 13 observed columns"),
        (["demos.csv", "--action", "kind", "--shape", "three"], "--shape: 'three' is not two or more sizes"),
        (
            ["demos.csv", "--action", "kind", "--combination", "sum"],
            "--combination: 'sum' is not 'auto' or 'mixture' or",
        ),
        (
            ["demos.csv", "--action", "kind", "--decisiveness", "0"],
            "--decisiveness: 0.0 is not a finite number above 0",
        ),
        (["demos.csv", "--action", "kind", "--scale-columns", "1"], "--scale-columns: '1' is not auto, yes or no"),
        (
            ["demos.csv", "--action", "kind", "--available", "class_0"],
            "--available: 'class_0' is not an action and its",
        ),
        (["demos.csv", "--action", "kind", "--available", ""], "--available: name actions and their columns"),
        (["demos.csv", "--action", "kind", "--available", "a=hue,a=hue"], "--available: the action 'a' is named twice"),
        (
            ["demos.csv", "--action", "kind", "--available", "a=heu"],
            "--available: demos.csv has no column 'heu', did you",
        ),
        (["demos.csv", "--action", "kind", "--available", "a=kind"], "--available: the column 'kind' holds the action"),
        (
            ["demos.csv", "--action", "kind", "--available", "a=hue"],
            r"'hue' of demos\.csv holds '0\.\d+' in row 1, not 0",
        ),
        (["demos.csv", "--no-action", "--available", "a=hue"], "--available: there are no actions"),
        (["demos.csv", "--action", "kind", "--start", "row"], "--start: 'row' is not 'auto' or 'prior' or 'rows'"),
        (["demos.csv", "--action", "kind", "--checkpoint-every", "-1"], "--checkpoint-every: -1.0 is not"),
        (["demos.csv", "--action", "kind", "--checkpoint-every", "inf"], "--checkpoint-every: inf is not"),
        (["demos.csv", "--action", "kind", "--n-jobs", "0"], "--n-jobs: 0 jobs"),
        (["one.csv", "--action", "u"], "one class only"),
        (["demos.csv", "--action", "kind", "--unknown"], "--unknown"),
    ],
)
def test_bad_input_is_one_sentence_on_standard_error(folder, tmp_path, arguments, sentence, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "demos.csv", "demos.csv")
    (tmp_path / "bad.toml").write_text("n_chain = 3\n")
    (tmp_path / "one.csv").write_text("x,y,u\n1,2,a\n2,1,a\n")
    monkeypatch.setattr(sys, "argv", ["whyact", "fit", *arguments, "-o", "model.nc", "-q"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("whyact: ")
    assert err.count("\n") == 1
    assert re.search(sentence, err), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "demos.csv", "one.csv"]


def test_a_slip_of_names_overwrites_no_data(folder, tmp_path):
    (tmp_path / "data.csv").write_text("precious")
    data = tmp_path / "data.csv"
    for arguments, sentence in (
        (["fit", folder / "demos.csv", "--action", "kind"], "does not end with .nc"),
        (["report", folder / "model.nc"], "does not end with .html"),
    ):
        result = invoke(*arguments, "-o", data)
        assert result.exit_code == 2
        assert sentence in said(result)
    assert (tmp_path / "data.csv").read_text() == "precious"


def test_a_column_without_a_name_can_be_left_out(folder, tmp_path):
    pd.read_csv(folder / "demos.csv").to_csv(tmp_path / "index.csv")
    result = invoke("fit", tmp_path / "index.csv", "--action", "kind", "-o", tmp_path / "m.nc")
    assert "leave it out (ignore '')" in said(result)
    call("fit", tmp_path / "index.csv", "--action", "kind", "--ignore", "", "-o", tmp_path / "m.nc", *QUICK)
    assert whyact.load(tmp_path / "m.nc").n_features_in_ == 13


def test_outputs_are_checked_before_the_work(folder, tmp_path):
    (tmp_path / "f.nc").mkdir()
    for out, sentence in (
        (tmp_path / "no" / "m.nc", "does not exist"),
        (tmp_path / "f.nc", "is a folder"),
        ("-", "give a file"),
    ):
        result = invoke("fit", folder / "demos.csv", "--action", "kind", "-o", out)
        assert result.exit_code == 2
        assert sentence in said(result)
    result = invoke("report", folder / "model.nc", "-o", "r.html", "--test", tmp_path / "no.csv")
    assert "there is no file" in said(result)
    result = invoke("predict", folder / "model.nc", folder / "new.csv", "-o", folder / "new.csv")
    assert "is also an input file" in said(result)


# --- runs that are stopped ----------------------------------------------------------------------------------


def test_a_killed_fit_is_resumed_to_the_same_file(folder, tmp_path):
    arguments = [
        "--action", "kind", *PAPER, "--n-burn-in", "300", "--n-draws", "100", "--checkpoint-every", "0.2", "-q",
    ]  # fmt: skip
    call("fit", folder / "demos.csv", "-o", tmp_path / "straight.nc", *arguments, "--n-jobs", "1")
    # its idle workers would hold a pipe open for minutes
    process = start_fit(folder / "demos.csv", tmp_path / "killed.nc", *arguments, stderr=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "killed.nc.run" / "state.nc").exists() or process.poll() is not None)
    assert process.poll() is None, "the run ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed.nc").exists()
    again = run("fit", folder / "demos.csv", "-o", tmp_path / "killed.nc", *arguments)
    assert again.returncode == 2
    assert "`whyact resume" in again.stderr
    resumed = run("resume", tmp_path / "killed.nc.run", "-q")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == ""
    assert (tmp_path / "killed.nc").read_bytes() == (tmp_path / "straight.nc").read_bytes()
    assert not (tmp_path / "killed.nc.run").exists()


def test_a_full_disk_at_the_end_keeps_the_run(folder, tmp_path, monkeypatch):
    def fail(path, groups, **options):
        raise OSError(28, "No space left on device")

    arguments = ["fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK]
    with monkeypatch.context() as context:
        context.setattr(model_file, "write_netcdf", fail)
        result = invoke(*arguments)
    assert result.exit_code == 2
    assert "No space left on device" in said(result)
    assert "continues it" in said(result)
    call("resume", tmp_path / "m.nc.run", "-q")
    assert whyact.load(tmp_path / "m.nc").n_components_ >= 0


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_fit_continues_from_where_it_was(folder, tmp_path, signal_number):
    """Long before its first checkpoint is due."""
    arguments = [
        "--action", "kind", *PAPER, "--n-burn-in", "100", "--n-draws", "20000", "--n-chains", "2", "--n-jobs", "1",
    ]  # fmt: skip
    with open(tmp_path / "log", "w") as log:
        process = start_fit(folder / "demos.csv", tmp_path / "m.nc", *arguments, stderr=log)
        wait_until(lambda: "sweeps" in (tmp_path / "log").read_text())
        process.send_signal(signal_number)
        assert process.wait(timeout=60) == 130
    assert "`whyact resume" in (tmp_path / "log").read_text()
    assert read_netcdf(tmp_path / "m.nc.run" / "state.nc")["/"].attributes["n_done"] >= 1000


@pytest.mark.skipif(os.name == "nt", reason="needs process groups")
@pytest.mark.parametrize("n_jobs", ["1", "2"])
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "group"])
def test_a_fit_in_the_background_stops_when_asked_to(folder, tmp_path, n_jobs, whole_group):
    """Ctrl-C is ignored there; a scheduler sends SIGTERM, to the process or to all of its group."""
    arguments = [
        "--action", "kind", *PAPER, "--n-burn-in", "100", "--n-draws", "40000", "--n-chains", "2", "--n-jobs", n_jobs,
    ]  # fmt: skip
    with open(tmp_path / "log", "w") as log:
        process = start_fit(
            folder / "demos.csv", tmp_path / "m.nc", *arguments, stderr=log, preexec_fn=ignore_ctrl_c,
            start_new_session=True,
        )  # fmt: skip
        try:
            wait_until(lambda: "sweeps" in (tmp_path / "log").read_text())
            os.killpg(process.pid, signal.SIGTERM) if whole_group else process.terminate()
            assert process.wait(timeout=60) == 130
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert "`whyact resume" in (tmp_path / "log").read_text()
    assert read_netcdf(tmp_path / "m.nc.run" / "state.nc")["/"].attributes["n_done"] >= 1000


def test_ctrl_c_says_how_to_continue(folder, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    arguments = ["fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK]
    with monkeypatch.context() as context:
        context.setattr(chain, "run_segment", interrupt)
        result = invoke(*arguments)
    assert result.exit_code == 130
    assert "whyact resume" in result.output
    call("resume", tmp_path / "m.nc.run", "-q", "--n-jobs", "1")


def test_resume_beside_a_running_fit_takes_nothing_away(folder, tmp_path):
    table = pd.read_csv(folder / "demos.csv").dropna()
    X = table.drop(columns="kind")
    classes, actions = code_actions(table["kind"], len(table))
    run_folder = tmp_path / "m.nc.run"
    parameters = {"n_burn_in": 5, "n_draws": 5, "combination": "mixture"}
    begin_run(run_folder, Run(parameters, X.to_numpy(), X.columns, classes, actions, None, 60, "d.csv"))
    lock = lock_file(run_folder / LOCK_FILE)
    result = invoke("resume", run_folder, "-q")
    assert result.exit_code == 2
    assert "another process is running" in said(result)
    assert sorted(path.name for path in run_folder.iterdir()) == ["lock", "run.nc"]
    lock.release()
    call("resume", run_folder, "-q", "--n-jobs", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["m.nc"]


def test_a_run_that_is_whole_but_for_its_removal_ends_the_same(folder, tmp_path, monkeypatch):
    """Killed after the model was written, before the folder was gone."""
    arguments = ["fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK]
    with monkeypatch.context() as context:
        context.setattr(fit_in_folder, "remove_run", lambda folder: None)
        call(*arguments)
    before = (tmp_path / "m.nc").read_bytes()
    call("resume", tmp_path / "m.nc.run", "-q")
    assert (tmp_path / "m.nc").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.nc"]


def test_folders_that_hold_no_run(tmp_path):
    for name, sentence in (("model.nc.run", "holds no run"), ("other", "is not the folder of a run")):
        (tmp_path / name).mkdir()
        result = invoke("resume", tmp_path / name)
        assert result.exit_code == 2
        assert sentence in said(result)
    (tmp_path / "model.nc.run" / "run.nc").write_bytes(b"x")
    result = invoke("resume", tmp_path / "model.nc.run")
    assert result.exit_code == 2
    assert "is not a whyact run" in said(result)
