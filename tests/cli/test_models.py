"""`whyact predict`, `explain`, `report` and `info`: what can be done with a model file."""

import html
import io
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import whyact
from tests.cli.quick import QUICK
from tests.support.command_line import call, invoke, run, said
from whyact.explanation.choices import say_scores
from whyact.explanation.suitability import list_doubts
from whyact.report import summarise
from whyact.storage.netcdf import read_netcdf

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
        result = invoke("predict", folder / "model.nc", source, "-o", tmp_path / "p.csv")
        assert result.exit_code == 2, result.output
        assert sentence in said(result)
        assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]
    pd.read_csv(folder / "new.csv").drop(columns="hue").to_csv(tmp_path / "few.csv", index=False)
    result = invoke("predict", folder / "model.nc", tmp_path / "few.csv")
    assert "few.csv has no column 'hue'" in said(result)
    assert "--columns" not in said(result)
    (tmp_path / "none.csv").write_text(lines[0] + "\n")
    result = invoke("predict", folder / "model.nc", tmp_path / "none.csv")
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
        result = invoke("explain", folder / "model.nc", folder / "new.csv", "--row", row)
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
    result = invoke("report", folder / "model.nc", "-o", out, "--shape", "3,3")
    assert result.exit_code == 2
    result = invoke("report", folder / "model.nc", "-o", out, "--kind", "pie")
    assert result.exit_code == 2


def test_a_report_counts_features_over_the_tolerance_if_asked(folder, tmp_path):
    call("report", folder / "model.nc", "-o", tmp_path / "plain.html")
    assert "whyact report --tolerances" in (tmp_path / "plain.html").read_text()
    call("report", folder / "model.nc", "-o", tmp_path / "full.html", "--tolerances", "--n-jobs", "1")
    page = (tmp_path / "full.html").read_text()
    assert "whyact report --tolerances" not in page
    assert "0.03: " in page
    assert 'class="own"' in page or "The ring" not in page


def test_info_and_the_report_have_the_same_doubts(folder, tmp_path):
    call("report", folder / "model.nc", "-o", tmp_path / "r.html")
    page = html.unescape(re.sub(r"</?code>", "", (tmp_path / "r.html").read_text()))
    doubts = list_doubts(whyact.load(folder / "model.nc"))
    assert doubts  # such short chains do not agree
    text = call("info", folder / "model.nc")
    for doubt in doubts:
        assert f"! {doubt}\n" in text
        assert doubt in page


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
    call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK, "--scale-columns", "yes")
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
    assert "1 of 1157 entries, 1 of 89 actions" in text
    assert "class_0, class_1, class_2" in text
    result = invoke("info", folder / "demos.csv")
    assert result.exit_code == 2
    assert "is not a whyact model" in said(result)


def test_info_says_how_policies_are_combined_and_why(folder, tmp_path):
    told = "Policies are mixed (mixture), as asked. Decisiveness 1 (as set).\n"
    assert call("info", folder / "model.nc").count(told) == 1
    chosen = ["--combination", "auto", "--decisiveness", "auto", "--scale-columns", "auto"]
    call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK, *chosen)
    model = whyact.load(tmp_path / "m.nc")
    text = call("info", tmp_path / "m.nc")
    assert text.count("on hidden actions its log score was ") == 1  # once, in one dialect
    assert f"({model.combination_}): {say_scores(model.combination_scores_, model.combination_)}.\n" in text
    assert hasattr(model, "column_range_")
    table = pd.read_csv(folder / "new.csv")
    call("predict", tmp_path / "m.nc", folder / "new.csv", "-o", tmp_path / "p.csv")
    actions = pd.read_csv(tmp_path / "p.csv")["action"]
    assert actions.tolist() == model.predict(table[model.feature_names_in_]).tolist()


def test_info_says_what_was_learned_of_the_mixture(folder, tmp_path):
    mixed = ["--decisiveness", "auto"]
    call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "m.nc", *QUICK, *mixed)
    found = whyact.load(tmp_path / "m.nc").decisiveness_
    told = f"Policies are mixed (mixture), as asked. Decisiveness {found:.3g} (learned).\n"
    assert told in call("info", tmp_path / "m.nc")
    published = ["--sampler", "as-published", "--combination", "auto"]
    call("fit", folder / "demos.csv", "--action", "kind", "-o", tmp_path / "p.nc", *QUICK, *published)
    assert "(mixture), as published. Decisiveness 1 (as set).\n" in call("info", tmp_path / "p.nc")


def test_settings_in_the_file_are_plain(folder):
    about = read_netcdf(folder / "model.nc")["/"].attributes
    assert json.loads(about["settings"])["n_burn_in"] == 40
