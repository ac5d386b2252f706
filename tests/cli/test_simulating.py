"""`whyact simulate`: demonstrations whose true features and policies are known."""

import numpy as np
import pandas as pd
import pytest

from tests.cli.quick import QUICK
from tests.support.command_line import call, invoke, said


def test_simulated_demonstrations_can_be_fitted(tmp_path):
    small = ["--n-rows", "50", "--n-columns", "8", "--n-features", "3"]
    call("simulate", "-o", tmp_path / "d.csv", *small, "--truth", tmp_path / "t.npz")
    truth = np.load(tmp_path / "t.npz")
    assert truth["features"].shape == (3, 8)
    table = pd.read_csv(tmp_path / "d.csv")
    assert table.shape == (50, 9)
    call("simulate", "-o", tmp_path / "d.npz", *small)
    assert np.allclose(np.load(tmp_path / "d.npz")["observations"], table.drop(columns="action"), atol=1e-12)
    call("fit", tmp_path / "d.npz", "-o", tmp_path / "m.nc", *QUICK)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-o", "d.txt"], "--out: d.txt does not end with .csv or .npz."),
        (["-o", "no/d.csv"], "--out: the folder no does not exist"),
        (["-o", "d.npz", "--truth", "d.npz"], "--truth: d.npz is also the file of --out"),
        (["-o", "d.csv", "--n-columns", "4"], "--n-features: 5 features need at least as many columns, not 4."),
        (["-o", "d.csv", "--snr", "300"], "--snr: 300 dB is not between"),
        (["-o", "d.csv", "--peak", "0.25"], "--peak: 0.25 is not between 0.25"),
        (["-o", "d.csv", "--random-state", "-1"], "--random-state: -1 is not a whole number from 0"),
    ],
)
def test_what_cannot_be_simulated_is_refused(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    result = invoke("simulate", *arguments)
    assert result.exit_code == 2
    assert sentence in said(result)
    assert not list(tmp_path.iterdir())
