"""How an observation is drawn: as bars, as images, or as curves over time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.explanation.names import find_names
from whyact.report.plain import to_names

KINDS = ("bars", "image", "curve")
ORIGINS = ("upper", "lower")
COLUMNS_BUDGET = 200_000  # characters that the names of all columns may take on the page


class Layout(NamedTuple):
    """How the columns of X are drawn."""

    kind: str  # one of KINDS
    panels: list[str]  # what each panel of an image or curve shows
    size: tuple[int, ...]  # of one panel: (rows, columns) of an image, (time steps,) of a curve, (columns,) of bars
    origin: str  # one of ORIGINS: where the first row of an image is drawn

    def split(self, entries: np.ndarray) -> np.ndarray:
        """Entries (D,) as panels."""
        return np.asarray(entries).reshape(len(self.panels), *self.size)


def find_layout(
    n_columns: int, shape: Sequence[int] | None = None, kind: str | None = None, origin: str = "upper"
) -> Layout:
    """Check the user's shape, kind and origin against the number of columns."""
    kind = kind or ("bars" if shape is None else "image")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if origin not in ORIGINS:
        raise ValueError(f"origin must be 'upper' or 'lower'; got {origin!r}.")
    axes = check_shape(shape, n_columns)
    if kind == "image":
        if axes is None or len(axes) < 2:
            raise ValueError(
                f"shape must have at least two axes, rows and columns last, to draw images; got {shape!r}."
            )
        return Layout(kind, name_panels(axes[:-2]), axes[-2:], origin)
    if kind == "curve" and axes is not None:
        return Layout(kind, name_panels(axes[:-1], pair=("channel 0", "channel 1")), axes[-1:], origin)
    return Layout(kind, [""], (n_columns,), origin)


def check_shape(shape: Sequence[int] | None, n_columns: int) -> tuple[int, ...] | None:
    """The axes of an observation, which must make up all columns; None if no shape is given."""
    if shape is None:
        return None
    try:
        axes = tuple(int(length) for length in shape)
    except (TypeError, ValueError):
        axes = ()
    if not axes or min(axes) < 1 or int(np.prod(axes)) != n_columns or axes != tuple(shape):
        raise ValueError(
            f"shape must hold whole numbers whose product is the number of columns, {n_columns}; got {shape!r}."
        )
    return axes


def name_panels(leading: tuple[int, ...], pair: tuple[str, str] = ("frame", "difference")) -> list[str]:
    """Names of the panels; two are a frame and its difference from the previous frame (Sec. 6 of the paper)."""
    n_panels = int(np.prod(leading))
    if n_panels == 1:
        return [""]
    return list(pair) if n_panels == 2 else [f"channel {channel}" for channel in range(n_panels)]


def name_places(model: FeaturePolicyClassifier, layout: Layout) -> list[str]:
    """The names of X's columns; without names, where they are in the image or in time."""
    if layout.kind == "bars" or hasattr(model, "feature_names_in_"):
        return to_names(find_names(model, None), COLUMNS_BUDGET)
    parts = ("row", "column") if layout.kind == "image" else ("time step",)
    names = []
    for panel in layout.panels:
        for place in np.ndindex(*layout.size):
            words = [panel] * bool(panel) + [f"{part} {i}" for part, i in zip(parts, place, strict=True)]
            names.append(", ".join(words))
    return names
