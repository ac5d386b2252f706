"""Damage to files, for tests of what reads them."""

import hashlib

import numpy as np

from whyact.storage.netcdf import MARK


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
