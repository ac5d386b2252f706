"""What comes into a comparison: rows, groups, models."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from whyact.comparison.classifiers import Candidate
from whyact.comparison.contestants import CONTESTANTS, DEFAULT, SHORTEST, accepts_missing, impute_first, scale_first
from whyact.errors import ArgumentError, suggest

# Columns that differ more than this in size are worth a word.
WIDE = 30.0


class Rows(NamedTuple):
    """Demonstrations whose action is known."""

    X: Any  # array or data frame (N, D) of floating point numbers
    labels: np.ndarray  # (N,)
    classes: np.ndarray  # (U,)
    actions: np.ndarray  # (N,), indices of classes
    groups: np.ndarray | None  # (N,), numbers


def check_rows(X, y, groups) -> tuple[Rows, list[str]]:
    """Check all rows; drop those without an action and say so in a note."""
    X = check_observations(X)
    known, labels = check_actions(y, len(X))
    notes = []
    if not known.all():
        notes.append(f"{np.sum(~known)} of {len(known)} rows dropped, because their action is missing.")
    classes, actions = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        held = f"one action only ({str(classes[0])!r})" if len(classes) else "no action"
        raise ArgumentError("y", f"y holds {held}; at least two different ones are needed.")
    if groups is not None:
        groups = check_groups(groups, len(known))[known]
    return Rows(X[known], labels, classes, actions, groups), notes


def check_observations(X):
    """Floating point numbers; the names of a data frame are kept for models that want them."""
    try:
        checked = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    except (ValueError, TypeError) as error:
        raise ArgumentError("X", f"X must be a table of finite numbers: {first_sentence(error)}") from None
    return pandas.DataFrame(checked, columns=X.columns) if isinstance(X, pandas.DataFrame) else checked


def check_actions(y, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the action is known, and the labels there."""
    y = check_column(y, "y", n_rows)
    known = y.notna().to_numpy()
    labels = y[known].tolist()
    try:
        sorted(set(labels))
        observed = np.array(labels)
        check_classification_targets(observed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "y", f"y must hold one discrete action a row, labels of one sortable type: {first_sentence(error)}"
        ) from None
    return known, observed


def check_groups(groups, n_rows: int) -> np.ndarray:
    """Groups as numbers."""
    numbers, _ = pandas.factorize(check_column(groups, "groups", n_rows))
    if (numbers < 0).any():
        raise ArgumentError("groups", f"groups must not be missing, as it is in {np.sum(numbers < 0)} rows.")
    return numbers


def check_column(values, argument: str, n_rows: int) -> pandas.Series:
    """One entry a row, kept as it is: a list with None among its labels must not become an array of strings."""
    entries = list(values) if np.ndim(values) == 1 else None
    if entries is None:
        raise ArgumentError(argument, f"{argument} must be one column with an entry for each row of X.")
    if len(entries) != n_rows:
        raise ArgumentError(argument, f"X has {n_rows} rows, but {argument} has {len(entries)} entries.")
    return pandas.Series(entries, dtype=object)


class Model(NamedTuple):
    """One that takes part."""

    label: str
    candidate: Candidate
    is_ours: bool  # known by name, not brought along

    @property
    def is_sampler(self) -> bool:
        """Whether it runs chains, and so takes long."""
        return set(SHORTEST) <= {last_part(name) for name in self.candidate.estimator.get_params()}


def last_part(name: str) -> str:
    """Name of a parameter inside the step of a pipeline that has it."""
    return name.split("__")[-1]


def choose_models(models: Sequence[str] | Mapping[str, Any] | None) -> dict[str, Model]:
    """Models by name."""
    if models is not None and not len(models):
        raise ArgumentError("models", "models is empty: there is nothing to compare.")
    if isinstance(models, str):
        models = [models]
    chosen = dict(models) if isinstance(models, Mapping) else {name: name for name in models or DEFAULT}
    return {str(name): make_model(str(name), model) for name, model in chosen.items()}


def make_model(name: str, model) -> Model:
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
    if reference is None:
        return "features" if "features" in models else next(iter(models))
    if reference not in models:
        raise ArgumentError("reference", f"reference: {reference!r} is not compared{suggest(reference, models)}")
    return reference


def scale_if_asked(models: dict[str, Model], X, scale: bool) -> tuple[dict[str, Model], list[str]]:
    """Scale the columns for our models, or say that it may be worth it."""
    if scale:
        scaled = {n: m._replace(candidate=scale_first(m.candidate)) if m.is_ours else m for n, m in models.items()}
        return scaled, []
    ratio = compare_spreads(X)
    samplers = [name for name, model in models.items() if model.is_sampler]
    if ratio < WIDE or not samplers:
        return models, []
    return models, [
        f"The columns of X differ in size by a factor of {ratio:.2g}; {', '.join(samplers)} know one noise for all of "
        "them and follow the largest. Scaling (scale=True, --scale) brings all columns to the same range."
    ]


def compare_spreads(X) -> float:
    """The largest standard deviation of a column over the smallest."""
    spreads = np.nanstd(np.asarray(X), axis=0)
    spreads = spreads[spreads > 0]
    return float(spreads.max() / spreads.min()) if len(spreads) else 1.0


def impute_where_needed(models: dict[str, Model], X) -> tuple[dict[str, Model], list[str]]:
    """If X has missing entries, put an imputer before those of our models that cannot do without."""
    if not np.isnan(np.asarray(X)).any():
        return models, []
    # what someone else brings may hold an imputer of its own, which its tags need not tell
    needy = [name for name, model in models.items() if model.is_ours and not accepts_missing(model.candidate)]
    imputed = {name: models[name]._replace(candidate=impute_first(models[name].candidate)) for name in needy}
    note = f"X has missing entries; these models get the column's mean instead: {', '.join(needy)}."
    return models | imputed, [note] if needy else []


def first_sentence(problem: Exception | str) -> str:
    """What an error or a warning says, on one line and not too long."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    end = text.find(". ")
    text = text[: end + 1] if end >= 0 else text
    return text if len(text) <= 200 else f"{text[:200]}..."
