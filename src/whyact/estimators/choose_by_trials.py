"""Choose the tolerance, and how policies are combined, by how well actions are predicted that were not learned from.

On decisions that people make, policies that multiply predict better than a mixture; where each feature makes the
teacher do one thing, as in the paper's simulations, it is the other way round. So quarters of the known actions are
hidden in turn, a short chain learns from the others, and both ways predict what is hidden: the mixture with the
policies of the chain, the product with those that are learned from what a new row can show. The observations of all
rows stay, because new ones are not needed to tell the two apart. Of many rows, some are enough.

A few dozen actions cannot tell the two apart, so one of them is taken unless the other is clearly better: the product
for a table of columns of different kinds, the paper's mixture for signals of one kind. In a table a quantity that is
large often speaks against an action, which a mixture cannot say.

In a table, what need not be explained is chosen as well, because it decides how many features there are: the largest
tolerance that surely costs no score. The trials begin with the usual tolerance and go on to larger ones as long as
nothing is lost. To be sure takes many actions: with a hundred of them, "not worse by more than one standard error"
took tolerances that cost 0.02 to 0.3 in log score on new rows.

Neighbouring rows are hidden together, as far as they are alike (`neighbours.py`): the frames of a drive seem easy to
predict if those beside them were learned from.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from whyact.estimators.inputs import CheckedInput
from whyact.fit_result import ToleranceTrial
from whyact.model import COMBINATIONS
from whyact.neighbours import deal_out, find_reach, find_standard_error
from whyact.prediction import ProductPredictor
from whyact.progress import open_bar
from whyact.scaling import Scaling

N_PARTS = 4
N_KEPT = 15  # draws of a trial
# All trials of one tolerance together have this share of the sweeps of a fit that is half burn-in, and this share of a
# trial's sweeps is its own burn-in.
SHARE_OF_SWEEPS = 0.2
SHARE_OF_BURN_IN = 0.8
MOST_ROWS = 1000
ENOUGH_HIDDEN = 250  # actions to judge by: of many rows, not every quarter has to be hidden
FEWEST_ACTIONS = 20  # known ones; with fewer, nothing can be judged
CLEARLY = 2.33  # standard errors by which one must be ahead: one time in a hundred it is by chance
# Share of the uniform distribution that predictions are mixed with, so that one wrong certainty is not infinitely bad.
CAUTION = 0.01


class Choice(NamedTuple):
    """What was chosen, and why."""

    combination: str
    scores: dict[str, float] | None = None  # log score of each combination; None if there was nothing to judge by
    noise: float = 0.0  # where the noise is held; 0: it is free
    trials: tuple[ToleranceTrial, ...] | None = None  # of the tolerances; None if none was to be chosen


class Outcome(NamedTuple):
    """What the trials of one tolerance found."""

    logs: dict[str, np.ndarray]  # log probability of each hidden action, by combination
    n_features: float  # mean over the trials of how many features more than half of the draws hold


def choose_by_trials(
    estimator: Any, given: CheckedInput, scaling: Scaling, combinations: tuple[str, ...], tolerances: tuple[float, ...]
) -> Choice:
    """Choose between the mixture and the product, and a tolerance.

    Parameters
    ----------
    estimator : FeaturePolicyClassifier
        Not fitted; its other parameters hold.
    given : CheckedInput
        The demonstrations, after the scaling of columns.
    scaling : Scaling
        How they are brought to the sampler's unit, with the noise where it is held if no tolerance is to be chosen.
    combinations : tuple of str
        The usual one comes first; only one if it was given.
    tolerances : tuple of float
        In rising order, shares of `Scaling.find_width`; none if it is not to be chosen.

    Returns
    -------
    Choice
    """
    width = scaling.find_width(given.observations)
    usual = tolerances[0] * width if tolerances else scaling.noise
    nothing = Choice(combinations[0], None, usual)
    if len(combinations) == 1 and len(tolerances) < 2:
        return nothing
    given = take_some(given)
    reach = find_reach(given.observations, given.actions)
    counts = np.bincount(given.actions[given.actions >= 0], minlength=given.n_actions)
    if counts.sum() < FEWEST_ACTIONS or np.sum(counts > 1) < 2:
        return nothing
    n_trials = int(np.clip(np.ceil(ENOUGH_HIDDEN * N_PARTS / counts.sum()), 2, N_PARTS))
    most = n_trials * max(len(tolerances), 1)
    text = say_what_is_tried(len(combinations) > 1, len(tolerances) > 1)
    with open_bar(estimator.verbose, most, "trials", text) as show:
        n_done = 0

        def try_parts(noise: float, parts: range) -> list[tuple[np.ndarray, float]]:
            nonlocal n_done
            scored = []
            for found in run_trials(estimator, given, replace(scaling, noise=noise), parts, reach):
                scored.append(found)
                n_done += 1
                show(n_done, text)
            return scored

        def try_out(tolerance: float, is_enough: Callable[[Outcome], bool]) -> Outcome:
            half = (n_trials + 1) // 2
            scored = try_parts(tolerance * width, range(half))
            if not is_enough(summarise(scored)):
                scored += try_parts(tolerance * width, range(half, n_trials))
            return summarise(scored)

        first = summarise(try_parts(usual, range(n_trials)))
        combination = choose_combination(first.logs, combinations, reach)
        scores = {name: float(log.mean()) for name, log in first.logs.items()} if len(combinations) > 1 else None
        if len(tolerances) < 2:
            return Choice(combination, scores, usual)
        trials, chosen = choose_tolerance(first, try_out, combination, tolerances, reach)
        show(most, text)  # tolerances that nobody needs to try any more
    return Choice(combination, scores, chosen * width, trials)


def say_what_is_tried(tries_combinations: bool, tries_tolerances: bool) -> str:
    """What the trials are about, for the progress bar."""
    if not tries_combinations:
        return "trying tolerances"
    return "trying mixture, product and tolerances" if tries_tolerances else "trying mixture and product"


def summarise(scored: list[tuple[np.ndarray, float]]) -> Outcome:
    """What several trials found, by what `score_part` gives of each."""
    judged = np.concatenate([logs for logs, _ in scored])
    return Outcome(dict(zip(COMBINATIONS, judged.T, strict=True)), float(np.mean([number for _, number in scored])))


def run_trials(
    estimator: Any, given: CheckedInput, scaling: Scaling, hidden: range, reach: int
) -> Iterator[tuple[np.ndarray, float]]:
    """For each of these parts, which are hidden in turn, what `score_part` finds."""
    parts = deal_out(given.actions, N_PARTS, reach)
    short = clone(estimator).set_params(
        combination="mixture", priors=estimator._find_priors(scaling), unit=scaling.unit, scale_columns=False,
        tolerance=None, n_jobs=None, random_state=0, verbose=0, warm_start=False,
        **find_length(estimator, given.observations.shape[1]),
    )  # fmt: skip
    tasks = [joblib.delayed(score_part)(short, given, parts == part) for part in hidden]
    # as for the chains: with other options joblib would start new processes for them, which all load the kernels
    yield from joblib.Parallel(n_jobs=estimator.n_jobs, mmap_mode="c", return_as="generator")(tasks)


def choose_combination(logs: dict[str, np.ndarray], combinations: tuple[str, ...], reach: int) -> str:
    """The first one, unless the other is clearly better."""
    if len(combinations) == 1:
        return combinations[0]
    usual, other = combinations
    ahead = logs[other] - logs[usual]
    return other if ahead.mean() > CLEARLY * find_standard_error(ahead, reach) else usual


def choose_tolerance(
    first: Outcome,
    try_out: Callable[[float, Callable[[Outcome], bool]], Outcome],
    combination: str,
    tolerances: tuple[float, ...],
    reach: int,
) -> tuple[tuple[ToleranceTrial, ...], float]:
    """Try tolerances in rising order, until one loses; return how each one did, and the largest that does not.

    The first one has been tried. Trials take time, so `try_out` asks whether it is clear after some of them that a
    tolerance loses.
    """
    best = first.logs[combination]
    trials = [compare(tolerances[0], first, best, combination, reach)]
    for tolerance in tolerances[1:]:
        outcome = try_out(tolerance, partial(is_hopeless, best=best, combination=combination, reach=reach))
        trials.append(compare(tolerance, outcome, best, combination, reach))
        if trials[-1].is_lost:
            return tuple(trials), trials[-2].tolerance
        best = max(best, outcome.logs[combination], key=np.mean)
    return tuple(trials), tolerances[-1]


def compare(tolerance: float, outcome: Outcome, best: np.ndarray, combination: str, reach: int) -> ToleranceTrial:
    """How a tolerance did beside the best of the smaller ones, by the hidden actions that it was judged by."""
    logs = outcome.logs[combination]
    behind = best[: len(logs)] - logs
    return ToleranceTrial(
        tolerance, float(logs.mean()), float(behind.mean()), find_standard_error(behind, reach), outcome.n_features
    )


def is_hopeless(some: Outcome, best: np.ndarray, combination: str, reach: int) -> bool:
    """Whether a tolerance would lose if what is left to judge came out as what was judged."""
    trial = compare(0.0, some, best, combination, reach)
    share = len(some.logs[combination]) / len(best)
    return trial._replace(standard_error=trial.standard_error * np.sqrt(share)).is_lost


def find_length(estimator: Any, n_columns: int) -> dict[str, int]:
    """Parameters of a trial's chain: by default 480 + 120 sweeps.

    They do not depend on `n_draws`: whoever draws more later must come to the same choice.
    """
    length = estimator._find_length(n_columns)
    n_sweeps = SHARE_OF_SWEEPS * length.n_chains * 2 * length.n_burn_in / N_PARTS
    thin = max(1, round((1 - SHARE_OF_BURN_IN) * n_sweeps / N_KEPT))
    return {
        "n_burn_in": round(SHARE_OF_BURN_IN * n_sweeps), "n_draws": thin * N_KEPT, "n_chains": 1, "thin": thin,
        "max_prediction_draws": N_KEPT,
    }  # fmt: skip


def take_some(given: CheckedInput, most: int = MOST_ROWS) -> CheckedInput:
    """At most so many rows, first of those with an action."""
    if len(given.actions) <= most:
        return given
    order = np.random.default_rng(0).permutation(len(given.actions))
    rows = np.sort(order[np.argsort(given.actions[order] < 0, kind="stable")][:most])
    return given.take(rows)


def score_part(estimator: Any, given: CheckedInput, hidden: np.ndarray) -> tuple[np.ndarray, float]:
    """Log probability of the hidden actions by the mixture and by the product, (hidden rows, 2); how many features."""
    model = clone(estimator)
    model._fit_quietly(given._replace(actions=np.where(hidden, -1, given.actions)))
    result = model._result
    available = given.available_or_all
    mixed = model._predictor.predict(
        result.observations[hidden], one_draw=False, maximise=False, available=given.available_in(hidden)
    )
    product = ProductPredictor(model.posterior_, result.target, N_KEPT, 0, None)
    multiplied = product.learn(result.observations, result.actions, available).predict(
        result.observations[hidden], one_draw=False, maximise=False, available=given.available_in(hidden)
    )
    n_rows, taken = int(hidden.sum()), given.actions[hidden]
    chance = CAUTION * available[hidden] / available[hidden].sum(axis=1, keepdims=True)
    cautious = [chance + (1 - CAUTION) * judged.probabilities for judged in (mixed, multiplied)]
    logs = np.stack([np.log(judged[np.arange(n_rows), taken]) for judged in cautious], axis=1)
    return logs, float(model.n_components_)
