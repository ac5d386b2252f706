"""Small pictures of the page that need no JavaScript: paths of SVG, and images as PNG."""

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

# Okabe & Ito's blue and vermilion: safe for colour-blind readers. The page's JavaScript has the same two.
POSITIVE = (0, 114, 178)
NEGATIVE = (213, 94, 0)
MIDDLE = 128  # number of the transparent colour


def png_address(values: Sequence[Sequence[float]], largest: float, origin: str = "upper") -> str:
    """An image as a data address: blue above zero, vermilion below, the more opaque the further from zero.

    Zero is transparent, so that the image fits a light and a dark page.
    """
    image = np.asarray(values, dtype=float)
    if origin == "lower":
        image = image[::-1]
    levels = np.clip(image / (largest or 1.0), -1, 1) * (MIDDLE - 1)
    return "data:image/png;base64," + base64.b64encode(encode_png(np.rint(levels + MIDDLE).astype(np.uint8))).decode()


def encode_png(pixels: np.ndarray) -> bytes:
    """Pixels (rows, columns), numbers of the colours of `make_palette`, as a PNG file."""
    n_rows, n_columns = pixels.shape
    colours, opacities = make_palette()
    lines = np.hstack([np.zeros((n_rows, 1), np.uint8), pixels])  # each line begins with its filter: none
    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", colours), (b"tRNS", opacities), (b"IDAT", zlib.compress(lines.tobytes(), 9))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(make_chunk(*chunk) for chunk in [*chunks, (b"IEND", b"")])


def make_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def make_palette() -> tuple[bytes, bytes]:
    colours = b"".join(bytes(POSITIVE if number > MIDDLE else NEGATIVE) for number in range(256))
    opacities = bytes(min(abs(number - MIDDLE) * 2, 254) for number in range(256))
    return colours, opacities


class Axis:
    """From a number to a place on a line of length 100, say; the range holds zero if asked to."""

    def __init__(self, numbers, length: float = 100.0, with_zero: bool = True):
        numbers = [number for number in np.ravel(numbers) if number is not None] + [0.0] * with_zero
        self.low, self.high = float(min(numbers, default=0.0)), float(max(numbers, default=0.0))
        self.length = length
        self.place_of_constant = 0.0 if with_zero else length / 2

    def __call__(self, number: float) -> float:
        span = self.high - self.low
        return round(self.length * (number - self.low) / span, 2) if span > 0 else self.place_of_constant

    def flip(self, number: float) -> float:
        """For vertical axes: SVG counts downwards."""
        return round(self.length - self(number), 2)


def line_path(values: Sequence[float], axis: Axis, width: float) -> str:
    """The path of a curve over equally spaced places."""
    return "M" + "L".join(
        f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(spread(len(values), width), values, strict=True)
    )


def band_path(lows: Sequence[float], highs: Sequence[float], axis: Axis, width: float) -> str:
    """The outline of the area between two curves."""
    places = spread(len(lows), width)
    there = [f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(places, highs, strict=True)]
    back = [f"{x:.4g} {axis.flip(value):.4g}" for x, value in zip(places, lows, strict=True)]
    return "M" + "L".join(there + back[::-1]) + "Z"


def number_ticks(low: int, high: int, n_ticks: int = 12) -> list[int]:
    """Round whole numbers from low to high, at most so many, equally spaced."""
    steps = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    step = next(step for step in steps if high // step - (low - 1) // step <= n_ticks)
    return list(range(-(-low // step) * step, high + 1, step))


def spread(n_places: int, width: float) -> np.ndarray:
    return np.linspace(0, width, n_places) if n_places > 1 else np.array([width / 2])
