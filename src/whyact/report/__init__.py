"""One page about a fitted model, in two steps: a summary (plain data), then a page (one HTML file)."""

from pathlib import Path

from whyact.report.page import render
from whyact.report.summary import summarise
from whyact.storage.atomic import write_whole

__all__ = ["render", "summarise", "write_report"]


def write_report(model, path, **options) -> Path:
    """Write the page about a fitted model to `path`, whole or not at all, and return the path.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    path : str or Path
        The HTML file. It needs no network and no other file.
    **options
        As in `summarise`: what is shown, and how.

    Examples
    --------
    >>> from whyact.report import write_report
    >>> write_report(model, "report.html", shape=(6, 6), test=(X_new, y_new))  # doctest: +SKIP
    """
    path = Path(path)
    write_whole(path, render(summarise(model, **options)))
    return path
