"""Actions that are not available, in models that know of it and in those that do not."""

from inspect import signature
from typing import Any

import numpy as np

from whyact.model import restrict


def takes_available(method: Any) -> bool:
    """Whether a method, `fit` or `predict_proba`, wants to know which actions are available."""
    return "available" in signature(method).parameters


def predict_available(model: Any, X: Any, available: np.ndarray | None) -> np.ndarray:
    """Probabilities (N, U) of the actions that are available (N, U), None: all; columns as `classes_` of the model.

    A model that knows of it has its own way. Of any other, what is left keeps its odds.
    """
    if available is None:
        return np.asarray(model.predict_proba(X))
    if takes_available(model.predict_proba):
        return np.asarray(model.predict_proba(X, available=available))
    return restrict(np.asarray(model.predict_proba(X)), available)
