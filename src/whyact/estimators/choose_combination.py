"""Choose how policies are combined by how well actions are predicted that were not learned from.

On decisions that people make, policies that multiply predict better than a mixture; where each feature makes the
teacher do one thing, as in the paper's simulations, it is the other way round. So quarters of the known actions are
hidden in turn, a short chain learns from the others, and both ways predict what is hidden: the mixture with the
policies of the chain, the product with those that are learned from what a new row can show. The observations of all
rows stay, because new ones are not needed to tell the two apart. Of many rows, some are enough.

A few dozen actions cannot tell the two apart, so one of them is taken unless the other is clearly better: the product
for a table of columns of different kinds, the paper's mixture for signals of one kind. In a table a quantity that is
large often speaks against an action, which a mixture cannot say.
"""

from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from whyact.cut_policies import deal_out
from whyact.estimators.inputs import CheckedInput
from whyact.model import COMBINATIONS
from whyact.prediction import ProductPredictor
from whyact.progress import open_bar
from whyact.scaling import Scaling

N_PARTS = 4
N_KEPT = 15  # draws of a trial
# All trials together have this share of the sweeps of a fit that is half burn-in, and this share of a trial's sweeps is
# its own burn-in.
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
    scores: dict[str, float] | None  # log score of each; None if there was too little to judge by


def choose_combination(estimator: Any, given: CheckedInput, scaling: Scaling) -> Choice:
    """Choose between the mixture and the product.

    Parameters
    ----------
    estimator : FeaturePolicyClassifier
        Not fitted; its other parameters hold.
    given : CheckedInput
        The demonstrations, after the scaling of columns.
    scaling : Scaling
        How they are brought to the sampler's unit.

    Returns
    -------
    Choice
    """
    given = take_some(given)
    counts = np.bincount(given.actions[given.actions >= 0], minlength=given.n_actions)
    usual, other = COMBINATIONS if scaling.column_range is None else COMBINATIONS[::-1]
    if counts.sum() < FEWEST_ACTIONS or np.sum(counts > 1) < 2:
        return Choice(usual, None)
    parts = deal_out(given.actions, N_PARTS)
    short = clone(estimator).set_params(
        combination="mixture", priors=estimator._find_priors(scaling), unit=scaling.unit, scale_columns=False,
        n_jobs=None, random_state=0, verbose=0, warm_start=False, **find_length(estimator),
    )  # fmt: skip
    n_trials = int(np.clip(np.ceil(ENOUGH_HIDDEN * N_PARTS / counts.sum()), 2, N_PARTS))
    tasks = [joblib.delayed(score_part)(short, given, parts == part) for part in range(n_trials)]
    logs = []
    text = "mixture or product?"
    with open_bar(estimator.verbose, n_trials, "trials", text) as show:
        # as for the chains: with other options joblib would start new processes for them, which all load the kernels
        for scored in joblib.Parallel(n_jobs=estimator.n_jobs, mmap_mode="c", return_as="generator")(tasks):
            logs.append(scored)
            show(len(logs), text)
    judged = dict(zip(COMBINATIONS, np.concatenate(logs).T, strict=True))
    ahead = judged[other] - judged[usual]
    is_clear = ahead.mean() > CLEARLY * ahead.std() / np.sqrt(len(ahead))
    return Choice(other if is_clear else usual, {name: float(log.mean()) for name, log in judged.items()})


def find_length(estimator: Any) -> dict[str, int]:
    """Parameters of a trial's chain: by default 480 + 120 sweeps.

    They do not depend on `n_draws`: whoever draws more later must come to the same choice.
    """
    length = estimator._find_length()
    n_sweeps = SHARE_OF_SWEEPS * length.n_chains * 2 * length.n_burn_in / N_PARTS
    thin = max(1, round((1 - SHARE_OF_BURN_IN) * n_sweeps / N_KEPT))
    return {
        "n_burn_in": round(SHARE_OF_BURN_IN * n_sweeps), "n_draws": thin * N_KEPT, "n_chains": 1, "thin": thin,
        "max_prediction_draws": N_KEPT,
    }  # fmt: skip


def take_some(given: CheckedInput) -> CheckedInput:
    """At most MOST_ROWS rows, first of those with an action."""
    if len(given.actions) <= MOST_ROWS:
        return given
    order = np.random.default_rng(0).permutation(len(given.actions))
    rows = np.sort(order[np.argsort(given.actions[order] < 0, kind="stable")][:MOST_ROWS])
    return given._replace(
        observations=given.observations[rows], actions=given.actions[rows], available=given.available_in(rows)
    )


def score_part(estimator: Any, given: CheckedInput, hidden: np.ndarray) -> np.ndarray:
    """Log probability of the hidden actions by the mixture and by the product, (hidden rows, 2)."""
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
    return np.stack([np.log(judged[np.arange(n_rows), taken]) for judged in cautious], axis=1)
