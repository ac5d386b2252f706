"""Why the model would act so: reasons for the prediction of single rows.

In one draw, with substates s and policies phi, the probability of action u is

    p(u) = c q(u) + (1 - c) / U,   q(u) proportional to m(u)^tau,   m(u) = sum_k s_k phi_k(u),

c the familiarity of the row (Eq. (model::mixture) for c = tau = 1). Feature k's term is c q(u) s_k phi_k(u) / m(u), and
the rest, (1 - c) / U, that of what is unfamiliar. The terms add up to p(u), and so do their averages over draws, once
the features of each draw are matched to those of the chosen one.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyact.explanation.counterfactual import Counterfactual, find_counterfactual
from whyact.explanation.describe import find_names, name_strongest
from whyact.explanation.terms import Estimate, find_terms, find_terms_of_draws
from whyact.explanation.text import Explanation, Explanations, Neighbour, Vocabulary

if TYPE_CHECKING:
    from whyact.prediction import Prediction
    from whyact.sampler.new_rows import Rounds

# So many numbers are held at once for the intervals (32 MB).
BLOCK_OF_NUMBERS = 2**22


def find_nearest(
    substates: np.ndarray, of_demonstrations: np.ndarray, gram: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the demonstrations (N, K) nearest to substates (K,), and their distances |(s - s') F|, nearest first."""
    away = of_demonstrations - substates
    distances = np.sqrt(np.maximum(((away @ gram) * away).sum(axis=1), 0.0))
    rows = np.argsort(distances, kind="stable")[:n_nearest]
    return rows, distances[rows]


def explain_rows(model, X: np.ndarray, n_nearest: int, interval: float) -> Explanations:
    """Explain what a `FeaturePolicyClassifier` says of rows that it has checked."""
    n_labels, n_actions = model.n_components_, len(model.classes_)
    n_numbers = model._predictor.n_rounds * (n_labels + 2) * n_actions
    block_size = max(1, BLOCK_OF_NUMBERS // n_numbers)
    columns = find_names(model, None)
    noise = np.sqrt(model.noise_variance_) * find_ranges(model)
    vocabulary = Vocabulary(
        model.classes_,
        columns,
        [f"feature {k} ({name_strongest(entries, columns, 2)})" for k, entries in enumerate(model.components_)],
        interval,
        noise,
    )
    found: list[Explanation] = []
    for first in range(0, len(X), block_size):
        found += explain_block(model, X[first : first + block_size], first, n_nearest, vocabulary)
    return Explanations(found)


def find_ranges(model) -> np.ndarray:
    """What makes the unit of `components_` that of the observations, column by column, (D,)."""
    return getattr(model, "column_range_", np.ones(model.n_features_in_))


def explain_block(model, X: np.ndarray, first: int, n_nearest: int, vocabulary: Vocabulary) -> list[Explanation]:
    """Explain some rows; the first one is row `first`."""
    predictor = model._predictor
    use_map = model.prediction == "map"
    chosen = predictor.predict(X, one_draw=True, maximise=use_map, n_jobs=model.n_jobs)
    averaged, rounds = predictor.record(X, n_jobs=model.n_jobs)
    samples = find_terms_of_draws(rounds, predictor, model.n_components_)
    observed = ~np.isnan(X).all(axis=1)
    made_of = decompose_chosen(model, chosen, observed) if use_map else decompose_average(model, rounds, samples)
    predicted = chosen if use_map else averaged
    limits = ((1 - vocabulary.interval) / 2, (1 + vocabulary.interval) / 2)
    probabilities = Estimate(predicted.probabilities, *np.quantile(samples.sum(axis=2), limits, axis=1))
    terms = Estimate(made_of.terms, *np.quantile(samples, limits, axis=1))
    gram = model.components_ @ model.components_.T
    ranges = find_ranges(model)
    return [
        Explanation(
            row=first + n,
            action=model.classes_[np.argmax(predicted.probabilities[n])],
            probabilities=Estimate(*(numbers[n] for numbers in probabilities)),
            familiarity=float(predicted.familiarity[n]),
            terms=Estimate(*(numbers[n] for numbers in terms)),
            substates=chosen.substates[n],
            presence=made_of.presence[n],
            parts=made_of.parts[n] * ranges,
            unexplained=(X[n] - made_of.parts[n].sum(axis=0)) * ranges,
            nearest=name_nearest(model, chosen.substates[n], gram, n_nearest),
            counterfactual=name_counterfactual(model, chosen.substates[n]),
            vocabulary=vocabulary,
        )
        for n in range(len(X))
    ]


class Decomposition(NamedTuple):
    """What rows and their probabilities are made of, feature by feature."""

    terms: np.ndarray  # (N, K + 2, U)
    presence: np.ndarray  # (N, K)
    parts: np.ndarray  # (N, K + 1, D), in the unit of `components_`


def decompose_chosen(model, chosen: "Prediction", observed: np.ndarray) -> Decomposition:
    """By the chosen draw alone; every feature is one of its own. `observed` (N,): whether anything is."""
    policies, n_labels = model._chosen.policies, model.n_components_
    tau = model._predictor.target.decisiveness
    parts = chosen.substates[..., None] * model.components_
    # where nothing is observed, nothing is familiar, and yet the features speak that are present by themselves
    shares = np.where(observed, chosen.familiarity, chosen.substates.any(axis=1))
    return Decomposition(
        find_terms(chosen.substates, shares, policies, tau, np.arange(n_labels), n_labels),
        (chosen.substates > 0).astype(float),
        np.append(parts, np.zeros((len(parts), 1, parts.shape[2])), axis=1),
    )


def decompose_average(model, rounds: "Rounds", samples: np.ndarray) -> Decomposition:
    """By the average over draws of the terms, and of the features that match each one of the chosen draw."""
    draws, labels, n_labels = model._predictor.many_draws, model._predictor.labels, model.n_components_
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
    return Decomposition(samples.mean(axis=1), presence, parts * model.unit_)


def name_nearest(model, substates: np.ndarray, gram: np.ndarray, n_nearest: int) -> tuple[Neighbour, ...]:
    rows, distances = find_nearest(substates, model.substates_, gram, n_nearest)
    return tuple(
        Neighbour(row, distance, model.classes_[action] if action >= 0 else None)
        for row, distance, action in zip(rows.tolist(), distances.tolist(), model.actions_[rows], strict=True)
    )


def name_counterfactual(model, substates: np.ndarray) -> Counterfactual | None:
    """What would have to be different from these substates; sought on the grid, from the point nearest to them."""
    top = model._predictor.target.n_levels - 1
    levels = np.rint(substates * top).astype(int)
    found = find_counterfactual(levels, model._chosen.policies, top)
    if found is None:
        return None
    before, after, changed = found
    changes = {int(k): (float(substates[k]), float(changed[k] / top)) for k in np.nonzero(changed != levels)[0]}
    return Counterfactual(model.classes_[before], model.classes_[after], changes)
