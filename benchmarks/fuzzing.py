"""Load 10,000 damaged model files, once as they are and once with a correct digest, as an attacker would make them.

    python benchmarks/fuzzing.py [number]

Each is loaded in a child process with 4 GB of address space. One that crashes or hangs is counted, and the next child
continues with the file after it.
"""

import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import IO

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `tests.support`
import whyact
from tests.support.mutations import mutate, sign
from whyact.errors import ModelFileError
from whyact.storage.netcdf import check_digest

ADDRESS_SPACE = 4 * 2**30
HANG = 10  # seconds


def load_some(numbers: range, content: bytes, signed: bool, report: IO[str]) -> None:
    """Load damaged files one after the other, and write down the outcome of each."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nc"
        for number in numbers:
            damaged = mutate(np.random.default_rng(number), content)
            path.write_bytes(sign(damaged) if signed else damaged)
            signal.alarm(HANG)
            started = time.perf_counter()
            try:
                whyact.load(path)
                outcome = "read"
            except ModelFileError:
                outcome = "refused"
            seconds = time.perf_counter() - started
            report.write(f"{number} {outcome if damaged != content else 'same'} {seconds:.4f}\n")
            report.flush()


def fuzz(n_files: int, content: bytes, signed: bool) -> None:
    """Load all damaged files in child processes, and print how often each outcome occurred."""
    outcomes: dict[str, int] = {}
    slowest = 0.0
    first = 0
    while first < n_files:
        with tempfile.TemporaryFile("w+") as report:
            child = os.fork()
            if child == 0:
                try:
                    load_some(range(first, n_files), content, signed, report)
                    os._exit(0)
                except BaseException as error:
                    print(f"  {type(error).__name__}: {error}", flush=True)
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            report.seek(0)
            for line in report:
                number, outcome, seconds = line.split()
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                slowest = max(slowest, float(seconds))
                first = int(number) + 1
        if status:
            outcomes["CRASHED"] = outcomes.get("CRASHED", 0) + 1
            print(f"  file {first} ended its process: {os.waitstatus_to_exitcode(status)}", flush=True)
            first += 1
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    what = "with a correct digest" if signed else "as they are"
    print(f"{n_files} damaged files {what}: {outcomes}, slowest {slowest:.2f} s, peak memory {peak:.0f} MB", flush=True)


def main() -> None:
    """Fit a small model, damage its file, and load it."""
    n_files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    demo = whyact.load_demo()
    warnings.simplefilter("ignore", whyact.ChainsDisagreeWarning)
    model = whyact.FeaturePolicyClassifier(n_burn_in=50, n_draws=50, n_chains=2, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nc"
        model.fit(demo.X[:60], demo.y[:60]).save(path)
        content = path.read_bytes()
    print(f"A model of {len(content)} bytes.")
    fuzz(n_files, content, signed=False)
    fuzz(n_files, check_digest(content), signed=True)


if __name__ == "__main__":
    main()
