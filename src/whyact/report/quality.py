"""How well the model predicts: on new demonstrations if there are any, otherwise on those it learned from."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from whyact.comparison.scoring import calibration_error, find_calibration_bins, score
from whyact.cut_policies import spread_out
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.inputs import split_missing
from whyact.intervals import wilson_interval
from whyact.prediction import FAMILIAR, Prediction
from whyact.report.plain import Plain, to_name, to_number

MAX_ROWS = 2000  # predicting more would take long and change little
N_EQUAL_DIGITS = 12  # numbers that agree in this many digits count as equal


class JudgedRows(NamedTuple):
    """The rows that quality is measured on, and what the model predicts for them."""

    labels: np.ndarray  # actions, (N,) of object
    known: np.ndarray  # whether the action is known, (N,)
    judged: Prediction
    n_available: int  # how many rows these were chosen from
    n_seen: int  # how many of those given as new the model learned from
    available: np.ndarray | None  # which actions there were, (N, U); None: all


def measure_quality(model: FeaturePolicyClassifier, test: tuple[Any, ...] | None = None) -> Plain:
    """Accuracy, log score, calibration, confusion and familiarity; on `test`, or on the rows learned from.

    If no row has a known action, "accuracy" is None and everything else about actions is missing.
    """
    rows = judge_rows_learned_from(model) if test is None else judge_test(model, test)
    quality = {
        "rows": "learned from" if test is None else "new",
        "n_rows": len(rows.labels),
        "n_available": rows.n_available,
        "n_known": int(rows.known.sum()),
        "n_seen": rows.n_seen,
        "unfamiliar": measure_familiarity(rows.judged.familiarity),
        "accuracy": None,
    }
    if len(model.classes_) and rows.known.any():
        available = None if rows.available is None else rows.available[rows.known]
        quality |= measure_predictions(model, rows.judged.probabilities[rows.known], rows.labels[rows.known], available)
    return quality


def judge_rows_learned_from(model: FeaturePolicyClassifier) -> JudgedRows:
    """Predict the demonstrations, as if their actions were not known."""
    chosen = spread_out(len(model.actions_), MAX_ROWS)
    actions = model.actions_[chosen]
    known = actions >= 0
    labels = np.full(len(chosen), None, dtype=object)
    labels[known] = list(model.classes_[actions[known]])
    available = None if model._result.available is None else model._result.available[chosen]
    return JudgedRows(labels, known, model.judge_demonstrations(chosen), len(model.actions_), 0, available)


def judge_test(model: FeaturePolicyClassifier, test: tuple[Any, ...]) -> JudgedRows:
    """Predict demonstrations that were given as new, perhaps with what is available in each row."""
    try:
        observations, actions, *masks = test
        (available,) = masks or [None]
    except (TypeError, ValueError):
        raise ValueError("test must be a pair (X, y) of demonstrations that the model did not learn from.") from None
    labels, known = split_missing(actions, model.missing_action)
    n_rows = observations.shape[0] if hasattr(observations, "shape") else len(observations)
    if n_rows != len(labels) or not n_rows:
        raise ValueError(f"test: X has {n_rows} rows, y has {len(labels)} actions; give one action for each row.")
    chosen = spread_out(n_rows, MAX_ROWS)
    if len(chosen) < n_rows:
        observations = _safe_indexing(observations, chosen)
    labels, known = np.asarray(labels, dtype=object)[chosen], known[chosen]
    n_seen = int(find_seen(model, observations, labels, known).sum())
    mask = None if available is None else np.asarray(available)[chosen]
    judged = model.judge(observations, available=mask)  # which checks the mask
    return JudgedRows(labels, known, judged, n_rows, n_seen, None if mask is None else mask.astype(bool))


def find_seen(
    model: FeaturePolicyClassifier, observations: ArrayLike, labels: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """Which rows of a test equal demonstrations learned from: in every column, and in the action if it is known."""
    actions = np.where(known, number_actions(model, labels), -1)
    demonstrations: dict[bytes, set[int]] = {}
    for row, action in zip(to_keys(model.observations_), model.actions_.tolist(), strict=True):
        demonstrations.setdefault(row, set()).add(action)
    rows = to_keys(model._check_new_rows(observations))
    return np.array(
        [
            row in demonstrations and (not is_known or action in demonstrations[row] - {-1})
            for row, action, is_known in zip(rows, actions.tolist(), known.tolist(), strict=True)
        ]
    )


def to_keys(observations: np.ndarray) -> list[bytes]:
    """A key for each row, the same for rows whose columns agree in their first digits and miss the same entries."""
    observations = np.asarray(observations, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = 10.0 ** (N_EQUAL_DIGITS - 1 - np.floor(np.log10(np.abs(observations))))
        rounded = np.rint(observations * powers) / powers
    usable = np.isfinite(powers) & (powers > 0)
    # adding zero turns -0.0 into 0.0; all NaN become the same one
    rounded = np.where(np.isnan(observations), np.nan, np.where(usable, rounded, observations)) + 0.0
    return [row.tobytes() for row in rounded]


def number_actions(model: FeaturePolicyClassifier, labels: np.ndarray) -> np.ndarray:
    """The index of each label among the actions of the model; -1 for those that it was never shown."""
    numbers = {label: u for u, label in enumerate(model.classes_.tolist())}
    return np.array([numbers.get(to_python(label), -1) for label in labels], dtype=int)


def measure_familiarity(familiarity: np.ndarray) -> Plain:
    """How many rows are unlike the demonstrations."""
    n_unfamiliar = int((familiarity < FAMILIAR).sum())
    return {"limit": FAMILIAR, "n": n_unfamiliar, "share": n_unfamiliar / len(familiarity)}


def measure_predictions(
    model: FeaturePolicyClassifier, probabilities: np.ndarray, labels: np.ndarray, available: np.ndarray | None = None
) -> Plain:
    """How good the probabilities (N, U) are, given the actions that were taken, and those that could be."""
    there = np.ones(probabilities.shape, bool) if available is None else available
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
        # an action that was never shown has no probability, so it has no log score either
        "log_score": to_number(score(probabilities[seen], actions[seen], there[seen])["log_score"])
        if seen.any()
        else None,
        "log_score_of_guessing": -float(np.log(there.sum(axis=1)).mean()),
        "n_never_shown": int((~seen).sum()),
        "calibration": {
            "error": to_number(calibration_error(confidences, correct)),
            "bins": find_bins(confidences, correct),
        },
        "confusion": count_confusion(labels, actions, predicted, len(model.classes_)),
    }


def to_python(label: Any) -> Any:
    """A label as a Python object, so that it is found among the model's actions."""
    return label.item() if isinstance(label, np.generic) else label


def estimate_share(n_hits: int, n_trials: int) -> Plain:
    """A share with its 95% interval (Wilson)."""
    return {"n_correct": n_hits, "n": n_trials, **wilson_interval(n_hits, n_trials)._asdict()}


def find_bins(confidences: np.ndarray, correct: np.ndarray) -> list[Plain]:
    """The bins of `calibration_error`, least confident first: how sure the model was, how often it was right."""
    numbers, _ = find_calibration_bins(confidences)
    bins = []
    for number in np.unique(numbers):
        rows = numbers == number
        share = estimate_share(int(correct[rows].sum()), int(rows.sum()))
        bins.append({"confidence": float(confidences[rows].mean()), **share})
    return bins


def count_confusion(labels: np.ndarray, actions: np.ndarray, predicted: np.ndarray, n_actions: int) -> Plain:
    """How often each action was predicted (columns) where each was taken (rows); `extra`: actions never shown."""
    counts = np.zeros((n_actions, n_actions), dtype=int)
    seen = actions >= 0
    np.add.at(counts, (actions[seen], predicted[seen]), 1)
    extra = []
    for label in sorted({str(label) for label in labels[~seen]}):
        rows = np.array([str(other) == label for other in labels]) & ~seen
        extra.append({"name": to_name(label), "counts": np.bincount(predicted[rows], minlength=n_actions).tolist()})
    return {"counts": counts.tolist(), "extra": extra}
