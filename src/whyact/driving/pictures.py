"""Pictures of drives: the actions over time, and the features of each action as top views (Sec. 6)."""

import textwrap
from collections.abc import Sequence

import numpy as np

from whyact.driving.grids import OccupancyGrid, split_frames
from whyact.driving.labels import (
    ACCELERATION,
    ACTIONS,
    CHANGE_LEFT,
    CHANGE_RIGHT,
    CONSTANT_SPEED,
    DECELERATION,
    Motion,
    find_runs,
)
from whyact.errors import ArgumentError
from whyact.plotting import ACCENT, CHAINS, draw_policy

ACTION_COLOURS = {
    ACCELERATION: CHAINS[2],
    DECELERATION: ACCENT,
    CONSTANT_SPEED: "0.75",
    CHANGE_LEFT: CHAINS[5],
    CHANGE_RIGHT: CHAINS[3],
}
BAND = 0.35  # opacity
SHARE_OF_LETTER = 0.02  # narrower bands, as a part of the drive, get no letter
HOST = "#E00000"
LEFT, PANEL_WIDTH, PANEL_HEIGHT, BLOCK_HEIGHT, GAP = 0.75, 3.1, 0.62, 1.85, 0.3  # in inches


def plot_actions(motion: Motion, labels: np.ndarray, sample_frequency: float, title: str | None = None):
    """Draw acceleration and speed over the frames, on bands in the colour of the action."""
    from matplotlib.figure import Figure

    labels = np.asarray(labels)
    if labels.shape != np.shape(motion.acceleration):
        raise ArgumentError("labels", f"labels must be one for each of the {len(motion.acceleration)} frames.")
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    frames = np.arange(len(labels))
    for axis, values, name in zip(
        axes, (motion.acceleration, motion.speed), ("acceleration [m/s²]", "speed [m/s]"), strict=True
    ):
        draw_bands(axis, labels)
        axis.plot(frames, values, color="0.1", lw=1.2)
        axis.set_ylabel(name)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].axhline(0, color="0.4", lw=0.6)
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low, high + 0.14 * (high - low))
    write_letters(axes[0], labels)
    axes[1].set_ylim(bottom=min(0.0, float(np.min(motion.speed))))
    axes[1].set_xlim(-0.5, len(labels) - 0.5)
    axes[1].set_xlabel("frame")
    seconds = axes[0].secondary_xaxis(
        "top", functions=(lambda frame: frame / sample_frequency, lambda time: time * sample_frequency)
    )
    seconds.set_xlabel("time [s]", fontsize=9)
    seconds.tick_params(labelsize=8)
    add_legend(figure, labels)
    if title:
        figure.suptitle(title, parse_math=False)
    return figure


def draw_bands(axis, labels: np.ndarray) -> None:
    for first, last in find_runs(labels):
        colour = ACTION_COLOURS.get(str(labels[first]), "1.0")
        axis.axvspan(first - 0.5, last + 0.5, color=colour, alpha=BAND, lw=0)


def write_letters(axis, labels: np.ndarray) -> None:
    for first, last in find_runs(labels):
        if last - first + 1 >= SHARE_OF_LETTER * len(labels):
            axis.text(
                (first + last) / 2, 0.97, str(labels[first]), transform=axis.get_xaxis_transform(),
                ha="center", va="top", fontsize=9, fontweight="bold", color="0.2", parse_math=False,
            )  # fmt: skip


def add_legend(figure, labels: np.ndarray) -> None:
    """Name the actions that occur, in words and with their share of the frames."""
    from matplotlib.patches import Patch

    present = [action for action in ACTIONS if (labels == action).any()]
    patches = [
        Patch(
            color=ACTION_COLOURS[action],
            alpha=BAND,
            lw=0,
            label=f"{action}: {ACTIONS[action]}, {np.mean(labels == action):.0%}",
        )
        for action in present
    ]
    figure.legend(
        handles=patches, loc="outside lower center", ncols=len(patches), frameon=False, fontsize=8,
        handlelength=1.3, columnspacing=1.4,
    )  # fmt: skip


def plot_driving_features(
    features: np.ndarray,
    policies: np.ndarray,
    actions: Sequence[str],
    grid: OccupancyGrid,
    shares: np.ndarray,
    n_per_action: int = 3,
    title: str | None = None,
    quantity: str = "height above the cut [m]",
):
    """Draw the features that speak most clearly for each action, as the paper's Figures of Scenes 11 and 20 do.

    A row of panels for each action holds the features whose most probable action it is, the most confident first: above
    the current frame from the top, below what has changed since the previous frame. Where blue is in front of red,
    the obstacle draws away; where red is in front of blue, it comes closer.

    Parameters
    ----------
    features : array (n_features, 2 * n_cells)
        Current frame first, as `join_frames` makes them.
    policies : array (n_features, n_actions)
        Probability of each action, given the feature.
    actions : names of the actions; letters of ACTIONS are drawn with their words
    grid : OccupancyGrid
    shares : array (n_features,)
        In which part of the frames each feature is active.
    n_per_action : largest number of features in a row
    quantity : what the features hold
    """
    from matplotlib.figure import Figure

    if n_per_action < 1:
        raise ArgumentError("n_per_action", f"n_per_action must be at least 1, not {n_per_action}.")
    features, policies, shares = check_features(features, policies, actions, grid, shares)
    current, previous = split_frames(features, grid.shape)
    chosen = choose_features(policies, n_per_action)
    shown = [k for row in chosen for k in row]
    highest = largest_value(current[shown])
    change = largest_value(np.abs(current - previous)[shown])

    words = [ACTIONS.get(action, action) for action in actions]
    margin = 0.35 if title else 0.1
    heights = [BLOCK_HEIGHT if row else 0.35 for row in chosen]
    size = (LEFT + n_per_action * (PANEL_WIDTH + GAP), margin + sum(heights) + 0.85)
    figure = Figure(figsize=size)
    for u, row in enumerate(chosen):
        block = margin + sum(heights[:u])
        if not row:
            note = f"{words[u]}: no feature speaks mostly for this"
            write(figure, LEFT, block + 0.2, note, style="italic", color="0.3")
            continue
        write(figure, 0.22, block + 0.28 + PANEL_HEIGHT, textwrap.fill(words[u], 12), rotation=90, ha="center",
              multialignment="center", fontweight="bold")  # fmt: skip
        for place, k in enumerate(row):
            left = LEFT + place * (PANEL_WIDTH + GAP)
            above = add_panel(figure, left, block + 0.25, PANEL_WIDTH, PANEL_HEIGHT)
            below = add_panel(figure, left, block + 0.31 + PANEL_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT)
            draw_top_view(above, current[k], grid, "Greys", 0.0, highest)
            draw_top_view(below, current[k] - previous[k], grid, "RdBu", -change, change)
            name = f"{actions[u]}{place + 1}: {policies[k, u]:.2f}, in {shares[k]:.0%} of frames"
            above.set_title(name, fontsize=9, pad=3, parse_math=False)
            above.tick_params(labelbottom=False)
            for axis in (above, below):
                axis.tick_params(labelleft=place == 0)
                axis.set_ylabel("lateral" if place == 0 else "", fontsize=7, labelpad=1)
    foot = size[1] - 0.75
    write(figure, LEFT, foot, "longitudinal and lateral in m, front to the right, left on top", fontsize=8)
    add_colour_bars(figure, foot + 0.2, size[0], highest, change, quantity)
    if title:
        write(figure, size[0] / 2, 0.17, title, ha="center", fontsize=12)
    return figure


def add_panel(figure, left: float, top: float, width: float, height: float):
    """Axes at a place in inches, counted from the upper left corner: panels stay alike, whatever is beside them."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def write(figure, left: float, top: float, text: str, **options) -> None:
    across, down = figure.get_size_inches()
    figure.text(left / across, 1 - top / down, text, **{"va": "center", "fontsize": 9, "parse_math": False, **options})


def check_features(features, policies, actions, grid, shares) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features, policies, shares = (np.asarray(values, dtype=np.float64) for values in (features, policies, shares))
    if features.ndim != 2 or features.shape[1] != 2 * grid.n_cells:
        raise ArgumentError(
            "features", f"features must be an array (n_features, {2 * grid.n_cells}), not {features.shape}."
        )
    if policies.shape != (len(features), len(actions)):
        raise ArgumentError(
            "policies", f"policies must be an array ({len(features)}, {len(actions)}), not {policies.shape}."
        )
    if shares.shape != (len(features),):
        raise ArgumentError("shares", f"shares must be one for each of the {len(features)} features.")
    return features, policies, shares


def choose_features(policies: np.ndarray, n_per_action: int) -> list[list[int]]:
    """For each action the features whose most probable action it is, the most confident first."""
    if not len(policies):
        return [[] for _ in range(policies.shape[1])]
    best = policies.argmax(axis=1)
    chosen = []
    for u in range(policies.shape[1]):
        order = np.argsort(-policies[:, u], kind="stable")
        chosen.append([int(k) for k in order if best[k] == u][:n_per_action])
    return chosen


def largest_value(values: np.ndarray) -> float:
    """End of a colour scale: nearly the largest value, so that one high cell does not pale all others."""
    positive = values[values > 0]
    return float(np.percentile(positive, 99.5)) if positive.size else 1.0


def draw_top_view(axis, image: np.ndarray, grid: OccupancyGrid, colours: str, low: float, high: float):
    drawn = axis.imshow(
        image, origin="lower", extent=(*grid.longitudinal, *grid.lateral), aspect="auto", cmap=colours,
        vmin=low, vmax=high, interpolation="nearest",
    )  # fmt: skip
    axis.plot(0, 0, "x", color=HOST, ms=6, mew=1.8)
    axis.set(xlim=grid.longitudinal, ylim=grid.lateral)
    axis.tick_params(labelsize=7, length=2)
    for spine in axis.spines.values():
        spine.set(color="0.5", lw=0.6)
    return drawn


def add_colour_bars(figure, top: float, width: float, highest: float, change: float, quantity: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    half = (width - LEFT - 2 * GAP) / 2
    for left, colours, low, high, extend, name in (
        (LEFT, "Greys", 0.0, highest, "max", quantity),
        (LEFT + half + GAP, "RdBu", -change, change, "both", "current − previous"),
    ):
        axis = add_panel(figure, left, top, half, 0.09)
        bar = figure.colorbar(
            ScalarMappable(Normalize(low, high), colours),
            cax=axis,
            orientation="horizontal",
            extend=extend,
            extendfrac=0.03,
        )
        bar.set_label(name, fontsize=8, labelpad=1)
        bar.ax.tick_params(labelsize=7, length=2, pad=1)
        bar.outline.set_linewidth(0.4)


# --- simulated traffic ------------------------------------------------------------------------------------------------

TRAFFIC_WIDTH, TRAFFIC_HEIGHT, TRAFFIC_MARGIN = 2.15, 3.3, 0.95  # of a feature's panels, in inches
PER_LINE = 6


def plot_traffic_features(model, grid, title: str | None = None):
    """Draw each feature of simulated traffic: lanes from the top, what changed in a second, the speed, the policy.

    Parameters
    ----------
    model : fitted FeaturePolicyClassifier
    grid : TrafficGrid
        Of the observations that it was fitted to.
    """
    from matplotlib.figure import Figure

    aligned = model.posterior_.aligned
    images = aligned.features["mean"].reshape(-1, *grid.image_shape)
    n_lanes = grid.frame_shape[0]
    now, before, speeds = images[:, :n_lanes], images[:, n_lanes : 2 * n_lanes], images[:, 2 * n_lanes]
    order = sorted(range(len(images)), key=lambda k: (aligned.policies["mean"][k].argmax(), -speak_up(aligned, k)))
    n_lines = max(1, -(-len(images) // PER_LINE))
    per_line = min(PER_LINE, max(len(images), 2))
    size = (TRAFFIC_MARGIN + per_line * (TRAFFIC_WIDTH + 0.15), 0.45 + n_lines * TRAFFIC_HEIGHT)
    figure = Figure(figsize=size)
    for place, k in enumerate(order):
        line, column = divmod(place, per_line)
        left, top = TRAFFIC_MARGIN + column * (TRAFFIC_WIDTH + 0.15), 0.62 + line * TRAFFIC_HEIGHT
        largest = max(float(images[k].max()), 1e-12)
        lanes = add_panel(figure, left, top, TRAFFIC_WIDTH, 0.42)
        change = add_panel(figure, left, top + 0.47, TRAFFIC_WIDTH, 0.42)
        draw_lanes(lanes, now[k], grid, "Greys", 0.0, largest)
        draw_lanes(change, now[k] - before[k], grid, "RdBu", -largest, largest)
        lanes.tick_params(labelbottom=False)
        change.set_xlabel("m ahead", fontsize=7, labelpad=0)
        speed = add_panel(figure, left, top + 1.27, TRAFFIC_WIDTH, 0.14)
        speed.imshow(
            speeds[k][None], extent=(0, grid.highest_speed, 0, 1), aspect="auto", cmap="Greys", vmin=0, vmax=largest
        )
        speed.set(yticks=[])
        speed.set_xlabel("own speed [m/s]", fontsize=7, labelpad=0)
        speed.tick_params(labelsize=7, length=2)
        bars = add_panel(figure, left, top + 1.78, TRAFFIC_WIDTH, 0.72)
        draw_policy(bars, aligned, k, model.classes_ if column == 0 else None, font_size=7)
        if column == 0:
            for axis, name in ((lanes, "now"), (change, "change"), (speed, "speed")):
                axis.set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")
        share = np.mean(model.substates_[:, k] > 0)
        lanes.set_title(f"feature {k}, in {share:.0%} of moments", fontsize=9, pad=3, parse_math=False)
    if title:
        write(figure, size[0] / 2, 0.2, title, ha="center", fontsize=12)
    return figure


def speak_up(aligned, k: int) -> float:
    """Confidence of a feature's policy."""
    return float(aligned.policies["mean"][k].max())


def draw_lanes(axis, image: np.ndarray, grid, colours: str, low: float, high: float) -> None:
    x, y = grid.grid_size
    axis.imshow(
        image, origin="lower", extent=(*x, *y), aspect="auto", cmap=colours, vmin=low, vmax=high,
        interpolation="nearest",
    )  # fmt: skip
    axis.plot(0, 0, "x", color=HOST, ms=5, mew=1.6)
    axis.set(xlim=x, ylim=y, yticks=[])
    axis.tick_params(labelsize=7, length=2)
