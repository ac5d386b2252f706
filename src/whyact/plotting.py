"""Pictures. matplotlib is an extra (`pip install whyact[plot]`), imported when first needed."""

from collections.abc import Sequence

import numpy as np

from whyact.posterior import DIAGNOSED

COLOUR = "#0072B2"  # Okabe & Ito: safe for colour-blind readers
ACCENT = "#D55E00"
CHAINS = (COLOUR, ACCENT, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


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
