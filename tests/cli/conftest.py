"""Shared by the tests of the command line."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tests.cli.quick import QUICK
from tests.support.command_line import call


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Sentences in one line, however long the names of temporary folders are."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A CSV file that nobody prepared, and a model of it; do not change them."""
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
