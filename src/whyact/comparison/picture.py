"""The picture of a comparison. Needs matplotlib."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas

from whyact.plotting import ACCENT, COLOUR

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Compared(Protocol):
    """What is drawn of a `Comparison`."""

    @property
    def reference(self) -> str:
        """Name of the model that the others are compared with."""

    @property
    def labels(self) -> dict[str, str]:
        """The label of each model."""

    @property
    def splits(self) -> dict[str, str]:
        """How the rows were split, in words."""

    def sort_models(self, split: str) -> list[str]:
        """Names of the models, the most accurate one first."""

    def of_split(self, split: str) -> pandas.DataFrame:
        """The means of all models."""

    def difference(self, split: str, model: str, measure: str) -> pandas.Series | None:
        """The difference from the reference and its interval; None for the reference."""


def plot_comparison(comparison: Compared) -> "Figure":
    """Draw accuracy and log score of each model, a row of panels for each split, the most accurate model on top.

    Bars are 95% intervals of the difference from the reference, drawn around the model's mean: where one crosses the
    reference's line, the folds cannot tell the two apart, and the dot is hollow.
    """
    from matplotlib.figure import Figure  # an extra

    n_models = len(comparison.labels)
    measures = {"accuracy": "accuracy", "log_score": "log score (mean log probability of the action)"}
    height = (0.9 + 0.28 * n_models) * len(comparison.splits) + 0.5
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.subplots(len(comparison.splits), len(measures), squeeze=False, sharex="col")
    for row, (split, words) in zip(axes, comparison.splits.items(), strict=True):
        names = comparison.sort_models(split)
        row[0].set_title(f"{split}: {words}", loc="left", fontsize=10)
        for axis, measure in zip(row, measures, strict=True):
            draw_differences(axis, comparison, split, names, measure)
            axis.set_yticks(range(n_models), [shorten(comparison.labels[name]) for name in names], parse_math=False)
            axis.tick_params(axis="y", length=0, labelleft=axis is row[0])
            axis.tick_params(axis="x", labelbottom=True)
            axis.set_ylim(n_models - 0.5, -0.5)
            axis.grid(axis="x", color="0.92")
            axis.set_axisbelow(True)
            axis.spines[["top", "right", "left"]].set_visible(False)
        for tick, name in zip(row[0].get_yticklabels(), names, strict=True):
            if name == comparison.reference:
                tick.set(color=ACCENT, fontweight="bold")
    for axis, label in zip(axes[-1], measures.values(), strict=True):
        axis.set_xlabel(label)
    figure.supxlabel(
        f"95% intervals of the difference from {shorten(comparison.labels[comparison.reference])}; hollow: a tie",
        fontsize=9,
        parse_math=False,
    )
    return figure


def draw_differences(axis: Any, comparison: Compared, split: str, names: list[str], measure: str) -> None:
    """Draw a dot with its bar for each model."""
    means = comparison.of_split(split)[measure]
    axis.axvline(means[comparison.reference], color=ACCENT, lw=1, ls="--")
    for position, name in enumerate(names):
        difference = comparison.difference(split, name, measure)
        if difference is None:
            axis.plot(means[name], position, "D", color=ACCENT, ms=6)
            continue
        is_told_apart = difference["verdict"] in ("ahead", "behind")
        half = np.nan_to_num(difference["high"] - difference["difference"])
        axis.errorbar(
            means[name], position, xerr=half, fmt="o", color=COLOUR, ms=6, lw=1.4, capsize=2,
            markerfacecolor=COLOUR if is_told_apart else "white",
        )  # fmt: skip


def shorten(label: str, n_characters: int = 30) -> str:
    """A label that is not too long for the axis."""
    return label if len(label) <= n_characters else f"{label[: n_characters - 1]}…"
