"""Demonstrations in files: the traffic that ships with whyact, plain arrays (NPZ) and Minari datasets.

Nothing that is read can run code. NumPy's files are read without pickles. Of a Minari dataset only `metadata.json` and
the HDF5 file are read. Minari itself would, where a dataset does not say what its observations and actions are, make
the environment that the dataset names: it imports and calls whatever that is. Such datasets are refused here.
"""

from importlib import resources
from pathlib import Path

import numpy as np

from whyact.driving.traffic import TrafficDemonstrations, TrafficGrid
from whyact.tables.numpy import read_arrays, write_arrays

TRAFFIC_FILE = "traffic.npz"
N_SHADES = 255  # the shipped observations are whole numbers up to this


def load_traffic() -> TrafficDemonstrations:
    """Load the simulated traffic that ships with whyact; `scripts/make_demo_traffic.py` has made it.

    Examples
    --------
    >>> traffic = load_traffic()
    >>> traffic.observations.shape
    (840, 70)
    >>> traffic.grid.column_names[12]
    'now own 0..10 m'
    """
    with resources.as_file(resources.files("whyact") / "data" / TRAFFIC_FILE) as path:
        arrays = read_arrays(path, ("observations", "actions", "episode", "step"))
    grid = TrafficGrid()
    return TrafficDemonstrations(
        arrays["observations"] / N_SHADES, arrays["actions"], arrays["episode"].astype(int),
        arrays["step"].astype(int), grid,
    )  # fmt: skip


def save_traffic(path: Path | str, demonstrations: TrafficDemonstrations) -> None:
    """Save simulated traffic in one byte a cell; the same demonstrations give the same file."""
    write_arrays(Path(path), {
        "observations": np.rint(N_SHADES * demonstrations.observations).astype(np.uint8),
        "actions": demonstrations.actions,
        "episode": demonstrations.episode.astype(np.int16),
        "step": demonstrations.step.astype(np.int16),
        "column_names": np.array(demonstrations.grid.column_names),
    })  # fmt: skip
