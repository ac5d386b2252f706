"""The paper's Figure 2: six panels over the number of features, one line for each SNR and sampler."""

from typing import Any

import numpy as np

from experiments.harness.estimates import root_mean_square
from experiments.simulations.peers import ACCURACIES, COUNTS
from experiments.simulations.study import N_CHAINS
from experiments.simulations.summary import Results

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


def plot_figure2(results: Results):
    """Draw it; SNRs are told apart by colour, samplers by line style and marker, peers are grey."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    snrs = sorted(results.runs["snr"].unique())
    sizes = sorted(results.runs["n_features"].unique())
    # dark to light as the noise falls: ordered, and safe for colour-blind readers
    colours = dict(zip(snrs, matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(snrs))), strict=True))
    figure = Figure(figsize=(12, 13), layout="constrained")
    axes = figure.subplots(3, 2, squeeze=False)
    for (measure, title), place in zip(PANELS.items(), PLACES, strict=True):
        axis = axes[place]
        for i, sampler in enumerate(results.samplers):
            cells = results.cells(sampler, measure)
            # beside each other, so that error bars can be told apart
            for j, snr in enumerate(snrs):
                points = [(k, cells[k, snr]) for k in sizes if (k, snr) in cells]
                shift = 0.09 * (j - (len(snrs) - 1) / 2) + 0.04 * i
                axis.errorbar(
                    [k + shift for k, _ in points],
                    [estimate.value for _, estimate in points],
                    [estimate.error for _, estimate in points],
                    color=colours[snr], lw=1.4, ms=4.5, elinewidth=0.9, capsize=2, **LOOKS[sampler],
                )  # fmt: skip
        if measure == "accuracy_mmse":
            add_map(axis, results, sizes)
        axis.set_title(title, loc="left", fontsize=11)
        axis.set_xticks(sizes)
        axis.set_xlabel("true number of features K")
        axis.grid(axis="y", color="0.9", lw=0.7)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    for place, unit in zip(PLACES, UNITS, strict=True):
        axes[place].set_ylabel(unit)
    add_references(axes[1, 1], axes[2, 1], results)
    for (measure, _), place in zip(PANELS.items(), PLACES, strict=True):
        if measure != "accuracy_mmse":
            axes[place].set_ylim(bottom=0)
    handles = [
        Line2D([], [], color="k", lw=1.4, ms=5, label=describe(results, sampler), **LOOKS[sampler])
        for sampler in results.samplers
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    handles = [Line2D([], [], color=colours[snr], lw=3, label=f"SNR {snr:g} dB") for snr in snrs]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def add_map(axis, results: Results, sizes) -> None:
    """Accuracy with MAP, averaged over the SNRs so that the panel stays legible."""
    for sampler in results.samplers:
        by_size = results.of(sampler).groupby("n_features")["accuracy_map"].mean()
        look = {**LOOKS[sampler], "marker": "x", "ms": 4, "color": "k", "lw": 0.9}
        axis.plot(sizes, [by_size.get(k, np.nan) for k in sizes], label=f"MAP, {sampler}", **look)


def describe(results: Results, sampler: str) -> str:
    rows = results.of(sampler)
    runs = results.runs_per_cell(sampler)
    sweeps = f"{N_CHAINS[sampler]} x {rows['sweeps'].iloc[0]:,} sweeps"
    return f"{sampler} sampler ({runs} run{'s' * (runs != '1')} a cell, {sweeps})"


def add_references(accuracy_axis, count_axis, results: Results) -> None:
    """Legends, with grey lines of existing tools, averaged over the SNRs."""
    by_size = results.peers.groupby("n_features")
    for axis, references, names, curve in (
        (accuracy_axis, REFERENCES, ACCURACIES, lambda rows, name: rows[f"accuracy_{name}"].mean()),
        (
            count_axis,
            COUNT_REFERENCES,
            COUNTS,
            lambda rows, name: root_mean_square(rows[f"n_features_{name}"] - rows["n_features"]).value,
        ),
    ):
        lines = [
            axis.plot(
                [k for k, _ in by_size], [curve(rows, name) for _, rows in by_size],
                color=GREY, ls=style, lw=2, zorder=1.5, label=names[name],
            )[0]
            for name, style in references.items()
        ]  # fmt: skip
        own = [line for line in axis.get_lines() if line.get_label().startswith("MAP")]
        if not own and not lines:
            continue
        axis.legend(
            handles=[*own, *lines], title="mean over SNRs", fontsize=8.5, title_fontsize=8.5, frameon=False, loc="best"
        )
