"""Rows in and out: demonstrations from files of all kinds, and predictions into CSV files.

Readers, one file for each format, all of them a `Source` of rows (`source.py`):

- `csv.py`: CSV and TSV, also compressed
- `parquet.py`: Parquet, with pyarrow
- `numpy.py`: NPY and NPZ
- `minari.py`: Minari datasets, with minari

`demonstrations.py` picks the reader and turns rows into a `Table`, or streams them. `recording.py` has the arrays that
NPZ files and Minari datasets are loaded into and saved from. `spreads.py` tells whether columns differ much in scale.
`available.py` reads which actions can be taken in each row. `predictions.py` writes.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyact.tables.demonstrations import Table, open_rows, read_demonstrations
    from whyact.tables.minari import read_minari, write_minari
    from whyact.tables.numpy import load_arrays, save_arrays
    from whyact.tables.predictions import PredictionWriter, open_predictions
    from whyact.tables.recording import Recording

# Names are imported when first used: the readers need numpy and pandas.
_HOMES = {
    "PredictionWriter": "whyact.tables.predictions",
    "Recording": "whyact.tables.recording",
    "Table": "whyact.tables.demonstrations",
    "load_arrays": "whyact.tables.numpy",
    "open_predictions": "whyact.tables.predictions",
    "open_rows": "whyact.tables.demonstrations",
    "read_demonstrations": "whyact.tables.demonstrations",
    "read_minari": "whyact.tables.minari",
    "save_arrays": "whyact.tables.numpy",
    "write_minari": "whyact.tables.minari",
}

__all__ = [
    "PredictionWriter",
    "Recording",
    "Table",
    "load_arrays",
    "open_predictions",
    "open_rows",
    "read_demonstrations",
    "read_minari",
    "save_arrays",
    "write_minari",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
