"""What several pictures share: colours, a policy as bars, ranks of the draws.

matplotlib is an extra (`pip install whyact[plot]`), imported when first needed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from whyact.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = "#0072B2"  # Okabe & Ito: safe for colour-blind readers
ACCENT = "#D55E00"
COLOURS = (COLOUR, ACCENT, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
N_BINS = 20  # of the ranks


def draw_policy(
    axis: "Axes",
    policies: Interval,
    k: int,
    actions: Sequence[object] | np.ndarray | None,
    font_size: int = 10,
) -> None:
    """Draw the policy of feature k as bars with intervals, named if `actions` are given.

    `policies` are those of `AlignedFeatures`.
    """
    mean = policies.value[k]
    positions = np.arange(len(mean))
    spread = np.abs(np.stack([mean - policies.low[k], policies.high[k] - mean]))
    colours = [ACCENT if u == mean.argmax() else COLOUR for u in positions]
    axis.barh(positions, mean, xerr=spread, color=colours, error_kw={"lw": 1, "ecolor": "0.3"})
    axis.set_xlim(0, 1.02)
    axis.set_yticks(positions, [""] * len(mean) if actions is None else [str(action) for action in actions])
    axis.tick_params(labelsize=font_size)
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)


def plot_ranks(traces: Mapping[str, np.ndarray], figure: "Figure | None" = None) -> "Figure":
    """Draw how the ranks of each chain's draws spread among all draws; flat lines mean that chains mix.

        Parameters
        ----------
        traces : mapping of str to ndarray of shape (chains, draws)
            Quantities by name, one panel each.
        figure : Figure or None, default=None
            Where to draw. None: a new figure.

        Returns
        -------
        Figure

        Examples
        --------
        >>> import numpy as np

    from whyact.intervals import Interval
        >>> from whyact.plotting import plot_ranks
        >>> figure = plot_ranks({"log_joint": np.random.default_rng(0).normal(size=(4, 100))})
        >>> [axis.get_title() for axis in figure.axes]
        ['log joint']
    """
    from matplotlib.figure import Figure

    figure = figure or Figure(figsize=(3.2 * len(traces), 2.6), layout="constrained")
    axes = figure.subplots(1, len(traces), squeeze=False)[0]
    for axis, (name, trace) in zip(axes, traces.items(), strict=True):
        draw_ranks(axis, trace)
        axis.set_title(name.replace("n_", "number of ", name.startswith("n_")).replace("_", " "), fontsize=10)
    axes[0].set_ylabel("draws")
    axes[0].legend(fontsize=7, frameon=False)
    return figure


def draw_ranks(axis: "Axes", trace: np.ndarray) -> None:
    """Draw a histogram of ranks for each chain."""
    for chain, row in enumerate(rank_draws(trace)):
        counts, edges = np.histogram(row, bins=N_BINS, range=(0.5, trace.size + 0.5))
        axis.stairs(counts, edges, label=f"chain {chain}", color=COLOURS[chain % len(COLOURS)], lw=1.2)
    axis.axhline(trace.shape[1] / N_BINS, color="0.6", lw=0.8, ls="--")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("rank")
    axis.spines[["top", "right"]].set_visible(False)


def rank_draws(trace: np.ndarray) -> np.ndarray:
    """Rank each draw (chains, draws) among all, from 1."""
    # ties (K is a count) are broken at random; otherwise they would look like lumps
    jitter = np.random.default_rng(0).random(trace.size)
    ranks = np.empty(trace.size, dtype=np.int64)
    ranks[np.lexsort((jitter, trace.ravel()))] = np.arange(1, trace.size + 1)
    return ranks.reshape(trace.shape)
