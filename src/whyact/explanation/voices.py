"""What the features of a fitted model say about actions, as predictions hear it."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from whyact.cut_policies import CutPolicies
from whyact.intervals import Interval, quantile_interval
from whyact.model import LEARNED, center_log_odds


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
    return bool(model.combination_ == "mixture" and model._result.target.decisiveness == LEARNED)


def align_policies(model: Any) -> Interval:
    """What each feature makes the teacher do where it is alone and full, with the interval over draws, (K, U).

    Of a mixture, the mean and interval over the draws that hold the feature (`Posterior.aligned`). Of a product, the
    policies that predictions use: those of the chosen draw (`policies_`), with the interval over the draws that
    predictions average over and that hold the feature. Each of these draws has one best estimate of the policies, so
    this interval tells how far draws differ; it is narrower than what is unknown.
    """
    aligned = model.posterior_.aligned
    if getattr(model, "combination_", "mixture") != "product":
        return aligned.policies
    predictor = model._predictor
    draws, labels = predictor.many_draws, predictor.labels
    bases = np.repeat(draws.voices.base, np.diff(draws.splits), axis=0)
    alone = softmax(draws.voices.log_odds + bases, axis=1)
    summary = Interval(model.policies_, model.policies_.copy(), model.policies_.copy())
    for k in range(model.n_components_):
        rows = alone[labels == k]
        if len(rows):  # a feature that no other draw holds has no interval but itself
            _, summary.low[k], summary.high[k] = quantile_interval(rows, aligned.interval, None)
    return summary


def find_usual_policies(model: Any) -> Interval:
    """What the teacher does where a feature is full and everything else is as usual, with the interval, (K, U).

    For pictures. Of a mixture, what the feature does alone. Of a product, in which a row without any other feature may
    be far from all that was seen, the other features are at their means over the demonstrations.
    """
    if getattr(model, "combination_", "mixture") != "product":
        return model.posterior_.aligned.policies
    predictor = model._predictor
    draws, labels = predictor.many_draws, predictor.labels
    amounts, chosen = predictor.find_amounts(model.observations_, model.n_jobs)
    voices = find_chosen_voices(model.posterior_.chosen, predictor.cut)
    value = say_usual(chosen, voices.log_odds, voices.base)
    usual = np.concatenate(
        [
            say_usual(shown, draws.voices.log_odds[first:last], base)
            for shown, first, last, base in zip(
                amounts, draws.splits[:-1], draws.splits[1:], draws.voices.base, strict=True
            )
        ]
    )
    summary = Interval(value, value.copy(), value.copy())
    for k in range(len(value)):
        rows = usual[labels == k]
        if len(rows):
            summary.value[k], summary.low[k], summary.high[k] = quantile_interval(rows, 0.9, rows.mean(axis=0))
    return summary


def say_usual(amounts: np.ndarray, log_odds: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Probabilities (K, U) with each feature full in turn, and the others at the means of their amounts (N, K)."""
    means = amounts.mean(axis=0)
    return softmax(base + means @ log_odds + (1.0 - means)[:, None] * log_odds, axis=1)
