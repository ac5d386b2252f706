"""Rows per second of reading observations and of writing predictions, and the memory that it takes.

Makes files of random numbers in a temporary folder (1,000,000 x 30 is 270 MB of CSV) and reads each with `open_rows`,
discarding the blocks. No prediction is made, so this is an upper limit for the speed of predictions. The files were
just written, so they are read from the system's cache and not from a disk. Writing uses `open_predictions` with 4
actions and 8 features, about three of which are present in a row, and ends when the file is on the disk. Every
measurement runs in a process of its own, so that memory peaks do not add up. The peak includes Python and its
libraries, whose memory is shown separately, and for .npy the pages of the file that the system has mapped and may drop.
Seconds are wall time, and CPU time of all threads together: on a busy machine, the latter say more.

Last comes the whole command `whyact predict --prediction map` on rows that a model with 8 features was made for,
including loading the model; then on four times as many rows, which must not take more memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas

from whyact.tables.demonstrations import open_rows
from whyact.tables.predictions import open_predictions

N_WRITTEN = 50_000  # rows of a block


def make_files(folder: Path, n_rows: int, n_columns: int) -> None:
    """The same random numbers with 6 decimals in each kind of file; one also has a column of quoted text."""
    rows = np.random.default_rng(0).random((n_rows, n_columns)).round(6)
    names = name_columns(n_columns)
    np.savetxt(folder / "rows.csv", rows, "%.6f", ",", header=",".join(names), comments="")
    with (folder / "rows.csv").open() as lines, (folder / "quoted.csv").open("w") as file:
        file.writelines(line.replace("\n", ',"a, b"\n') for line in lines)
    np.save(folder / "rows.npy", rows)
    np.savez_compressed(folder / "rows.npz", observations=rows)
    if find_spec("pyarrow"):
        pandas.DataFrame(rows, columns=names).to_parquet(folder / "rows.parquet", row_group_size=100_000)


def make_model(folder: Path, n_rows: int) -> None:
    """A model, rows for it, and the same rows four times."""
    from prediction import draw_rows, fit_model  # not where only reading is measured

    model, truth, rng = fit_model()
    model.save(folder / "model.nc")
    rows = draw_rows(rng, truth, n_rows)
    np.savetxt(folder / "few.csv", rows, "%.6f", ",", header=",".join(name_columns(rows.shape[1])), comments="")
    text = (folder / "few.csv").read_text()
    with (folder / "many.csv").open("w") as file:
        file.write(text)
        for _ in range(3):
            file.write(text[text.index("\n") + 1 :])


def predict(path: Path) -> int:
    """Run the command; return the number of rows predicted."""
    from whyact.cli import app  # not where only reading is measured

    out = path.with_name("predictions.csv")
    app(
        ["predict", str(path.with_name("model.nc")), str(path), "-o", str(out), "--prediction", "map"],
        standalone_mode=False,
    )
    with out.open("rb") as file:
        return sum(1 for _ in file) - 1


def name_columns(n_columns: int) -> list[str]:
    """Names of the columns of all files."""
    return [f"x{column}" for column in range(n_columns)]


def read(path: Path, n_columns: int) -> int:
    """Read a file and discard it; return the number of rows."""
    return sum(len(block) for block in open_rows(path, name_columns(n_columns)))


def write(path: Path, n_rows: int) -> int:
    """Write random predictions; return the number of rows."""
    rng = np.random.default_rng(0)
    probabilities, familiarity = rng.dirichlet(np.ones(4), N_WRITTEN), rng.random(N_WRITTEN)
    substates = rng.random((N_WRITTEN, 8)) * (rng.random((N_WRITTEN, 8)) < 0.4)
    with open_predictions(path, ["brake", "keep", "left", "right"]) as writer:
        for first in range(0, n_rows, N_WRITTEN):
            n_left = min(N_WRITTEN, n_rows - first)
            writer.write(probabilities[:n_left], substates[:n_left], familiarity[:n_left])
    return n_rows


def measure(task: str, path: Path, n_rows: int, n_columns: int) -> dict[str, float]:
    """Do one task in this process."""
    before = peak_memory()
    start, start_of_threads = time.perf_counter(), time.process_time()
    tasks = {
        "read": lambda: read(path, n_columns),
        "write": lambda: write(path, n_rows),
        "predict": lambda: predict(path),
    }
    n_done = tasks[task]()
    return {
        "rows": n_done,
        "seconds": time.perf_counter() - start,
        "seconds of threads": time.process_time() - start_of_threads,
        "before": before,
        "peak": peak_memory(),
    }


def peak_memory() -> int:
    """The largest memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(task: str, path: Path, n_rows: int, n_columns: int) -> str:
    """Do one task in a process of its own."""
    command = [sys.executable, __file__, "--rows", str(n_rows), "--columns", str(n_columns), "--task", task, str(path)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def report(task: str, path: Path, n_rows: int, n_columns: int) -> None:
    """Measure a task in a process of its own, and print a line."""
    measured = json.loads(run(task, path, n_rows, n_columns))
    if measured["rows"] != n_rows:
        raise SystemExit(f"{path}: {measured['rows']} rows instead of {n_rows}.")
    print(
        f"{task:7} {path.name:15} {path.stat().st_size / 1e6:6.0f} MB  {n_rows / measured['seconds']:10,.0f} rows/s  "
        f"{n_rows / measured['seconds of threads']:10,.0f} rows/s of CPU  "
        f"peak {measured['peak'] / 1e6:5.0f} MB ({measured['before'] / 1e6:.0f} MB before)",
        flush=True,
    )


def main() -> None:
    """Make the files, then measure every task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument(
        "--task", choices=["make", "make-model", "read", "write", "predict"], help="one task only, in this process"
    )
    parser.add_argument("path", type=Path, nargs="?")
    arguments = parser.parse_args()
    size = arguments.rows, arguments.columns
    if arguments.task == "make":
        make_files(arguments.path, *size)
    elif arguments.task == "make-model":
        make_model(arguments.path, arguments.rows)
    elif arguments.task:
        print(json.dumps(measure(arguments.task, arguments.path, *size)))
    else:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run("make", folder, *size)  # not in this process: on Linux, child processes inherit its memory peak
            for path in sorted(folder.iterdir()):
                report("read", path, *size)
            report("write", folder / "predictions.csv", *size)
            run("make-model", folder, *size)
            report("predict", folder / "few.csv", *size)
            report("predict", folder / "many.csv", 4 * size[0], size[1])


if __name__ == "__main__":
    main()
