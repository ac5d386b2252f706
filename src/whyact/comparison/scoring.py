"""How good predictions are, and whether one model is better than another or only luckier."""

import numpy as np
from scipy.stats import t as student

from whyact.intervals import Interval

# Every model's probabilities are mixed with this share of the uniform distribution before the log score, so that one
# action taken although it was held impossible costs log(1000 U) and not everything.
UNIFORM_SHARE = 0.001
# Bins of the calibration error. With fewer rows in each, chance alone would look like a lack of calibration.
MAX_BINS = 10
MIN_ROWS_PER_BIN = 20
# Folds needed for an interval: two differences, multiples of one row's share, are too often equal by chance.
MIN_FOLDS = 3


def score(probabilities: np.ndarray, actions: np.ndarray, available: np.ndarray | None = None) -> dict[str, float]:
    """Measure predictions by the actions that were taken.

    Parameters
    ----------
    probabilities : ndarray (N, U)
        Predicted probability of each action in each row.
    actions : ndarray (N,)
        Column of the action that was taken in each row.
    available : ndarray (N, U) of bool or None, default=None
        Which actions were available in each row; the others have no probability. None: all.

    Returns
    -------
    dict
        - "accuracy": how often the most probable action was taken.
        - "balanced_accuracy": the same, averaged within each action that was taken, then over these actions.
        - "log_score": mean log probability of the action taken; see `UNIFORM_SHARE`.
        - "calibration_error": see `calibration_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.comparison.scoring import score
    >>> measures = score(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1]))
    >>> {name: round(value, 3) for name, value in measures.items()}
    {'accuracy': 0.667, 'balanced_accuracy': 0.75, 'log_score': -0.415, 'calibration_error': 0.1}
    """
    correct = probabilities.argmax(axis=1) == actions
    rows = np.arange(len(actions))
    n_available = probabilities.shape[1] if available is None else available.sum(axis=1)
    mixed = (1 - UNIFORM_SHARE) * probabilities[rows, actions] + UNIFORM_SHARE / n_available
    return {
        "accuracy": float(correct.mean()),
        "balanced_accuracy": float(np.mean([correct[actions == action].mean() for action in np.unique(actions)])),
        "log_score": float(np.log(mixed).mean()),
        "calibration_error": calibration_error(probabilities.max(axis=1), correct),
    }


def calibration_error(confidences: np.ndarray, correct: np.ndarray) -> float:
    """Measure how far the probability of the most probable action is from how often that action is right.

    Rows with similar probability are binned (see `find_calibration_bins`). The result is the mean distance between
    probability and success of the bins, weighted by their rows.

    Parameters
    ----------
    confidences : ndarray (N,)
        Probability of the most probable action in each row.
    correct : ndarray (N,) of bool
        Whether that action was taken.

    Returns
    -------
    float
        0 for perfect calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.comparison.scoring import calibration_error
    >>> round(calibration_error(np.full(10, 0.9), np.arange(10) < 6), 3)
    0.3
    """
    bins, n_bins = find_calibration_bins(confidences)
    gaps = np.bincount(bins, weights=confidences - correct, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidences))


def find_calibration_bins(confidences: np.ndarray) -> tuple[np.ndarray, int]:
    """The bin of each row, least confident rows in bin 0, and the number of bins.

    Bins have about equal size. Equal confidences stay together, so some bins may be empty.
    """
    n_bins = int(np.clip(len(confidences) // MIN_ROWS_PER_BIN, 1, MAX_BINS))
    edges = np.quantile(confidences, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf")
    return np.searchsorted(edges, confidences, side="left"), n_bins


def corrected_interval(differences: np.ndarray, n_train: float, n_test: float) -> Interval:
    """Find the 95% interval of a mean difference over folds whose rows to learn from overlap.

    Such folds are not independent, so the variance of the mean of J differences is not var / J, but about
    var * (1/J + n_test/n_train) [1]_.

    Parameters
    ----------
    differences : ndarray (J,)
        Difference between two models in each fold.
    n_train, n_test : float
        Mean number of rows to learn from and to predict.

    Returns
    -------
    Interval
        The mean with its interval, which is NaN with fewer than three folds.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio: Inference for the Generalization Error, Machine Learning 52, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.comparison.scoring import corrected_interval
    >>> lead = corrected_interval(np.array([0.05, 0.07, 0.06, 0.08, 0.04]), n_train=80, n_test=20)
    >>> f"{lead.value:.2f} ({lead.low:.3f} to {lead.high:.3f}): {lead.verdict}"
    '0.06 (0.031 to 0.089): ahead'
    """
    n_folds = len(differences)
    mean = float(np.mean(differences)) if n_folds else np.nan
    if n_folds < MIN_FOLDS:
        return Interval(mean, np.nan, np.nan)
    error = np.sqrt(np.var(differences, ddof=1) * (1 / n_folds + n_test / n_train))
    half = float(student.ppf(0.975, n_folds - 1) * error)
    return Interval(mean, mean - half, mean + half)
