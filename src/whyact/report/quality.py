"""How well the model predicts: on demonstrations it has not seen, or else on its own."""

import numpy as np
from scipy.stats import binomtest

from whyact.comparison.scoring import MAX_BINS, MIN_ROWS_PER_BIN, calibration_error, score
from whyact.prediction import FAMILIAR
from whyact.report.plain import spread_evenly, to_name, to_number

MAX_ROWS = 2000  # predicting more would tell nothing new and take long
N_EQUAL_DIGITS = 12  # numbers that agree in so many digits are the same


def measure_quality(model, test=None) -> dict:
    """Accuracy, log score, calibration, confusion and familiarity; on `test`, or on the rows learned from.

    Everything about actions is None if no row has a known one.
    """
    observations, labels, known = rows_learned_from(model) if test is None else rows_of_test(model, test)
    n_available = len(labels)
    chosen = spread_evenly(n_available, MAX_ROWS)
    if len(chosen) < n_available:
        observations, labels, known = take_rows(observations, chosen), labels[chosen], known[chosen]
    quality = {
        "rows": "learned from" if test is None else "new",
        "n_rows": len(chosen),
        "n_available": n_available,
        "n_known": int(known.sum()),
        "n_seen": 0 if test is None else int(find_seen(model, observations, labels, known).sum()),
        "unfamiliar": measure_familiarity(model, observations),
        "accuracy": None,
    }
    if len(model.classes_) and known.any():
        quality |= measure_predictions(model, model.predict_proba(observations)[known], labels[known])
    return quality


def rows_learned_from(model):
    observations = model._unscale_columns(np.asarray(model.observations_))
    known = np.asarray(model.actions_) >= 0
    labels = np.full(len(known), None, dtype=object)
    if len(model.classes_):
        labels[known] = list(np.asarray(model.classes_)[model.actions_[known]])
    names = getattr(model, "feature_names_in_", None)
    if names is not None:  # as a frame, else scikit-learn warns that the names are missing
        import pandas

        observations = pandas.DataFrame(observations, columns=pandas.Index(names, dtype=object))
    return observations, labels, known


def rows_of_test(model, test):
    try:
        observations, labels = test
    except (TypeError, ValueError):
        raise ValueError("test must be a pair (X, y) of demonstrations that the model has not learned from.") from None
    labels, known = model._split_missing(labels)
    n_rows = observations.shape[0] if hasattr(observations, "shape") else len(observations)
    if n_rows != len(labels) or not n_rows:
        raise ValueError(f"test: X has {n_rows} rows, y has {len(labels)} actions; they must be as many, and some.")
    return observations, np.asarray(labels, dtype=object), known


def take_rows(observations, rows: np.ndarray):
    from sklearn.utils import _safe_indexing

    return _safe_indexing(observations, rows)


def find_seen(model, observations, labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which rows of a test are equal to demonstrations learned from: in every column, and in the action if known."""
    actions = np.where(known, number_actions(model, labels), -1)
    demonstrations: dict[bytes, set[int]] = {}
    for row, action in zip(to_keys(model.observations_), np.asarray(model.actions_).tolist(), strict=True):
        demonstrations.setdefault(row, set()).add(action)
    rows = to_keys(model._check_observations(observations, reset=False))
    return np.array(
        [
            row in demonstrations and (not is_known or action in demonstrations[row] - {-1})
            for row, action, is_known in zip(rows, actions.tolist(), known.tolist(), strict=True)
        ]
    )


def to_keys(observations: np.ndarray) -> list[bytes]:
    """A key for each row: the same where rows agree in the first digits of each column, or miss the same columns."""
    observations = np.asarray(observations, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = 10.0 ** (N_EQUAL_DIGITS - 1 - np.floor(np.log10(np.abs(observations))))
        rounded = np.rint(observations * powers) / powers
    usable = np.isfinite(powers) & (powers > 0)
    # adding zero makes one of both zeros; one NaN stands for all
    rounded = np.where(np.isnan(observations), np.nan, np.where(usable, rounded, observations)) + 0.0
    return [row.tobytes() for row in rounded]


def number_actions(model, labels: np.ndarray) -> np.ndarray:
    """The place of each label among the actions of the model; -1 for those that it was never shown."""
    numbers = {label: u for u, label in enumerate(np.asarray(model.classes_).tolist())}
    return np.array([numbers.get(to_python(label), -1) for label in labels], dtype=int)


def measure_familiarity(model, observations) -> dict:
    familiarity = model.familiarity(observations)
    n_unfamiliar = int((familiarity < FAMILIAR).sum())
    return {"limit": FAMILIAR, "n": n_unfamiliar, "share": n_unfamiliar / len(familiarity)}


def measure_predictions(model, probabilities: np.ndarray, labels: np.ndarray) -> dict:
    """What the probabilities (N, U) are worth, given the actions that were taken."""
    actions = number_actions(model, labels)
    seen = actions >= 0
    predicted = probabilities.argmax(axis=1)
    correct = predicted == actions
    confidences = probabilities.max(axis=1)
    favourite = np.bincount(model.actions_[model.actions_ >= 0], minlength=len(model.classes_)).argmax()
    return {
        "accuracy": estimate_share(int(correct.sum()), len(correct)),
        "mean_confidence": float(confidences.mean()),
        "usual_action": {"action": int(favourite), "accuracy": float(np.mean(actions == favourite))},
        # an action that nobody has shown has no probability, so it has no log score either
        "log_score": to_number(score(probabilities[seen], actions[seen])["log_score"]) if seen.any() else None,
        "log_score_of_guessing": -float(np.log(len(model.classes_))),
        "n_never_shown": int((~seen).sum()),
        "calibration": {
            "error": to_number(calibration_error(confidences, correct)),
            "bins": find_bins(confidences, correct),
        },
        "confusion": count_confusion(labels, actions, predicted, len(model.classes_)),
    }


def to_python(label):
    """A label as Python's own type, as which it is found among others."""
    return label.item() if isinstance(label, np.generic) else label


def estimate_share(n_hits: int, n_trials: int) -> dict:
    """A share with its 95% interval (Wilson)."""
    interval = binomtest(n_hits, n_trials).proportion_ci(0.95, method="wilson")
    return {
        "n_correct": n_hits,
        "n": n_trials,
        "value": n_hits / n_trials,
        "low": float(interval.low),
        "high": float(interval.high),
    }


def find_bins(confidences: np.ndarray, correct: np.ndarray) -> list[dict]:
    """The bins of `calibration_error`, least confident first: how sure the model was, how often it was right."""
    n_bins = int(np.clip(len(confidences) // MIN_ROWS_PER_BIN, 1, MAX_BINS))
    edges = np.quantile(confidences, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf")
    numbers = np.searchsorted(edges, confidences, side="left")
    bins = []
    for number in np.unique(numbers):
        rows = numbers == number
        share = estimate_share(int(correct[rows].sum()), int(rows.sum()))
        bins.append({"confidence": float(confidences[rows].mean()), **share})
    return bins


def count_confusion(labels: np.ndarray, actions: np.ndarray, predicted: np.ndarray, n_actions: int) -> dict:
    """How often each action was predicted (columns) where each was taken (rows); `extra`: actions never shown."""
    counts = np.zeros((n_actions, n_actions), dtype=int)
    seen = actions >= 0
    np.add.at(counts, (actions[seen], predicted[seen]), 1)
    extra = []
    for label in sorted({str(label) for label in labels[~seen]}):
        rows = np.array([str(other) == label for other in labels]) & ~seen
        extra.append({"name": to_name(label), "counts": np.bincount(predicted[rows], minlength=n_actions).tolist()})
    return {"counts": counts.tolist(), "extra": extra}
