"""Damage to files, for tests of what reads them."""

import hashlib
import re
from typing import Any

import numpy as np

from whyact.storage.netcdf import MARK, Group, Variable


def mutate(rng: np.random.Generator, content: bytes) -> bytes:
    """Cut off the end, flip bits, overwrite a word, or copy one part over another."""
    changed = bytearray(content)
    kind = rng.integers(6)
    if kind == 0:
        return bytes(changed[: rng.integers(len(changed))])
    if kind == 1:
        start = int(rng.integers(len(changed) - 8))
        changed[start : start + 8] = rng.bytes(8) if rng.random() < 0.5 else b"\xff" * 8
    elif kind == 2:
        target, source = (int(place) for place in rng.integers(len(changed), size=2))
        piece = changed[source : source + int(rng.integers(1, 200))]
        changed[target : target + len(piece)] = piece
    else:
        for _ in range(int(rng.integers(1, 9))):
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def sign(body: bytes) -> bytes:
    """Add a right digest, as somebody would who wants to do harm."""
    return body + MARK + hashlib.sha256(body).digest()


# Numbers that no honest file holds, or that are at the edge of what one may.
EXTREMES = (0, -1, 1, 2, 255, 2**31, 2**62, -(2**62), 1e-320, 1e-150, 1e150, 1e300, np.nan, np.inf, -np.inf)


def mutate_groups(rng: np.random.Generator, groups: dict[str, Group]) -> None:
    """Change what a file says, where bytes would mostly change how it is stored: one or two arrays or attributes."""
    for _ in range(int(rng.integers(1, 3))):
        group = groups[str(rng.choice(sorted(groups)))]
        if group.variables and rng.random() < 0.8:
            mutate_array(rng, group.variables, str(rng.choice(sorted(group.variables))))
        elif group.attributes:
            name = str(rng.choice(sorted(group.attributes)))
            group.attributes[name] = mutate_attribute(rng, group.attributes[name])


def mutate_array(rng: np.random.Generator, variables: dict[str, Variable], name: str) -> None:
    """Remove an array, or change its numbers, its shape or its type."""
    values = variables[name].values
    kind = rng.integers(8)
    if kind == 0:
        del variables[name]
        return
    if kind == 1 and values.ndim:
        values = values[: int(rng.integers(len(values) + 1))]
    elif kind == 2 and values.ndim == 2:
        values = values[:, : int(rng.integers(1, values.shape[1] + 1))]
    elif kind == 3:
        values = np.concatenate([values, values], axis=int(rng.integers(max(values.ndim, 1))))
    elif kind == 4:
        values = rng.permuted(values.ravel()).reshape(values.shape)
    elif kind == 5 and values.dtype.kind in "iuf":
        values = values.astype(str(rng.choice(["f4", "f8", "i1", "i8", "u1", "u2", "u8"])))
    elif values.size and values.dtype.kind in "iuf":
        values = values.copy()
        with np.errstate(all="ignore"):
            values.flat[int(rng.integers(values.size))] = np.array(rng.choice(EXTREMES)).astype(values.dtype)
    variables[name] = variables[name]._replace(values=values)


def mutate_attribute(rng: np.random.Generator, value: Any) -> Any:
    """Another number, or a number changed in a text."""
    extreme = EXTREMES[int(rng.integers(len(EXTREMES)))]
    if not isinstance(value, str):
        return extreme if rng.random() < 0.7 else "text"
    numbers = list(re.finditer(r"(?<![\w.])\d+(\.\d+)?|\bnull\b|\btrue\b|\bfalse\b", value))
    if not numbers or rng.random() < 0.1:
        return extreme
    found = numbers[int(rng.integers(len(numbers)))]
    other = str(rng.choice(["0", "1", "3", "-1", "1000000", "1e300", "1e-300", "null", "true", '"auto"', "NaN"]))
    return value[: found.start()] + other + value[found.end() :]
