"""From arrays and labels to what JSON can hold."""

import json
import math
import unicodedata

import numpy as np

MAX_NAME = 80  # characters
MIN_NAME = 8
# What would end the script element, open a comment, or break a line in old engines, as JSON escapes.
UNSAFE_IN_SCRIPT = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


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


def to_name(label, max_length: int = MAX_NAME) -> str:
    """A label as text that can be shown: not endless, not invisible, and valid Unicode."""
    name = "".join(replace_control(character) for character in str(label).encode("utf-8", "replace").decode())
    if not any(character.isprintable() and not character.isspace() for character in name):
        return "(empty)"
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def to_names(labels, budget: int) -> list[str]:
    """Labels as text, cut further if all of them together, escaped, would take more than so many characters."""
    names = [to_name(label) for label in labels]
    size = len(to_script_json(names))
    if size <= budget:
        return names
    return [to_name(name, max(MIN_NAME, MAX_NAME * budget // size)) for name in names]


def replace_control(character: str) -> str:
    """HTML drops some control characters, which would make two names look the same."""
    if unicodedata.category(character) != "Cc":
        return character
    return " " if character.isspace() else "\ufffd"


def spread_evenly(n_all: int, n_wanted: int) -> np.ndarray:
    """At most so many of the first `n_all` whole numbers, evenly spread, in their order."""
    n_wanted = min(n_all, n_wanted)
    return np.unique(np.linspace(0, max(n_all - 1, 0), n_wanted).round().astype(int))


def count_of(number: int, noun: str) -> str:
    """A number and its noun, for example "1 chain" and "2 chains"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def to_script_json(data) -> str:
    """JSON that can stand in a script element, whatever the names in it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character, escape in UNSAFE_IN_SCRIPT.items():
        text = text.replace(character, escape)
    return text
