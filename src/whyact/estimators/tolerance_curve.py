"""How many features there are if the model may be wrong by more, or only by less: short chains at several tolerances.

The trials that choose a tolerance (`choose_by_trials.py`) stop at the first one that loses, and there are none without
actions. Here the same is asked of any fitted model, for the number of features alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from whyact.estimators.choose_by_trials import MOST_ROWS as MOST_ROWS_OF_TRIALS
from whyact.estimators.choose_by_trials import take_some
from whyact.estimators.inputs import CheckedInput
from whyact.explanation.plateau import ToleranceCount, ToleranceCurve
from whyact.progress import open_bar
from whyact.scaling import find_least_tolerance

CURVE_TOLERANCES = (0.03, 0.05, 0.1, 0.15, 0.2, 0.3)
MOST_ROWS = 300
# As the trials of a fit with default settings; two chains, because what one of them invents should not count.
LENGTH = {"n_burn_in": 480, "n_draws": 120, "thin": 8, "n_chains": 2, "max_prediction_draws": 15}


def count_features_over_tolerance(
    model: Any, tolerances: Sequence[float] | None = None, *, max_rows: int = MOST_ROWS, verbose: int | None = None
) -> ToleranceCurve:
    """Count features with the noise held at several tolerances; see `FeaturePolicyClassifier`'s method of this name.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    tolerances : sequence of float or None, default=None
        Shares of a column's range; None: 0.03, 0.05, 0.1, 0.15, 0.2 and 0.3, none below what the data can carry.
    max_rows : int, default=300
        At most so many demonstrations are learned from.
    verbose : int or None, default=None
        1 shows progress; None: as the model's.

    Returns
    -------
    ToleranceCurve

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.estimators.tolerance_curve import count_features_over_tolerance
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> curve = count_features_over_tolerance(model.fit(demo.X[:80], demo.y[:80]), [0.05, 0.1])
    >>> [count.tolerance for count in curve.counts]
    [0.05, 0.1]
    """
    check_is_fitted(model)
    if not isinstance(max_rows, int | np.integer) or max_rows < 2:
        raise ValueError(f"max_rows must be a whole number, 2 or more, got {max_rows!r}.")
    wanted = check_tolerances(model, tolerances)
    result = model._result
    given = take_some(
        CheckedInput(result.observations, result.columns, result.classes, result.actions, result.available), max_rows
    )
    verbose = model.verbose if verbose is None else verbose
    counts = []
    with open_bar(verbose, len(wanted), "tolerances", "how many features?") as show:
        for count in run_chains(model, given, wanted):
            counts.append(count)
            show(len(counts), f"{count.n_features:.0f} features at {count.tolerance:.2g}")
    return ToleranceCurve(tuple(counts), count_own(model), len(given.actions), model.n_components is not None)


def check_tolerances(model: Any, tolerances: Sequence[float] | None) -> list[float]:
    """Those to try, in rising order, each once."""
    if tolerances is None:
        least = find_least_tolerance(model.observations_, model.n_levels)
        return sorted({max(tolerance, least) for tolerance in CURVE_TOLERANCES})
    wanted = np.unique(np.asarray(tolerances, dtype=float)).tolist()
    if not wanted or not all(0 < tolerance < 1 for tolerance in wanted):
        raise ValueError(f"tolerances must be shares between 0 and 1, at least one, got {tolerances!r}.")
    return wanted


def run_chains(model: Any, given: CheckedInput, tolerances: Sequence[float]) -> Iterator[ToleranceCount]:
    """Count the features at each tolerance."""
    # numba is imported when chains run, not with the package
    from whyact.sampler.compiling import announce_compilation

    announce_compilation(model.verbose, model._find_algorithm(given.observations.shape[1]).kernel)
    tasks = [joblib.delayed(count_at)(make_short(model, tolerance), given, tolerance) for tolerance in tolerances]
    # as for the chains: with other options joblib would start new processes for them, which all load the kernels
    yield from joblib.Parallel(n_jobs=model.n_jobs, mmap_mode="c", return_as="generator")(tasks)


def make_short(model: Any, tolerance: float) -> Any:
    """An estimator of short chains with the noise held at a tolerance; all else that matters for features as fitted."""
    scaling = model._result.scaling
    held = replace(scaling, noise=tolerance * scaling.find_width(model.observations_), n_floor=0)
    return clone(model).set_params(
        # the plain mixture, because features hardly depend on how policies are combined, and it is the quickest
        combination="mixture", decisiveness=1.0, sampler="exact", n_components=None,
        priors=model._find_priors(held), unit=model.unit_, observation_weight=model.observation_weight_,
        action_weight=model.action_weight_, scale_columns=False, tolerance=None, n_jobs=None, random_state=0,
        verbose=0, warm_start=False, **LENGTH,
    )  # fmt: skip


def count_at(short: Any, given: CheckedInput, tolerance: float) -> ToleranceCount:
    """Features that more than half of the draws hold."""
    return ToleranceCount(tolerance, float(short._fit_quietly(given).n_components_))


def count_own(model: Any) -> ToleranceCount:
    """The features of the fitted model, at its noise."""
    scaling = model._result.scaling
    noise = float(np.sqrt(model.noise_variance_)) / scaling.find_width(model.observations_)
    return ToleranceCount(model.tolerance_ if scaling.holds_noise else noise, float(model.n_components_))


def gather_known(model: Any) -> ToleranceCurve:
    """What the trials of the fit have found already: no counts without trials, or if the number was given."""
    is_given = model.n_components is not None
    trials = () if is_given else getattr(model, "tolerance_trials_", ())
    counts = tuple(ToleranceCount(trial.tolerance, trial.n_features) for trial in trials)
    # each trial has hidden actions, not rows
    return ToleranceCurve(counts, count_own(model), min(len(model.observations_), MOST_ROWS_OF_TRIALS), is_given)
