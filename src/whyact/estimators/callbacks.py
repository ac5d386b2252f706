"""scikit-learn's callbacks, where they exist: they see a run from milestone to milestone, and may stop it."""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from whyact.sampler.draws import Progress

Method = TypeVar("Method", bound=Callable[..., Any])

try:  # experimental in scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """scikit-learn has no callbacks yet."""

        def _init_callback_context(self, **_: Any) -> None:
            return None

    def with_callbacks(method: Method) -> Method:
        """Leave the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "SegmentCallbacks", "with_callbacks"]


class SegmentCallbacks:
    """Tell scikit-learn's callbacks of the parts of a run from milestone to milestone.

    Parameters
    ----------
    estimator : estimator
    context : callback context or None
        None where scikit-learn has no callbacks.
    X, y : array-like
        What the estimator is fitted to.
    """

    def __init__(self, estimator: BaseEstimator, context: Any, X: Any, y: Any):
        self.estimator = estimator
        self.context = context
        self.data = {"X": X, "y": y}
        self.segment: Any = None
        self.stopped = False
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **self.data)
            self.begin()

    def begin(self) -> None:
        """A new part begins."""
        self.segment = self.context.subcontext(task_name="sweeps")
        self.segment.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def __call__(self, progress: Progress) -> bool:
        """A part has ended; return whether a callback asks to stop."""
        if self.context is None or self.stopped:
            return self.stopped
        self.stopped = bool(self.segment.call_on_fit_task_end(estimator=self.estimator, **self.data))
        if progress.n_done < progress.n_total and not self.stopped:
            self.begin()
        return self.stopped

    def end(self) -> None:
        """The run has ended."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data)
