"""Why the model would act so: reasons for the prediction of single rows.

In one draw, with substates s and policies phi, the probability of action u is

    p(u) = c q(u) + (1 - c) / U,   q(u) proportional to m(u)^tau,   m(u) = sum_k s_k phi_k(u),

c the familiarity of the row (Eq. (model::mixture) for c = tau = 1). Feature k's term is c q(u) s_k phi_k(u) / m(u), and
the rest, (1 - c) / U, that of what is unfamiliar. The terms add up to p(u), and so do their averages over draws, once
the features of each draw are matched to those of the chosen one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyact.explain import find_names, name_strongest
from whyact.model import sharpen

if TYPE_CHECKING:
    from whyact.prediction import Prediction, Predictor
    from whyact.sampler.new_rows import Rounds

# Terms for the action below this share of its probability are not worth telling, nor terms against it below this.
WORTH_TELLING = 0.05
N_AGAINST = 2
# What is left of an observation is worth telling beyond so many standard deviations of the noise.
BEYOND_NOISE = 3.0
# One action is more probable than another if their sums over levels differ by more than this.
ROUNDING = 1e-9
# So many numbers are held at once for the intervals (32 MB).
BLOCK_OF_NUMBERS = 2**22
OTHER, UNFAMILIAR = "other", "unfamiliar"


class Estimate(NamedTuple):
    """Numbers with their intervals, arrays of one shape."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Neighbour(NamedTuple):
    """A demonstration that the features see as much the same."""

    row: int  # of `observations_`
    distance: float  # between what the features make up for both, in the unit of the observations
    action: Any  # None where it is missing


class Counterfactual(NamedTuple):
    """The smallest change of the substates, in all, that changes what the chosen draw would do."""

    before: Any  # the action of the chosen draw for the substates as they are
    action: Any  # the action after the change
    changes: dict[int, tuple[float, float]]  # feature -> its substate before and after


@dataclass(frozen=True)
class Vocabulary:
    """How to name things."""

    classes: np.ndarray
    columns: Sequence[str]
    features: list[str]  # "feature 0 (its strongest columns)"
    interval: float
    noise: float  # standard deviation


@dataclass(frozen=True, eq=False)
class Explanation:
    """The reasons for one prediction.

    Attributes
    ----------
    row : int
        Which row of X.
    action : label
        The most probable action.
    probabilities : Estimate of arrays (U,)
        What `predict_proba` says, with the interval over draws.
    familiarity : float
        What `familiarity` says.
    terms : Estimate of arrays (K + 2, U)
        How much each feature of `components_` speaks for each action; then the features of other draws that match none
        of them; then what is unfamiliar. The values add up to `probabilities`. With prediction="map" they are those of
        the chosen draw; the intervals are over all draws nonetheless.
    substates : array (K,)
        How much of each feature is in the row, given the chosen draw: what `transform` says.
    presence : array (K,)
        Probability that the feature is in the row at all; with prediction="map" 0 or 1.
    parts : array (K + 1, D)
        What each feature puts into the observation, then those of other draws that match none.
    unexplained : array (D,)
        The observation without all parts; NaN where it is missing.
    nearest : tuple of Neighbour
        The demonstrations most alike, nearest first.
    counterfactual : Counterfactual or None
        None if no substates make the chosen draw act otherwise.
    """

    row: int
    action: Any
    probabilities: Estimate
    familiarity: float
    terms: Estimate
    substates: np.ndarray
    presence: np.ndarray
    parts: np.ndarray
    unexplained: np.ndarray
    nearest: tuple[Neighbour, ...]
    counterfactual: Counterfactual | None
    vocabulary: Vocabulary = field(repr=False)

    @property
    def present(self) -> np.ndarray:
        """The features that are rather in the row than not."""
        return np.nonzero(self.presence >= 0.5)[0]

    def __str__(self) -> str:
        sentences = (
            say(self)
            for say in (say_action, say_present, say_for, say_against, say_rest, say_nearest, say_counterfactual)
        )
        return "\n  ".join(sentence for sentence in sentences if sentence)


class Explanations(Sequence):
    """The reasons for some predictions, one `Explanation` a row."""

    def __init__(self, explanations: list[Explanation]):
        self._explanations = explanations

    def __len__(self) -> int:
        return len(self._explanations)

    def __getitem__(self, which):
        found = self._explanations[which]
        return Explanations(found) if isinstance(which, slice) else found

    def __str__(self) -> str:
        return "\n".join(str(explanation) for explanation in self)

    def __repr__(self) -> str:
        return f"<Explanations of {len(self)} rows>"

    def to_frame(self):
        """Return a `pandas.DataFrame` with one line for each row, source (feature, ...) and action.

        `term` with its interval `low`, `high`; `substate` and `presence` of the feature, missing for other sources. The
        terms of one row and action add up to its probability.
        """
        import pandas as pd

        lines: dict[str, list] = {
            name: [] for name in ("row", "source", "action", "term", "low", "high", "substate", "presence")
        }
        for one in self:
            n_sources, n_actions = one.terms.value.shape
            sources = [*(f"feature {k}" for k in range(n_sources - 2)), OTHER, UNFAMILIAR]
            lines["row"] += [one.row] * (n_sources * n_actions)
            lines["source"] += [source for source in sources for _ in range(n_actions)]
            lines["action"] += one.vocabulary.classes.tolist() * n_sources
            for name, numbers in zip(("term", "low", "high"), one.terms, strict=True):
                lines[name] += numbers.ravel().tolist()
            for name, numbers in (("substate", one.substates), ("presence", one.presence)):
                lines[name] += np.repeat(np.append(numbers, [np.nan, np.nan]), n_actions).tolist()
        return pd.DataFrame(lines)


# --- how much each feature speaks for each action -----------------------------------------------------------


def find_terms(
    substates: np.ndarray, shares: np.ndarray, policies: np.ndarray, decisiveness: float, labels: np.ndarray, n_labels
) -> np.ndarray:
    """How much each feature speaks for each action in one draw, (..., n_labels + 2, U).

    `substates` (..., K) and the familiar shares (...) of any rows; `labels` (K,) tell which feature of the chosen draw
    each one is, -1 for none. Rows without any feature come with a share of zero.
    """
    n_actions = policies.shape[1]
    spoken = substates[..., None] * policies
    votes = spoken.sum(axis=-2)  # m(u)
    total = votes.sum(axis=-1, keepdims=True)
    mixture = sharpen(np.where(total > 0, votes / np.where(total > 0, total, 1.0), 1.0 / n_actions), decisiveness)
    # q(u) / m(u): where nothing speaks for an action, no feature does
    per_vote = shares[..., None] * mixture / np.where(votes > 0, votes, np.inf)
    terms = np.zeros((*shares.shape, n_labels + 2, n_actions))
    for k, label in enumerate(labels):
        terms[..., label if label >= 0 else n_labels, :] += spoken[..., k, :] * per_vote
    terms[..., -1, :] = ((1.0 - shares) / n_actions)[..., None]
    return terms


def find_terms_of_draws(rounds: "Rounds", predictor: "Predictor", n_labels: int) -> np.ndarray:
    """The terms in every draw and kept round, (N, draws x rounds, K + 2, U)."""
    draws = predictor.many_draws
    splits = draws.splits
    terms = [
        find_terms(
            rounds.substates[..., splits[i] : splits[i + 1]],
            rounds.shares[..., i],
            draws.voices.policies[splits[i] : splits[i + 1]],
            draws.voices.decisiveness,
            predictor.labels[splits[i] : splits[i + 1]],
            n_labels,
        )
        for i in range(len(splits) - 1)
    ]
    return np.concatenate(terms, axis=1)


# --- the nearest demonstrations, and what would have to be different ----------------------------------------


def find_nearest(
    substates: np.ndarray, of_demonstrations: np.ndarray, gram: np.ndarray, n_nearest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the demonstrations (N, K) nearest to substates (K,), and their distances |(s - s') F|, nearest first."""
    away = of_demonstrations - substates
    distances = np.sqrt(np.maximum(((away @ gram) * away).sum(axis=1), 0.0))
    rows = np.argsort(distances, kind="stable")[:n_nearest]
    return rows, distances[rows]


def overturn(levels: np.ndarray, leanings: np.ndarray, top: int) -> np.ndarray | None:
    """The nearest levels in {0, ..., top}^K with sum_k level_k leaning_k > 0, or None if there are none.

    Each step of a level costs the same and gains its |leaning|, so the best is to take the largest gains first.
    """
    gains = np.abs(leanings)
    room = np.where(leanings > 0, top - levels, levels)
    order = np.argsort(-gains, kind="stable")
    margins = levels @ leanings + np.cumsum((room * gains)[order])  # with so many features at their limit
    enough = np.nonzero(margins > ROUNDING)[0]
    if not len(enough):
        return None
    last = order[enough[0]]
    steps = np.zeros(len(levels), dtype=int)
    steps[order[: enough[0]]] = room[order[: enough[0]]]
    missing = ROUNDING - (margins[enough[0]] - room[last] * gains[last])
    steps[last] = min(int(missing / gains[last]) + 1, room[last])
    return levels + np.sign(leanings).astype(int) * steps


def find_counterfactual(levels: np.ndarray, policies: np.ndarray, top: int) -> tuple[int, int, np.ndarray] | None:
    """The nearest levels (K,) at which another action is more probable: the two actions, and those levels.

    Among equally near ones that with the largest margin. The power tau of the mixture does not change its order, and
    what is unfamiliar speaks for all actions alike.
    """
    before = int(np.argmax(levels @ policies))
    found = []
    for action in range(policies.shape[1]):
        leanings = policies[:, action] - policies[:, before]
        changed = None if action == before else overturn(levels, leanings, top)
        if changed is not None:
            found.append((int(np.abs(changed - levels).sum()), -float(changed @ leanings), action, changed))
    if not found:
        return None
    _, _, action, changed = min(found, key=lambda one: one[:3])
    return before, action, changed


# --- all of it, for rows ------------------------------------------------------------------------------------


def explain_rows(model, X: np.ndarray, n_nearest: int, interval: float) -> Explanations:
    """Explain what a `FeaturePolicyClassifier` says of rows that it has checked."""
    n_labels, n_actions = model.n_components_, len(model.classes_)
    n_numbers = model._predictor.n_rounds * (n_labels + 2) * n_actions
    block_size = max(1, BLOCK_OF_NUMBERS // n_numbers)
    columns = find_names(model, None)
    vocabulary = Vocabulary(
        model.classes_,
        columns,
        [f"feature {k} ({name_strongest(entries, columns, 2)})" for k, entries in enumerate(model.components_)],
        interval,
        float(np.sqrt(model.noise_variance_)),
    )
    found: list[Explanation] = []
    for first in range(0, len(X), block_size):
        found += explain_block(model, X[first : first + block_size], first, n_nearest, vocabulary)
    return Explanations(found)


def explain_block(model, X: np.ndarray, first: int, n_nearest: int, vocabulary: Vocabulary) -> list[Explanation]:
    """Explain some rows; the first one is row `first`."""
    predictor = model._predictor
    use_map = model.prediction == "map"
    chosen = predictor.predict(X, one_draw=True, maximise=use_map, n_jobs=model.n_jobs)
    averaged, rounds = predictor.record(X, n_jobs=model.n_jobs)
    samples = find_terms_of_draws(rounds, predictor, model.n_components_)
    made_of = decompose_chosen(model, chosen) if use_map else decompose_average(model, rounds, samples)
    predicted = chosen if use_map else averaged
    limits = ((1 - vocabulary.interval) / 2, (1 + vocabulary.interval) / 2)
    probabilities = Estimate(predicted.probabilities, *np.quantile(samples.sum(axis=2), limits, axis=1))
    terms = Estimate(made_of.terms, *np.quantile(samples, limits, axis=1))
    gram = model.components_ @ model.components_.T
    return [
        Explanation(
            row=first + n,
            action=model.classes_[np.argmax(predicted.probabilities[n])],
            probabilities=Estimate(*(numbers[n] for numbers in probabilities)),
            familiarity=float(predicted.familiarity[n]),
            terms=Estimate(*(numbers[n] for numbers in terms)),
            substates=chosen.substates[n],
            presence=made_of.presence[n],
            parts=made_of.parts[n],
            unexplained=X[n] - made_of.parts[n].sum(axis=0),
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
    parts: np.ndarray  # (N, K + 1, D), in the unit of the observations


def decompose_chosen(model, chosen: "Prediction") -> Decomposition:
    """By the chosen draw alone; every feature is one of its own."""
    policies, n_labels = model._chosen.policies, model.n_components_
    tau = model._predictor.target.decisiveness
    parts = chosen.substates[..., None] * model.components_
    return Decomposition(
        find_terms(chosen.substates, chosen.familiarity, policies, tau, np.arange(n_labels), n_labels),
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
    """What would have to be different from these substates, brought to the grid."""
    top = model._predictor.target.n_levels - 1
    levels = np.rint(substates * top).astype(int)
    found = find_counterfactual(levels, model._chosen.policies, top)
    if found is None:
        return None
    before, after, changed = found
    changes = {int(k): (levels[k] / top, changed[k] / top) for k in np.nonzero(changed != levels)[0]}
    return Counterfactual(model.classes_[before], model.classes_[after], changes)


# --- as text ------------------------------------------------------------------------------------------------


def say_estimate(estimate: Estimate, *where) -> str:
    value, low, high = (numbers[where] for numbers in estimate)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def say_action(one: Explanation) -> str:
    best = int(np.argmax(one.probabilities.value))
    return (
        f"Row {one.row}: {one.action} with {say_estimate(one.probabilities, best)}; intervals of "
        f"{one.vocabulary.interval:.0%}; {one.familiarity:.0%} familiar."
    )


def say_present(one: Explanation) -> str:
    """Name the features that are rather present than not, and how much of them."""
    told = (f"{one.vocabulary.features[k]} {one.substates[k]:.2f}" for k in one.present)
    return "Present: " + (", ".join(told) or "no feature") + "."


def say_for(one: Explanation) -> str:
    """Name what speaks for the action, most first."""
    best = int(np.argmax(one.probabilities.value))
    terms = one.terms.value[:, best]
    sources = [*(f"feature {k}" for k in range(len(terms) - 2)), "other features", "what is unfamiliar"]
    told = [k for k in np.argsort(-terms, kind="stable") if terms[k] >= WORTH_TELLING * terms.sum()]
    return "For it: " + ", ".join(f"{say_estimate(one.terms, k, best)} from {sources[k]}" for k in told) + "."


def say_against(one: Explanation) -> str:
    """Name which features speak for another action, and for which, most first."""
    terms = one.terms.value[:-2].copy()
    terms[:, int(np.argmax(one.probabilities.value))] = 0.0
    features = np.argsort(-terms.max(axis=1), kind="stable")[:N_AGAINST]
    told = [(k, int(np.argmax(terms[k]))) for k in features if terms[k].max() >= WORTH_TELLING]
    if not told:
        return ""
    return (
        "Against it: "
        + ", ".join(
            f"{say_estimate(one.terms, k, u)} from feature {k} for {one.vocabulary.classes[u]}" for k, u in told
        )
        + "."
    )


def say_rest(one: Explanation) -> str:
    """Name what no feature explains, where it is more than noise."""
    rest = np.where(np.isnan(one.unexplained), 0.0, one.unexplained)
    order = np.argsort(-np.abs(rest), kind="stable")[:3]
    told = [d for d in order if abs(rest[d]) > BEYOND_NOISE * one.vocabulary.noise]
    return (
        "Unexplained: " + ", ".join(f"{one.vocabulary.columns[d]} {rest[d]:+.2f}" for d in told) + "." if told else ""
    )


def say_nearest(one: Explanation) -> str:
    if not one.nearest:
        return ""
    told = (
        f"{near.row} ({'action unknown' if near.action is None else near.action}, {near.distance:.2f} away)"
        for near in one.nearest
    )
    return "Most like it: demonstrations " + ", ".join(told) + "."


def say_counterfactual(one: Explanation) -> str:
    found = one.counterfactual
    if found is None:
        return "No change of the substates would change it."
    changes = ", ".join(
        f"feature {k} at {after:.2f} instead of {before:.2f}" for k, (before, after) in found.changes.items()
    )
    if found.before == one.action:
        return f"It would be {found.action} with {changes}."
    return f"The chosen draw by itself says {found.before}; it would say {found.action} with {changes}."
