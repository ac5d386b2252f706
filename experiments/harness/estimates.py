"""Means over runs with their standard errors."""

import math
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A mean over runs and its standard error (nan for a single run)."""

    value: float
    error: float

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}}" + ("" if math.isnan(self.error) else f" ± {self.error:{spec}}")


def average(values) -> Estimate:
    values = np.asarray(values, dtype=float)
    if len(values) == 0:
        return Estimate(math.nan, math.nan)
    return Estimate(float(values.mean()), deviation(values) / math.sqrt(len(values)))


def root_mean_square(values) -> Estimate:
    """Root of the mean square; its error from that of the mean square (delta method)."""
    square, error = average(np.square(np.asarray(values, dtype=float)))
    root = math.sqrt(square)
    return Estimate(root, error / (2 * root) if root > 0 else 0.0 * error)


def deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan
