"""Columns of very different size, which models with one noise for all columns cannot treat alike."""

from typing import Any

import numpy as np

# Columns whose sizes differ by more than this factor are worth a warning.
WIDE = 30.0


def compare_spreads(X: Any) -> float:
    """The largest standard deviation of a column (N, D) over the smallest; columns that do not vary are left out."""
    spreads = np.nanstd(np.asarray(X), axis=0)
    spreads = spreads[spreads > 0]
    return float(spreads.max() / spreads.min()) if len(spreads) else 1.0
