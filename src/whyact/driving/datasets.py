"""The simulated traffic that ships with whyact, and files like it: NPZ with one byte per cell.

Nothing that is read can run code: NumPy's files are read without pickles. Plain arrays (NPZ) and Minari datasets of any
other demonstrations are read and written by `whyact.tables`.
"""

from importlib import resources
from pathlib import Path

import numpy as np

from whyact.driving.traffic import TrafficGrid, TrafficRecording
from whyact.tables.numpy import read_arrays, write_arrays
from whyact.tables.recording import ACTIONS, EPISODE, OBSERVATIONS, STEP

TRAFFIC_FILE = "traffic.npz"
N_SHADES = 255  # observations in these files are whole numbers up to this


def load_traffic() -> TrafficRecording:
    """Load the simulated traffic that ships with whyact, as made by `scripts/make_demo_traffic.py`.

    Returns
    -------
    TrafficRecording
        840 moments of 420 episodes of an IDM/MOBIL driver of highway-env, which need not be installed.

    Examples
    --------
    >>> from whyact.driving.datasets import load_traffic
    >>> traffic = load_traffic()
    >>> traffic.observations.shape
    (840, 70)
    >>> traffic.grid.column_names[12]
    'now own 0..10 m'
    """
    with resources.as_file(resources.files("whyact") / "data" / TRAFFIC_FILE) as path:
        arrays = read_arrays(path, (OBSERVATIONS, ACTIONS, EPISODE, STEP))
    return TrafficRecording(
        arrays[OBSERVATIONS] / N_SHADES, arrays[ACTIONS], arrays[EPISODE].astype(int), arrays[STEP].astype(int),
        TrafficGrid(),
    )  # fmt: skip


def save_traffic(path: Path | str, demonstrations: TrafficRecording) -> None:
    """Save simulated traffic with one byte per cell; the same demonstrations give the same file.

    Parameters
    ----------
    path : Path or str
        NPZ file to write; it appears whole or not at all.
    demonstrations : TrafficRecording
        As made by `record_demonstrations` or `load_traffic`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact.driving.datasets import load_traffic, save_traffic
    >>> from whyact.tables import read_demonstrations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "traffic.npz"
    ...     save_traffic(path, load_traffic())
    ...     table = read_demonstrations(path)
    >>> table.X.shape, int(table.X.max(axis=None))
    ((840, 70), 255)
    """
    write_arrays(Path(path), {
        OBSERVATIONS: np.rint(N_SHADES * demonstrations.observations).astype(np.uint8),
        ACTIONS: demonstrations.actions,
        EPISODE: demonstrations.episode.astype(np.int16),
        STEP: demonstrations.step.astype(np.int16),
        "column_names": np.array(demonstrations.grid.column_names),
    })  # fmt: skip
