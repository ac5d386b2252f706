"""The paper's Figure 2: six panels over the number of features, one line for each SNR and sampler."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from experiments.harness.estimates import root_mean_square
from experiments.simulations.peers import ACCURACIES, COUNTS
from experiments.simulations.study import N_CHAINS
from experiments.simulations.summary import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {
    "rmse_features": "(a) features: RMSE of F",
    "rmse_substates": "(b) substates: RMSE of S",
    "rmse_states": "(c) reconstructed states: RMSE of X = S F",
    "mad_policies": "(d) policies: RMSE of the mean absolute deviation",
    "accuracy_mmse": "(e) accuracy of predicted actions, MMSE",
    "n_features_error": "(f) number of features: RMSE of K",
}
# the paper's order: (a) to (c) in the left column, (d) to (f) in the right one
PLACES = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
UNITS = ("unit of F", "unit of S", "unit of X", "probability", "share correct", "features")
LOOKS: dict[str, dict[str, Any]] = {
    "exact": {"linestyle": "-", "marker": "o"},
    "as-published": {"linestyle": (0, (4, 2)), "marker": "s", "markerfacecolor": "white"},
}
REFERENCES = {"lr": ":", "simplex": "-.", "ceiling": "-"}
COUNT_REFERENCES = {"minka": "-.", "bicv": ":"}
GREY = "0.35"


def plot_figure2(results: Results) -> "Figure":
    """Draw it; SNRs differ in colour, samplers in line style and marker, peers are grey."""
    import matplotlib  # an extra; the study runs without it
    from matplotlib.figure import Figure

    snrs = sorted(results.runs["snr"].unique())
    # dark to light as the noise falls: ordered, and safe for colour-blind readers
    colours = dict(zip(snrs, matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(snrs))), strict=True))
    figure = Figure(figsize=(12, 13), layout="constrained")
    axes = figure.subplots(3, 2, squeeze=False)
    for (measure, title), place in zip(PANELS.items(), PLACES, strict=True):
        draw_panel(axes[place], results, measure, title, colours)
    for place, unit in zip(PLACES, UNITS, strict=True):
        axes[place].set_ylabel(unit)
    add_references(axes[1, 1], results, ACCURACIES, REFERENCES, find_accuracy)
    add_references(axes[2, 1], results, COUNTS, COUNT_REFERENCES, find_error_of_count)
    for (measure, _), place in zip(PANELS.items(), PLACES, strict=True):
        if measure != "accuracy_mmse":
            axes[place].set_ylim(bottom=0)
    add_legends(figure, results, colours)
    return figure


def draw_panel(axis: Any, results: Results, measure: str, title: str, colours: dict[float, Any]) -> None:
    """A line for each SNR and sampler, over the true number of features."""
    sizes = sorted(results.runs["n_features"].unique())
    for i, sampler in enumerate(results.samplers):
        cells = results.cells(sampler, measure)
        for j, (snr, colour) in enumerate(colours.items()):
            points = [(k, cells[k, snr]) for k in sizes if (k, snr) in cells]
            # side by side, so that error bars can be told apart
            shift = 0.09 * (j - (len(colours) - 1) / 2) + 0.04 * i
            axis.errorbar(
                [k + shift for k, _ in points],
                [mean.value for _, mean in points],
                [mean.error for _, mean in points],
                color=colour, lw=1.4, ms=4.5, elinewidth=0.9, capsize=2, **LOOKS[sampler],
            )  # fmt: skip
    if measure == "accuracy_mmse":
        add_map(axis, results, sizes)
    axis.set_title(title, loc="left", fontsize=11)
    axis.set_xticks(sizes)
    axis.set_xlabel("true number of features K")
    axis.grid(axis="y", color="0.9", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def add_map(axis: Any, results: Results, sizes: list[int]) -> None:
    """Accuracy with MAP, averaged over the SNRs so that the panel stays legible."""
    for sampler in results.samplers:
        by_size = results.of(sampler).groupby("n_features")["accuracy_map"].mean()
        look = {**LOOKS[sampler], "marker": "x", "ms": 4, "color": "k", "lw": 0.9}
        axis.plot(sizes, [by_size.get(k, np.nan) for k in sizes], label=f"MAP, {sampler}", **look)


def find_accuracy(rows: pandas.DataFrame, name: str) -> float:
    """Mean accuracy of a peer."""
    return float(rows[f"accuracy_{name}"].mean())


def find_error_of_count(rows: pandas.DataFrame, name: str) -> float:
    """Root mean square error of a peer's number of features."""
    return root_mean_square(rows[f"n_features_{name}"] - rows["n_features"]).value


def add_references(
    axis: Any,
    results: Results,
    labels: dict[str, str],
    styles: dict[str, str],
    measure: Callable[[pandas.DataFrame, str], float],
) -> None:
    """A legend, with grey lines of existing tools, averaged over the SNRs."""
    by_size = results.peers.groupby("n_features")
    lines = [
        axis.plot(
            [k for k, _ in by_size], [measure(rows, name) for _, rows in by_size],
            color=GREY, ls=style, lw=2, zorder=1.5, label=labels[name],
        )[0]
        for name, style in styles.items()
    ]  # fmt: skip
    own = [line for line in axis.get_lines() if line.get_label().startswith("MAP")]
    axis.legend(
        handles=[*own, *lines], title="mean over SNRs", fontsize=8.5, title_fontsize=8.5, frameon=False, loc="best"
    )


def add_legends(figure: "Figure", results: Results, colours: dict[float, Any]) -> None:
    """Samplers below the panels, SNRs above them."""
    from matplotlib.lines import Line2D

    samplers = [
        Line2D([], [], color="k", lw=1.4, ms=5, label=describe_sampler(results, sampler), **LOOKS[sampler])
        for sampler in results.samplers
    ]
    figure.legend(handles=samplers, loc="outside lower center", ncols=len(samplers), frameon=False)
    snrs = [Line2D([], [], color=colour, lw=3, label=f"SNR {snr:g} dB") for snr, colour in colours.items()]
    figure.legend(handles=snrs, loc="outside upper center", ncols=len(snrs), frameon=False)


def describe_sampler(results: Results, sampler: str) -> str:
    """A sampler with its number of runs and sweeps."""
    rows = results.of(sampler)
    runs = results.runs_per_cell(sampler)
    sweeps = f"{N_CHAINS[sampler]} x {rows['sweeps'].iloc[0]:,} sweeps"
    return f"{sampler} sampler ({runs} run{'s' * (runs != '1')} a cell, {sweeps})"
