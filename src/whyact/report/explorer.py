"""The demonstrations that the page lets one walk through, packed so that the page stays small.

Substates and policies keep every digit, because the page computes probabilities from them. Observations and features
are only drawn: 8 bits an entry in the range of its column, and 16 bits in the range of its feature.
"""

import base64

import numpy as np

from whyact.report.layout import Layout
from whyact.report.plain import spread_evenly, to_numbers, to_script_json

BUDGET = 900_000  # characters of the page for all of this
MISSING = 255  # the code of an entry that was not observed
HIGHEST = MISSING - 1
LARGEST_INT16 = 2**15 - 1


def pack_explorer(model, layout: Layout, columns: list[str], max_demonstrations: int) -> dict:
    """Everything that the page needs to take demonstrations apart and to ask "what if"."""
    fixed = {
        "kind": layout.kind,
        "panels": layout.panels,
        "size": list(layout.size),
        "origin": layout.origin,
        "columns": columns if layout.kind == "bars" else [],
        "decisiveness": float(model.posterior_.decisiveness),
        # as drawn, not sharpened: decisiveness applies to the mixture
        "policies": to_numbers(model._chosen.policies) if len(model.classes_) else [],
        "features": pack_features(model.components_),
    }
    n_rows = len(model.substates_)
    affordable = (BUDGET - len(to_script_json(fixed))) // max(cost_of_row(model), 1)
    rows = spread_evenly(n_rows, max(1, min(affordable, max_demonstrations)))
    return fixed | {
        "n_rows": n_rows,
        "rows": rows.tolist(),
        "actions": np.asarray(model.actions_)[rows].tolist(),
        "substates": to_numbers(np.asarray(model.substates_)[rows].reshape(len(rows), -1)),
        "observations": pack_observations(np.asarray(model.observations_)[rows]),
    }


def cost_of_row(model) -> int:
    """Characters that one demonstration takes, on average."""
    sample = np.asarray(model.substates_)[spread_evenly(len(model.substates_), 100)]
    n_columns = np.asarray(model.observations_).shape[1]
    return len(to_script_json(to_numbers(sample))) // len(sample) + 4 * (n_columns // 3 + 1) + 16


def pack_features(features: np.ndarray) -> dict:
    """Each feature as 16-bit whole numbers, little-endian; times `scales` they are its entries."""
    scales = np.abs(features).max(axis=1, initial=0.0) / LARGEST_INT16
    whole = np.rint(features / np.where(scales > 0, scales, 1.0)[:, None]).astype("<i2")
    return {"scales": to_numbers(scales), "data": to_base64(whole)}


def pack_observations(observations: np.ndarray) -> dict:
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
    """Six digits are plenty for what is only drawn."""
    return [float(f"{number:.6g}") for number in numbers]


def to_base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
