"""Pictures of drives: the actions over time, and the features of each action as top views (Sec. 6).

matplotlib is an extra (`pip install whyact[plot]`), imported when first needed.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

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
from whyact.driving.traffic import TrafficGrid
from whyact.errors import ArgumentError
from whyact.explanation.voices import align_policies
from whyact.plotting import ACCENT, COLOURS, draw_policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from whyact.estimators.feature_policy import FeaturePolicyClassifier

ACTION_COLOURS = {
    ACCELERATION: COLOURS[2],
    DECELERATION: ACCENT,
    CONSTANT_SPEED: "0.75",
    CHANGE_LEFT: COLOURS[5],
    CHANGE_RIGHT: COLOURS[3],
}
BAND = 0.35  # opacity
SHARE_OF_LETTER = 0.02  # bands that are narrower, as a share of the drive, get no letter
HOST = "#E00000"
LEFT, PANEL_WIDTH, PANEL_HEIGHT, BLOCK_HEIGHT, GAP = 0.75, 3.1, 0.62, 1.85, 0.3  # in inches
TRAFFIC_WIDTH, TRAFFIC_HEIGHT, TRAFFIC_MARGIN = 2.15, 3.3, 0.95  # of a feature's panels, in inches
PER_LINE = 6  # features of simulated traffic


def plot_actions(motion: Motion, labels: ArrayLike, sample_frequency: float, title: str | None = None) -> "Figure":
    """Draw acceleration and speed over the frames, on bands in the colour of the action.

    Parameters
    ----------
    motion : Motion
        As made by `motion_from_oxts`.
    labels : array-like of str of shape (n_frames,)
        Action of each frame, as made by `label_actions`.
    sample_frequency : float
        Frames per second.
    title : str or None, default=None
        Title of the figure.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.labels import Motion
    >>> from whyact.driving.pictures import plot_actions
    >>> motion = Motion(speed=np.linspace(5, 9, 40), acceleration=np.full(40, 1.0), yaw_rate=np.zeros(40))
    >>> figure = plot_actions(motion, ["A"] * 40, sample_frequency=10.0)
    >>> [axis.get_ylabel() for axis in figure.axes]
    ['acceleration [m/s²]', 'speed [m/s]']
    """
    from matplotlib.figure import Figure

    labels = np.asarray(labels)
    if labels.shape != np.shape(motion.acceleration):
        raise ArgumentError("labels", f"there must be one label for each of the {len(motion.acceleration)} frames.")
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


def draw_bands(axis: "Axes", labels: np.ndarray) -> None:
    """Draw a band in the colour of the action behind each of its runs."""
    for first, last in find_runs(labels):
        colour = ACTION_COLOURS.get(str(labels[first]), "1.0")
        axis.axvspan(first - 0.5, last + 0.5, color=colour, alpha=BAND, lw=0)


def write_letters(axis: "Axes", labels: np.ndarray) -> None:
    """Write the letter of the action on each band that is wide enough."""
    for first, last in find_runs(labels):
        if last - first + 1 >= SHARE_OF_LETTER * len(labels):
            axis.text(
                (first + last) / 2, 0.97, str(labels[first]), transform=axis.get_xaxis_transform(),
                ha="center", va="top", fontsize=9, fontweight="bold", color="0.2", parse_math=False,
            )  # fmt: skip


def add_legend(figure: "Figure", labels: np.ndarray) -> None:
    """Name the actions that occur in words, with their shares of the frames."""
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
    features: ArrayLike,
    policies: ArrayLike,
    actions: Sequence[str],
    grid: OccupancyGrid,
    shares: ArrayLike,
    n_per_action: int = 3,
    title: str | None = None,
    quantity: str = "height above the cut [m]",
) -> "Figure":
    """Draw the features that speak most clearly for each action, as the paper's figures of Scenes 11 and 20 do.

    A row of panels for each action holds the features whose most probable action it is, the most confident first. The
    upper panel shows the current frame from the top, the lower one what has changed since the previous frame. Where
    blue is in front of red, the obstacle draws away; where red is in front of blue, it comes closer.

    Parameters
    ----------
    features : array-like of shape (n_features, 2 * n_cells)
        Current frame first, as made by `join_frames`.
    policies : array-like of shape (n_features, n_actions)
        Probability of each action, given the feature.
    actions : sequence of str
        Names of the actions; letters of `ACTIONS` are drawn with their words.
    grid : OccupancyGrid
        The grid of the frames.
    shares : array-like of shape (n_features,)
        Share of the frames in which each feature is active.
    n_per_action : int, default=3
        Largest number of features in a row.
    title : str or None, default=None
        Title of the figure.
    quantity : str, default="height above the cut [m]"
        What the features hold.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np
    >>> from whyact.driving.grids import OccupancyGrid
    >>> from whyact.driving.pictures import plot_driving_features
    >>> features = np.random.default_rng(0).random((2, 24))
    >>> policies = [[0.9, 0.1], [0.2, 0.8]]
    >>> figure = plot_driving_features(features, policies, ["A", "D"], OccupancyGrid(shape=(3, 4)), shares=[0.12, 0.5])
    >>> [axis.get_title() for axis in figure.axes if axis.get_title()]
    ['A1: 0.90, in 12% of frames', 'D1: 0.80, in 50% of frames']
    """
    from matplotlib.figure import Figure

    if n_per_action < 1:
        raise ArgumentError("n_per_action", f"n_per_action must be at least 1, not {n_per_action}.")
    features, policies, shares = check_features(features, policies, actions, grid, shares)
    current, previous = split_frames(features, grid.shape)
    changes = current - previous
    chosen = choose_features(policies, n_per_action)
    shown = [k for row in chosen for k in row]
    limits = largest_value(current[shown]), largest_value(np.abs(changes)[shown])

    top = 0.35 if title else 0.1
    heights = [BLOCK_HEIGHT if row else 0.35 for row in chosen]
    size = (LEFT + n_per_action * (PANEL_WIDTH + GAP), top + sum(heights) + 0.85)
    figure = Figure(figsize=size)
    for u, row in enumerate(chosen):
        block = top + sum(heights[:u])
        name_block(figure, block, ACTIONS.get(actions[u], actions[u]), is_empty=not row)
        for place, k in enumerate(row):
            above = draw_frames(figure, place, block, current[k], changes[k], grid, limits)
            name = f"{actions[u]}{place + 1}: {policies[k, u]:.2f}, in {shares[k]:.0%} of frames"
            above.set_title(name, fontsize=9, pad=3, parse_math=False)
    foot = size[1] - 0.75
    write(figure, LEFT, foot, "longitudinal and lateral in m, front to the right, left on top", fontsize=8)
    add_colour_bars(figure, foot + 0.2, size[0], *limits, quantity)
    if title:
        write(figure, size[0] / 2, 0.17, title, ha="center", fontsize=12)
    return figure


def name_block(figure: "Figure", top: float, words: str, is_empty: bool) -> None:
    """Name the action of a row of panels, or say that there are none."""
    if is_empty:
        write(figure, LEFT, top + 0.2, f"{words}: no feature mainly favours this", style="italic", color="0.3")
    else:
        write(figure, 0.22, top + 0.28 + PANEL_HEIGHT, textwrap.fill(words, 12), rotation=90, ha="center",
              multialignment="center", fontweight="bold")  # fmt: skip


def draw_frames(
    figure: "Figure", place: int, top: float, current: np.ndarray, change: np.ndarray, grid: OccupancyGrid,
    limits: tuple[float, float],
) -> "Axes":  # fmt: skip
    """Draw a feature in its place of a row, the change below the current frame; returns the upper panel."""
    left = LEFT + place * (PANEL_WIDTH + GAP)
    highest, largest = limits
    above = add_panel(figure, left, top + 0.25, PANEL_WIDTH, PANEL_HEIGHT)
    below = add_panel(figure, left, top + 0.31 + PANEL_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT)
    draw_top_view(above, current, grid, "Greys", 0.0, highest)
    draw_top_view(below, change, grid, "RdBu", -largest, largest)
    above.tick_params(labelbottom=False)
    for axis in (above, below):
        axis.tick_params(labelleft=place == 0)
        axis.set_ylabel("lateral" if place == 0 else "", fontsize=7, labelpad=1)
    return above


def add_panel(figure: "Figure", left: float, top: float, width: float, height: float) -> "Axes":
    """Add axes at a place in inches, from the upper left corner; panels stay alike, whatever is beside them."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def write(figure: "Figure", left: float, top: float, text: str, **options: Any) -> None:
    """Write at a place in inches, from the upper left corner."""
    across, down = figure.get_size_inches()
    figure.text(left / across, 1 - top / down, text, **{"va": "center", "fontsize": 9, "parse_math": False, **options})


def check_features(
    features: ArrayLike, policies: ArrayLike, actions: Sequence[str], grid: OccupancyGrid, shares: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check the shapes of features, policies and shares."""
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
        raise ArgumentError("shares", f"there must be one share for each of the {len(features)} features.")
    return features, policies, shares


def choose_features(policies: np.ndarray, n_per_action: int) -> list[list[int]]:
    """Choose for each action the features whose most probable action it is, the most confident first."""
    if not len(policies):
        return [[] for _ in range(policies.shape[1])]
    best = policies.argmax(axis=1)
    chosen = []
    for u in range(policies.shape[1]):
        order = np.argsort(-policies[:, u], kind="stable")
        chosen.append([int(k) for k in order if best[k] == u][:n_per_action])
    return chosen


def largest_value(values: np.ndarray) -> float:
    """Find the end of a colour scale: nearly the largest value, so that one high cell does not pale all others."""
    positive = values[values > 0]
    return float(np.percentile(positive, 99.5)) if positive.size else 1.0


def draw_top_view(axis: "Axes", image: np.ndarray, grid: OccupancyGrid, colours: str, low: float, high: float) -> None:
    """Draw a frame from the top, with a cross where the car is."""
    axis.imshow(
        image, origin="lower", extent=(*grid.longitudinal, *grid.lateral), aspect="auto", cmap=colours,
        vmin=low, vmax=high, interpolation="nearest",
    )  # fmt: skip
    axis.plot(0, 0, "x", color=HOST, ms=6, mew=1.8)
    axis.set(xlim=grid.longitudinal, ylim=grid.lateral)
    axis.tick_params(labelsize=7, length=2)
    for spine in axis.spines.values():
        spine.set(color="0.5", lw=0.6)


def add_colour_bars(figure: "Figure", top: float, width: float, highest: float, change: float, quantity: str) -> None:
    """Add the colour scales of the current frame and of the change."""
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


def plot_traffic_features(model: "FeaturePolicyClassifier", grid: TrafficGrid, title: str | None = None) -> "Figure":
    """Draw each feature of simulated traffic: lanes from the top, what changed in a second, the speed, the policy.

    Parameters
    ----------
    model : fitted FeaturePolicyClassifier
        Fitted to observations of simulated traffic.
    grid : TrafficGrid
        The grid of these observations.
    title : str or None, default=None
        Title of the figure.

    Returns
    -------
    Figure
        Features in the order of their most probable actions, the most confident first.

    Examples
    --------
    >>> import warnings
    >>> from whyact import FeaturePolicyClassifier
    >>> from whyact.driving.datasets import load_traffic
    >>> from whyact.driving.pictures import plot_traffic_features
    >>> traffic = load_traffic()
    >>> model = FeaturePolicyClassifier(n_burn_in=5, n_draws=5, n_chains=1, max_features=3, random_state=0)
    >>> with warnings.catch_warnings():  # such a short chain is far from converged
    ...     warnings.simplefilter("ignore")
    ...     _ = model.fit(traffic.observations[:100], traffic.actions[:100])
    >>> figure = plot_traffic_features(model, traffic.grid)
    >>> len(figure.axes) == 4 * model.substates_.shape[1]  # four panels for each feature
    True
    """
    from matplotlib.figure import Figure

    aligned = model.posterior_.aligned
    images = aligned.features.value.reshape(-1, *grid.image_shape)
    shares = np.mean(model.substates_ > 0, axis=0)
    said = align_policies(model)
    policies = said.value
    order = sorted(range(len(images)), key=lambda k: (policies[k].argmax(), -policies[k].max()))
    n_lines = max(1, -(-len(images) // PER_LINE))
    per_line = min(PER_LINE, max(len(images), 2))
    size = (TRAFFIC_MARGIN + per_line * (TRAFFIC_WIDTH + 0.15), 0.45 + n_lines * TRAFFIC_HEIGHT)
    figure = Figure(figsize=size)
    for place, k in enumerate(order):
        line, column = divmod(place, per_line)
        left, top = TRAFFIC_MARGIN + column * (TRAFFIC_WIDTH + 0.15), 0.62 + line * TRAFFIC_HEIGHT
        lanes = draw_traffic_image(figure, left, top, images[k], grid, has_names=column == 0)
        lanes.set_title(f"feature {k}, in {shares[k]:.0%} of moments", fontsize=9, pad=3, parse_math=False)
        bars = add_panel(figure, left, top + 1.78, TRAFFIC_WIDTH, 0.72)
        draw_policy(bars, said, k, model.classes_ if column == 0 else None, font_size=7)
    if title:
        write(figure, size[0] / 2, 0.2, title, ha="center", fontsize=12)
    return figure


def draw_traffic_image(
    figure: "Figure", left: float, top: float, image: np.ndarray, grid: TrafficGrid, has_names: bool
) -> "Axes":
    """Draw a feature at a place in inches: lanes, change and speed below each other; returns the panel of the lanes."""
    n_lanes = grid.frame_shape[0]
    now, before, speeds = image[:n_lanes], image[n_lanes : 2 * n_lanes], image[2 * n_lanes]
    largest = max(float(image.max()), 1e-12)
    lanes = add_panel(figure, left, top, TRAFFIC_WIDTH, 0.42)
    draw_lanes(lanes, now, grid, "Greys", 0.0, largest)
    lanes.tick_params(labelbottom=False)
    change = add_panel(figure, left, top + 0.47, TRAFFIC_WIDTH, 0.42)
    draw_lanes(change, now - before, grid, "RdBu", -largest, largest)
    change.set_xlabel("m ahead", fontsize=7, labelpad=0)
    speed = add_panel(figure, left, top + 1.27, TRAFFIC_WIDTH, 0.14)
    speed.imshow(speeds[None], extent=(0, grid.highest_speed, 0, 1), aspect="auto", cmap="Greys", vmin=0, vmax=largest)
    speed.set(yticks=[])
    speed.set_xlabel("own speed [m/s]", fontsize=7, labelpad=0)
    speed.tick_params(labelsize=7, length=2)
    if has_names:
        for axis, name in ((lanes, "now"), (change, "change"), (speed, "speed")):
            axis.set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")
    return lanes


def draw_lanes(axis: "Axes", image: np.ndarray, grid: TrafficGrid, colours: str, low: float, high: float) -> None:
    """Draw lanes from the top, with a cross where the driver is."""
    x, y = grid.grid_size
    axis.imshow(
        image, origin="lower", extent=(*x, *y), aspect="auto", cmap=colours, vmin=low, vmax=high,
        interpolation="nearest",
    )  # fmt: skip
    axis.plot(0, 0, "x", color=HOST, ms=5, mew=1.6)
    axis.set(xlim=x, ylim=y, yticks=[])
    axis.tick_params(labelsize=7, length=2)
