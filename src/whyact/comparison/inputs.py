"""The input of a comparison, checked: rows, groups, models."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from whyact.comparison.classifiers import Candidate
from whyact.comparison.compiling import is_sampler
from whyact.comparison.contestants import (
    CONTESTANTS,
    DEFAULT,
    accepts_missing,
    impute_first,
    scale_first,
    scales_by_itself,
)
from whyact.errors import ArgumentError, suggest
from whyact.estimators.inputs import check_available, check_taken
from whyact.tables.spreads import WIDE, compare_spreads


class Rows(NamedTuple):
    """Demonstrations whose action is known."""

    X: Any  # array or data frame (N, D) of floating point numbers
    labels: np.ndarray  # (N,)
    classes: np.ndarray  # (U,)
    actions: np.ndarray  # (N,), indices of classes
    groups: np.ndarray | None  # (N,), numbers
    available: np.ndarray | None = None  # which actions there are in each row, (N, U); None: all


def check_rows(
    X: Any, y: ArrayLike, groups: ArrayLike | None, available: ArrayLike | None = None
) -> tuple[Rows, list[str]]:
    """Check all rows, and drop those without an action, with a note."""
    X = check_observations(X)
    known, labels = check_actions(y, len(X))
    notes = []
    if not known.all():
        notes.append(f"{np.sum(~known)} of {len(known)} rows dropped, because their action is missing.")
    classes, actions = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        held = f"only one action ({str(classes[0])!r})" if len(classes) else "no action"
        raise ArgumentError("y", f"y holds {held}; at least two different actions are needed.")
    numbers = None if groups is None else check_groups(groups, len(known))[known]
    mask = check_mask(available, known, classes, actions)
    return Rows(X[known], labels, classes, actions, numbers, mask), notes


def check_mask(
    available: ArrayLike | None, known: np.ndarray, classes: np.ndarray, actions: np.ndarray
) -> np.ndarray | None:
    """Which actions there are in the rows whose action is known; None: all."""
    all_actions = np.full(len(known), -1)
    all_actions[known] = actions
    try:
        mask = check_available(available, len(known), classes)
        check_taken(mask, all_actions, classes)
    except ValueError as error:
        raise ArgumentError("available", str(error)) from None
    return None if mask is None else mask[known]


def check_observations(X: Any) -> Any:
    """Observations as floating point numbers; a data frame stays one, for models that want its column names."""
    try:
        checked = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    except (ValueError, TypeError) as error:
        raise ArgumentError("X", f"X must be a table of finite numbers: {first_sentence(error)}") from None
    return pandas.DataFrame(checked, columns=X.columns) if isinstance(X, pandas.DataFrame) else checked


def check_actions(y: ArrayLike, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the action is known, and the labels there."""
    column = check_column(y, "y", n_rows)
    known = column.notna().to_numpy()
    labels = column[known].tolist()
    try:
        sorted(set(labels))
        observed = np.array(labels)
        check_classification_targets(observed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "y", f"y must hold one discrete action per row, labels of one sortable type: {first_sentence(error)}"
        ) from None
    return known, observed


def check_groups(groups: ArrayLike, n_rows: int) -> np.ndarray:
    """The groups as numbers."""
    numbers: np.ndarray = pandas.factorize(check_column(groups, "groups", n_rows))[0]
    if (numbers < 0).any():
        raise ArgumentError(
            "groups", f"groups must have an entry for every row, but lacks {np.sum(numbers < 0)} of them."
        )
    return numbers


def check_column(values: Any, argument: str, n_rows: int) -> pandas.Series:
    """One entry per row, kept as it is: a list with None among its labels must not become an array of strings."""
    entries = list(values) if np.ndim(values) == 1 else None
    if entries is None:
        raise ArgumentError(argument, f"{argument} must be one column with an entry for each row of X.")
    if len(entries) != n_rows:
        raise ArgumentError(argument, f"X has {n_rows} rows, but {argument} has {len(entries)} entries.")
    return pandas.Series(entries, dtype=object)


class Model(NamedTuple):
    """A model that takes part."""

    label: str
    candidate: Candidate
    is_ours: bool  # known by name, not brought by the user

    @property
    def is_sampler(self) -> bool:
        """Whether it runs chains, and so takes long."""
        return is_sampler(self.candidate.estimator)


def choose_models(models: Sequence[str] | Mapping[str, Any] | None) -> dict[str, Model]:
    """The models to compare, by name."""
    if models is not None and not len(models):
        raise ArgumentError("models", "models is empty: there is nothing to compare.")
    if isinstance(models, str):
        models = [models]
    chosen = dict(models) if isinstance(models, Mapping) else {name: name for name in models or DEFAULT}
    return {str(name): make_model(str(name), model) for name, model in chosen.items()}


def make_model(name: str, model: Any) -> Model:
    """A known model, or the user's own after a check."""
    if isinstance(model, str):
        if model not in CONTESTANTS:
            raise ArgumentError("models", f"models: {model!r} is not known{suggest(model, CONTESTANTS)}")
        contestant = CONTESTANTS[model]
        return Model(contestant.label if name == model else name, contestant.make(), True)
    if isinstance(model, type) or not all(hasattr(model, part) for part in ("fit", "get_params")):
        raise ArgumentError("models", f"models: {name!r} is not a scikit-learn estimator, but {model!r}.")
    if not hasattr(model, "predict_proba"):
        raise ArgumentError("models", f"models: {name!r} has no predict_proba, which the log score needs.")
    return Model(name, Candidate(model), False)


def choose_reference(reference: str | None, models: dict[str, Model]) -> str:
    """The model that the others are compared with."""
    if reference is None:
        return "features" if "features" in models else next(iter(models))
    if reference not in models:
        raise ArgumentError("reference", f"reference: {reference!r} is not compared{suggest(reference, models)}")
    return reference


def scale_if_asked(models: dict[str, Model], X: Any, scale: bool) -> tuple[dict[str, Model], list[str]]:
    """Scale the columns for our models that do not do so themselves, or note that it may be worth it."""
    unscaled = {name: model for name, model in models.items() if not scales_by_itself(model.candidate)}
    if scale:
        scaled = {n: m._replace(candidate=scale_first(m.candidate)) for n, m in unscaled.items() if m.is_ours}
        return models | scaled, []
    ratio = compare_spreads(X)
    samplers = [name for name, model in unscaled.items() if model.is_sampler]
    if ratio < WIDE or not samplers:
        return models, []
    return models, [
        f"The columns of X differ in scale by a factor of {ratio:.2g}, and models with one noise for all columns "
        f"({', '.join(samplers)}) mainly follow the largest. Scaling (scale=True, --scale-columns) brings all columns "
        "to the same range."
    ]


def impute_where_needed(models: dict[str, Model], X: Any) -> tuple[dict[str, Model], list[str]]:
    """If X has missing entries, put an imputer before those of our models that need one."""
    if not np.isnan(np.asarray(X)).any():
        return models, []
    # a user's own model may hold an imputer without saying so in its tags
    needy = [name for name, model in models.items() if model.is_ours and not accepts_missing(model.candidate)]
    imputed = {name: models[name]._replace(candidate=impute_first(models[name].candidate)) for name in needy}
    note = f"X has missing entries; these models get the column's mean instead: {', '.join(needy)}."
    return models | imputed, [note] if needy else []


def first_sentence(problem: Exception | str) -> str:
    """The first sentence of an error or a warning, on one line and not too long."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    end = text.find(". ")
    text = text[: end + 1] if end >= 0 else text
    return text if len(text) <= 200 else f"{text[:200]}..."
