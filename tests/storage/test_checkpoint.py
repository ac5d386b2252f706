"""Runs that survive: killed at any moment, they end with the draws they would have had."""

import logging
import os
import shutil
import stat
import sys

import numpy as np
import pytest

from tests.support.killing import run_and_kill
from tests.support.plain import PLAIN
from whyact import (
    ClusterPolicyClassifier,
    FeaturePolicyClassifier,
    PatternPolicyClassifier,
    PerActionFeaturesClassifier,
)
from whyact.sampler import chain
from whyact.storage import checkpoint as checkpoints

pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")
# With a burn-in that anneals and merges.
CHAINS = {"n_burn_in": 300, "n_draws": 60, "thin": 2, "n_chains": 2, "random_state": 3}
OPTIONS = {**PLAIN, **CHAINS}
N_KILLS = 100


@pytest.fixture
def often(monkeypatch):
    """Checkpoints after each segment, and short segments."""
    monkeypatch.setattr(chain, "SECONDS_PER_SEGMENT", 0.05)
    monkeypatch.setattr(checkpoints, "LEAST_SHARE_OF_RUNNING", 0)


class Stop(Exception):
    """The process dies."""


def fit_until(which, model, X, y, folder, monkeypatch):
    """Fit, and let the n-th checkpoint be the last thing that happens."""
    write = checkpoints.Checkpoints._write
    count = iter(range(10**9))

    def write_and_stop(self, *arguments):
        write(self, *arguments)
        if next(count) == which:
            raise Stop

    with monkeypatch.context() as context:
        context.setattr(checkpoints.Checkpoints, "_write", write_and_stop)
        with pytest.raises(Stop):
            model.fit(X, y, checkpoint=folder, checkpoint_every=0)


def assert_same_draws(one, other):
    for a, b in zip(one.posterior_.chains, other.posterior_.chains, strict=True):
        for name, values in a.to_arrays().items():
            assert np.array_equal(values, b.to_arrays()[name]), name
    for a, b in zip(one._result.end.states, other._result.end.states, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert one._result.end.rng_states == other._result.end.rng_states


@pytest.mark.parametrize(
    "model",
    [
        FeaturePolicyClassifier(**OPTIONS),
        FeaturePolicyClassifier(**OPTIONS, sampler="as-published"),
        FeaturePolicyClassifier(**OPTIONS | {"n_burn_in": 60, "decisiveness": 5.0}, start="rows", max_features=3),
        FeaturePolicyClassifier(**OPTIONS | {"n_burn_in": 60, "decisiveness": "auto"}),
        FeaturePolicyClassifier(**OPTIONS | {"n_burn_in": 60, "combination": "product"}),
        PatternPolicyClassifier(**CHAINS),
        ClusterPolicyClassifier(**CHAINS),
    ],
    ids=["exact", "as published", "from rows", "decisiveness learned", "product", "patterns", "clusters"],
)
def test_every_sampler_goes_on_where_it_was(model, demo, tmp_path, often, monkeypatch):
    from sklearn.base import clone

    X, y = demo.X[:60], demo.y[:60]
    straight = clone(model).fit(X, y)
    for which in (0, 3, 6):
        folder = tmp_path / str(which)
        fit_until(which, clone(model), X, y, folder, monkeypatch)
        assert_same_draws(clone(model).fit(X, y, checkpoint=folder, checkpoint_every=0), straight)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_hundred_kills_lose_nothing(demo, tmp_path, often):
    """Killed with SIGKILL at random moments, in writing and between, again and again until the run ends."""
    X, y = demo.X[:80], demo.y[:80]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    rng = np.random.default_rng(0)
    n_kills = n_runs = 0
    while n_kills < N_KILLS:
        folder = tmp_path / f"run{n_runs}"

        def fit(folder=folder):
            FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=folder, checkpoint_every=0)

        while not run_and_kill(fit, rng.exponential(0.3)):
            n_kills += 1
        found = FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=folder)
        assert_same_draws(found, straight)
        n_runs += 1
        shutil.rmtree(folder)
    print(f"{n_kills} kills in {n_runs} runs", file=sys.stderr)


def test_processes_do_not_change_a_resumed_run(demo, tmp_path, often, monkeypatch):
    X, y = demo.X[:60], demo.y[:60]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    fit_until(2, FeaturePolicyClassifier(**OPTIONS), X, y, tmp_path, monkeypatch)
    assert_same_draws(FeaturePolicyClassifier(**OPTIONS, n_jobs=2).fit(X, y, checkpoint=tmp_path), straight)


def test_a_finished_run_is_found_at_once_and_can_be_made_longer(demo, tmp_path, monkeypatch):
    X, y = demo.X[:60], demo.y[:60]
    first = FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path / "run")
    longer = FeaturePolicyClassifier(**OPTIONS | {"n_draws": 90}).fit(X, y)
    assert_same_draws(
        FeaturePolicyClassifier(**OPTIONS | {"n_draws": 90}).fit(X, y, checkpoint=tmp_path / "run"), longer
    )
    first.save(tmp_path / "model.nc")
    monkeypatch.setattr(chain, "run_segment", None)  # nothing is left to run
    again = FeaturePolicyClassifier(**OPTIONS | {"n_draws": 90}).fit(X, y, checkpoint=tmp_path / "run")
    assert_same_draws(again, longer)


def test_an_unseeded_run_goes_on_with_its_own_random_numbers(demo, tmp_path, often, monkeypatch):
    X, y = demo.X[:60], demo.y[:60]
    options = OPTIONS | {"random_state": None}
    fit_until(3, FeaturePolicyClassifier(**options), X, y, tmp_path / "a", monkeypatch)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    one, other = (FeaturePolicyClassifier(**options).fit(X, y, checkpoint=tmp_path / name) for name in "ab")
    assert_same_draws(one, other)


def test_a_part_that_no_state_speaks_of_is_written_again(demo, tmp_path, often, monkeypatch):
    """The moment between the two files of a checkpoint."""
    X, y = demo.X[:60], demo.y[:60]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    write = checkpoints.write_netcdf

    def die_before_the_state(path, groups, **options):
        if path.name == checkpoints.STATE_FILE and (tmp_path / "draws-00002.nc").exists():
            raise Stop
        write(path, groups, **options)

    with monkeypatch.context() as context:
        context.setattr(checkpoints, "write_netcdf", die_before_the_state)
        with pytest.raises(Stop):
            FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path, checkpoint_every=0)
    assert_same_draws(FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path), straight)


def test_a_full_disk_stops_no_run(demo, tmp_path, often, monkeypatch, caplog):
    X, y = demo.X[:60], demo.y[:60]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    write = checkpoints.write_netcdf
    calls = iter(range(10**9))

    def write_sometimes(path, groups, **options):
        if next(calls) % 4:
            raise OSError(28, "No space left on device")
        write(path, groups, **options)

    monkeypatch.setattr(checkpoints, "write_netcdf", write_sometimes)
    with caplog.at_level(logging.WARNING, "whyact"):
        found = FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path, checkpoint_every=0)
    assert "No space left on device" in caplog.text
    assert_same_draws(found, straight)
    monkeypatch.setattr(checkpoints, "write_netcdf", write)
    assert_same_draws(FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path), straight)


def test_checkpoints_take_a_fiftieth_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    kept = checkpoints.Checkpoints(tmp_path, 10.0, "x")

    def write(*_):
        now[0] += 2.0

    monkeypatch.setattr(kept, "_write", write)
    progress = chain.Progress(0, 0, [], [], [])
    spent = 0.0
    for _ in range(10_000):
        now[0] += 1.0
        before = now[0]
        kept.keep(progress, [])
        spent += now[0] - before
    assert 0 < spent < 0.021 * now[0]
    kept.close()


# --- what is refused ----------------------------------------------------------------------------------------


def test_another_run_in_the_folder_is_refused(demo, tmp_path):
    X, y = demo.X[:60], demo.y[:60]
    FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path)
    changes = [
        ({"n_burn_in": 310}, X, y, "on other data or with other options"),
        ({"decisiveness": 2.0}, X, y, "on other data or with other options"),
        ({}, X + 1e-12, y, "on other data or with other options"),
        ({}, X, y[::-1], "on other data or with other options"),
        ({"random_state": 4}, X, y, "random_state differs from that of the earlier run"),
        ({"n_draws": 10}, X, y, "already done 360"),
    ]
    for change, other_X, other_y, sentence in changes:
        with pytest.raises(ValueError, match=sentence):
            FeaturePolicyClassifier(**OPTIONS | change).fit(other_X, other_y, checkpoint=tmp_path)


def test_folders_that_cannot_be_used_are_refused(demo, tmp_path):
    X, y = demo.X[:60], demo.y[:60]
    quick = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, n_chains=1, random_state=0)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match=r"checkpoint: the folder .* cannot be used"):
        quick.fit(X, y, checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match=r"checkpoint: the folder .* holds other files \(file\)"):
        quick.fit(X, y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_every must be a number of seconds"):
        quick.fit(X, y, checkpoint=tmp_path / "new", checkpoint_every="often")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "state.nc").symlink_to(tmp_path / "file")
    with pytest.raises(ValueError, match=r"holds other files \(state.nc\)"):
        quick.fit(X, y, checkpoint=tmp_path / "linked")
    with pytest.raises(ValueError, match="keeps no checkpoints"):
        PerActionFeaturesClassifier(n_burn_in=5, n_draws=5).fit(X, y, checkpoint=tmp_path / "new")


def test_damaged_checkpoints_are_refused(demo, tmp_path):
    X, y = demo.X[:60], demo.y[:60]
    quick = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, thin=1, n_chains=1, random_state=0)
    quick.fit(X, y, checkpoint=tmp_path)
    for name in ("state.nc", "draws-00000.nc"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-100])
        with pytest.raises(ValueError, match=f"{name} is not a whyact checkpoint: its end is missing"):
            quick.fit(X, y, checkpoint=tmp_path)
        (tmp_path / name).unlink()
        if name == "draws-00000.nc":
            with pytest.raises(ValueError, match=f"{name} cannot be read"):
                quick.fit(X, y, checkpoint=tmp_path)
        (tmp_path / name).write_bytes(content)


def test_nobodys_files_are_removed(demo, tmp_path):
    quick = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, thin=1, n_chains=1, random_state=0)
    for name in (".env", "results.nc"):
        folder = tmp_path / name.strip(".")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(ValueError, match="holds other files"):
            quick.fit(demo.X[:60], demo.y[:60], checkpoint=folder)
        assert (folder / name).read_text() == "mine"
    (tmp_path / ".whyact-12").write_text("of a killed write")
    for folder in tmp_path.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    quick.fit(demo.X[:60], demo.y[:60], checkpoint=tmp_path)
    assert not (tmp_path / ".whyact-12").exists()


def test_a_folder_that_cannot_be_synced_loses_nothing(demo, tmp_path, often, monkeypatch):
    """Some file systems refuse it; the files are there all the same."""
    sync = os.fsync

    def refuse_folders(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    X, y = demo.X[:60], demo.y[:60]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    fit_until(3, FeaturePolicyClassifier(**OPTIONS), X, y, tmp_path, monkeypatch)
    assert_same_draws(FeaturePolicyClassifier(**OPTIONS).fit(X, y, checkpoint=tmp_path), straight)


def test_draws_that_no_state_speaks_of_are_refused(demo, tmp_path):
    X, y = demo.X[:60], demo.y[:60]
    quick = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, thin=1, n_chains=1, random_state=0)
    quick.fit(X, y, checkpoint=tmp_path / "short")
    quick.set_params(n_draws=9).fit(X, y, checkpoint=tmp_path / "long")
    shutil.copy(tmp_path / "long" / "draws-00000.nc", tmp_path / "short")
    with pytest.raises(ValueError, match="the draws in the folder do not match its state"):
        quick.set_params(n_draws=5).fit(X, y, checkpoint=tmp_path / "short")


def test_many_chains_go_on(demo, tmp_path):
    X, y = demo.X[:20], demo.y[:20]
    options = {"n_burn_in": 3, "thin": 1, "n_chains": 25, "random_state": 0}
    FeaturePolicyClassifier(**options, n_draws=2).fit(X, y, checkpoint=tmp_path)
    longer = FeaturePolicyClassifier(**options, n_draws=4).fit(X, y, checkpoint=tmp_path)
    assert_same_draws(longer, FeaturePolicyClassifier(**options, n_draws=4).fit(X, y))


def test_another_version_does_not_go_on(demo, tmp_path, monkeypatch):

    X, y = demo.X[:60], demo.y[:60]
    quick = FeaturePolicyClassifier(**PLAIN, n_burn_in=5, n_draws=5, thin=1, n_chains=1, random_state=0)
    quick.fit(X, y, checkpoint=tmp_path)
    monkeypatch.setattr(checkpoints, "__version__", "9.0")
    with pytest.raises(
        ValueError, match=r"a run that whyact 0\.1\.0 started; continue with that version \(this is 9\.0\)"
    ):
        quick.fit(X, y, checkpoint=tmp_path)


def test_two_processes_in_one_folder_are_refused(tmp_path):
    kept = checkpoints.Checkpoints(tmp_path, 1.0, "x")
    with pytest.raises(ValueError, match="another process is running in"):
        checkpoints.Checkpoints(tmp_path, 1.0, "x")
    kept.close()
    checkpoints.Checkpoints(tmp_path, 1.0, "x").close()


# --- more draws ---------------------------------------------------------------------------------------------


def test_warm_start_draws_what_one_long_fit_would(demo):
    X, y = demo.X[:60], demo.y[:60]
    straight = FeaturePolicyClassifier(**OPTIONS).fit(X, y)
    model = FeaturePolicyClassifier(**OPTIONS | {"n_draws": 20}, warm_start=True).fit(X, y)
    for n_draws in (20, 37, 60):
        model.set_params(n_draws=n_draws).fit(X, y)
    assert_same_draws(model, straight)


def test_warm_start_refuses_what_is_not_more_of_the_same(demo):
    X, y = demo.X[:60], demo.y[:60]
    model = FeaturePolicyClassifier(
        **PLAIN, n_burn_in=5, n_draws=5, thin=2, n_chains=1, random_state=0, warm_start=True
    )
    model.fit(X, y)
    before = model.posterior_
    with pytest.raises(ValueError, match="warm_start=True draws more from the same posterior"):
        model.fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="n_draws asks for 9 sweeps in all, but the earlier run has already done 10"):
        model.set_params(n_draws=4).fit(X, y)
    assert model.posterior_ is before
