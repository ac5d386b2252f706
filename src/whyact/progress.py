"""Progress of a fit: a bar for a person who asked, scikit-learn's callbacks where they exist."""

from contextlib import contextmanager
from typing import Any

import numpy as np

try:  # experimental in scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """scikit-learn has no callbacks yet."""

        def _init_callback_context(self, **_):
            return None

    def with_callbacks(method):
        return method


class SegmentCallbacks:
    """Tell scikit-learn's callbacks where the segments of a run begin and end."""

    def __init__(self, estimator, context, X, y):
        self.estimator = estimator
        self.context = context
        self.data = {"X": X, "y": y}
        self.segment: Any = None
        self.stopped = False
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **self.data)
            self.begin()

    def begin(self):
        self.segment = self.context.subcontext(task_name="sweeps")
        self.segment.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def __call__(self, progress) -> bool:
        """Return whether a callback asks to stop."""
        if self.context is None or self.stopped:
            return self.stopped
        self.stopped = bool(self.segment.call_on_fit_task_end(estimator=self.estimator, **self.data))
        if progress.n_done < progress.n_total and not self.stopped:
            self.begin()
        return self.stopped

    def end(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)


@contextmanager
def progress_bar(verbose: int, unit: float):
    """Yield a function that shows a Progress: with rich on standard error if `verbose`, else nothing."""
    if not verbose:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} sweeps"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("fit", total=None)

        def show(progress):
            sizes = ", ".join(str(len(state.features)) for state in progress.states)
            noise = unit * np.sqrt(np.mean([state.noise_variance for state in progress.states]))
            text = f"K = {sizes}  noise {noise:.3g}"
            bar.update(task, total=progress.n_total, completed=progress.n_done, description=text)

        yield show
