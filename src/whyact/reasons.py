"""Why the model would act so: reasons for the prediction of single rows.

In one draw, with substates s and policies phi, the probability of action u is

    p(u) = c q(u) + (1 - c) / U,   q(u) proportional to m(u)^tau,   m(u) = sum_k s_k phi_k(u),

c the familiarity of the row (Eq. (model::mixture) for c = tau = 1). Feature k's term is c q(u) s_k phi_k(u) / m(u), and
the rest, (1 - c) / U, that of what is unfamiliar. The terms add up to p(u), and so do their averages over draws, once
the features of each draw are matched to those of the chosen one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyact.explain import find_names, name_strongest
from whyact.model import sharpen
from whyact.prediction import FAMILIAR

if TYPE_CHECKING:
    from whyact.prediction import Prediction, Predictor
    from whyact.sampler.new_rows import Rounds

# Terms for the action below this share of its probability are not worth telling, nor terms against it below this.
WORTH_TELLING = 0.05
N_AGAINST = 2
# A feature is present in the chosen draw from this substate on; it is told how probable its presence is below that.
LEAST_SUBSTATE = 0.01
SURELY_PRESENT = 0.95
# What is left of an observation is worth telling beyond so many standard deviations of the noise.
BEYOND_NOISE = 3.0
N_UNEXPLAINED = 3
# Two substates that look alike get more decimals, up to so many.
MAX_DECIMALS = 6
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
    distance: float  # between what the features make up for both, in the unit of `components_`
    action: Any  # None where it is missing


class Counterfactual(NamedTuple):
    """The smallest change of the substates, in all, that changes what the chosen draw would do."""

    before: Any  # the action of the chosen draw for the substates as they are
    action: Any  # the action after the change
    changes: dict[int, tuple[float, float]]  # feature -> its substate as it is, and after, on the grid


@dataclass(frozen=True)
class Vocabulary:
    """How to name things."""

    classes: np.ndarray
    columns: Sequence[str]
    features: list[str]  # "feature 0 (its strongest columns)"
    interval: float
    noise: np.ndarray  # standard deviation in each column, in its own unit, (D,)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The reasons for one prediction.

    Parts and what is unexplained are in the unit of the observations. With `scale_columns=True` the lowest value of
    each column was taken off, which belongs to no feature: the observation is column_low_ + all parts + unexplained.
    Distances to demonstrations are then in shares of the columns' ranges, as `components_` are.

    Attributes
    ----------
    row : int
        Which row of X.
    action : label
        The most probable action.
    probabilities : Estimate of arrays (U,)
        What `predict_proba` says, with the interval over draws.
    familiarity : float
        What `familiarity` says; 0 if nothing is observed, though the features have their terms nonetheless.
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
        The observation without all parts (and without column_low_, if there is one); NaN where it is missing.
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
        """The features that are in the row in the chosen draw, by `substates`, strongest first."""
        order = np.argsort(-self.substates, kind="stable")
        return order[self.substates[order] >= LEAST_SUBSTATE]

    @property
    def unfamiliar(self) -> bool:
        """Whether so little of the row is explained that no reason means much."""
        return not self.familiarity >= FAMILIAR

    def __str__(self) -> str:
        told = TOLD_OF_UNFAMILIAR if self.unfamiliar else TOLD_OF_FAMILIAR
        sentences = (say(self) for say in told)
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


# --- as text ------------------------------------------------------------------------------------------------


def say_estimate(estimate: Estimate, *where) -> str:
    value, low, high = (numbers[where] for numbers in estimate)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def say_share(probability: float) -> str:
    return f"{probability:.0%}" if probability >= 0.005 else "less than 1%"


def say_action(one: Explanation) -> str:
    return f"Row {one.row}: {say_probability(one)}; {one.familiarity:.0%} familiar."


def say_probability(one: Explanation) -> str:
    best = int(np.argmax(one.probabilities.value))
    return f"{one.action} with {say_estimate(one.probabilities, best)}; intervals of {one.vocabulary.interval:.0%}"


def say_unfamiliar(one: Explanation) -> str:
    """Say why no reason means much."""
    if np.isnan(one.unexplained).all():
        return f"Row {one.row}: nothing is observed, so no reason can be given."
    if not len(one.substates):
        why = f"the model has no feature, {one.familiarity:.0%} familiar"
    elif not len(one.present) and not find_rest(one):
        why = f"unlike the demonstrations in that it holds no feature, {one.familiarity:.0%} familiar"
    else:
        why = f"unlike the demonstrations, {one.familiarity:.0%} familiar"
    return f"Row {one.row}: {why}; no reason can be given that means much."


def say_action_nonetheless(one: Explanation) -> str:
    return f"Most probable nonetheless: {say_probability(one)}."


def say_present(one: Explanation) -> str:
    """Name the features that are present in the chosen draw, or named as reasons, and how much of them."""
    reasons = [*find_reasons_for(one), *(k for k, _ in find_reasons_against(one)[:N_AGAINST])]
    features = dict.fromkeys([*one.present.tolist(), *(k for k in reasons if k < len(one.substates))])
    told = (f"{one.vocabulary.features[k]} {say_presence(one.substates[k], one.presence[k])}" for k in features)
    return "Present: " + ("; ".join(told) or "no feature") + "."


def say_presence(substate: float, presence: float) -> str:
    """Say how much of a feature is present, and how probable that is unless it is sure."""
    if substate >= LEAST_SUBSTATE:
        amount = f"{substate:.2f}"
    elif substate > 0 and presence >= SURELY_PRESENT:
        return f"below {LEAST_SUBSTATE}"
    else:
        amount = "absent in the chosen draw"
    doubtful = presence < SURELY_PRESENT or substate < LEAST_SUBSTATE
    return f"{amount}, in {say_share(presence)} of the draws" if doubtful else amount


def name_sources(one: Explanation) -> list[str]:
    return [*(f"feature {k}" for k in range(len(one.substates))), "other features", "what is unfamiliar"]


def find_reasons_for(one: Explanation) -> list[int]:
    """The terms for the action that are worth telling, most first."""
    terms = one.terms.value[:, int(np.argmax(one.probabilities.value))]
    return [int(k) for k in np.argsort(-terms, kind="stable") if terms[k] >= WORTH_TELLING * terms.sum()]


def find_reasons_against(one: Explanation) -> list[tuple[int, int]]:
    """The features that speak for another action, and for which most, most first."""
    terms = one.terms.value[:-1].copy()  # what is unfamiliar speaks for all alike
    terms[:, int(np.argmax(one.probabilities.value))] = 0.0
    order = np.argsort(-terms.max(axis=1), kind="stable")
    return [(int(k), int(np.argmax(terms[k]))) for k in order if terms[k].max() >= WORTH_TELLING]


def say_for(one: Explanation) -> str:
    best, sources = int(np.argmax(one.probabilities.value)), name_sources(one)
    told = (f"{say_estimate(one.terms, k, best)} from {sources[k]}" for k in find_reasons_for(one))
    return "For it: " + ", ".join(told) + "."


def say_against(one: Explanation) -> str:
    reasons, sources = find_reasons_against(one), name_sources(one)
    if not reasons:
        return ""
    told = (
        f"{say_estimate(one.terms, k, u)} from {sources[k]} for {one.vocabulary.classes[u]}"
        for k, u in reasons[:N_AGAINST]
    )
    more = f", and {len(reasons) - N_AGAINST} more" if len(reasons) > N_AGAINST else ""
    return "Against it: " + ", ".join(told) + more + "."


def find_rest(one: Explanation) -> list[int]:
    """The columns of which more than noise is unexplained, most first in units of the noise."""
    noise = one.vocabulary.noise
    rest = np.abs(np.where(np.isnan(one.unexplained), 0.0, one.unexplained))
    return [int(d) for d in np.argsort(-rest / noise, kind="stable") if rest[d] > BEYOND_NOISE * noise[d]]


def say_rest(one: Explanation) -> str:
    """Name what no feature explains, to two digits of the noise."""
    told = []
    for d in find_rest(one)[:N_UNEXPLAINED]:
        n_decimals = max(0, 1 - math.floor(math.log10(one.vocabulary.noise[d])))
        told.append(f"{one.vocabulary.columns[d]} {one.unexplained[d]:+.{n_decimals}f}")
    return "Unexplained: " + ", ".join(told) + "." if told else ""


def say_nearest(one: Explanation) -> str:
    if not one.nearest:
        return ""
    told = (
        f"{near.row} ({'action unknown' if near.action is None else near.action}, {near.distance:.2f} away)"
        for near in one.nearest
    )
    return "Most like it: demonstrations " + ", ".join(told) + "."


def say_change(feature: int, before: float, after: float) -> str:
    """Say both substates, with as many decimals as it takes to tell them apart."""
    n_decimals = 2 if max(before, after) >= LEAST_SUBSTATE else 3
    while f"{before:.{n_decimals}f}" == f"{after:.{n_decimals}f}" and n_decimals < MAX_DECIMALS:
        n_decimals += 1
    was, becomes = f"{before:.{n_decimals}f}", f"at {after:.{n_decimals}f}"
    if before < LEAST_SUBSTATE <= after or before == 0:
        was = "absent"
    if after < LEAST_SUBSTATE <= before or after == 0:
        becomes = "absent"
    return f"feature {feature} {becomes} instead of {was}"


def say_counterfactual(one: Explanation) -> str:
    found = one.counterfactual
    if found is None:
        return "No change of the substates would change it."
    changes = ", ".join(say_change(k, before, after) for k, (before, after) in found.changes.items())
    if found.before == one.action:
        return f"It would be {found.action} with {changes}."
    return f"The chosen draw by itself says {found.before}; it would say {found.action} with {changes}."


TOLD_OF_FAMILIAR = (say_action, say_present, say_for, say_against, say_rest, say_nearest, say_counterfactual)
TOLD_OF_UNFAMILIAR = (say_unfamiliar, say_action_nonetheless, say_rest)
