"""Choose the weights of observations and actions by how well rows are predicted that were not learned from.

On real data the residual is not white noise. With the weight zeta = 1 of the observations every structure in it becomes
a feature; with too small a weight there are too few features. How much the actions should count, omega, is open as
well. What matters is a good prediction for new rows, so that decides: consecutive blocks of rows are held out, short
chains learn from the others, and the log score of the actions held out is compared. Rows that are predicted later play
no part in it.
"""

from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from whyact.scaling import Scaling

OBSERVATION_WEIGHTS = (1.0, 0.3, 0.1, 0.03)
ACTION_WEIGHTS = (1.0, 10.0)
LENGTH = {"n_burn_in": 100, "n_draws": 50, "n_chains": 1, "thin": 5}
N_BLOCKS = 24
EVERY = 4  # one block in this many is held out
FEWEST_ROWS = 48
# Share of the uniform distribution that predictions are mixed with, so that one wrong certainty is not infinitely bad.
CAUTION = 0.01


class Weights(NamedTuple):
    """What was chosen, and why."""

    observation_weight: float  # zeta
    action_weight: float | str  # omega
    scores: dict[tuple[float, float | str], float]  # log score of each pair that was tried


def choose_weights(estimator: Any, combination: str, scaling: Scaling, X: np.ndarray, actions: np.ndarray) -> Weights:
    """Choose the weights that are "auto": first that of the observations, then that of the actions.

    Parameters
    ----------
    estimator : FeaturePolicyClassifier
        Not fitted; its other parameters hold.
    combination : {"mixture", "product"}
        How policies are combined.
    scaling : Scaling
        How X is brought to the sampler's unit.
    X : array (N, D)
    actions : array (N,)
        Index of the action, -1 where it is missing.

    Returns
    -------
    Weights
    """
    held_out = (np.arange(len(X)) * N_BLOCKS // len(X)) % EVERY == EVERY // 2
    n_kinds = len(np.unique(actions[~held_out & (actions >= 0)]))
    if len(X) < FEWEST_ROWS or n_kinds < 2 or not (held_out & (actions >= 0)).any():
        name = "observation_weight" if estimator.observation_weight == "auto" else "action_weight"
        raise ValueError(
            f"{name}='auto' holds out every fourth block of rows to judge by: it needs at least {FEWEST_ROWS} rows, "
            "two actions among those to learn from, and known ones among those held out; give a number instead."
        )
    scores: dict[tuple[float, float | str], float] = {}
    # X is scaled already
    estimator = clone(estimator).set_params(
        combination=combination, priors=estimator._find_priors(scaling), scale_columns=False, tolerance=None
    )

    def try_weights(candidates: list[tuple[float, float | str]]) -> tuple[float, float | str]:
        tasks = [joblib.delayed(score_weights)(estimator, *pair, X, actions, held_out) for pair in candidates]
        scores.update(zip(candidates, joblib.Parallel(n_jobs=estimator.n_jobs)(tasks), strict=True))
        return max(scores, key=lambda pair: scores[pair])

    zeta, omega = estimator.observation_weight, estimator.action_weight
    chosen = try_weights(
        [
            (weight, ACTION_WEIGHTS[0] if omega == "auto" else omega)
            for weight in (OBSERVATION_WEIGHTS if zeta == "auto" else (zeta,))
        ]
    )
    if omega == "auto":
        chosen = try_weights([(chosen[0], weight) for weight in ACTION_WEIGHTS[1:]])
    return Weights(chosen[0], chosen[1], scores)


def score_weights(
    estimator: Any, zeta: float, omega: float | str, X: np.ndarray, actions: np.ndarray, held_out: np.ndarray
) -> float:
    """Mean log probability of the actions held out, learned from the other rows by a short chain."""
    model = clone(estimator).set_params(
        observation_weight=zeta,
        action_weight=omega,
        missing_action=-1,
        n_jobs=None,
        random_state=0,
        verbose=0,
        **LENGTH,
    )
    model._fit_quietly(model._check_input(X[~held_out], actions[~held_out]))
    judged = held_out & (actions >= 0)
    probabilities = model.predict_proba(X[judged])
    n_actions = actions.max() + 1
    mixed = np.full((len(probabilities), n_actions), CAUTION / n_actions)
    mixed[:, model.classes_] += (1 - CAUTION) * probabilities
    return float(np.log(mixed[np.arange(len(mixed)), actions[judged]]).mean())
