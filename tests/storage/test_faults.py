"""Whatever fails while a run goes on, or a prediction is written, nothing is lost.

The disk refuses a single change, or all from one on; it is full, at any size; memory is short; the run is killed
between any two changes, or at any moment with all of its processes. Each time the run is resumed on a sound disk, and
must end with the same bytes as one that never met a fault.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import whyact
from tests.support import faults
from tests.support.plain import PLAIN
from whyact.estimators.fit_in_folder import fit_in_folder
from whyact.sampler import chain
from whyact.storage import checkpoint
from whyact.storage.atomic import HIDDEN, write_whole
from whyact.storage.netcdf import read_netcdf
from whyact.storage.run_folder import Run, begin_run
from whyact.tables.predictions import open_predictions

pytestmark = [
    pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]
QUICK = {**PLAIN, "n_burn_in": 2, "n_draws": 3, "thin": 1, "n_chains": 2, "random_state": 0}
DONE, REFUSED, KILLED = 0, 2, -signal.SIGKILL
N_KILLS, N_DISKS = 100, 20


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint after each sweep."""
    monkeypatch.setattr(checkpoint, "LEAST_SHARE_OF_RUNNING", 0)


def begin(folder):
    """Write down a run that has not started."""
    demo = whyact.load_demo()
    classes, actions = np.unique(demo.y[:30], return_inverse=True)
    names = np.array(demo.column_names)
    begin_run(folder / "m.nc.run", Run(dict(QUICK), demo.X[:30], names, classes, actions, None, 0.0, "demo.csv"))


def go_on(folder):
    """Resume the run; a refusal must be one sentence."""
    return try_to(lambda: fit_in_folder(folder / "m.nc.run", is_new=False, n_jobs=1, verbose=0))


def try_to(act):
    """DONE or REFUSED, in one sentence; anything else that is raised fails the test."""
    try:
        act()
    except (ValueError, OSError, MemoryError) as error:
        return REFUSED if "\n" not in str(error) else faults.FAILED
    return DONE


def begin_and_go_on(folder):
    """All of `whyact fit`."""
    return try_to(lambda: begin(folder)) or go_on(folder)


def make_sound(folder):
    """Go on without faults, from whatever there is; return the bytes of the model."""
    run, model = folder / "m.nc.run", folder / "m.nc"
    if not run.exists() and not model.exists():
        begin(folder)
    if (run / "run.nc").exists():
        assert go_on(folder) == DONE
    return model.read_bytes()


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The model of a run that met no fault."""
    folder = tmp_path_factory.mktemp("straight")
    assert begin_and_go_on(folder) == DONE
    return (folder / "m.nc").read_bytes()


def list_hidden(folder):
    return [path.name for path in folder.rglob(f"{HIDDEN}*")]


# --- single changes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        pytest.param(faults.fail_once, 1, marks=pytest.mark.long),
        pytest.param(faults.fail_from, 1, marks=pytest.mark.long),
        pytest.param(faults.kill_at, 1, marks=pytest.mark.long),
        (faults.fail_once, 7),
        (faults.fail_from, 7),
        (faults.kill_at, 7),
    ],
)
def test_no_change_that_fails_loses_a_run(fault, step, straight, tmp_path):
    """A file that cannot be opened, renamed or removed, a disk that becomes read-only, a kill between two changes."""
    (tmp_path / "count").mkdir()
    n_changes = faults.count_changes(tmp_path / "count", lambda: begin_and_go_on(tmp_path / "count"))
    assert n_changes > 30
    for number in range(0, n_changes, step):
        folder = tmp_path / str(number)
        folder.mkdir()
        code = faults.run_with(fault(number), folder, lambda folder=folder: begin_and_go_on(folder))
        assert code == KILLED if fault is faults.kill_at else code in (DONE, REFUSED), number
        if fault is faults.fail_once:
            assert not list_hidden(folder), number
        assert make_sound(folder) == straight, number


@pytest.mark.parametrize("share", np.linspace(0, 1.05, 8))
def test_files_that_end_at_any_byte_lose_no_run(share, straight, tmp_path):
    """A quota, or a full disk: what is written after so many bytes fails, and leaves nothing behind."""
    begin(tmp_path)
    code = faults.run_apart(lambda: faults.limit_files(int(share * len(straight))), lambda: go_on(tmp_path))
    assert code == (REFUSED if share < 1 else DONE)
    assert not list_hidden(tmp_path)
    assert make_sound(tmp_path) == straight


@pytest.mark.parametrize("fault", [faults.fail_once, faults.fail_from, faults.kill_at])
def test_predictions_are_whole_or_as_they_were(fault, tmp_path):
    def write():
        with open_predictions(tmp_path / "out" / "p.csv", ["a", "b"]) as writer:
            for _ in range(3):
                writer.write(np.eye(2), np.ones((2, 1)), np.ones(2))

    (tmp_path / "out").mkdir()
    write()
    whole = (tmp_path / "out" / "p.csv").read_bytes()
    n_changes = faults.count_changes(tmp_path / "out", lambda: try_to(write))
    assert n_changes >= 3
    for number in range(n_changes):
        (tmp_path / "out" / "p.csv").write_text("before")
        faults.run_with(fault(number), tmp_path / "out", lambda: try_to(write))
        assert (tmp_path / "out" / "p.csv").read_bytes() in (b"before", whole)


def test_a_refusal_names_the_file_that_was_asked_for(tmp_path):
    """And not the hidden one beside it, which nobody knows."""
    with pytest.raises(FileNotFoundError) as error:
        write_whole(tmp_path / "none" / "p.csv", "x")
    assert error.value.filename == str(tmp_path / "none" / "p.csv")


# --- memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("Can't allocate"), OSError(28, "No space left")])
def test_a_checkpoint_that_does_not_fit_into_memory_stops_no_run(error, straight, tmp_path, monkeypatch, caplog):
    def refuse(*_, **__):
        raise error

    begin(tmp_path)
    monkeypatch.setattr(checkpoint, "encode_end", refuse)
    assert go_on(tmp_path) == DONE
    assert (tmp_path / "m.nc").read_bytes() == straight
    assert re.search(r"cannot be written \((there is not enough memory|Can't allocate|No space left)\)", caplog.text)


def test_a_run_that_finds_no_memory_leaves_a_checkpoint(straight, tmp_path, monkeypatch):
    begin(tmp_path)
    run_segment, counted = chain.run_segment, iter(range(10**9))

    def run_short_of_memory(*arguments):
        if next(counted) == 6:
            raise MemoryError
        return run_segment(*arguments)

    with monkeypatch.context() as context:
        context.setattr(chain, "run_segment", run_short_of_memory)
        context.setattr(checkpoint.Checkpoints, "keep", keep_in_mind)
        assert go_on(tmp_path) == REFUSED
    assert read_netcdf(tmp_path / "m.nc.run" / "state.nc")["/"].attributes["n_done"] == 3
    assert make_sound(tmp_path) == straight


def keep_in_mind(self, progress, entropy):
    """A checkpoint that is not yet due."""
    self.latest, self.n_latest = (progress, entropy), [len(draws) for draws in progress.chains]


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="looks in /proc for how much memory there is")
def test_too_little_memory_loses_nothing(tmp_path):
    """More than what the run needs, less, or next to none."""
    rng = np.random.default_rng(0)
    X, actions = rng.random((16_000, 200)), rng.integers(0, 2, 16_000)
    names, classes = np.array([f"x{i}" for i in range(200)]), np.array(["a", "b"])
    models, codes = [], []
    for room in (None, 0, 8, 32, 64, 512):
        folder = tmp_path / str(room)
        folder.mkdir()
        begin_run(folder / "m.nc.run", Run(dict(QUICK), X, names, classes, actions, None, 0.0, "x.csv"))
        prepare = (lambda: None) if room is None else (lambda room=room: faults.limit_memory(room * 2**20))
        codes.append(faults.run_apart(prepare, lambda folder=folder: go_on(folder)))
        if codes[-1] == REFUSED:
            assert faults.run_apart(lambda: None, lambda folder=folder: go_on(folder)) == DONE
        models.append((folder / "m.nc").read_bytes())
    assert set(codes) == {DONE, REFUSED}
    assert set(models) == {models[0]}


# --- real disks and real kills ------------------------------------------------------------------------------


@contextmanager
def small_disk(folder, n_bytes):
    """A disk of this size, as far as this system lets us have one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "whyact", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here ({made.stderr.strip()})")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("mount") is None, reason="this system mounts no disks")
def test_a_full_disk_of_any_size_loses_nothing(straight, tmp_path):
    """The run is begun and carried out on it, and resumed once it has been made larger."""
    codes = []
    for i, n_bytes in enumerate(np.linspace(4096, 8 * len(straight), N_DISKS).astype(int)):
        disk = tmp_path / str(i)
        with small_disk(disk, n_bytes):
            codes.append(faults.run_apart(lambda: None, lambda disk=disk: begin_and_go_on(disk)))
            assert not list_hidden(disk)
            subprocess.run(["mount", "-o", "remount,size=100M", str(disk)], check=True)
            assert make_sound(disk) == straight
    print(f"{N_DISKS} disks: {codes.count(REFUSED)} too small, {codes.count(DONE)} large enough", file=sys.stderr)
    assert set(codes) == {REFUSED, DONE}


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "setsid"), reason="this system has no process groups")
def test_a_hundred_kills_of_all_processes_at_any_stage_lose_nothing(straight, tmp_path):
    """Half of them between two changes of the disk, from the first checkpoint to the removal; half at any moment."""
    rng = np.random.default_rng(0)
    (tmp_path / "count").mkdir()
    n_changes = faults.count_changes(tmp_path / "count", lambda: begin_and_go_on(tmp_path / "count"))
    n_kills, n_runs = 0, 0
    while n_kills < N_KILLS:
        folder = tmp_path / f"run{n_runs}"
        folder.mkdir()
        n_runs += 1
        while not (folder / "m.nc").exists() or (folder / "m.nc.run").exists():
            n_kills += carry_out_and_kill(folder, int(rng.integers(2 * n_changes)), float(rng.exponential(3.0)))
        assert (folder / "m.nc").read_bytes() == straight
    print(f"{n_kills} kills in {n_runs} runs", file=sys.stderr)


def carry_out_and_kill(folder, number, seconds):
    """Begin or go on with two processes, and kill both at a change, or after some seconds; whether that was needed."""
    child = os.fork()
    if child == 0:
        code = faults.FAILED
        try:
            os.setsid()
            faults.watch(folder, lambda n: os.killpg(0, signal.SIGKILL) if n == number else None)
            if not (folder / "m.nc.run").exists():
                begin(folder)
            fit_in_folder(folder / "m.nc.run", is_new=False, n_jobs=2, verbose=0)
            code = DONE
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):  # also its workers, which wait for more to do
        os.killpg(child, signal.SIGKILL)
    for path in Path("/dev/shm").glob(f"*_folder_{child}_*"):  # what joblib would have removed
        shutil.rmtree(path, ignore_errors=True)
    for path in Path("/dev/shm").glob(f"sem.loky-{child}-*"):
        path.unlink(missing_ok=True)
    code = os.waitstatus_to_exitcode(ended[1] if ended[0] else os.waitpid(child, 0)[1])
    assert code in (DONE, KILLED)
    return code == KILLED
