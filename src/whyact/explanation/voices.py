"""What the features of a fitted model say about actions, as predictions hear it."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from whyact.cut_policies import CutPolicies
from whyact.intervals import Interval, quantile_interval
from whyact.model import center_log_odds


class ChosenVoices(NamedTuple):
    """What the features of the chosen draw of a product say, centred over the actions."""

    log_odds: np.ndarray  # (K, U)
    base: np.ndarray  # (U,)


def find_chosen_voices(chosen: Any, cut: CutPolicies | None) -> ChosenVoices:
    """The log odds that predictions of a product use with the chosen draw; without a cut, those that were sampled."""
    if cut is None:
        return ChosenVoices(center_log_odds(chosen.policies), center_log_odds(chosen.base_policy))
    return ChosenVoices(cut.chosen_log_odds, cut.chosen_base)


def is_learned(model: Any) -> bool:
    """Whether the decisiveness of a mixture was learned, not set."""
    return bool(model._result.is_decisiveness_learned)


def is_product(model: Any) -> bool:
    """Whether a model has policies, and multiplies them."""
    return bool(len(model.classes_)) and getattr(model, "combination_", "mixture") == "product"


def align_policies(model: Any) -> Interval:
    """What each feature makes the teacher do where it is full, with the interval over the draws that hold it, (K, U).

    Of a mixture, where it is alone (`Posterior.aligned`). Of a product, where everything else is as usual: a row
    without any other feature may be far from all that was seen. These are the policies that predictions use; each draw
    has one best estimate of them, so the interval tells how far draws differ, and is narrower than what is unknown.
    """
    if not is_product(model):
        return model.posterior_.aligned.policies
    return find_usual_policies(model, 1.0)


def find_times(model: Any) -> np.ndarray:
    """Of a product: how many times as probable each action is with a feature as without it, (K, U).

    The feature is full, and everything else as usual.
    """
    return find_usual_policies(model, 1.0).value / find_usual_policies(model, 0.0).value


def find_usual_policy(model: Any) -> np.ndarray:
    """Of a product: what the teacher does where everything is as usual, the average over draws, (U,)."""
    voices, cut, splits = model._predictor.many_draws.voices, model._predictor.cut, model._predictor.many_draws.splits
    usual = [
        softmax(base + cut.means[first:last] @ voices.log_odds[first:last])
        for base, (first, last) in zip(voices.base, pairwise(splits), strict=True)
    ]
    return np.mean(usual, axis=0)


def find_usual_policies(model: Any, amount: float) -> Interval:
    """What the teacher does with this much of a feature, and as much as usual of all others, (K, U)."""
    predictor = model._predictor
    voices, cut, splits, labels = (
        predictor.many_draws.voices, predictor.cut, predictor.many_draws.splits, predictor.labels
    )  # fmt: skip
    of_draws = np.concatenate(
        [
            say_usual(cut.means[first:last], voices.log_odds[first:last], base, amount)
            for base, (first, last) in zip(voices.base, pairwise(splits), strict=True)
        ]
    )
    value = say_usual(cut.chosen_means, cut.chosen_log_odds, cut.chosen_base, amount)
    summary = Interval(value, value.copy(), value.copy())
    for k in range(len(value)):
        rows = of_draws[labels == k]
        if len(rows):  # a feature that no other draw holds has no interval but itself
            summary.value[k], summary.low[k], summary.high[k] = quantile_interval(rows, 0.9, rows.mean(axis=0))
    return summary


def say_usual(means: np.ndarray, log_odds: np.ndarray, base: np.ndarray, amount: float) -> np.ndarray:
    """Probabilities (K, U) with this much of each feature in turn, and the others at their means (K,)."""
    return softmax(base + means @ log_odds + (amount - means)[:, None] * log_odds, axis=1)
