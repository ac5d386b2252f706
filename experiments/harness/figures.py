"""Figures of the studies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def save_svg_and_png(make_figure: Callable[[], Any], stem: Path) -> list[Path]:
    """Draw a figure of a study and save it as SVG and PNG; the same rows give the same files."""
    import matplotlib  # an extra; studies run without it

    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with matplotlib.rc_context({"svg.hashsalt": "whyact"}):
        figure = make_figure()
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=110)
    return paths
