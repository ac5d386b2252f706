"""The figure of the study of alternatives: accuracy, and number of features, of each model on each kind of data."""

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.alternatives.demonstrations import OWN_MODEL
from experiments.alternatives.summary import KIND_LABELS, LABELS, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "features": "#d55e00",
    "patterns": "#0072b2",
    "clusters": "#009e73",
    "per-action": "#cc79a7",
    "pca": "0.35",
    "nmf": "0.35",
    "lr": "0.6",
}
MARKERS = {"features": "D", "patterns": "s", "clusters": "o", "per-action": "^", "pca": "P", "nmf": "X", "lr": "v"}


def plot_results(results: Results) -> "Figure":
    """Accuracy and found number over true number; kinds of data on the left axis, a line for each model."""
    from matplotlib.figure import Figure  # an extra; the study runs without it

    kinds, methods = results.kinds, results.methods
    figure = Figure(figsize=(12, 1.2 + 1.55 * len(kinds)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    height = 0.8 / len(methods)
    for i, kind in enumerate(kinds):
        for j, method in enumerate(methods):
            place = i + height * (j - (len(methods) - 1) / 2)
            draw_model(left, right, results, kind, method, place, LABELS[method] if i == 0 else None)
            if OWN_MODEL.get(kind) == method:
                for axis in (left, right):
                    axis.axhspan(place - height / 2, place + height / 2, color="0.9", zorder=0)
    for axis in (left, right):
        draw_frame(axis, len(kinds))
    left.set_yticks(range(len(kinds)), [KIND_LABELS[kind].replace(", ", ",\n") for kind in kinds])
    left.set_title("accuracy on new rows", loc="left", fontsize=11)
    right.set_title("number found over true number", loc="left", fontsize=11)
    scale_by_doubling(right)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_model(
    left: Any, right: Any, results: Results, kind: str, method: str, place: float, label: str | None
) -> None:
    """The accuracy of a model on a kind of data, and the numbers that it finds."""
    look = {"color": COLOURS[method], "marker": MARKERS[method], "linestyle": "none", "ms": 6, "capsize": 2}
    accuracy = results.accuracy(kind, method)
    left.errorbar(accuracy.value, place, xerr=accuracy.error, label=label, **look)
    rows = results.of(kind, method)
    ratio = (rows["n_found"] / rows["n_true"]).dropna()
    if len(ratio):
        low, middle, high = ratio.quantile([0.25, 0.5, 0.75])
        right.errorbar(middle, place, xerr=[[middle - low], [high - middle]], **look)


def draw_frame(axis: Any, n_kinds: int) -> None:
    """Lines between the kinds of data, and a grid."""
    axis.set_ylim(n_kinds - 0.5, -0.5)
    axis.grid(axis="x", color="0.92")
    axis.set_axisbelow(True)
    for edge in np.arange(0.5, n_kinds - 1):
        axis.axhline(edge, color="0.8", lw=0.8)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


def scale_by_doubling(axis: Any) -> None:
    """A logarithmic axis around 1."""
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 4, 8, 16]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axis.axvline(1, color="0.4", lw=0.9, ls="--")
