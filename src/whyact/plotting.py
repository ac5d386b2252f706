"""Pictures. matplotlib is an extra (`pip install whyact[plot]`), imported when first needed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whyact.posterior import DIAGNOSED

COLOUR = "#0072B2"  # Okabe & Ito: safe for colour-blind readers
ACCENT = "#D55E00"
CHAINS = (COLOUR, ACCENT, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_features(model, shape: tuple[int, int], title: str | None = None):
    """Draw each feature as an image, with its policy and the policy's interval below it."""
    from matplotlib.figure import Figure

    aligned = model.posterior_.aligned
    count = max(model.n_components_, 1)
    figure = Figure(figsize=(2.3 * count, 4.4), layout="constrained")
    axes = figure.subplots(2, count, squeeze=False, height_ratios=[1.2, 1])
    largest = max(np.nanmax(aligned.features["mean"], initial=0.0), 1e-12)
    for k in range(model.n_components_):
        image, bars = axes[:, k]
        image.imshow(aligned.features["mean"][k].reshape(shape), origin="lower", cmap="Blues", vmin=0, vmax=largest)
        image.set_xticks([])
        image.set_yticks([])
        image.set_title(f"feature {k}\nin {np.mean(model.substates_[:, k] > 0):.0%} of rows", fontsize=10)
        draw_policy(bars, aligned, k, model.classes_ if k == 0 else None)
        bars.set_xlabel("probability", fontsize=9)
    if title:
        figure.suptitle(title)
    return figure


def draw_policy(axis, aligned, k: int, actions: Sequence | None, font_size: int = 10) -> None:
    """Draw the policy of feature k as bars with intervals; without `actions` they have no names."""
    mean = aligned.policies["mean"][k]
    positions = np.arange(len(mean))
    spread = np.abs(np.stack([mean - aligned.policies["low"][k], aligned.policies["high"][k] - mean]))
    colours = [ACCENT if u == mean.argmax() else COLOUR for u in positions]
    axis.barh(positions, mean, xerr=spread, color=colours, error_kw={"lw": 1, "ecolor": "0.3"})
    axis.set_xlim(0, 1.02)
    axis.set_yticks(positions, [""] * len(mean) if actions is None else [str(action) for action in actions])
    axis.tick_params(labelsize=font_size)
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)


def plot_ranks(posterior, figure=None):
    """Draw how the ranks of each chain's draws are spread among all draws; flat lines mean that chains mix."""
    from matplotlib.figure import Figure
    from scipy.stats import rankdata

    figure = figure or Figure(figsize=(3.2 * len(DIAGNOSED), 2.6), layout="constrained")
    axes = figure.subplots(1, len(DIAGNOSED), squeeze=False)[0]
    n_bins = 20
    for axis, name in zip(axes, DIAGNOSED, strict=True):
        trace = posterior.traces[name]
        # ties (K is a count) are broken at random, else they would look like lumps
        jitter = np.random.default_rng(0).random(trace.size)
        order = np.lexsort((jitter, trace.ravel()))
        ranks = rankdata(np.argsort(order), method="ordinal").reshape(trace.shape)
        for chain, row in enumerate(ranks):
            counts, edges = np.histogram(row, bins=n_bins, range=(0.5, trace.size + 0.5))
            axis.stairs(counts, edges, label=f"chain {chain}", color=CHAINS[chain % len(CHAINS)], lw=1.2)
        axis.axhline(trace.shape[1] / n_bins, color="0.6", lw=0.8, ls="--")
        axis.set_ylim(bottom=0)
        axis.set_title(name.replace("n_", "number of ", name.startswith("n_")).replace("_", " "), fontsize=10)
        axis.set_xlabel("rank")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("draws")
    axes[0].legend(fontsize=7, frameon=False)
    return figure


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


def save_svg_and_png(make_figure: Callable[[], Any], stem: Path) -> list[Path]:
    """Draw and save a figure of a study twice; the same rows give the same files."""
    import matplotlib

    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with matplotlib.rc_context({"svg.hashsalt": "whyact"}):
        figure = make_figure()
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=110)
    return paths
