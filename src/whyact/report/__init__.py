"""One page about a fitted model, in two steps: a summary (plain data), then a page (one HTML file)."""

from pathlib import Path
from typing import Any

from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.report.page import render
from whyact.report.summary import summarise
from whyact.storage.atomic import write_whole

__all__ = ["render", "summarise", "write_report"]


def write_report(model: FeaturePolicyClassifier, path: str | Path, **options: Any) -> Path:
    """Write a page about a fitted model to one HTML file, completely or not at all.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    path : str or Path
        The HTML file to write. It needs no network and no other file.
    **options : dict
        What is shown and how, as in `summarise`.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.report import write_report
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=100, n_draws=50, n_chains=1, random_state=0)
    >>> _ = model.fit(demo.X[:80], demo.y[:80])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     written = write_report(model, path, test=(demo.X[80:], demo.y[80:]), shape=(6, 6))
    ...     written == path, path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    (True, True)
    """
    path = Path(path)
    write_whole(path, render(summarise(model, **options)))
    return path
