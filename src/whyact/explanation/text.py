"""The reasons for predictions as objects, and as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from whyact.explanation.counterfactual import Counterfactual
from whyact.intervals import Interval
from whyact.prediction import FAMILIAR

if TYPE_CHECKING:
    import pandas

# Terms for the action below this share of its probability are not mentioned, nor terms against it below this.
WORTH_TELLING = 0.05
N_AGAINST = 2
# A feature is present in the chosen draw from this substate on; below this presence its probability is mentioned.
LEAST_SUBSTATE = 0.01
SURELY_PRESENT = 0.95
# What is left of an observation is mentioned if it exceeds this many standard deviations of the noise.
BEYOND_NOISE = 3.0
N_UNEXPLAINED = 3
# Two substates that look the same get more decimals, up to this many.
MAX_DECIMALS = 6
OTHER, UNFAMILIAR = "other", "unfamiliar"


class Neighbour(NamedTuple):
    """A demonstration that looks similar to the features."""

    row: int  # of `observations_`
    distance: float  # between what the features make up for both, in the unit of `components_`
    action: Any  # None where it is missing


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
    each column was subtracted, which belongs to no feature: the observation is column_low_ + all parts + unexplained.
    Distances to demonstrations are then in shares of the columns' ranges, as `components_` are.

    Attributes
    ----------
    row : int
        Which row of X.
    action : label
        The most probable action.
    probabilities : Interval of arrays (U,)
        What `predict_proba` says, with the interval over draws.
    familiarity : float
        What `familiarity` says; 0 if nothing is observed, even though the features still have their terms.
    terms : Interval of arrays (K + 2, U)
        How much each feature of `components_` favours each action; then the features of other draws that match none
        of them; then the unfamiliar part. The values add up to `probabilities`. With prediction="map" they are those of
        the chosen draw; the intervals are still over all draws.
    substates : array (K,)
        How much of each feature is in the row, given the chosen draw: what `transform` says.
    presence : array (K,)
        Probability that the feature is in the row at all; with prediction="map" 0 or 1.
    parts : array (K + 1, D)
        What each feature puts into the observation, then those of other draws that match none.
    unexplained : array (D,)
        The observation without all parts (and without column_low_, if there is one); NaN where it is missing.
    nearest : tuple of Neighbour
        The most similar demonstrations, nearest first.
    counterfactual : Counterfactual or None
        None if no change of the substates changes the action.
    vocabulary : Vocabulary
        How to name things in the text.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> one = model.fit(demo.X[:80], demo.y[:80]).explain(demo.X[80:])[0]
    >>> one.terms.value.shape, one.parts.shape
    ((7, 5), (6, 36))
    """

    row: int
    action: Any
    probabilities: Interval
    familiarity: float
    terms: Interval
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


class Explanations(Sequence[Explanation]):
    """The reasons for some predictions, one `Explanation` per row; printing them shows them as text.

    Parameters
    ----------
    explanations : list of Explanation

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> reasons = model.fit(demo.X[:80], demo.y[:80]).explain(demo.X[80:83])
    >>> reasons
    <Explanations of 3 rows>
    >>> list(reasons.to_frame().columns[:4])
    ['row', 'source', 'action', 'term']
    """

    def __init__(self, explanations: list[Explanation]):
        self._explanations = explanations

    def __len__(self) -> int:
        return len(self._explanations)

    @overload
    def __getitem__(self, which: int) -> Explanation: ...

    @overload
    def __getitem__(self, which: slice) -> "Explanations": ...

    def __getitem__(self, which: int | slice) -> "Explanation | Explanations":
        found = self._explanations[which]
        return Explanations(found) if isinstance(found, list) else found

    def __str__(self) -> str:
        return "\n".join(str(explanation) for explanation in self)

    def __repr__(self) -> str:
        return f"<Explanations of {len(self)} rows>"

    def to_frame(self) -> "pandas.DataFrame":
        """All terms as a table, with one line for each row, source (feature, ...) and action.

        Returns
        -------
        pandas.DataFrame
            `term` with its interval `low`, `high`; `substate` and `presence` of the feature, missing for other sources.
            The terms of one row and action add up to its probability.
        """
        import pandas  # half a second, which those who only read the text need not wait for

        lines: dict[str, list[Any]] = {
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
        return pandas.DataFrame(lines)


def say_estimate(estimate: Interval, *where: int) -> str:
    """One number of many with its interval."""
    value, low, high = (numbers[where] for numbers in estimate)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def say_share(probability: float) -> str:
    """A share without false certainty."""
    return f"{probability:.0%}" if probability >= 0.005 else "less than 1%"


def say_action(one: Explanation) -> str:
    """The most probable action, and how familiar the row is."""
    return f"Row {one.row}: {say_probability(one)}; {one.familiarity:.0%} familiar."


def say_probability(one: Explanation) -> str:
    """The probability of the most probable action."""
    best = int(np.argmax(one.probabilities.value))
    return f"{one.action} with {say_estimate(one.probabilities, best)}; {one.vocabulary.interval:.0%} intervals"


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
    return f"Row {one.row}: {why}; no meaningful reason can be given."


def say_action_nonetheless(one: Explanation) -> str:
    """The most probable action of a row that is unlike the demonstrations."""
    return f"Still the most probable action: {say_probability(one)}."


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
    """What terms can come from."""
    return [*(f"feature {k}" for k in range(len(one.substates))), "other features", "the unfamiliar part"]


def find_reasons_for(one: Explanation) -> list[int]:
    """The terms for the action that are worth telling, most first."""
    terms = one.terms.value[:, int(np.argmax(one.probabilities.value))]
    return [int(k) for k in np.argsort(-terms, kind="stable") if terms[k] >= WORTH_TELLING * terms.sum()]


def find_reasons_against(one: Explanation) -> list[tuple[int, int]]:
    """The features that favour another action, each with the action it favours most, strongest first."""
    terms = one.terms.value[:-1].copy()  # the unfamiliar part speaks for all alike
    terms[:, int(np.argmax(one.probabilities.value))] = 0.0
    order = np.argsort(-terms.max(axis=1), kind="stable")
    return [(int(k), int(np.argmax(terms[k]))) for k in order if terms[k].max() >= WORTH_TELLING]


def say_for(one: Explanation) -> str:
    """The terms for the action."""
    best, sources = int(np.argmax(one.probabilities.value)), name_sources(one)
    told = (f"{say_estimate(one.terms, k, best)} from {sources[k]}" for k in find_reasons_for(one))
    return "For it: " + ", ".join(told) + "."


def say_against(one: Explanation) -> str:
    """The strongest terms against the action."""
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
    """The most similar demonstrations."""
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
    """The smallest change that would change the action."""
    found = one.counterfactual
    if found is None:
        return "No change of the substates would change it."
    changes = ", ".join(say_change(k, before, after) for k, (before, after) in found.changes.items())
    if found.before == one.action:
        return f"It would be {found.action} with {changes}."
    return f"The chosen draw by itself says {found.before}; it would say {found.action} with {changes}."


TOLD_OF_FAMILIAR = (say_action, say_present, say_for, say_against, say_rest, say_nearest, say_counterfactual)


TOLD_OF_UNFAMILIAR = (say_unfamiliar, say_action_nonetheless, say_rest)
