"""Fit every model to every fold, and measure its predictions."""

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from whyact.comparison.classifiers import tune
from whyact.comparison.compiling import compile_kernels, set_seeds
from whyact.comparison.folds import SPLITS, Fold, describe_splits, keep_learnable, make_folds, note_absent
from whyact.comparison.inputs import (
    Model,
    Rows,
    check_rows,
    choose_models,
    choose_reference,
    first_sentence,
    impute_where_needed,
    scale_if_asked,
)
from whyact.comparison.results import COMPARED, Comparison
from whyact.comparison.scoring import calibration_error, corrected_interval, score
from whyact.errors import ChainsDisagreeWarning, DoubtfulFitWarning
from whyact.estimators.available import predict_available, takes_available
from whyact.model import restrict
from whyact.progress import open_bar

# Warnings of a fit that have words of their own in the notes; of others, the first sentence is quoted.
TROUBLES = {
    ChainsDisagreeWarning.__name__: "the chains disagreed",
    DoubtfulFitWarning.__name__: "something else spoke against the model",
    ConvergenceWarning.__name__: "an optimiser stopped before it converged",
}

# Warnings for those who maintain a model, not for those who use it.
IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)


def compare(
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    available: ArrayLike | None = None,
    models: Sequence[str] | Mapping[str, Any] | None = None,
    splits: Sequence[str] = SPLITS,
    n_folds: int = 5,
    n_repeats: int = 1,
    scale: bool = False,
    reference: str | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int = 0,
) -> Comparison:
    """Cross-validate models on the same demonstrations, and tell which differences are more than luck.

    Parameters
    ----------
    X : array-like (N, D)
        Observations; NaN where an entry is missing. Known models that need all entries get the column's mean instead.
    y : array-like (N,)
        Actions. Rows without one (None or NaN) are dropped.
    groups : array-like (N,) or None, default=None
        Which rows belong together, such as the drive or the episode; "blocked" then leaves out whole groups.
    available : array-like (N, U) of bool or None, default=None
        Which actions can be taken in each row, columns in the order of the sorted labels. None: all. What is not
        available has no probability there, for any model; those whose `fit` takes `available` also learn with it.
    models : list of str, dict or None, default=None
        Names of `whyact.comparison.contestants.CONTESTANTS`; None means the default ones. A dict maps names to
        scikit-learn classifiers with `predict_proba`, or to the names of known models.
    splits : list of str, default=("random", "blocked")
        - "random": stratified folds of shuffled rows, n_repeats times; ignores the groups.
        - "blocked": whole groups or, without groups, n_folds blocks of consecutive rows. Consecutive rows of one drive
          are near copies of each other, so a random split flatters models that memorise rows, above all nearest
          neighbours. In this split the usual classifiers also choose their settings with whole blocks left out.
    n_folds : int, default=5
        Parts of the rows, each of which is predicted from the others.
    n_repeats : int, default=1
        How often rows are shuffled into the folds of the random split.
    scale : bool, default=False
        Bring every column to the range from 0 to 1 before the known models, as found in the rows to learn from. For
        columns of different units: models with one noise for all columns mainly follow the largest. "features" decides
        by itself whether to do so.
    reference : str or None, default=None
        The model that the others are compared with; None means "features", or the first one if that is not compared.
    n_jobs : int or None, default=None
        Number of fits at a time, each in one process; -1 means one for each core. The results do not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of all models without a seed of their own.
    verbose : int, default=0
        1 shows progress.

    Returns
    -------
    Comparison
        Tables of all folds, means and differences; printing it shows the result.

    Notes
    -----
    An action that is missing from the rows to learn from counts as wrong where it is tested. A fold with only one
    action to learn from is left out for all models. A model that raises an error in a fold has NaN there; the others
    continue.

    References
    ----------
    C. Nadeau, Y. Bengio: Inference for the Generalization Error, Machine Learning 52, 2003.

    Examples
    --------
    >>> from whyact import compare, load_demo
    >>> demo = load_demo()
    >>> comparison = compare(demo.X, demo.y, models=["lr", "majority"], splits=["random"])
    >>> comparison.differences[["model", "measure", "verdict"]].iloc[0].tolist()
    ['majority', 'accuracy', 'behind']
    """
    rows, notes = check_rows(X, y, groups, available)
    chosen = choose_models(models)
    reference = choose_reference(reference, chosen)
    chosen, imputed = impute_where_needed(chosen, rows.X)
    chosen, advice = scale_if_asked(chosen, rows.X, scale)
    random = check_random_state(random_state)
    folds, left_out = keep_learnable(
        make_folds(rows.actions, rows.groups, splits, n_folds, n_repeats, random), rows.actions
    )
    outcomes = run_fits(rows, chosen, folds, n_jobs, verbose)
    measured = measure(folds, outcomes, rows)
    return Comparison(
        folds=measured,
        summary=summarise(measured, pool_calibration(folds, outcomes, rows.actions)),
        differences=find_differences(measured, reference),
        notes=[
            *notes,
            *imputed,
            *advice,
            *note_available(rows, chosen),
            *left_out,
            *note_absent(folds, rows.actions, rows.classes),
            *note_troubles(outcomes),
        ],
        reference=reference,
        labels={name: model.label for name, model in chosen.items()},
        splits=describe_splits(folds, rows.groups is not None, n_folds),
    )


# --- the fits -------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """One model on one fold."""

    name: str
    fold: int  # index in the list of folds
    probabilities: np.ndarray | None  # of all actions in each row to predict; None if the model failed
    n_components: float
    fit_seconds: float
    predict_seconds: float
    warnings: dict[str, str]  # name of each kind of warning, and the first sentence
    error: str | None


def run_fits(
    rows: Rows, models: dict[str, Model], folds: list[Fold], n_jobs: int | None, verbose: int
) -> dict[str, list[Outcome]]:
    """Outcomes of each model, in the order of the folds."""
    # samplers first: one that starts last would run alone while the other processes wait
    names = sorted(models, key=lambda name: not models[name].is_sampler)
    tasks = [(name, index) for name in names for index in range(len(folds))]
    done: dict[tuple[str, int], Outcome] = {}
    with open_bar(verbose, len(tasks), "fits") as show:
        if joblib.effective_n_jobs(n_jobs) > 1:
            train = folds[0].train
            estimators = [model.candidate.estimator for model in models.values()]
            compile_kernels(estimators, take(rows.X, train), rows.labels[train])
        results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            joblib.delayed(fit_once)(rows, name, models[name], index, folds[index]) for name, index in tasks
        )
        for outcome in results:
            done[outcome.name, outcome.fold] = outcome
            show(len(done), f"done: {models[outcome.name].label}")
    return {name: [done[name, index] for index in range(len(folds))] for name in models}


def fit_once(rows: Rows, name: str, model: Model, index: int, fold: Fold) -> Outcome:
    """Fit a model to a fold and predict; one that fails must not stop the others."""
    probabilities, error, fitted = None, None, None
    start = fit_end = predict_end = time.perf_counter()
    # one thread, so that sums do not depend on how many cores are free
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(limits=1):
        warnings.simplefilter("always")
        try:
            candidate = model.candidate._replace(estimator=set_seeds(model.candidate.estimator, fold.seed))
            labels = rows.labels[fold.train]
            options = {}
            if rows.available is not None and takes_available(candidate.estimator.fit):
                options["available"] = find_mask(rows, fold.train, labels)
            fitted = tune(candidate, take(rows.X, fold.train), labels, fold.seed, fold.groups, **options)
            fit_end = time.perf_counter()
            mask = find_mask(rows, fold.test, fitted.classes_)
            probabilities = align(
                predict_available(fitted, take(rows.X, fold.test), mask), fitted.classes_, rows.classes
            )
            if rows.available is not None:  # the actions that are there may all be unknown to the model
                probabilities = restrict(probabilities, rows.available[fold.test])
            predict_end = time.perf_counter()
        except Exception as problem:
            error = f"{type(problem).__name__}: {first_sentence(problem)}"
    kinds: dict[str, str] = {}
    for warning in caught:
        if not issubclass(warning.category, IGNORED):
            kinds.setdefault(warning.category.__name__, first_sentence(str(warning.message)))
    return Outcome(
        name=name,
        fold=index,
        probabilities=probabilities,
        n_components=np.nan if error else count_components(fitted),
        fit_seconds=np.nan if error else fit_end - start,
        predict_seconds=np.nan if error else predict_end - fit_end,
        warnings=kinds,
        error=error,
    )


def find_mask(rows: Rows, which: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """Which of the actions that a model knows are available in some rows; where none is, it may say what it likes."""
    if rows.available is None:
        return None
    mask = rows.available[which][:, np.isin(rows.classes, known)]
    return mask | ~mask.any(axis=1, keepdims=True)


def take(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or a data frame."""
    return X.iloc[rows] if isinstance(X, pandas.DataFrame) else X[rows]


def align(probabilities: ArrayLike, known: ArrayLike, classes: np.ndarray) -> np.ndarray:
    """Columns for all actions; one that the model does not know has probability zero."""
    probabilities = np.asarray(probabilities, dtype=float)
    if not np.isfinite(probabilities).all():
        raise ValueError("predict_proba returned NaN or infinity.")
    table = np.zeros((len(probabilities), len(classes)))
    table[:, np.searchsorted(classes, known)] = probabilities
    return table


def count_components(model: Any) -> float:
    """Number of features or clusters of a fitted estimator, or of the first step of a pipeline with some; or NaN.

    Parameters
    ----------
    model : estimator
        Fitted; also a pipeline, or a search over settings.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from whyact.comparison import count_components
    >>> count_components(PCA(2).fit(np.eye(4)))
    2.0
    """
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, Pipeline):
        counts = [count_components(step) for _, step in model.steps]
        return next((count for count in counts if not np.isnan(count)), np.nan)
    return float(getattr(model, "n_components_", np.nan))


# --- from outcomes to tables ----------------------------------------------------------------------------------------


def measure(folds: list[Fold], outcomes: dict[str, list[Outcome]], rows: Rows) -> pandas.DataFrame:
    """One row for each fold and model."""
    measured = []
    for index, fold in enumerate(folds):
        actions = rows.actions[fold.test]
        available = None if rows.available is None else rows.available[fold.test]
        for name in outcomes:
            outcome = outcomes[name][index]
            measures = {} if outcome.probabilities is None else score(outcome.probabilities, actions, available)
            measured.append(
                {
                    "split": fold.split,
                    "repeat": fold.repeat,
                    "fold": fold.fold,
                    "model": name,
                    "n_train": len(fold.train),
                    "n_test": len(fold.test),
                    **{column: measures.get(column, np.nan) for column in (*COMPARED, "calibration_error")},
                    "n_components": outcome.n_components,
                    "fit_seconds": outcome.fit_seconds,
                    "predict_seconds": outcome.predict_seconds,
                }
            )
    return pandas.DataFrame(measured)


def pool_calibration(
    folds: list[Fold], outcomes: dict[str, list[Outcome]], actions: np.ndarray
) -> dict[tuple[str, str], float]:
    """Calibration error of all predictions of a split together, by split and model."""
    pooled: dict[tuple[str, str], float] = {}
    for split in dict.fromkeys(fold.split for fold in folds):
        for name in outcomes:
            predicted = [
                (outcome.probabilities, actions[fold.test])
                for fold, outcome in zip(folds, outcomes[name], strict=True)
                if fold.split == split and outcome.probabilities is not None
            ]
            pooled[split, name] = np.nan
            if predicted:
                probabilities, taken = (np.concatenate(parts) for parts in zip(*predicted, strict=True))
                pooled[split, name] = calibration_error(
                    probabilities.max(axis=1), probabilities.argmax(axis=1) == taken
                )
    return pooled


def summarise(measured: pandas.DataFrame, pooled: dict[tuple[str, str], float]) -> pandas.DataFrame:
    """One row for each split and model: means over the folds in which it did not fail."""
    rows = []
    for (split, name), of_model in measured.groupby(["split", "model"], sort=False):
        row = {"split": split, "model": name, "n_folds": int(of_model["accuracy"].notna().sum())}
        for column in COMPARED:
            row[column], row[f"{column}_sd"] = of_model[column].mean(), of_model[column].std()
        row["calibration_error"] = pooled[split, name]
        rows.append(row | {c: of_model[c].mean() for c in ("n_components", "fit_seconds", "predict_seconds")})
    return pandas.DataFrame(rows)


def find_differences(measured: pandas.DataFrame, reference: str) -> pandas.DataFrame:
    """One row for each split, model and measure: the difference from the reference over the folds that both have."""
    rows = []
    for split, of_split in measured.groupby("split", sort=False):
        by_name = {name: part.set_index(["repeat", "fold"]) for name, part in of_split.groupby("model", sort=False)}
        for name, part in by_name.items():
            if name == reference:
                continue
            for column in COMPARED:
                differences = (part[column] - by_name[reference][column]).dropna()
                sizes = part.loc[differences.index, ["n_train", "n_test"]].mean()
                interval = corrected_interval(differences.to_numpy(), sizes["n_train"], sizes["n_test"])
                rows.append(
                    {
                        "split": split,
                        "model": name,
                        "measure": column,
                        "difference": interval.value,
                        "low": interval.low,
                        "high": interval.high,
                        "n_folds": len(differences),
                        "verdict": interval.verdict,
                    }
                )
    columns = ["split", "model", "measure", "difference", "low", "high", "n_folds", "verdict"]
    return pandas.DataFrame(rows, columns=columns)


def note_available(rows: Rows, models: dict[str, Model]) -> list[str]:
    """A note on who learns from what was available, if not everything was."""
    if rows.available is None:
        return []
    learners = [name for name, model in models.items() if takes_available(model.candidate.estimator.fit)]
    who = f" Models that also learn with it: {', '.join(learners)}." if learners else ""
    return [f"What is not available in a row has no probability there, for any model.{who}"]


def note_troubles(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Notes about models that failed or warned, and in how many fits."""
    notes = []
    for name, of_model in outcomes.items():
        errors = [outcome.error for outcome in of_model if outcome.error]
        if errors:
            notes.append(f"{name} failed in {len(errors)} of {len(of_model)} fits, the first time with {errors[0]}")
        counts = Counter(kind for outcome in of_model for kind in outcome.warnings)
        for kind, count in counts.items():
            first = next(outcome.warnings[kind] for outcome in of_model if kind in outcome.warnings)
            notes.append(f"{name}: {TROUBLES.get(kind, f'{kind}, {first}')} in {count} of {len(of_model)} fits.")
    return notes
