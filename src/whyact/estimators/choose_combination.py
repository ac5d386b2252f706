"""Choose how policies are combined by how well actions are predicted that were not learned from.

On decisions that people make, policies that multiply predict better than a mixture; where each feature makes the
teacher do one thing, as in the paper's simulations, it is the other way round. So each quarter of the known actions is
hidden in turn, a short chain learns from the others, and both ways predict what is hidden: the mixture with the
policies of the chain, the product with those that are learned from what a new row can show. The observations of all
rows stay, because new ones are not needed to tell the two apart. Of many rows, some are enough.
"""

from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from whyact.cut_policies import deal_out
from whyact.estimators.inputs import CheckedInput
from whyact.prediction import ProductPredictor
from whyact.progress import open_bar
from whyact.scaling import Scaling

LENGTH = {"n_burn_in": 250, "n_draws": 150, "n_chains": 1, "thin": 10, "max_prediction_draws": 15}
N_PARTS = 4
MOST_ROWS = 1000
FEWEST_ACTIONS = 20  # known ones; with fewer, nothing can be judged, and the paper's mixture is taken
# The product must be ahead by this much in the log score. The short chains are harder on the mixture, whose policies
# and decisiveness take longer to settle.
MARGIN = 0.05
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
    if counts.sum() < FEWEST_ACTIONS or np.sum(counts > 1) < 2:
        return Choice("mixture", None)
    parts = deal_out(given.actions, N_PARTS)
    short = clone(estimator).set_params(
        combination="mixture", priors=estimator._find_priors(scaling), unit=scaling.unit, scale_columns=False,
        n_jobs=None, random_state=0, verbose=0, warm_start=False, **LENGTH,
    )  # fmt: skip
    tasks = [joblib.delayed(score_part)(short, given, parts == part) for part in range(N_PARTS)]
    logs = []
    text = "mixture or product?"
    with open_bar(estimator.verbose, N_PARTS, "trials", text) as show:
        for scored in joblib.Parallel(n_jobs=estimator.n_jobs, return_as="generator")(tasks):
            logs.append(scored)
            show(len(logs), text)
    scores = dict(zip(("mixture", "product"), np.concatenate(logs).mean(axis=0).tolist(), strict=True))
    return Choice("product" if scores["product"] > scores["mixture"] + MARGIN else "mixture", scores)


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
    product = ProductPredictor(model.posterior_, result.target, LENGTH["max_prediction_draws"], 0, None)
    multiplied = product.learn(result.observations, result.actions, available).predict(
        result.observations[hidden], one_draw=False, maximise=False, available=given.available_in(hidden)
    )
    n_rows, taken = int(hidden.sum()), given.actions[hidden]
    chance = CAUTION * available[hidden] / available[hidden].sum(axis=1, keepdims=True)
    cautious = [chance + (1 - CAUTION) * judged.probabilities for judged in (mixed, multiplied)]
    return np.stack([np.log(judged[np.arange(n_rows), taken]) for judged in cautious], axis=1)
