"""How long `whyact compare` takes with its default models on 500 x 30 rows of the paper's design (K = 9, 20 dB)."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas

from whyact.simulation import draw_ground_truth


def main() -> None:
    """Time the command on a file of simulated demonstrations."""
    truth = draw_ground_truth(np.random.default_rng(0), 9, 20.0, n_rows=500)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demos.csv"
        columns = [f"x{d}" for d in range(truth.observations.shape[1])]
        pandas.DataFrame(truth.observations, columns=columns).assign(u=truth.actions).to_csv(file, index=False)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", "from whyact.cli import app; app()", "compare", str(file), "--action", "u"],
            check=True,
        )
        print(f"\n500 x 30, default models, two splits of five folds: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
