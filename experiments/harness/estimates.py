"""Means over runs with their standard errors."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from whyact.intervals import Interval

# Half the width of a normal interval of 95%, in standard errors.
WIDTH = 1.96


class MeanWithError(NamedTuple):
    """A mean over runs and its standard error (NaN for a single run)."""

    value: float
    error: float

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}}" + ("" if math.isnan(self.error) else f" ± {self.error:{spec}}")

    @property
    def interval(self) -> Interval:
        """The normal 95% interval."""
        half = WIDTH * self.error
        return Interval(self.value, self.value - half, self.value + half)


def average(values: ArrayLike) -> MeanWithError:
    """The mean over runs."""
    values = np.asarray(values, dtype=float)
    if len(values) == 0:
        return MeanWithError(math.nan, math.nan)
    return MeanWithError(float(values.mean()), deviation(values) / math.sqrt(len(values)))


def root_mean_square(values: ArrayLike) -> MeanWithError:
    """The root of the mean square over runs; its error from that of the mean square (delta method)."""
    square, error = average(np.square(np.asarray(values, dtype=float)))
    root = math.sqrt(square)
    return MeanWithError(root, error / (2 * root) if root > 0 else 0.0 * error)


def deviation(values: np.ndarray) -> float:
    """The standard deviation; NaN for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan
