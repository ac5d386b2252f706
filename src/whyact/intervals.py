"""Numbers with their intervals: one type for all of them, and how they are found."""

from typing import Any, NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A number with its interval, or arrays of one shape; NaN where no interval can be given.

    Attributes
    ----------
    value : float or ndarray
    low, high : float or ndarray
        Where the interval begins and ends.

    Examples
    --------
    >>> from whyact.intervals import Interval
    >>> Interval(0.1, 0.02, 0.18).verdict
    'ahead'
    """

    value: Any
    low: Any
    high: Any

    @property
    def verdict(self) -> str:
        """Of a difference: "ahead" or "behind", "tie" if zero is in the interval, "unknown" if there is none."""
        if not np.isfinite(self.low):
            return "unknown"
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "tie"


def wilson_interval(n_hits: int, n_trials: int, level: float = 0.95) -> Interval:
    """A share with Wilson's interval.

    Parameters
    ----------
    n_hits, n_trials : int
        How often it happened, and how often it could have.
    level : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from whyact.intervals import wilson_interval
    >>> share = wilson_interval(8, 10)
    >>> f"{share.value:.2f} ({share.low:.2f} to {share.high:.2f})"
    '0.80 (0.49 to 0.94)'
    """
    from scipy.stats import binomtest  # half a second, which the command line's help must not wait for

    interval = binomtest(n_hits, n_trials).proportion_ci(level, method="wilson")
    return Interval(n_hits / n_trials, float(interval.low), float(interval.high))


def mean_interval(
    values: np.ndarray, lowest: float = -np.inf, highest: float = np.inf, level: float = 0.95
) -> Interval:
    """A mean with Student's interval.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent values.
    lowest, highest : float, default=-inf and inf
        Limits of what is possible, to which the interval is cut.
    level : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Interval
        NaN as its ends for a single value.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.intervals import mean_interval
    >>> mean = mean_interval(np.array([11.0, 12.0, 13.0]))
    >>> f"{mean.value:.1f} ({mean.low:.1f} to {mean.high:.1f})"
    '12.0 (9.5 to 14.5)'
    """
    from scipy.stats import t  # half a second, which the command line's help must not wait for

    mean, n_values = float(np.mean(values)), len(values)
    if n_values < 2:
        return Interval(mean, np.nan, np.nan)
    half = t.ppf((1 + level) / 2, n_values - 1) * np.std(values, ddof=1) / np.sqrt(n_values)
    return Interval(mean, max(mean - half, lowest), min(mean + half, highest))


def quantile_interval(samples: np.ndarray, level: float, value: Any, axis: int = 0) -> Interval:
    """A value with the central interval of its samples.

    Parameters
    ----------
    samples : ndarray
    level : float
        Probability of the interval.
    value : float or ndarray
        What the samples are of, such as their mean.
    axis : int, default=0
        Axis of the samples.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.intervals import quantile_interval
    >>> samples = np.arange(101.0)
    >>> [round(float(number)) for number in quantile_interval(samples, 0.9, samples.mean())]
    [50, 5, 95]
    """
    low, high = np.quantile(samples, ((1 - level) / 2, (1 + level) / 2), axis=axis)
    return Interval(value, low, high)


def format_scores(*scores: float) -> list[str]:
    """Log scores with two decimals, or with three where two that differ would look the same.

    Parameters
    ----------
    *scores : float

    Returns
    -------
    list of str

    Examples
    --------
    >>> from whyact.intervals import format_scores
    >>> format_scores(-0.5, -0.61), format_scores(-1.101, -1.099)
    (['-0.50', '-0.61'], ['-1.101', '-1.099'])
    """
    told = [f"{score:.2f}" for score in scores]
    return told if len(set(told)) == len(set(scores)) else [f"{score:.3f}" for score in scores]
