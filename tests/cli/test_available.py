"""Actions that cannot be taken in every row, from `whyact fit` to `whyact report`."""

import numpy as np
import pandas as pd
import pytest

import whyact
from tests.cli.quick import QUICK
from tests.support.command_line import call, invoke, said
from whyact import FeaturePolicyClassifier
from whyact.errors import DamagedFileError
from whyact.estimators.stored_model import check_stored_parameters
from whyact.sampler import chain
from whyact.storage.netcdf import read_netcdf
from whyact.storage.run_folder import Run, begin_run, decode_run, read_run

AVAILABLE = ["--available", "bus=BUS_AV,car=CAR_AV"]
GIVEN = {"bus": "BUS_AV", "car": "CAR_AV"}


def make_trips(n_rows, seed):
    """Somebody who takes the bus where it goes and time is no matter, or else the car if there is one, or walks."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.random((n_rows, 4)), columns=["time", "rain", "load", "fare"])
    table["BUS_AV"] = (rng.random(n_rows) < 0.7).astype(int)
    table["CAR_AV"] = rng.random(n_rows) < 0.8
    likes_bus = (table["time"] < 0.5) & (table["BUS_AV"] == 1)
    table["mode"] = np.where(likes_bus, "bus", np.where(table["CAR_AV"], "car", "walk"))
    return table


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """Two files of trips, and a model of the first; do not change them."""
    folder = tmp_path_factory.mktemp("trips")
    make_trips(80, 0).to_csv(folder / "trips.csv", index=False)
    make_trips(40, 1).to_csv(folder / "new.csv", index=False)
    call("fit", folder / "trips.csv", "--action", "mode", *AVAILABLE, "-o", folder / "model.nc", *QUICK)
    return folder


def find_mask(table):
    """Columns in the order of bus, car, walk."""
    return np.column_stack([table["BUS_AV"] == 1, table["CAR_AV"], np.ones(len(table), bool)])


def test_the_model_is_what_python_would_have_fitted(trips):
    table = pd.read_csv(trips / "trips.csv")
    X = table[["time", "rain", "load", "fare"]]
    paper = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
    model = FeaturePolicyClassifier(n_burn_in=40, n_draws=40, n_chains=2, random_state=0, **paper)
    model.fit(X, table["mode"], available=find_mask(table))
    loaded = whyact.load(trips / "model.nc")
    assert list(loaded.feature_names_in_) == list(X)
    assert np.array_equal(loaded.available_, find_mask(table))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_fit_says_what_it_read_and_how_to_repeat_it(trips, tmp_path):
    out = call("fit", trips / "trips.csv", "--action", "mode", *AVAILABLE, "-o", tmp_path / "m.nc", *QUICK[:-1])
    n_bus, n_car, _ = find_mask(pd.read_csv(trips / "trips.csv")).sum(axis=0)
    assert f"4 observed columns; actions: {'car' if 'actions: car' in out else 'bus'}" in out
    assert f"Available, of 80 rows: bus in {n_bus}, car in {n_car}; other actions in all." in out
    assert "give --available bus=BUS_AV,car=CAR_AV also to predict" in out


def test_columns_may_come_from_the_settings_file(trips, tmp_path):
    config = tmp_path / "fit.toml"
    config.write_text('action = "mode"\n[available]\nbus = "BUS_AV"\ncar = "CAR_AV"\n')
    call("fit", trips / "trips.csv", "--config", config, "-o", tmp_path / "m.nc", *QUICK)
    assert (tmp_path / "m.nc").read_bytes() == (trips / "model.nc").read_bytes()


def test_what_is_always_available_needs_no_mask(trips, tmp_path):
    table = pd.read_csv(trips / "trips.csv").assign(WALK_AV=1)
    table.drop(columns=["BUS_AV", "CAR_AV"]).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--action", "mode", "--available", "walk=WALK_AV", "-o", tmp_path / "m.nc"]
    assert "Available" not in call("fit", tmp_path / "t.csv", *arguments, *QUICK[:-1])
    assert not hasattr(whyact.load(tmp_path / "m.nc"), "available_")
    assert "available:" not in call("info", tmp_path / "m.nc")


def test_a_stopped_run_continues_with_what_is_available(trips, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    arguments = ["fit", trips / "trips.csv", "--action", "mode", *AVAILABLE, "-o", tmp_path / "m.nc", *QUICK]
    with monkeypatch.context() as context:
        context.setattr(chain, "run_segment", interrupt)
        assert invoke(*arguments).exit_code == 130
    call("resume", tmp_path / "m.nc.run", "-q", "--n-jobs", "1")
    assert (tmp_path / "m.nc").read_bytes() == (trips / "model.nc").read_bytes()


# --- the folder of a run ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A run of three rows and two actions."""
    mask = np.array([[True, True], [True, False], [False, True]])
    run = Run(
        {}, np.eye(3), np.array(list("abc")), np.array(["go", "stop"]), np.array([0, 0, -1]), None, 1.0, "d", mask
    )
    begin_run(tmp_path / "m.nc.run", run)
    return tmp_path / "m.nc.run"


def test_a_run_keeps_what_is_available(folder):
    assert read_run(folder, check_stored_parameters).available.tolist() == [[True, True], [True, False], [False, True]]


def test_a_run_of_the_first_schema_has_the_parameters_of_its_time(folder):
    group = read_netcdf(folder / "run.nc")["/"]
    del group.variables["available"]
    group.attributes["whyact_schema"] = 1
    run = decode_run(group, check_stored_parameters)
    assert run.available is None
    assert run.parameters == {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}


@pytest.mark.parametrize(
    "wrong", [np.ones((2, 2)), np.ones((3, 3)), np.full((3, 2), 2), np.zeros((3, 2)), [[0, 1]] * 3]
)
def test_a_run_with_a_wrong_mask_is_refused(folder, wrong):
    group = read_netcdf(folder / "run.nc")["/"]
    group.variables["available"] = group.variables["available"]._replace(values=np.array(wrong, dtype=np.int8))
    with pytest.raises(DamagedFileError, match="'available'"):
        decode_run(group, check_stored_parameters)


# --- with a model -------------------------------------------------------------------------------------------


def test_what_is_not_available_has_no_probability(trips, tmp_path):
    new = pd.read_csv(trips / "new.csv")
    call("predict", trips / "model.nc", trips / "new.csv", *AVAILABLE, "-o", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    probabilities = table[["p(bus)", "p(car)", "p(walk)"]].to_numpy()
    assert (probabilities[~find_mask(new)] == 0).all()
    model = whyact.load(trips / "model.nc")
    X = new[model.feature_names_in_]
    assert np.allclose(probabilities, model.predict_proba(X, available=find_mask(new)), atol=1e-6)
    assert table["action"].tolist() == model.predict(X, available=find_mask(new)).tolist()
    call("predict", trips / "model.nc", trips / "new.csv", "-o", tmp_path / "all.csv")
    assert (pd.read_csv(tmp_path / "all.csv")[["p(bus)", "p(car)", "p(walk)"]] > 0).all(axis=None)


def test_reasons_are_those_for_what_is_available(trips, tmp_path):
    new = pd.read_csv(trips / "new.csv")
    row = int(np.argmin(find_mask(new)[:, 1]))  # without a car
    arguments = ["explain", trips / "model.nc", trips / "new.csv", "--row", row]
    call(*arguments, *AVAILABLE, "-o", tmp_path / "r.csv")
    sums = pd.read_csv(tmp_path / "r.csv").groupby("action")["term"].sum()
    model = whyact.load(trips / "model.nc")
    X = new[model.feature_names_in_].iloc[[row]]
    expected = model.predict_proba(X, available=find_mask(new)[[row]])[0]
    assert expected[1] == 0
    assert np.allclose(sums.reindex(model.classes_, fill_value=0.0), expected, atol=1e-9)


def test_a_report_judges_by_what_is_available(trips, tmp_path):
    arguments = ["report", trips / "model.nc", "--test", trips / "new.csv", "--action", "mode", "--title", "t"]
    call(*arguments, *AVAILABLE, "-o", tmp_path / "a.html")
    call(*arguments, "-o", tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() != (tmp_path / "b.html").read_bytes()


def test_a_comparison_knows_what_is_available(trips, tmp_path):
    quick = ["--models", "lr,majority", "--folds", 3, "--n-jobs", 1]
    out = call("compare", trips / "trips.csv", "--action", "mode", *AVAILABLE, *quick, "-o", tmp_path / "c.csv")
    assert "4 observed columns, action mode" in out
    assert "What is not available in a row has no probability there" in out
    table = pd.read_csv(trips / "trips.csv")
    X = table[["time", "rain", "load", "fare"]]
    options = {"models": ["lr", "majority"], "n_folds": 3}
    expected = whyact.compare(X, table["mode"], available=find_mask(table), **options).table()
    found = pd.read_csv(tmp_path / "c.csv")
    assert np.allclose(found["log_score"], expected["log_score"])
    without = whyact.compare(X, table["mode"], **options).table()
    assert (found["log_score"] > without["log_score"] + 0.05).all()


def test_info_says_that_not_everything_is_available(trips):
    n_bus, n_car, _ = find_mask(pd.read_csv(trips / "trips.csv")).sum(axis=0)
    text = call("info", trips / "model.nc")
    assert f"available:    of 80 demonstrations, bus in {n_bus}, car in {n_car}; other actions in all" in text
    assert text.count("mixture") == 1 + text.count("combination=mixture")


def test_what_cannot_be_is_refused_with_its_row(trips, tmp_path):
    table = pd.read_csv(trips / "trips.csv")
    row = int(np.argmax(table["mode"] == "bus"))
    table.loc[row, "BUS_AV"] = 0
    table.to_csv(tmp_path / "taken.csv", index=False)
    table.assign(none=0).to_csv(tmp_path / "none.csv", index=False)
    bus = f"the action 'bus' was taken in row {row + 1} of"
    test = ["--action", "mode", "-o", tmp_path / "r.html", "--test"]
    for arguments, sentence in (
        (["fit", tmp_path / "taken.csv", "--action", "mode", "-o", tmp_path / "m.nc", *AVAILABLE], bus),
        (["report", trips / "model.nc", *test, tmp_path / "taken.csv", *AVAILABLE], bus),
        (["compare", tmp_path / "taken.csv", "--action", "mode", *AVAILABLE], bus),
        (["report", trips / "model.nc", "-o", tmp_path / "r.html", *AVAILABLE], "about the rows of --test"),
        (
            ["predict", trips / "model.nc", tmp_path / "none.csv", "--available", "bus=none,car=none,walk=none"],
            "no action is available in row 1 of",
        ),
        (
            ["predict", trips / "model.nc", trips / "new.csv", "--available", "train=BUS_AV"],
            "there is no action 'train'; the actions are: bus, car, walk.",
        ),
        (["predict", trips / "model.nc", trips / "new.csv", "--available", "bus=TIME"], "has no column 'TIME'"),
        (
            ["explain", trips / "model.nc", trips / "new.csv", "--available", "bus=time"],
            "is an observation of the model",
        ),
        (["explain", trips / "model.nc", trips / "new.csv", "--available", "bus"], "is not an action and its column"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2, arguments
        assert sentence in said(result)
        assert "--available: " in said(result)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.csv", "taken.csv"]
