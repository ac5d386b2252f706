"""What checkpoints cost: the share of a run that is spent on writing them.

Two runs: the shipped demo, whose sweeps are quick, and 300 x 2730 observations, whose draws are large. Each writes a
checkpoint every 5 seconds (the default is 60), within the limit of 2% of the time. Also the cost of one checkpoint.
"""

import tempfile
import time
import warnings
from typing import Any

import numpy as np

from whyact import DoubtfulFitWarning, FeaturePolicyClassifier, load_demo
from whyact.simulation import draw_ground_truth
from whyact.storage.checkpoint import Checkpoints

EVERY = 5.0  # seconds


def measure(name: str, X: np.ndarray, y: np.ndarray, **options: Any) -> None:
    """Fit with checkpoints, and print what they cost."""
    costs = []
    write = Checkpoints.write

    def timed(self: Checkpoints, *arguments: Any) -> None:
        started = time.perf_counter()
        write(self, *arguments)
        costs.append(time.perf_counter() - started)

    model = FeaturePolicyClassifier(**options, n_chains=2, random_state=0)
    model.fit(X[:20], y[:20])  # compiles
    Checkpoints.write = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            model.fit(X, y, checkpoint=folder, checkpoint_every=EVERY)
            seconds = time.perf_counter() - started
    finally:
        Checkpoints.write = write  # type: ignore[method-assign]
    print(
        f"{name}: {seconds:.0f} s, {len(costs)} checkpoints of {np.mean(costs):.2f} s on average, "
        f"{sum(costs) / seconds:.2%} of the run every {EVERY:.0f} s; {np.mean(costs) / 60:.2%} every 60 s",
        flush=True,
    )


def main() -> None:
    """Measure both runs."""
    warnings.simplefilter("ignore", DoubtfulFitWarning)
    demo = load_demo()
    measure("demo, 80 x 36", demo.X[:80], demo.y[:80], n_burn_in=5_000, n_draws=60_000)
    truth = draw_ground_truth(np.random.default_rng(0), 31, 20, n_rows=300, n_dimensions=2730)
    measure("large, 300 x 2730", truth.observations, truth.actions, n_burn_in=200, n_draws=1000, start="rows")


if __name__ == "__main__":
    main()
