"""How much memory a file may claim, by one rule.

    A file may claim 100 times its own size and 4 MiB more: for what it holds, and again for what is made of it.
    A table of demonstrations may claim 1 GiB more, and so may the folder of a run, to start.

What whyact writes keeps within it: where compression would pass the limit, it is left out. So a small file cannot fill
the memory, whatever it says. Whoever trusts a file may allow more (`whyact.load(path, max_memory=...)`, or the
environment variable WHYACT_MAX_MEMORY for all commands). What says how a machine is used, such as the number of
threads, is never taken from a file at all (`codec.NEVER_STORED`).
"""

import os
import re

import numpy as np

from whyact.errors import ClaimError

LARGEST_RATIO = 100  # deflate can reach 1000
ALLOWANCE = 2**22
VARIABLE = "WHYACT_MAX_MEMORY"
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# A run asks for its sweeps and for the features that it starts from, which no file of a run holds.
ALLOWANCE_OF_RUN = 2**30
# A table becomes eight bytes for each number, however small its type was, and however often it repeats itself.
ALLOWANCE_OF_TABLE = 2**30
BYTES = 8  # of a number
LARGEST = 2**62  # more than any machine has


def find_limit(size: int, max_memory: float | None = None, allowance: int = ALLOWANCE) -> int:
    """Bytes that a file of this size may claim: by the rule, unless the user has set a limit.

    Examples
    --------
    >>> from whyact.storage.memory import find_limit
    >>> find_limit(1000), find_limit(1000, max_memory=5e9)
    (4294304, 5000000000)
    """
    if max_memory is None:
        max_memory = find_user_limit()
    if max_memory is None:
        return find_rule(size, allowance)
    if isinstance(max_memory, bool) or not isinstance(max_memory, int | float) or not max_memory > 0:
        raise ValueError(f"max_memory must be a number of bytes, such as 4e9, got {max_memory!r}.")
    return int(min(max_memory, LARGEST))


def find_rule(size: int, allowance: int = ALLOWANCE) -> int:
    """Bytes that a file of this size may claim by the rule."""
    return LARGEST_RATIO * size + allowance


def find_user_limit() -> int | None:
    """What the user has set for all files, such as WHYACT_MAX_MEMORY=4G."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)(i?b)?", text.strip(), re.IGNORECASE | re.ASCII)
    if not found or not int(found[1]):
        raise ValueError(f"{VARIABLE} must be a number of bytes, such as 4000000000 or 4G, got {text!r}.")
    return int(found[1]) * UNITS[found[2].lower()]


def check_claim(needed: int, limit: int, what: str) -> None:
    """Refuse what needs more memory than the file may claim; `what` it is needed for."""
    if needed > limit:
        raise ClaimError(
            f"asks for {say_bytes(needed)} of memory {what}, more than the {say_bytes(limit)} that a file of its size "
            f"may claim; if you trust it, set {VARIABLE}={say_generously(needed)}"
        )


def say_bytes(number: int) -> str:
    """A number of bytes in words."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}" if number < 1000 * unit else f"{number // unit} {name}"
    return f"{number} bytes"


def say_generously(number: int) -> str:
    """A limit that a number of bytes is within."""
    return f"{number // 2**30 + 1}G"


def estimate_predictions(sizes: np.ndarray, n_rows: int, n_columns: int, n_actions: int, max_draws: int) -> int:
    """Bytes for what predictions make of draws with so many features each (`Predictor.flatten`).

    Of each draw that is asked the substates, features and policies as numbers, and the products of its features with
    each other; and of the largest one some matrices more.
    """
    asked = np.sort(sizes)[::-1][:max_draws].astype(float)  # which cannot overflow
    numbers = (asked * (n_rows + n_columns + n_actions) + asked**2).sum() + 4 * asked.max(initial=0) ** 2
    return int(BYTES * numbers)
