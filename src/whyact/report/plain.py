"""From arrays and labels to what JSON can hold."""

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Plain = dict[str, Any]  # lists, dicts, str, float, int, bool and None, as JSON holds them

MAX_NAME = 80  # characters
MIN_NAME = 8
# JSON escapes of what would end the script element, open a comment, or break a line in old JavaScript engines.
UNSAFE_IN_SCRIPT = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def to_number(value: Any) -> float | None:
    """A Python float; None for what JSON has no number for: infinity and NaN."""
    number = float(value)
    return number if math.isfinite(number) else None


def to_numbers(array: ArrayLike) -> list[Any]:
    """Nested lists of floats; None where a number is not finite."""
    array = np.asarray(array, dtype=float)
    if array.ndim > 1:
        return [to_numbers(row) for row in array]
    return [to_number(value) for value in array]


def to_name(label: Any, max_length: int = MAX_NAME) -> str:
    """A label as text that can be shown: not too long, not invisible, and valid Unicode."""
    name = "".join(replace_control(character) for character in str(label).encode("utf-8", "replace").decode())
    if not any(character.isprintable() and not character.isspace() for character in name):
        return "(empty)"
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def to_names(labels: Iterable[Any], budget: int) -> list[str]:
    """Labels as text, shortened further if together, escaped, they would take more than `budget` characters."""
    names = [to_name(label) for label in labels]
    size = len(to_script_json(names))
    if size <= budget:
        return names
    return [to_name(name, max(MIN_NAME, MAX_NAME * budget // size)) for name in names]


def replace_control(character: str) -> str:
    """A character that HTML shows: it drops some control characters, and two names could look the same."""
    if unicodedata.category(character) != "Cc":
        return character
    return " " if character.isspace() else "\ufffd"


def count_of(number: int, noun: str) -> str:
    """A number and its noun, for example "1 chain" and "2 chains"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def to_script_json(data: Any) -> str:
    """JSON that is safe inside a script element, whatever the names in it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character, escape in UNSAFE_IN_SCRIPT.items():
        text = text.replace(character, escape)
    return text
