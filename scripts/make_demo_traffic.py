"""Make src/whyact/data/traffic.npz, the demonstrations that `whyact demo` learns from (takes about a minute).

    python scripts/make_demo_traffic.py

Needs highway-env 1.12.1 (`pip install whyact[driving]`). The same versions give the same bytes.
"""

import argparse
from pathlib import Path

import numpy as np

from whyact.driving.datasets import TRAFFIC_FILE, save_traffic
from whyact.driving.traffic import record_demonstrations

N_EPISODES = 420
SEED = 0
DATA = Path(__file__).parents[1] / "src" / "whyact" / "data"


def main() -> None:
    """Record, save, and print how the actions are balanced."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", type=Path, default=DATA / TRAFFIC_FILE)
    path = parser.parse_args().path
    demonstrations = record_demonstrations(N_EPISODES, SEED)
    save_traffic(path, demonstrations)
    names, counts = np.unique(demonstrations.actions, return_counts=True)
    shares = ", ".join(f"{name} {count / counts.sum():.0%}" for name, count in zip(names, counts, strict=True))
    print(f"{path}: {counts.sum()} rows of {N_EPISODES} episodes, {path.stat().st_size / 1000:.0f} kB; {shares}")


if __name__ == "__main__":
    main()
