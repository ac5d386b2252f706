"""Read 10,000 damaged files of each kind, as an accident and as an attacker would make them.

    python benchmarks/fuzzing.py [number] [model] [state] [draws] [run]

Model files are loaded, once as they are and once with a correct digest. Of the folder of a run that was stopped, one
file is changed (its bytes, or what it says) and gets a correct digest; then the run is resumed for a few sweeps, up to
its model if it comes so far. All of it happens in child processes with 4 GB of address space. One that crashes or hangs
is counted, and the next child continues with the file after it. It is also counted if a refusal is no single sentence,
or if a run that was refused is no longer there.
"""

import itertools
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `tests.support`
import whyact
from tests.support.forging import give_axes
from tests.support.mutations import mutate, mutate_groups, sign
from whyact.errors import ModelFileError
from whyact.estimators.fit_in_folder import fit_in_folder
from whyact.storage import checkpoint
from whyact.storage.netcdf import check_digest, decode, encode
from whyact.storage.run_folder import Run, begin_run, find_folder

ADDRESS_SPACE = 4 * 2**30
# A run may be slow by its settings, and is stopped between two kernels; one that cannot be stopped hangs.
SLOW, HANG = 10, 30  # seconds
# One in so many runs may go up to its model; of the others it is enough that they go on, which takes less time.
TO_THE_END = 5
MOST_CHECKPOINTS = 4
PLAIN = {"combination": "mixture", "decisiveness": 1.0, "scale_columns": False}
FILES = {"state": "state.nc", "draws": "draws-00000.nc", "run": "run.nc"}
# What the command line turns into a sentence.
REFUSALS = (ValueError, FloatingPointError, MemoryError)
Attempt = Callable[[int, Path], str]  # (number of the file, empty folder) -> outcome


class GoesOn(Exception):
    """A run has come far enough."""


class TakesTooLong(Exception):
    """A run is slow, but can be stopped."""


# --- one file -----------------------------------------------------------------------------------------------


def make_loads(content: bytes, signed: bool) -> Attempt:
    """Load a damaged model file."""

    def attempt(number: int, folder: Path) -> str:
        path = folder / "model.nc"
        damaged = mutate(np.random.default_rng(number), content)
        path.write_bytes(sign(damaged) if signed else damaged)
        signal.alarm(SLOW)
        try:
            whyact.load(path)
        except ModelFileError as error:
            return judge_refusal(error)
        return "read" if damaged != content else "same"

    return attempt


def make_resumes(files: dict[str, bytes], name: str) -> Attempt:
    """Resume a run of which one file is damaged; every other run file stands alone, as if nothing was done yet."""
    body = check_digest(files[name])

    def attempt(number: int, folder: Path) -> str:
        run = find_folder(folder / "m.nc")
        run.mkdir()
        for other, content in files.items():
            if name != "run.nc" or other == name or number % 4 > 1:
                (run / other).write_bytes(content)
        damaged = damage(np.random.default_rng(number), body, number % 2 == 0)
        (run / name).write_bytes(sign(damaged))
        outcome = resume(run, MOST_CHECKPOINTS if number % TO_THE_END == 0 else 1)
        if outcome != "done" and not (run / name).exists():
            return "LOST"
        return outcome if damaged != body else "same"

    return attempt


def damage(rng: np.random.Generator, body: bytes, by_bytes: bool) -> bytes:
    """Change bytes, or what they say."""
    if by_bytes:
        return mutate(rng, body)
    groups = decode(body)
    mutate_groups(rng, groups)
    return encode({name: give_axes(group) for name, group in groups.items()}, compress=False)


def resume(run: Path, n_checkpoints: int) -> str:
    """Go on for so many checkpoints, up to the model if it comes so far."""
    kept = itertools.count(1)

    def keep(self: checkpoint.Checkpoints, *_: Any) -> None:
        if next(kept) >= n_checkpoints:
            raise GoesOn

    checkpoint.Checkpoints.keep = keep  # type: ignore[method-assign]
    signal.signal(signal.SIGALRM, stop_slow)
    signal.alarm(SLOW)
    try:
        fit_in_folder(run, is_new=False, n_jobs=1, verbose=0)
        return "done"
    except GoesOn:
        return "goes on"
    except TakesTooLong:
        return "slow"
    except REFUSALS as error:
        return judge_refusal(error)


def stop_slow(*_: Any) -> None:
    """Stop a run as Ctrl-C would; if it cannot be stopped, the process ends later on."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(HANG)
    raise TakesTooLong


def judge_refusal(error: BaseException) -> str:
    """A refusal is one sentence."""
    return "refused" if "\n" not in str(error) and len(str(error)) < 1000 else "NO SENTENCE"


# --- all files ----------------------------------------------------------------------------------------------


def try_some(numbers: range, attempt: Attempt, report: IO[str]) -> None:
    """Try damaged files one after the other, and write down the outcome of each."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    warnings.simplefilter("ignore")
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            outcome = attempt(number, Path(folder))
            signal.alarm(0)
            report.write(f"{number}\t{outcome}\t{time.perf_counter() - started:.4f}\n")
            report.flush()


def fuzz(what: str, n_files: int, attempt: Attempt) -> None:
    """Try all damaged files in child processes, and print how often each outcome occurred."""
    outcomes: dict[str, int] = {}
    slowest = 0.0
    first = 0
    started = time.perf_counter()
    while first < n_files:
        with tempfile.TemporaryFile("w+") as report:
            child = os.fork()
            if child == 0:
                try:
                    try_some(range(first, n_files), attempt, report)
                    os._exit(0)
                except BaseException as error:
                    print(f"  {type(error).__name__}: {error}", flush=True)
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            report.seek(0)
            for line in report:
                number, outcome, seconds = line.rstrip("\n").split("\t")
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                slowest = max(slowest, float(seconds))
                first = int(number) + 1
        if status:
            outcomes["CRASHED"] = outcomes.get("CRASHED", 0) + 1
            print(f"  file {first} ended its process: {os.waitstatus_to_exitcode(status)}", flush=True)
            first += 1
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{n_files} damaged {what}: {outcomes}, slowest {slowest:.2f} s, all {time.perf_counter() - started:.0f} s, "
        f"peak memory {peak:.0f} MB",
        flush=True,
    )


# --- what is damaged ----------------------------------------------------------------------------------------


def make_model_file(folder: Path) -> bytes:
    """A small model."""
    demo = whyact.load_demo()
    model = whyact.FeaturePolicyClassifier(n_burn_in=50, n_draws=50, n_chains=2, random_state=0)
    model.fit(demo.X[:60], demo.y[:60]).save(folder / "model.nc")
    return (folder / "model.nc").read_bytes()


def make_run_files(folder: Path) -> dict[str, bytes]:
    """The files of a small run that was stopped with some sweeps to go."""
    demo = whyact.load_demo()
    classes, actions = np.unique(demo.y[:30], return_inverse=True)
    options = {**PLAIN, "n_burn_in": 20, "n_draws": 20, "thin": 2, "n_chains": 1, "random_state": 0}
    run = find_folder(folder / "m.nc")
    names = np.array(demo.column_names)
    begin_run(run, Run(options, demo.X[:30], names, classes, actions, None, 0.0, "demo.csv"))
    # a run of which more draws were asked for after its end is as one that was stopped
    model = whyact.FeaturePolicyClassifier(**options | {"n_draws": 14})
    given = model._check_input(demo.X[:30], demo.y[:30])
    model._fit(given._replace(columns=names), run, 0.0)
    files = {name: (run / name).read_bytes() for name in FILES.values()}
    assert resume(run, MOST_CHECKPOINTS) == "done"  # all that children need is loaded and compiled before they begin
    signal.alarm(0)
    return files


def main() -> None:
    """Fit something small, damage its files, and read them."""
    kinds = [name for name in sys.argv[1:] if not name.isdecimal()] or ["model", *FILES]
    n_files = next((int(number) for number in sys.argv[1:] if number.isdecimal()), 10_000)
    warnings.simplefilter("ignore", whyact.DoubtfulFitWarning)
    with tempfile.TemporaryDirectory() as folder:
        if "model" in kinds:
            content = make_model_file(Path(folder))
            fuzz("model files as they are", n_files, make_loads(content, signed=False))
            fuzz("model files with a correct digest", n_files, make_loads(check_digest(content), signed=True))
        files = make_run_files(Path(folder)) if set(kinds) & set(FILES) else {}
    for kind, name in FILES.items():
        if kind in kinds:
            fuzz(f"{name} with a correct digest", n_files, make_resumes(files, name))


if __name__ == "__main__":
    main()
