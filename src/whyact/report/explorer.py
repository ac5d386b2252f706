"""The demonstrations that the reader of the page can explore, packed so that the page stays small.

Substates, policies and log odds keep every digit, because the page computes probabilities from them. Observations and
features are only drawn, so 8 bits per entry (within the range of its column) and 16 bits (of its feature) are enough.
"""

import base64

import numpy as np

from whyact.cut_policies import spread_out
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.explanation.voices import find_chosen_voices
from whyact.report.layout import Layout
from whyact.report.plain import Plain, to_numbers, to_script_json

BUDGET = 900_000  # characters that all of this may take on the page
MISSING = 255  # code of an entry that was not observed
HIGHEST = MISSING - 1
LARGEST_INT16 = 2**15 - 1


def pack_explorer(model: FeaturePolicyClassifier, layout: Layout, columns: list[str], max_demonstrations: int) -> Plain:
    """Everything that the page needs to take demonstrations apart and to answer "what if?"."""
    fixed = {
        "kind": layout.kind,
        "panels": layout.panels,
        "size": list(layout.size),
        "origin": layout.origin,
        "columns": columns if layout.kind == "bars" else [],
        **pack_voices(model),
        "features": pack_features(model.components_),
    }
    n_rows = len(model.substates_)
    affordable = (BUDGET - len(to_script_json(fixed))) // max(cost_of_row(model), 1)
    rows = spread_out(n_rows, max(1, min(affordable, max_demonstrations)))
    available = getattr(model, "available_", None)
    return fixed | {
        "n_rows": n_rows,
        "rows": rows.tolist(),
        "actions": model.actions_[rows].tolist(),
        "available": None if available is None else available[rows].astype(int).tolist(),
        "substates": to_numbers(find_substates(model, rows)),
        "observations": pack_observations(model.observations_[rows]),
    }


def pack_voices(model: FeaturePolicyClassifier) -> Plain:
    """What substates say about actions, of the chosen draw: policies and their decisiveness, or log odds."""
    voices: Plain = {
        "combination": model.combination_,
        "decisiveness": float(model.decisiveness_),
        "policies": [],
        "log_odds": [],
        "base": [],
    }
    if not len(model.classes_):
        return voices
    chosen = model.posterior_.chosen_on_average
    if model.combination_ == "product":
        found = find_chosen_voices(chosen, model._result.cut)
        return voices | {"log_odds": to_numbers(found.log_odds), "base": to_numbers(found.base)}
    # as drawn by the sampler, not sharpened: decisiveness applies to their mixture
    return voices | {"policies": to_numbers(model.posterior_.find_votes(chosen))}


def find_substates(model: FeaturePolicyClassifier, rows: np.ndarray) -> np.ndarray:
    """How much of each feature is in some demonstrations, (N, K).

    Policies that are multiplied were learned for what a new row can show, so that is what goes with them.
    """
    if model.combination_ == "product" and len(model.classes_):
        return model.judge_demonstrations(rows, prediction="map").substates
    return model.substates_[rows]


def cost_of_row(model: FeaturePolicyClassifier) -> int:
    """Characters that one demonstration takes on the page, on average."""
    sample = find_substates(model, spread_out(len(model.substates_), 100))
    n_mask = 2 * len(model.classes_) if hasattr(model, "available_") else 0
    return (
        len(to_script_json(to_numbers(sample))) // len(sample) + n_mask + 4 * (int(model.n_features_in_) // 3 + 1) + 16
    )


def pack_features(features: np.ndarray) -> Plain:
    """Each feature as 16-bit whole numbers, little-endian; multiplied by `scales` they are its entries."""
    scales = np.abs(features).max(axis=1, initial=0.0) / LARGEST_INT16
    whole = np.rint(features / np.where(scales > 0, scales, 1.0)[:, None]).astype("<i2")
    return {"scales": to_numbers(scales), "data": to_base64(whole)}


def pack_observations(observations: np.ndarray) -> Plain:
    """Each entry as a byte between the lowest (0) and highest (254) of its column; 255 where missing."""
    missing = np.isnan(observations)
    lows = np.where(missing, np.inf, observations).min(axis=0)
    highs = np.where(missing, -np.inf, observations).max(axis=0)
    lows, highs = (np.where(missing.all(axis=0), 0.0, bounds) for bounds in (lows, highs))
    steps = (highs - lows) / HIGHEST
    with np.errstate(invalid="ignore"):  # NaN is replaced in the next line
        codes = np.rint((observations - lows) / np.where(steps > 0, steps, 1.0))
    return {
        "lows": shorten(lows),
        "steps": shorten(steps),
        "data": to_base64(np.where(missing, MISSING, codes).astype(np.uint8)),
    }


def shorten(numbers: np.ndarray) -> list[float]:
    """Numbers with six digits, which is plenty for what is only drawn."""
    return [float(f"{number:.6g}") for number in numbers]


def to_base64(array: np.ndarray) -> str:
    """The bytes of an array as text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
