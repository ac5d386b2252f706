"""The picture of a comparison. Needs matplotlib."""

import numpy as np

from whyact.plotting import ACCENT, COLOUR


def plot_comparison(comparison):
    """Draw accuracy and log score of each model, a row of panels for each split, the most accurate model on top.

    Bars are 95% intervals of the difference to the reference, drawn around the model's mean: where one crosses the
    reference's line, the folds cannot tell the two apart, and the dot is hollow.
    """
    from matplotlib.figure import Figure

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
        f"95% intervals of the difference to {shorten(comparison.labels[comparison.reference])}; hollow: a tie with it",
        fontsize=9,
        parse_math=False,
    )
    return figure


def draw_differences(axis, comparison, split: str, names: list[str], measure: str) -> None:
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
    return label if len(label) <= n_characters else f"{label[: n_characters - 1]}…"
