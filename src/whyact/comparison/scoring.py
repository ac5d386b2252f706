"""How good predictions are, and whether one model is better than another or only luckier."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

# Every model's probabilities are mixed with this share of the uniform distribution before the log score, so that one
# action held impossible and taken all the same costs log(1000 U) and not everything.
UNIFORM_SHARE = 0.001
# Bins of the calibration error. Fewer rows in each, and chance alone would look like a lack of calibration.
MAX_BINS = 10
MIN_ROWS_PER_BIN = 20
# Folds needed for an interval: two differences, multiples of one row's share, are too often equal by chance.
MIN_FOLDS = 3


class Interval(NamedTuple):
    """A mean difference and where the true one lies with 95% confidence; NaN where that cannot be said."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Of the first one: "ahead" or "behind", "tie" if zero is in the interval, "unknown" if there is none."""
        if not np.isfinite(self.low):
            return "unknown"
        return "ahead" if self.low > 0 else "behind" if self.high < 0 else "tie"


def score(probabilities: np.ndarray, actions: np.ndarray) -> dict[str, float]:
    """All measures of predictions (N, U), given the number of the action that was taken in each row.

    - accuracy: the most probable action is the one taken.
    - balanced accuracy: the same, first averaged within each action that occurs in the rows.
    - log score: mean log probability of the action taken; see UNIFORM_SHARE.
    - calibration error: see there.
    """
    correct = probabilities.argmax(axis=1) == actions
    rows = np.arange(len(actions))
    mixed = (1 - UNIFORM_SHARE) * probabilities[rows, actions] + UNIFORM_SHARE / probabilities.shape[1]
    return {
        "accuracy": float(correct.mean()),
        "balanced_accuracy": float(np.mean([correct[actions == action].mean() for action in np.unique(actions)])),
        "log_score": float(np.log(mixed).mean()),
        "calibration_error": calibration_error(probabilities.max(axis=1), correct),
    }


def calibration_error(confidences: np.ndarray, correct: np.ndarray) -> float:
    """How far the probability of the most probable action is from how often that is right.

    Rows are put into bins of equal size by that probability; equal ones stay together. The result is the mean distance
    between probability and success of the bins, weighted by their rows.
    """
    n_bins = int(np.clip(len(confidences) // MIN_ROWS_PER_BIN, 1, MAX_BINS))
    edges = np.quantile(confidences, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf")
    bins = np.searchsorted(edges, confidences, side="left")
    gaps = np.bincount(bins, weights=confidences - correct, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidences))


def corrected_interval(differences: np.ndarray, n_train: float, n_test: float) -> Interval:
    """Interval of a mean difference over folds whose rows to learn from overlap (Nadeau & Bengio, 2003).

    Folds are not independent, so that var / J is too small a variance for the mean of J; var * (1/J + n_test/n_train)
    is about right.
    """
    n_folds = len(differences)
    mean = float(np.mean(differences)) if n_folds else np.nan
    if n_folds < MIN_FOLDS:
        return Interval(mean, np.nan, np.nan)
    error = np.sqrt(np.var(differences, ddof=1) * (1 / n_folds + n_test / n_train))
    half = float(student.ppf(0.975, n_folds - 1) * error)
    return Interval(mean, mean - half, mean + half)
