"""scikit-learn's callbacks, where they exist."""

from typing import Any

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
    """Tell scikit-learn's callbacks of the parts of a run from milestone to milestone."""

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
