"""The command line as somebody without Python uses it: from a CSV file to a model, predictions and reasons."""

import io
import json
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
from sklearn.datasets import load_wine
from typer.testing import CliRunner

import whyact
from whyact import cli
from whyact.estimators.feature_policy import FeaturePolicyClassifier

runner = CliRunner()
QUICK = ["--n-burn-in", "40", "--n-draws", "40", "--n-chains", "2", "--n-jobs", "1", "-q"]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Sentences in one line, however long the names of temporary folders are."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)


def call(*arguments):
    """What a command says; it must succeed."""
    result = runner.invoke(cli.app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def said(result) -> str:
    """What was said, without typer's frame around it."""
    return " ".join(result.output.replace("│", " ").split())


def run(*arguments, **options):
    """The command in a process of its own, as a shell would run it."""
    return subprocess.run(
        [sys.executable, "-m", "whyact", *map(str, arguments)], capture_output=True, text=True, timeout=300, **options
    )


def start_fit(demonstrations, out, *arguments, stderr):
    """A fit in a process of its own that goes on."""
    command = [sys.executable, "-m", "whyact", "fit", str(demonstrations), "-o", str(out), *arguments]
    return subprocess.Popen(command, stderr=stderr)


def wait_until(happened):
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CSV file that nobody prepared, and a model of it."""
    folder = tmp_path_factory.mktemp("wine")
    wine = load_wine(as_frame=True)
    frame = wine.data / wine.data.max()
    frame.insert(0, "kind", wine.target_names[wine.target])
    frame.iloc[4, 2] = np.nan
    frame.iloc[6, 0] = None
    frame[::2].to_csv(folder / "demos.csv", index=False)
    frame[1::2].to_csv(folder / "new.csv", index=False)
    call("fit", folder / "demos.csv", "--action", "kind", "-o", folder / "model.nc", *QUICK)
    return folder


# --- fit ----------------------------------------------------------------------------------------------------


def test_a_model_is_what_python_would_have_fitted(folder):
    table = pd.read_csv(folder / "demos.csv")
    model = FeaturePolicyClassifier(n_burn_in=40, n_draws=40, n_chains=2, random_state=0)
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
    assert "13 observed columns; actions class_1 " in out
    assert "demonstrations (P(K = " in out
    assert "Written: " in out


def test_every_option_of_the_estimator_can_be_given():
    from inspect import signature

    options = set(signature(cli.fit).parameters) | {"priors", "warm_start", "verbose"}
    assert set(signature(FeaturePolicyClassifier).parameters) <= options


def test_options_reach_the_model(folder, tmp_path):
    config = tmp_path / "fit.toml"
    config.write_text('action = "kind"\nn_levels = 50\nthin = 2\nignore = ["hue"]\n[priors]\nibp_mass = [2, 5]\n')
    given = [
        "--thin",
        "4",
        "--decisiveness",
        "3",
        "--prediction",
        "map",
        "--action-weight",
        "dimensions",
        "--unit",
        "2",
    ]
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
        (["demos.csv", "--action", "kind", "--n-levels", "1"], "n_levels"),
        (["demos.csv", "--action", "kind", "--n-levels", "many"], "--n-levels"),
        (["demos.csv", "--action", "kind", "--unit", "metre"], "--unit: 'metre' is neither a number nor auto"),
        (["demos.csv", "--action", "kind", "--prior", "ibp_mas=1,1"], "--prior: .* did you mean 'ibp_mass'"),
        (["demos.csv", "--action", "kind", "--prior", "ibp_mass=1"], "--prior|pair of positive"),
        (["demos.csv", "--action", "kind", "--config", "bad.toml"], r"bad\.toml: .*'n_chain', did you mean 'n_chains'"),
        (["demos.csv", "--action", "kind", "--shape", "3,3"], "--shape: 3 x 3 is 9, but there are 13 observed columns"),
        (["demos.csv", "--action", "kind", "--shape", "three"], "--shape: 'three' is not two or more sizes"),
        (["demos.csv", "--action", "kind", "--start", "row"], "start"),
        (["demos.csv", "--action", "kind", "--checkpoint-every", "-1"], "--checkpoint-every"),
        (["demos.csv", "--action", "kind", "--checkpoint-every", "inf"], "--checkpoint-every"),
        (["demos.csv", "--action", "kind", "--n-jobs", "0"], "--n-jobs"),
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
    model, data = str(folder / "model.nc"), str(tmp_path / "data.csv")
    for arguments, sentence in (
        (["fit", str(folder / "demos.csv"), "--action", "kind"], "does not end with .nc"),
        (["report", model], "does not end with .html"),
    ):
        result = runner.invoke(cli.app, [*arguments, "-o", data])
        assert result.exit_code == 2
        assert sentence in said(result)
    assert (tmp_path / "data.csv").read_text() == "precious"


def test_a_column_without_a_name_can_be_left_out(folder, tmp_path):
    pd.read_csv(folder / "demos.csv").to_csv(tmp_path / "index.csv")
    result = runner.invoke(
        cli.app, ["fit", str(tmp_path / "index.csv"), "--action", "kind", "-o", str(tmp_path / "m.nc")]
    )
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
        result = runner.invoke(cli.app, ["fit", str(folder / "demos.csv"), "--action", "kind", "-o", str(out)])
        assert result.exit_code == 2
        assert sentence in said(result)
    result = runner.invoke(
        cli.app, ["report", str(folder / "model.nc"), "-o", "r.html", "--test", str(tmp_path / "no.csv")]
    )
    assert "there is no file" in said(result)
    result = runner.invoke(
        cli.app, ["predict", str(folder / "model.nc"), str(folder / "new.csv"), "-o", str(folder / "new.csv")]
    )
    assert "is the file to read from" in said(result)


# --- runs that are stopped ----------------------------------------------------------------------------------


def test_a_killed_fit_is_resumed_to_the_same_file(folder, tmp_path):
    arguments = ["--action", "kind", "--n-burn-in", "300", "--n-draws", "100", "--checkpoint-every", "0.2", "-q"]
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
    from whyact.storage import model_file as model_files

    def fail(path, groups):
        raise OSError(28, "No space left on device")

    arguments = ["fit", str(folder / "demos.csv"), "--action", "kind", "-o", str(tmp_path / "m.nc"), *QUICK]
    with monkeypatch.context() as context:
        context.setattr(model_files, "write_netcdf", fail)
        result = runner.invoke(cli.app, arguments)
    assert result.exit_code == 2
    assert "No space left on device" in said(result)
    assert "goes on with it" in said(result)
    call("resume", tmp_path / "m.nc.run", "-q")
    assert whyact.load(tmp_path / "m.nc").n_components_ >= 0


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_fit_goes_on_from_where_it_was(folder, tmp_path, signal_number):
    """Long before its first checkpoint is due."""
    arguments = ["--action", "kind", "--n-burn-in", "100", "--n-draws", "20000", "--n-chains", "2", "--n-jobs", "1"]
    with open(tmp_path / "log", "w") as log:
        process = start_fit(folder / "demos.csv", tmp_path / "m.nc", *arguments, stderr=log)
        wait_until(lambda: "sweeps" in (tmp_path / "log").read_text())
        process.send_signal(signal_number)
        assert process.wait(timeout=60) == 130
    assert "`whyact resume" in (tmp_path / "log").read_text()
    from whyact.storage.netcdf import read_netcdf

    assert read_netcdf(tmp_path / "m.nc.run" / "state.nc")["/"].attributes["n_done"] >= 1000


def test_ctrl_c_says_how_to_go_on(folder, tmp_path, monkeypatch):
    from whyact.sampler import chain

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    arguments = ["fit", str(folder / "demos.csv"), "--action", "kind", "-o", str(tmp_path / "m.nc"), *QUICK]
    with monkeypatch.context() as context:
        context.setattr(chain, "run_segment", interrupt)
        result = runner.invoke(cli.app, arguments)
    assert result.exit_code == 130
    assert "whyact resume" in result.output
    call("resume", tmp_path / "m.nc.run", "-q", "--n-jobs", "1")


def test_resume_beside_a_running_fit_takes_nothing_away(folder, tmp_path):
    from whyact.storage.checkpoint import LOCK_FILE
    from whyact.storage.lock import lock_file
    from whyact.storage.run_folder import Run, begin_run

    table = pd.read_csv(folder / "demos.csv").dropna()
    run_folder = tmp_path / "m.nc.run"
    begin_run(
        run_folder,
        Run({"n_burn_in": 5, "n_draws": 5}, table.drop(columns="kind"), table["kind"].to_numpy(), None, 60, "d.csv"),
    )
    lock = lock_file(run_folder / LOCK_FILE)
    result = runner.invoke(cli.app, ["resume", str(run_folder), "-q"])
    assert result.exit_code == 2
    assert "another process is running" in said(result)
    assert sorted(path.name for path in run_folder.iterdir()) == ["lock", "run.nc"]
    lock.release()
    call("resume", run_folder, "-q", "--n-jobs", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["m.nc"]


def test_a_run_that_is_whole_but_for_its_removal_ends_the_same(folder, tmp_path, monkeypatch):
    """Killed after the model was written, before the folder was gone."""
    from whyact.storage import run_folder as runs

    arguments = ["fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK]
    with monkeypatch.context() as context:
        context.setattr(runs, "remove_run", lambda folder: None)
        call(*arguments)
    before = (tmp_path / "m.nc").read_bytes()
    call("resume", tmp_path / "m.nc.run", "-q")
    assert (tmp_path / "m.nc").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.nc"]


def test_folders_that_hold_no_run(tmp_path):
    for name, sentence in (("model.nc.run", "holds no run"), ("other", "is not the folder of a run")):
        (tmp_path / name).mkdir()
        result = runner.invoke(cli.app, ["resume", str(tmp_path / name)])
        assert result.exit_code == 2
        assert sentence in said(result)
    (tmp_path / "model.nc.run" / "run.nc").write_bytes(b"x")
    result = runner.invoke(cli.app, ["resume", str(tmp_path / "model.nc.run")])
    assert result.exit_code == 2
    assert "is not a run of whyact" in said(result)


# --- predict ------------------------------------------------------------------------------------------------


def test_predictions_are_those_of_python(folder, tmp_path):
    model = whyact.load(folder / "model.nc")
    new = pd.read_csv(folder / "new.csv")
    for how in ("mmse", "map"):
        call("predict", folder / "model.nc", folder / "new.csv", "-o", tmp_path / "p.csv", "--prediction", how)
        table = pd.read_csv(tmp_path / "p.csv")
        model.set_params(prediction=how)
        X = new[model.feature_names_in_]
        assert table["action"].tolist() == model.predict(X).tolist()
        columns = [f"p({label})" for label in model.classes_]
        assert np.allclose(table[columns], model.predict_proba(X), atol=1e-6)
        assert np.allclose(table["familiarity"], model.familiarity(X), atol=1e-3)


def test_predictions_to_a_pipe(folder):
    result = run("predict", folder / "model.nc", folder / "new.csv")
    assert result.returncode == 0
    assert len(pd.read_csv(io.StringIO(result.stdout))) == 89
    assert result.stderr == ""


def test_a_reader_that_leaves_is_no_error(folder):
    process = subprocess.run(
        f'"{sys.executable}" -m whyact predict "{folder}/model.nc" "{folder}/new.csv" | head -1',
        shell=True, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert process.stdout.startswith("action,")
    assert "Traceback" not in process.stderr


def test_failed_predictions_leave_no_file(folder, tmp_path):
    lines = (folder / "new.csv").read_text().splitlines()
    lines[50] = lines[50].rsplit(",", 1)[0] + ",much"
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    for source, sentence in ((tmp_path / "bad.csv", "line 51"), (tmp_path / "no.csv", "there is no file")):
        result = runner.invoke(
            cli.app, ["predict", str(folder / "model.nc"), str(source), "-o", str(tmp_path / "p.csv")]
        )
        assert result.exit_code == 2, result.output
        assert sentence in said(result)
        assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]
    pd.read_csv(folder / "new.csv").drop(columns="hue").to_csv(tmp_path / "few.csv", index=False)
    result = runner.invoke(cli.app, ["predict", str(folder / "model.nc"), str(tmp_path / "few.csv")])
    assert "few.csv has no column 'hue'" in said(result)
    assert "--columns" not in said(result)
    (tmp_path / "none.csv").write_text(lines[0] + "\n")
    result = runner.invoke(cli.app, ["predict", str(folder / "model.nc"), str(tmp_path / "none.csv")])
    assert result.exit_code == 2
    assert "action,p(" not in result.output


# --- explain, report, info, simulate ------------------------------------------------------------------------


def test_reasons_for_a_row(folder, tmp_path):
    text = call("explain", folder / "model.nc", folder / "new.csv", "--row", "17")
    assert text.startswith("Row 17: class_")
    assert "Most like it: demonstrations" in text
    call("explain", folder / "model.nc", folder / "new.csv", "--row", "17", "--row", "3", "-o", tmp_path / "r.csv")
    frame = pd.read_csv(tmp_path / "r.csv")
    assert set(frame["row"]) == {3, 17}
    model = whyact.load(folder / "model.nc")
    X = pd.read_csv(folder / "new.csv")[model.feature_names_in_]
    sums = frame[frame["row"] == 17].groupby("action")["term"].sum()
    assert np.allclose(sums[model.classes_], model.predict_proba(X.iloc[17:18])[0], atol=1e-9)
    for row, sentence in (("1000", "there is no row 1000"), ("-1", "less than 0")):
        result = runner.invoke(cli.app, ["explain", str(folder / "model.nc"), str(folder / "new.csv"), "--row", row])
        assert result.exit_code == 2
        assert sentence in said(result)


def test_report_is_one_page(folder, tmp_path):
    out = tmp_path / "report.html"
    call(
        "report", folder / "model.nc", "-o", out, "--test", folder / "new.csv", "--action", "kind", "--title", "<Wine>"
    )
    page = out.read_text()
    assert "&lt;Wine&gt;" in page
    assert "<Wine>" not in page
    assert out.stat().st_size < 2e6
    result = runner.invoke(cli.app, ["report", str(folder / "model.nc"), "-o", str(out), "--shape", "3,3"])
    assert result.exit_code == 2
    result = runner.invoke(cli.app, ["report", str(folder / "model.nc"), "-o", str(out), "--kind", "pie"])
    assert result.exit_code == 2


def test_an_action_may_be_a_number_here_and_text_there(tmp_path, demo):
    _, numbers = np.unique(demo.y, return_inverse=True)
    np.savez(tmp_path / "d.npz", observations=demo.X, actions=numbers)
    pd.DataFrame(demo.X, columns=[f"x{d}" for d in range(36)]).assign(u=numbers).to_csv(tmp_path / "d.csv", index=False)
    call("fit", tmp_path / "d.npz", "-o", tmp_path / "m.nc", *QUICK)
    call(
        "report",
        tmp_path / "m.nc",
        "-o",
        tmp_path / "a.html",
        "--test",
        tmp_path / "d.csv",
        "--action",
        "u",
        "--title",
        "t",
    )
    call("report", tmp_path / "m.nc", "-o", tmp_path / "b.html", "--test", tmp_path / "d.npz", "--title", "t")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_report_of_scaled_columns_predicts_what_the_model_does(folder, tmp_path):
    call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK, "--scale-columns")
    from whyact.report import summarise

    model = whyact.load(tmp_path / "m.nc")
    table = pd.read_csv(folder / "demos.csv")
    known = table["kind"].notna()
    score = model.score(table.loc[known, model.feature_names_in_], table.loc[known, "kind"].to_numpy())
    assert summarise(model)["quality"]["accuracy"]["value"] == pytest.approx(score)


def test_info_says_what_is_in_a_file(folder):
    text = call("info", folder / "model.nc")
    assert "89 demonstrations of 13 columns" in text
    assert f"whyact {whyact.__version__}" in text
    assert "n_burn_in=40" in text
    assert "in demos.csv" in text
    assert "1 entries, 1 actions" in text
    assert "class_0, class_1, class_2" in text
    result = runner.invoke(cli.app, ["info", str(folder / "demos.csv")])
    assert result.exit_code == 2
    assert "is not a model of whyact" in said(result)


def test_simulated_demonstrations_can_be_fitted(tmp_path):
    call(
        "simulate",
        "-o",
        tmp_path / "d.csv",
        "--rows",
        "50",
        "--columns",
        "8",
        "--features",
        "3",
        "--truth",
        tmp_path / "t.npz",
    )
    truth = np.load(tmp_path / "t.npz")
    assert truth["features"].shape == (3, 8)
    table = pd.read_csv(tmp_path / "d.csv")
    assert table.shape == (50, 9)
    call("simulate", "-o", tmp_path / "d.npz", "--rows", "50", "--columns", "8", "--features", "3")
    assert np.allclose(np.load(tmp_path / "d.npz")["observations"], table.drop(columns="action"), atol=1e-12)
    call("fit", tmp_path / "d.npz", "-o", tmp_path / "m.nc", *QUICK)
    result = runner.invoke(cli.app, ["simulate", "-o", str(tmp_path / "d.txt")])
    assert result.exit_code == 2


def test_settings_in_the_file_are_plain(folder):
    from whyact.storage.netcdf import read_netcdf

    about = read_netcdf(folder / "model.nc")["/"].attributes
    assert json.loads(about["settings"])["n_burn_in"] == 40


def test_nothing_heavy_is_imported_for_help():
    code = (
        "import sys, whyact.cli; "
        "heavy = [name for name in ('numpy', 'numba', 'pandas', 'sklearn', 'scipy', 'xarray') if name in sys.modules]; "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
