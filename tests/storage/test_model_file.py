"""Model files: what was saved is what is loaded, and nothing else is believed."""

import json
import os
import pickle
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import h5py
import joblib
import numpy as np
import pandas as pd
import pytest
import xarray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import whyact
from tests.support.forging import forge, put, set_attribute, set_setting, set_values
from tests.support.mutations import mutate, sign
from tests.support.paths import DATA
from tests.support.plain import PLAIN
from tests.support.stand_in import make_model
from whyact import AsPublished, FeaturePolicyClassifier, Priors
from whyact.errors import DamagedFileError, ModelFileError
from whyact.sampler.draws import RunEnd
from whyact.storage.model_file import SCHEMA, write_model
from whyact.storage.netcdf import Group, Variable, check_digest, decode, encode, read_netcdf, write_netcdf

QUICK = {**PLAIN, "n_burn_in": 30, "n_draws": 20, "thin": 2, "n_chains": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


@pytest.fixture(scope="module")
def model(demo):
    return FeaturePolicyClassifier(**QUICK).fit(pd.DataFrame(demo.X[:80], columns=demo.column_names), demo.y[:80])


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.nc"
    model.save(path)
    return path


@pytest.fixture
def change(file, tmp_path):
    """Write the file again with one thing changed, and a right digest."""

    def change(edit):
        return forge(file, edit, tmp_path / "changed.nc")

    return change


# --- the same model -----------------------------------------------------------------------------------------


def test_a_loaded_model_predicts_the_same_numbers(model, file, demo):
    loaded = whyact.load(file)
    X = pd.DataFrame(demo.X[80:], columns=demo.column_names)
    for method in ("predict", "predict_proba", "familiarity", "transform"):
        assert np.array_equal(getattr(model, method)(X), getattr(loaded, method)(X))
    assert str(model) == str(loaded)
    assert loaded.get_params() == model.get_params()
    for name in ("components_", "policies_", "substates_", "observations_", "actions_", "classes_"):
        assert np.array_equal(getattr(model, name), getattr(loaded, name)), name
    assert loaded.feature_names_in_.tolist() == demo.column_names


@pytest.mark.parametrize(
    "options",
    [
        {"prediction": "map", "feature_values": "real"},
        {"decisiveness": 10.0, "max_features": 4, "start": "rows", "n_levels": 300},
        {"sampler": AsPublished(n_indicators=50), "n_chains": 1},
        {"priors": Priors(ibp_mass=(2, 3)), "action_weight": "dimensions", "unit": 2.0, "missing_action": "brake"},
        {"scale_columns": True},
        {"decisiveness": "auto"},
        {"combination": "product"},
        {"combination": "product", "scale_columns": "auto", "max_prediction_draws": 4, "prediction": "map"},
        {"combination": "auto", "n_chains": 1},
        {"missing_action": np.nan, "random_state": np.random.RandomState(0)},
    ],
)
def test_every_kind_of_model_comes_back(options, demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK | options).fit(demo.X[:60], demo.y[:60])
    model.save(tmp_path / "model.nc")
    loaded = whyact.load(tmp_path / "model.nc")
    assert np.array_equal(model.predict_proba(demo.X[80:]), loaded.predict_proba(demo.X[80:]))
    assert model.posterior_.agreement() == loaded.posterior_.agreement()
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize(
    "labels",
    [[1, 0, 1, 2] * 20, [True, False] * 40, [1.0, 2.0] * 40, ["a\"'<b>", "ü 距離", "", "a,b\n"] * 20, [None] * 80],
)
def test_actions_keep_their_type(labels, demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], labels)
    model.save(tmp_path / "model.nc")
    loaded = whyact.load(tmp_path / "model.nc")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert len(model.classes_) == 0 or loaded.predict(demo.X[80:]).dtype.kind == model.predict(demo.X[80:]).dtype.kind


def test_missing_entries_come_back(demo, tmp_path):
    X = demo.X[:60].copy()
    X[::7, 3] = np.nan
    model = FeaturePolicyClassifier(**QUICK).fit(X, demo.y[:60])
    model.save(tmp_path / "model.nc")
    assert np.array_equal(whyact.load(tmp_path / "model.nc").observations_, X, equal_nan=True)


def test_a_loaded_model_draws_more_as_the_saved_one_would(model, file, demo):
    X = pd.DataFrame(demo.X[:80], columns=demo.column_names)
    loaded = whyact.load(file).set_params(warm_start=True, n_draws=40).fit(X, demo.y[:80])
    straight = FeaturePolicyClassifier(**QUICK | {"n_draws": 40}).fit(X, demo.y[:80])
    assert np.array_equal(loaded.predict_proba(X), straight.predict_proba(X))
    assert loaded.posterior_.n_draws == 20


def test_models_of_many_chains_come_back(demo, tmp_path):
    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=2, n_draws=1, thin=1, n_chains=30, random_state=0)
    model.fit(demo.X[:20], demo.y[:20]).save(tmp_path / "model.nc")
    assert whyact.load(tmp_path / "model.nc").posterior_.n_chains == 30


def test_what_is_set_after_the_fit_does_not_change_the_model(demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:60], demo.y[:60])
    expected = model.predict_proba(demo.X[80:])
    model.set_params(decisiveness=5.0, n_levels=50, max_prediction_draws=2, n_draws=1000)
    model.save(tmp_path / "model.nc")
    assert np.array_equal(whyact.load(tmp_path / "model.nc").predict_proba(demo.X[80:]), expected)


def test_a_shape_that_does_not_fit_is_not_saved(demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK).fit(demo.X[:60], demo.y[:60])
    with pytest.raises(ModelFileError, match=r"shape: \(5, 5\) does not match the 36 columns"):
        model.save(tmp_path / "model.nc", shape=(5, 5))
    assert not (tmp_path / "model.nc").exists()
    model.save(tmp_path / "model.nc", shape=(6, 6), source="demo")
    loaded = whyact.load(tmp_path / "model.nc")
    assert (loaded.shape_, loaded.source_) == ((6, 6), "demo")
    loaded.fit(demo.X[:60, :10], demo.y[:60])
    assert not hasattr(loaded, "shape_")
    assert not hasattr(loaded, "source_")


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no /dev/shm")
def test_memory_disks_hold_files_like_others(model, file):
    path = Path("/dev/shm") / f"whyact-test-{os.getpid()}.nc"
    try:
        for _ in range(2):
            model.save(path)
        assert path.read_bytes() == file.read_bytes()
    finally:
        path.unlink(missing_ok=True)


def test_who_may_read_a_file_is_the_users_choice(model, tmp_path):
    old = os.umask(0o077)
    try:
        model.save(tmp_path / "private.nc")
    finally:
        os.umask(old)
    assert (tmp_path / "private.nc").stat().st_mode & 0o777 == 0o600
    model.save(tmp_path / "private.nc")
    assert (tmp_path / "private.nc").stat().st_mode & 0o777 == 0o600


def test_the_same_model_gives_the_same_file(model, file, tmp_path):
    model.save(tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == file.read_bytes()


def test_shape_of_pictures_is_kept(model, tmp_path):
    loaded = pickle.loads(pickle.dumps(model))
    loaded.save(tmp_path / "model.nc", shape=(6, 6))
    again = whyact.load(tmp_path / "model.nc")
    assert again.shape_ == (6, 6)
    again.save(tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == (tmp_path / "model.nc").read_bytes()


# --- other programs -----------------------------------------------------------------------------------------


def test_no_special_file_is_read():
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        whyact.load("/dev/zero")


def test_xarray_and_arviz_read_the_file_without_whyact(model, file, demo):
    import arviz_stats

    tree = xarray.open_datatree(file)
    assert tree.attrs["whyact_schema"] == SCHEMA
    posterior = model.posterior_
    assert np.allclose(tree["posterior"]["noise_variance"], posterior.traces["noise_variance"], rtol=1e-12)
    assert np.allclose(tree["posterior"]["weight_scale"], posterior.traces["weight_scale"], rtol=1e-12)
    first = posterior.state(0, 0)
    splits = tree["features"]["row_splits"].values
    assert np.allclose(tree["features"]["features"][splits[0] : splits[1]], first.features, rtol=1e-12)
    assert np.allclose(tree["features"]["substates"][splits[0] : splits[1]], first.substates, atol=1e-6)
    assert tree["features"]["column"].values.tolist() == demo.column_names
    assert tree["features"]["action"].values.tolist() == model.classes_.tolist()
    summary = arviz_stats.summary(tree, var_names=["noise_variance", "n_features"])
    assert np.isfinite(summary["r_hat"].astype(float)).any()
    tree.close()


def test_joblib_keeps_a_pipeline(demo, tmp_path):
    pipeline = make_pipeline(MaxAbsScaler(), FeaturePolicyClassifier(**QUICK)).fit(demo.X[:80], demo.y[:80])
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    loaded = joblib.load(tmp_path / "pipeline.joblib")
    assert np.array_equal(loaded.predict_proba(demo.X[80:]), pipeline.predict_proba(demo.X[80:]))


# --- versions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [1, 2, 3, 4, 5])
def test_the_frozen_file_of_an_older_schema_is_read(schema, monkeypatch):
    """Files that earlier versions wrote; every later one must read them. Never write them again."""
    if schema == 2:
        # its policies are averages over draws, which then were matched with the features of one draw
        monkeypatch.setattr("whyact.posterior.refine", lambda chains, prototypes, compare: prototypes)
    frozen = DATA / f"model-schema-{schema}.nc"
    model = whyact.load(frozen)
    expected = json.loads(frozen.with_suffix(".json").read_text())
    # in schema 2, "auto" meant that the decisiveness was drawn
    assert model.decisiveness == {1: 1.0, 2: "drawn"}.get(schema, "auto")
    assert model.decisiveness_ == pytest.approx(expected.get("decisiveness", 1.0), rel=1e-12)
    assert model.classes_.tolist() == expected["classes"]
    assert model.get_params()["n_burn_in"] == expected["n_burn_in"]
    assert np.allclose(model.components_, expected["components"], rtol=1e-12)
    assert np.allclose(model.policies_, expected["policies"], rtol=1e-12)
    assert np.allclose(model.predict_proba(np.array(expected["X"])), expected["probabilities"], rtol=1e-6)
    assert schema > 4 or not model.posterior_.adds_up
    assert model.tolerance is None  # columns of the demonstrations were not scaled
    assert model.posterior_.distance is None
    assert np.ptp(model.posterior_.chain_weights) == 0


@pytest.mark.parametrize("combination", ["mixture", "product"])
def test_what_is_available_comes_back(combination, demo, tmp_path):
    codes = np.unique(demo.y[:60], return_inverse=True)[1]
    available = np.ones((60, 5), bool)
    available[np.arange(60), (codes + 1) % 5] = False
    model = FeaturePolicyClassifier(**QUICK | {"combination": combination})
    model.fit(demo.X[:60], demo.y[:60], available=available).save(tmp_path / "model.nc")
    loaded = whyact.load(tmp_path / "model.nc")
    assert np.array_equal(loaded.available_, available)
    probabilities = loaded.predict_proba(demo.X[:60], available)
    assert np.array_equal(probabilities, model.predict_proba(demo.X[:60], available))
    assert not probabilities[~available].any()


def test_policies_for_predictions_must_match_the_draws(demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK | {"combination": "product"}).fit(demo.X[:60], demo.y[:60])
    cut = model._result.cut
    for changed in (cut._replace(base=cut.base[1:]), cut._replace(log_odds=1e9 * cut.log_odds)):
        write_model(tmp_path / "broken.nc", replace(model._result, cut=changed), model.posterior_)
        with pytest.raises(ModelFileError, match=r"do not match its draws|does not hold log odds"):
            whyact.load(tmp_path / "broken.nc")
    # means beyond a substate's range, and a product without what it predicts with
    for changed in (cut._replace(means=2.0 + cut.means), None):
        write_model(tmp_path / "broken.nc", replace(model._result, cut=changed), model.posterior_)
        with pytest.raises(ModelFileError, match=r"'prediction' (has wrong means|does not match)"):
            whyact.load(tmp_path / "broken.nc")


def test_a_newer_file_is_refused(change):
    def edit(groups):
        groups["/"].attributes.update(whyact_schema=SCHEMA + 1, whyact_version="9.0")

    with pytest.raises(
        ModelFileError, match=rf"written by a newer whyact \(9\.0, schema {SCHEMA + 1}; .*: install that version"
    ):
        whyact.load(change(edit))


# --- what cannot be saved -----------------------------------------------------------------------------------


def test_what_cannot_be_saved_is_said(model, demo, tmp_path):
    with pytest.raises(NotFittedError):
        FeaturePolicyClassifier().save(tmp_path / "model.nc")
    with pytest.raises(ModelFileError, match=r"the folder .* does not exist"):
        model.save(tmp_path / "no" / "model.nc")
    with pytest.raises(ModelFileError, match=r"cannot be written: Is a directory"):
        model.save(tmp_path)
    bad = FeaturePolicyClassifier(**QUICK).fit(demo.X[:80], ["a\0b", "c"] * 40)
    with pytest.raises(ModelFileError, match=r"y: the action .* holds a zero character"):
        bad.save(tmp_path / "model.nc")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(model, file, tmp_path, monkeypatch):
    path = tmp_path / "model.nc"
    model.save(path)
    before = path.read_bytes()

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ModelFileError, match="cannot be written: No space left on device"):
        model.save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["model.nc"]


# --- hostile files ------------------------------------------------------------------------------------------


def test_files_that_are_not_there_or_something_else(tmp_path):
    with pytest.raises(ModelFileError, match="there is no file"):
        whyact.load(tmp_path / "no.nc")
    with pytest.raises(ModelFileError, match="cannot be read: Is a directory"):
        whyact.load(tmp_path)
    for content in (b"", b"\x89PNG", pickle.dumps({"a": 1}), b"CDF\x01" + bytes(100), b"\x89HDF\r\n\x1a\n"):
        (tmp_path / "x.nc").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"x\.nc is not a whyact model: "):
            whyact.load(tmp_path / "x.nc")
    write_netcdf(tmp_path / "x.nc", {"/": Group({}, {"title": "something"})})
    with pytest.raises(ModelFileError, match="another kind of netCDF file"):
        whyact.load(tmp_path / "x.nc")


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (set_values("features", "policies", put((0, 0), 0.9999)), "does not sum to one"),
        (set_values("features", "policies", put((0, 0), -0.5)), "does not hold probabilities"),
        (set_values("features", "policies", put((0, 0), np.nan)), "has an unexpected type"),
        (set_values("features", "policies", lambda v: v[:, :-1]), "'policies' does not match"),
        (set_values("features", "policies", lambda v: v.astype(np.float32)), "an unexpected type"),
        (set_values("features", "features", put((0, 0), -1.0)), "not positive"),
        (set_values("features", "features", put((0, 0), np.inf)), "not all numbers"),
        (set_values("features", "features", lambda v: v[:-1]), "does not match|is wrong"),
        (set_values("features", "substates", put((0, 0), 100)), "not on their grid"),
        (set_values("features", "substates", lambda v: v.astype(np.uint16)), "an unexpected type"),
        (set_values("features", "row_splits", put(1, 10**9)), "'row_splits' is wrong"),
        (set_values("features", "row_splits", put(1, -1)), "'row_splits' is wrong"),
        (set_values("features", "row_splits", lambda v: v[:-1]), "'row_splits' is wrong"),
        (set_values("features", "features", put((0, 0), 1e200)), "'features' are too large"),
        (set_values("demonstrations", "observations", put((0, 0), 1e200)), "'observations' are too large"),
        (set_values("chain_ends/0", "substates", put((0, 0), 0.12345)), "not on their grid"),
        (set_values("chain_ends/0", "features", put((0, 0), -1.0)), "not positive"),
        (set_values("chain_ends/0", "policies", put((0, 0), 2.0)), "does not hold probabilities"),
        (set_setting("max_prediction_draws", 10**30), "a value that is too large"),
        (set_setting("sampler", {"as_published": {"n_indicators": 10**12}}), "a value that is too large"),
        (set_values("features", "action", lambda v: v[::-1].copy()), "'action' is not sorted"),
        (set_values("features", "action", lambda v: v[:-1]), "does not match|without a name"),
        (set_values("features", "column", put(0, "ahead 5 left 3")), "has a name twice"),
        (set_values("features", "column", lambda v: v[:-1]), "'column' does not match"),
        (set_values("demonstrations", "actions", put(0, 5)), "an action without a name"),
        (set_values("demonstrations", "actions", lambda v: v[:-1]), "'actions' does not match"),
        (set_values("demonstrations", "observations", put((0, 0), np.inf)), "not all numbers"),
        (set_values("posterior", "noise_variance", put((0, 0), -1.0)), "'noise_variance' is not positive"),
        (set_values("posterior", "n_features", put((0, 0), 1.0)), "'row_splits' is wrong"),
        (set_values("sample_stats", "lp", put((0, 0), np.nan)), "not a number in each draw"),
        (set_values("chain_ends/0", "rng", put(3, 2)), "random numbers"),
        (set_values("chain_ends/0", "scalars", lambda v: v[:-1]), "do not match"),
        (set_values("chain_ends/0", "substates", lambda v: v[:, :-1]), "'substates' does not match"),
        (lambda groups: groups.pop("chain_ends/1"), "the last states of its chains are missing"),
        (lambda groups: groups.pop("features"), "the group 'features' is missing"),
        (lambda groups: groups["features"].variables.pop("policies"), "'policies' is missing"),
        (set_attribute("settings", "{"), "not JSON"),
        (set_attribute("settings", "[" * 5000), "not JSON"),
        (set_attribute("settings", "[]"), "not a table"),
        (set_attribute("settings", 3), "'settings' is missing"),
        (set_setting("__class__", "os.system"), "unknown option '__class__'"),
        (set_setting("n_levels", -3), "an option with a wrong value"),
        (set_setting("max_prediction_draws", True), "an option with a wrong value"),
        (set_setting("decisiveness", True), "an option with a wrong value"),
        (set_setting("sampler", {"as_published": {"n_indicators": True}}), "an option with a wrong value"),
        (set_setting("priors", {"priors": {"ibp_mass": [-1, 1]}}), "an option with a wrong value"),
        (set_setting("priors", {"priors": {"unknown": [1, 1]}}), "an option with a wrong value"),
        (set_setting("sampler", {"as_published": {"n_indicators": 0}}), "an option with a wrong value"),
        (set_setting("n_levels", 50), "does not match 'settings'"),
        (set_attribute("unit", 0.0), "'unit' is wrong"),
        (set_attribute("unit", "metre"), "'unit' is wrong"),
        (set_attribute("action_weight", np.nan), "'action_weight' is wrong"),
        (set_attribute("entropy", np.arange(3)), "'entropy' is wrong"),
        (set_attribute("shape", np.array([5, 7])), "'shape' does not match"),
        (set_attribute("shape", "abc"), "'shape' is wrong"),
        (set_attribute("shape", np.inf), "'shape' is wrong"),
        (set_attribute("libraries", 3), "'libraries' is missing"),
        (set_setting("decisiveness", 10**400), "does not match"),
        (set_attribute("whyact_schema", 0), "another kind of netCDF file"),
    ],
)
def test_a_file_with_a_right_digest_and_wrong_content_is_refused(change, edit, sentence):
    with pytest.raises(ModelFileError, match=sentence) as error:
        whyact.load(change(edit))
    assert "\n" not in str(error.value)


def save_hdf5(path, build):
    with h5py.File(path, "w") as file:
        build(file)
    path.write_bytes(sign(path.read_bytes()))
    return path


def nest(file):
    place = file
    for _ in range(500):
        place = place.create_group("g")


def make_cycle(file):
    file.create_group("a")["self"] = file["/"]


def make_external(file):
    Path(file.filename + ".raw").write_bytes(bytes(80))
    file.create_dataset("x", (10,), "f8", external=[(file.filename + ".raw", 0, 80)])


def make_virtual(file):
    layout = h5py.VirtualLayout(shape=(10,), dtype="f8")
    layout[:] = h5py.VirtualSource(file.filename + ".other", "x", shape=(10,))
    file.create_virtual_dataset("x", layout)


def make_object_reference(file):
    file.create_dataset("x", (1,), dtype=h5py.ref_dtype)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda file: file.create_dataset("x", (10**9, 10**9), "f8", chunks=(1, 1000)), "declares a size"),
        (
            lambda file: file.create_dataset("x", (10**10,), "f8", chunks=(10**8,), compression="gzip"),
            "too large|declares",
        ),
        (lambda file: file.attrs.create("x", np.zeros(5000)), "another kind"),
        (lambda file: [file.create_group(f"g{i}") for i in range(6000)], "more than 5000 groups"),
        (
            lambda file: file.create_dataset("x", (2_000_000, 2), "S1", chunks=True, compression="gzip"),
            "declares a size",
        ),
        (lambda file: [file.attrs.create(f"a{i}", i) for i in range(60)], "more than 50 attributes"),
        (nest, "nested too deep"),
        (make_cycle, "nested too deep|more than"),
        (lambda file: file.__setitem__("x", h5py.SoftLink("/elsewhere")), "a link to elsewhere"),
        (lambda file: file.__setitem__("x", h5py.ExternalLink("other.h5", "/")), "a link to elsewhere"),
        (make_external, "stored in other files"),
        (make_virtual, "stored in other files"),
        (make_object_reference, "neither numbers nor text"),
        (lambda file: file.create_dataset("x", (2,), dtype=[("a", "f8"), ("b", "i4")]), "neither numbers nor text"),
        (lambda file: file.create_dataset("x", data=["text"]), "neither numbers nor text"),
        (lambda file: file.create_dataset("x", (100,), "f8", compression="lzf"), "a filter that is not known"),
        (lambda file: file.__setitem__("x", np.dtype("f8")), "neither a group nor an array"),
    ],
)
def test_hostile_hdf5_is_refused_quickly_in_little_memory(build, sentence, tmp_path):
    path = save_hdf5(tmp_path / "hostile.nc", build)
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(ModelFileError, match=sentence):
        whyact.load(path)
    assert time.perf_counter() - started < 10  # seconds; a hang, not a measure of speed
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_compression_never_passes_what_a_reader_allows(tmp_path):
    zeros = {"/": Group({}, {}), "x": Group({"x": Variable(("a",), np.zeros(4_000_000))}, {})}
    write_netcdf(tmp_path / "zeros.nc", zeros)
    assert np.array_equal(read_netcdf(tmp_path / "zeros.nc")["x"].variables["x"].values, np.zeros(4_000_000))


def test_texts_of_any_kind_come_back():
    texts = np.array(["", "a", "ü 距離 🙂", "x" * 1000, "</script>", "line\nbreak"])
    groups = {"/": Group({"t": Variable(("n",), texts)}, {"title": "ü", "number": 3, "numbers": np.arange(3)})}
    found = decode(encode(groups, compress=True))["/"]
    assert found.variables["t"].values.tolist() == texts.tolist()
    assert found.attributes["title"] == "ü"
    assert found.attributes["number"] == 3
    assert found.attributes["numbers"].tolist() == [0, 1, 2]


# --- what a file may ask for --------------------------------------------------------------------------------


def grow(groups, n_features=3000):
    """One draw of so many features: little to store, but their products with each other fill the memory."""
    for name in ("features", "policies", "substates"):
        found = groups["features"].variables[name]
        groups["features"].variables[name] = found._replace(values=np.repeat(found.values[:1], n_features, axis=0))
    groups["features"].variables["row_splits"] = Variable((), np.array([0, n_features]))
    groups["posterior"].variables["n_features"] = Variable((), np.full((1, 1), float(n_features)))


@pytest.fixture
def bomb(demo, tmp_path):
    model = FeaturePolicyClassifier(**QUICK | {"n_chains": 1, "n_draws": 2}).fit(demo.X[:4, :6], demo.y[:4])
    model.save(tmp_path / "model.nc")
    return forge(tmp_path / "model.nc", grow)


def test_a_small_file_cannot_ask_for_much_memory(bomb, monkeypatch):
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"asks for 3\d\d MiB of memory to predict, more than .* that a file"):
        whyact.load(bomb)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    monkeypatch.setenv("WHYACT_MAX_MEMORY", "100M")
    with pytest.raises(ModelFileError, match=r"more than the 100 MiB .* set WHYACT_MAX_MEMORY=1G"):
        whyact.load(bomb)


def test_the_user_may_allow_more(bomb, monkeypatch):
    assert whyact.load(bomb, max_memory=1e9).posterior_.n_draws == 1
    monkeypatch.setenv("WHYACT_MAX_MEMORY", "1G")
    assert whyact.load(bomb).posterior_.n_draws == 1
    for wrong in (0, -1, "4G", np.nan, True):
        with pytest.raises(ValueError, match="max_memory must be a number of bytes"):
            whyact.load(bomb, max_memory=wrong)
    monkeypatch.setenv("WHYACT_MAX_MEMORY", "much")
    with pytest.raises(ValueError, match="WHYACT_MAX_MEMORY must be a number of bytes"):
        whyact.load(bomb)


def test_how_a_machine_is_used_is_never_taken_from_a_file(change):
    def edit(groups):
        set_setting("n_jobs", 3008)(groups)
        set_setting("verbose", 1)(groups)

    loaded = whyact.load(change(edit))
    assert (loaded.n_jobs, loaded.verbose) == (None, 0)


def test_what_compresses_too_well_is_written_as_it_is(demo, tmp_path):
    """Else the rule would refuse what we wrote ourselves."""
    model = make_model(n_rows=20_000, n_columns=2, n_features=2, n_draws=200, n_runs=1)
    for chain in model.posterior_.chains:
        chain.levels[:, 2:] = 0  # next to nothing when it is compressed
    state = model.posterior_.chains[0].state(0)
    end = RunEnd("x", [0] * 5, 1, [state._replace(substates=state.substates.copy())], [np.random.PCG64(0).state])
    write_model(tmp_path / "model.nc", replace(model._result, end=end), model.posterior_)
    loaded = whyact.load(tmp_path / "model.nc").posterior_
    assert np.array_equal(loaded.chains[0].levels, model.posterior_.chains[0].levels)


# --- fuzzing ------------------------------------------------------------------------------------------------
# The large version, 10,000 files of each kind, is benchmarks/fuzzing.py.


def test_no_mutated_file_is_believed(file):
    content = file.read_bytes()
    for seed in range(500):
        mutated = mutate(np.random.default_rng(seed), content)
        if mutated != content:
            with pytest.raises(DamagedFileError):
                check_digest(mutated)


def test_mutated_files_with_a_right_digest_crash_nothing(file, tmp_path):
    body = check_digest(file.read_bytes())
    path = tmp_path / "mutated.nc"
    n_read = 0
    for seed in range(400):
        path.write_bytes(sign(mutate(np.random.default_rng(seed), body)))
        try:
            model = whyact.load(path)
        except ModelFileError:
            continue
        n_read += 1
        assert np.allclose(model.policies_.sum(axis=1), 1)
    assert n_read < 200  # a flipped bit inside of a number can be a legal number
