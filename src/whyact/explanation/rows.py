"""Reasons for the prediction of single rows: what they are made of, put together from draws, terms and neighbours."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyact.explanation.counterfactual import Counterfactual, find_counterfactual
from whyact.explanation.describe import name_strongest
from whyact.explanation.names import name_columns
from whyact.explanation.terms import (
    LOG_ODDS,
    PROBABILITY,
    find_log_odds,
    find_log_probabilities,
    find_probabilities_without,
    find_terms,
    find_terms_of_draws,
)
from whyact.explanation.text import Explanation, Explanations, Neighbour, Vocabulary
from whyact.explanation.voices import find_chosen_voices
from whyact.fit_result import FitResult
from whyact.intervals import Interval, quantile_interval
from whyact.prediction import Prediction, Predictor

if TYPE_CHECKING:
    from whyact.sampler.new_rows import Rounds

# At most this many numbers are held at once for the intervals (32 MB).
BLOCK_OF_NUMBERS = 2**22


class Subject(NamedTuple):
    """The model whose predictions are explained."""

    result: FitResult
    predictor: Predictor
    use_map: bool
    components: np.ndarray  # features of the chosen draw, in the unit of `observations_`, (K, D)
    vocabulary: Vocabulary

    @property
    def n_features(self) -> int:
        """Of the chosen draw."""
        return len(self.components)


def explain_rows(
    result: FitResult,
    predictor: Predictor,
    observations: np.ndarray,
    *,
    available: np.ndarray | None,
    use_map: bool,
    n_nearest: int,
    interval: float,
    n_jobs: int | None,
) -> Explanations:
    """Explain what a model predicts for rows.

    Parameters
    ----------
    result : FitResult
    predictor : Predictor
    observations : ndarray (N, D)
        Checked, and scaled as the model's own.
    available : ndarray (N, U) or None
        Which actions there are in each row; None: all.
    use_map : bool
        Whether the predictions are MAP, else MMSE.
    n_nearest : int
        How many demonstrations to name.
    interval : float
        Probability of the intervals.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Explanations
    """
    subject = describe_subject(result, predictor, use_map, interval)
    n_numbers = predictor.n_rounds * (subject.n_features + 2) * len(result.classes)
    block_size = max(1, BLOCK_OF_NUMBERS // n_numbers)
    found: list[Explanation] = []
    for first in range(0, len(observations), block_size):
        block = slice(first, first + block_size)
        there = None if available is None else available[block]
        found += explain_block(subject, observations[block], there, first, n_nearest, n_jobs)
    return Explanations(found)


def describe_subject(result: FitResult, predictor: Predictor, use_map: bool, interval: float) -> Subject:
    """The model, and how to name what it consists of."""
    unit, n_columns = result.scaling.unit, result.observations.shape[1]
    columns = name_columns(result.columns, n_columns)
    components = predictor.posterior.chosen.features * unit
    noise = np.sqrt(predictor.posterior.chosen.noise_variance * unit**2) * result.scaling.range_of_columns(n_columns)
    features = [f"feature {k} ({name_strongest(entries, columns, 2)})" for k, entries in enumerate(components)]
    scale = LOG_ODDS if predictor.is_product else PROBABILITY
    vocabulary = Vocabulary(result.classes, columns, features, interval, noise, scale)
    return Subject(result, predictor, use_map, components, vocabulary)


def explain_block(
    subject: Subject,
    observations: np.ndarray,
    available: np.ndarray | None,
    first: int,
    n_nearest: int,
    n_jobs: int | None,
) -> list[Explanation]:
    """Explain some rows; the first one is row `first`."""
    predictor, use_map, level = subject.predictor, subject.use_map, subject.vocabulary.interval
    chosen = predictor.predict(observations, one_draw=True, maximise=use_map, available=available, n_jobs=n_jobs)
    averaged, rounds = predictor.record(observations, available=available, n_jobs=n_jobs)
    samples = find_terms_of_draws(rounds, predictor, subject.n_features, available)
    observed = ~np.isnan(observations).all(axis=1)
    if use_map:
        made_of = decompose_chosen(subject, chosen, observed, available)
    else:
        made_of = decompose_average(subject, rounds, samples)
    predicted = chosen if use_map else averaged
    summed = summarise_sums(subject, predicted.probabilities, samples, made_of.terms)
    terms = quantile_interval(samples, level, made_of.terms, axis=1)
    there = np.ones(predicted.probabilities.shape, bool) if available is None else available
    gram = subject.components @ subject.components.T
    ranges = subject.result.scaling.range_of_columns(observations.shape[1])
    return [
        Explanation(
            row=first + n,
            action=subject.result.classes[np.argmax(predicted.probabilities[n])],
            probabilities=take(summed.probabilities, n),
            available=there[n],
            familiarity=float(predicted.familiarity[n]),
            terms=take(terms, n),
            totals=take(summed.totals, n),
            times=None if summed.times is None else take(summed.times, n),
            substates=chosen.substates[n],
            presence=made_of.presence[n],
            parts=made_of.parts[n] * ranges,
            unexplained=(observations[n] - made_of.parts[n].sum(axis=0)) * ranges,
            nearest=name_nearest(subject, chosen.substates[n], gram, n_nearest),
            counterfactual=name_counterfactual(subject, chosen.substates[n], there[n]),
            vocabulary=subject.vocabulary,
        )
        for n in range(len(observations))
    ]


def take(estimate: Interval, n: int) -> Interval:
    """The numbers of row n."""
    return Interval(*(numbers[n] for numbers in estimate))


class Sums(NamedTuple):
    """What terms add up to, and what that means for the actions; arrays over rows."""

    probabilities: Interval  # (N, U)
    totals: Interval  # sums of the terms, (N, U)
    times: Interval | None  # probabilities over those without each source, (N, K + 2, U); None for a mixture


def summarise_sums(subject: Subject, predicted: np.ndarray, samples: np.ndarray, terms: np.ndarray) -> Sums:
    """Add up the terms of rows (N, K + 2, U) and of their samples (N, draws, K + 2, U)."""
    level = subject.vocabulary.interval
    if not subject.predictor.is_product:
        probabilities = quantile_interval(samples.sum(axis=2), level, predicted, axis=1)
        return Sums(probabilities, probabilities, None)
    sums = samples.sum(axis=2)
    in_draws, without = np.exp(find_log_probabilities(sums)), find_probabilities_without(samples)
    # averaged as the probabilities themselves are
    averaged = find_probabilities_without(terms) if subject.use_map else without.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # what is not available has no probability with or without
        ratios, ratio = in_draws[:, :, None] / without, predicted[:, None] / averaged
    return Sums(
        quantile_interval(in_draws, level, predicted, axis=1),
        quantile_interval(sums, level, terms.sum(axis=1), axis=1),
        quantile_interval(ratios, level, ratio, axis=1),
    )


class Decomposition(NamedTuple):
    """What rows and their probabilities are made of, feature by feature."""

    terms: np.ndarray  # (N, K + 2, U)
    presence: np.ndarray  # (N, K)
    parts: np.ndarray  # (N, K + 1, D), in the unit of `components_`


def decompose_chosen(
    subject: Subject, chosen: Prediction, observed: np.ndarray, available: np.ndarray | None
) -> Decomposition:
    """By the chosen draw alone, whose features all have their own label. `observed` (N,): whether anything is."""
    state, n_labels = subject.predictor.posterior.chosen_on_average, subject.n_features
    labels = np.arange(n_labels)
    parts = chosen.substates[..., None] * subject.components
    if subject.predictor.is_product:
        voices = find_chosen_voices(state, subject.result.cut)
        terms = find_log_odds(chosen.substates, voices.log_odds, voices.base, labels, n_labels, available)
    else:
        # where nothing is observed, nothing is familiar, and yet features that are present by chance have their say
        shares = np.where(observed, chosen.familiarity, chosen.substates.any(axis=1))
        terms = find_terms(
            chosen.substates, shares, subject.predictor.posterior.find_votes(state), state.decisiveness, labels,
            n_labels, available,
        )  # fmt: skip
    return Decomposition(
        terms,
        (chosen.substates > 0).astype(float),
        np.append(parts, np.zeros((len(parts), 1, parts.shape[2])), axis=1),
    )


def decompose_average(subject: Subject, rounds: "Rounds", samples: np.ndarray) -> Decomposition:
    """By the average over draws of the terms, and of the features that match each one of the chosen draw."""
    draws, labels, n_labels = subject.predictor.many_draws, subject.predictor.labels, subject.n_features
    n_draws = rounds.shares.shape[2]
    present = (rounds.substates > 0).mean(axis=1)
    substates = rounds.substates.mean(axis=1)
    presence = np.empty((len(substates), n_labels))
    parts = np.empty((len(substates), n_labels + 1, draws.features.shape[1]))
    for label in range(n_labels):
        same = labels == label
        presence[:, label] = present[:, same].sum(axis=1) / n_draws
        parts[:, label] = substates[:, same] @ draws.features[same] / n_draws
    parts[:, n_labels] = substates[:, labels < 0] @ draws.features[labels < 0] / n_draws
    return Decomposition(samples.mean(axis=1), presence, parts * subject.result.scaling.unit)


def find_nearest(
    substates: np.ndarray, of_demonstrations: np.ndarray, gram: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the demonstrations (N, K) nearest to substates (K,), and their distances |(s - s') F|, nearest first."""
    away = of_demonstrations - substates
    distances = np.sqrt(np.maximum(((away @ gram) * away).sum(axis=1), 0.0))
    rows = np.argsort(distances, kind="stable")[:n_nearest]
    return rows, distances[rows]


def name_nearest(subject: Subject, substates: np.ndarray, gram: np.ndarray, n_nearest: int) -> tuple[Neighbour, ...]:
    """The nearest demonstrations, with their actions."""
    classes, actions = subject.result.classes, subject.result.actions
    rows, distances = find_nearest(substates, subject.predictor.posterior.chosen.substates.T, gram, n_nearest)
    return tuple(
        Neighbour(row, distance, classes[action] if action >= 0 else None)
        for row, distance, action in zip(rows.tolist(), distances.tolist(), actions[rows], strict=True)
    )


def name_counterfactual(subject: Subject, substates: np.ndarray, available: np.ndarray) -> Counterfactual | None:
    """What would have to change in these substates.

    Those of a mixture are searched on the grid, from the point nearest to them. Those of a product are no points of a
    grid: the search starts at themselves, and only what changes gets onto it.
    """
    top, chosen = subject.predictor.target.n_levels - 1, subject.predictor.posterior.chosen_on_average
    if subject.predictor.is_product:
        levels, voices = substates * top, find_chosen_voices(chosen, subject.result.cut)
        found = find_counterfactual(levels, voices.log_odds, top, voices.base, available)
    else:
        levels = np.rint(substates * top).astype(int)
        votes = subject.predictor.posterior.find_votes(chosen)
        found = find_counterfactual(levels, votes, top, None, available)
    if found is None:
        return None
    before, after, changed = found
    changes = {int(k): (float(substates[k]), float(changed[k] / top)) for k in np.nonzero(changed != levels)[0]}
    classes = subject.result.classes
    return Counterfactual(classes[before], classes[after], changes)
