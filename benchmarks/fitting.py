"""How long a fit with defaults takes, and what the choice of the combination adds to it.

    python benchmarks/fitting.py --rows 500 --rounds 3

The paper's design (30 columns, 9 features, 20 dB), two processes, kernels from the cache: fits that choose, and fits
that are told what was chosen, in turn, after one of each that does not count.
"""

import argparse
import time
import warnings

import numpy as np

from whyact import FeaturePolicyClassifier
from whyact.simulation import draw_ground_truth


def main() -> None:
    """Print the medians, and the share that the choice takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    truth = draw_ground_truth(np.random.default_rng(5), 9, 20, n_rows=options.rows, n_dimensions=30)
    seconds: dict[str, list[float]] = {"auto": [], "told": []}
    chosen = "auto"
    warnings.simplefilter("ignore")  # whether chains agree is not the question
    for turn in range(options.rounds + 1):
        for name in seconds:
            combination = "auto" if name == "auto" else chosen
            start = time.perf_counter()
            model = FeaturePolicyClassifier(combination=combination, n_jobs=2, random_state=0)
            chosen = model.fit(truth.observations, truth.actions).combination_
            if turn:
                seconds[name].append(time.perf_counter() - start)
    auto, told = (float(np.median(of)) for of in seconds.values())
    print(f"{options.rows} x 30 with defaults ({chosen}): {auto:.1f} s; told to take the {chosen}: {told:.1f} s")
    print(f"the choice adds {auto / told - 1:.0%} to the fit")


if __name__ == "__main__":
    main()
