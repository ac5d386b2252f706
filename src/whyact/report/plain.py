"""From arrays and labels to what JSON can hold."""

import math

import numpy as np

MAX_NAME = 80  # characters; names are labels, and thousands of long ones would fill the page


def to_number(value) -> float | None:
    """A float of Python; None for what JSON cannot say."""
    value = float(value)
    return value if math.isfinite(value) else None


def to_numbers(array) -> list:
    """Nested lists of floats; None where a number is not finite."""
    array = np.asarray(array, dtype=float)
    if array.ndim > 1:
        return [to_numbers(row) for row in array]
    return [to_number(value) for value in array]


def to_name(label) -> str:
    """A label as text that can be shown: not endless, not invisible, and valid Unicode."""
    name = str(label).encode("utf-8", "replace").decode()
    if not name.strip():
        return "(empty)"
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def spread_evenly(n_all: int, n_wanted: int) -> np.ndarray:
    """At most so many of the first `n_all` whole numbers, evenly spread, in their order."""
    n_wanted = min(n_all, n_wanted)
    return np.unique(np.linspace(0, max(n_all - 1, 0), n_wanted).round().astype(int))


def count_of(number: int, noun: str) -> str:
    """A number and its noun, for example "1 chain" and "2 chains"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
