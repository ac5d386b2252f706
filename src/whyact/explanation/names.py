"""How columns and actions are called in a sentence."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact.visible import make_visible


def find_names(model: Any, column_names: Sequence[str] | None = None) -> Sequence[str]:
    """Names of the columns of X: as given, as in the data frame that the model was fitted to, or x0, x1, ..."""
    if column_names is not None:
        return column_names
    return name_columns(getattr(model, "feature_names_in_", None), model.n_features_in_)


def name_columns(names: np.ndarray | None, n_columns: int) -> Sequence[str]:
    """The names of columns, or x0, x1, ... if they have none."""
    return [f"x{d}" for d in range(n_columns)] if names is None else list(names)


def name_action(model: Any, action: int) -> str:
    """The label of an action, for a sentence."""
    return name_label(model.classes_[action])


def name_label(label: Any) -> str:
    """A label for a sentence: a number, or a text that is one, would be taken for a quantity."""
    text = make_visible(label)
    return f"action {text}" if is_number(text) else text


def is_number(text: str) -> bool:
    """Whether a text reads like a number, or like true or false."""
    try:
        float(text)
    except ValueError:
        return text in ("True", "False")
    return True
