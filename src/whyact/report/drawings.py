"""Small pictures that need no JavaScript: SVG paths, and images as PNG."""

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from whyact.report.plain import Plain

# Okabe & Ito's blue and vermilion, which colour-blind readers can tell apart. page.js has the same two.
POSITIVE = (0, 114, 178)
NEGATIVE = (213, 94, 0)
FAR = 3.0  # a tolerance so many times below or above all others is not drawn
ROOM_FOR_TICK = 28.0
LABEL_ABOVE, LABEL_BELOW = 10.0, 16.0  # from the middle of a point to its number
WIDTH_OF_LABEL, HEIGHT_OF_LABEL = 16.0, 26.0
MIDDLE = 128  # palette index of the transparent colour


def png_address(values: Sequence[Sequence[float]], largest: float, origin: str = "upper") -> str:
    """An image as a data URL: blue above zero, vermilion below, more opaque further from zero.

    Zero is transparent, so the image suits a light page as well as a dark one.
    """
    image = np.asarray(values, dtype=float)
    if origin == "lower":
        image = image[::-1]
    levels = np.clip(image / (largest or 1.0), -1, 1) * (MIDDLE - 1)
    return "data:image/png;base64," + base64.b64encode(encode_png(np.rint(levels + MIDDLE).astype(np.uint8))).decode()


def encode_png(pixels: np.ndarray) -> bytes:
    """Pixels (rows, columns), which index the colours of `make_palette`, as a PNG file."""
    n_rows, n_columns = pixels.shape
    colours, opacities = make_palette()
    lines = np.hstack([np.zeros((n_rows, 1), np.uint8), pixels])  # each line starts with its filter: none
    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", colours), (b"tRNS", opacities), (b"IDAT", zlib.compress(lines.tobytes(), 9))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(make_chunk(*chunk) for chunk in [*chunks, (b"IEND", b"")])


def make_chunk(name: bytes, content: bytes) -> bytes:
    """A chunk of a PNG file: length, name, content, checksum."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def make_palette() -> tuple[bytes, bytes]:
    """The 256 colours, RGB, and their opacities."""
    colours = b"".join(bytes(POSITIVE if number > MIDDLE else NEGATIVE) for number in range(256))
    opacities = bytes(min(abs(number - MIDDLE) * 2, 254) for number in range(256))
    return colours, opacities


class Axis:
    """Maps numbers to places on a line; the range of the line includes zero unless `with_zero` is false."""

    def __init__(self, numbers: ArrayLike, length: float = 100.0, with_zero: bool = True):
        known = [number for number in np.ravel(numbers) if number is not None] + [0.0] * with_zero
        self.low, self.high = float(min(known, default=0.0)), float(max(known, default=0.0))
        self.length = length
        self.place_of_constant = 0.0 if with_zero else length / 2

    def __call__(self, number: float) -> float:
        span = self.high - self.low
        return round(self.length * (number - self.low) / span, 2) if span > 0 else self.place_of_constant

    def flip(self, number: float) -> float:
        """The place on a vertical axis: SVG counts downwards."""
        return round(self.length - self(number), 2)


def line_path(values: Sequence[float], axis: Axis, width: float) -> str:
    """The SVG path of a curve over equally spaced places."""
    return "M" + "L".join(
        f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(spread(len(values), width), values, strict=True)
    )


def band_path(lows: Sequence[float], highs: Sequence[float], axis: Axis, width: float) -> str:
    """The SVG path around the area between two curves."""
    places = spread(len(lows), width)
    there = [f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(places, highs, strict=True)]
    back = [f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(places, lows, strict=True)]
    return "M" + "L".join(there + back[::-1]) + "Z"


def number_ticks(low: int, high: int, n_ticks: int = 12) -> list[int]:
    """Round whole numbers from low to high, at most `n_ticks`, equally spaced."""
    steps = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    step = next(step for step in steps if high // step - (low - 1) // step <= n_ticks)
    return list(range(-(-low // step) * step, high + 1, step))


class Place(NamedTuple):
    """Where a number of features is drawn."""

    x: float
    y: float
    tolerance: float
    n_features: float
    label: float  # the height of the number itself
    has_tick: bool  # whether there is room for its tolerance below


class Picture(NamedTuple):
    """Numbers of features over the tolerance, as places."""

    counts: list[Place]
    own: Place | None  # None if it is far from all others
    band: tuple[float, float] | None  # where the plateau begins and ends


def place_counts(tolerance: Plain, width: float, height: float) -> Picture:
    """Where to draw numbers of features: on a logarithmic axis of tolerances, because they matter by their ratio."""
    counts, own, plateau = tolerance["counts"], tolerance["own"], tolerance["plateau"]
    low, high = counts[0]["tolerance"] / FAR, counts[-1]["tolerance"] * FAR
    drawn = [*counts, own] if low <= own["tolerance"] <= high else counts
    across = Axis([np.log(count["tolerance"]) for count in drawn], width, with_zero=False)
    upwards = Axis([count["n_features"] for count in drawn], height)

    def place(count: Plain) -> Place:
        x, y = across(np.log(count["tolerance"])), upwards.flip(count["n_features"])
        return Place(x, y, count["tolerance"], count["n_features"], label=y - LABEL_ABOVE, has_tick=True)

    ring = place(own) if len(drawn) > len(counts) else None
    places: list[Place] = []
    last = -np.inf  # where the last tick is
    for spot in map(place, counts):
        has_tick = spot.x - last >= ROOM_FOR_TICK
        is_covered = (
            ring is not None and abs(spot.x - ring.x) < WIDTH_OF_LABEL and 0 < spot.y - ring.y < HEIGHT_OF_LABEL
        )
        label = spot.y + LABEL_BELOW if is_covered else spot.label
        places.append(spot._replace(has_tick=has_tick, label=round(label, 2)))
        last = spot.x if has_tick else last
    band = None if plateau is None else (across(np.log(plateau["low"])), across(np.log(plateau["high"])))
    return Picture(places, ring, band)


def spread(n_places: int, width: float) -> np.ndarray:
    """Equally spaced places from 0 to `width`; a single one is in the middle."""
    return np.linspace(0, width, n_places) if n_places > 1 else np.array([width / 2])
