"""The reasons for predictions as objects, and as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from whyact.explanation.counterfactual import Counterfactual
from whyact.explanation.names import name_label
from whyact.explanation.terms import LOG_ODDS, PROBABILITY
from whyact.intervals import Interval
from whyact.prediction import FAMILIAR
from whyact.visible import make_visible

if TYPE_CHECKING:
    import pandas

# Terms for the action below this share of its probability are not mentioned, nor terms against it below this.
WORTH_TELLING = 0.05
N_AGAINST = 2
# Of a product, factors nearer to one are not mentioned, nor more features and reasons than this.
WORTH_TIMES = 1.1
N_FOR = 3
N_PRESENT = 5
MANY_TIMES = 1000.0  # larger factors are not told exactly
# A feature is present in the chosen draw from this substate on; below this presence its probability is mentioned.
LEAST_SUBSTATE = 0.01
SURELY_PRESENT = 0.95
# What is left of an observation is mentioned if it exceeds this many standard deviations of the noise.
BEYOND_NOISE = 3.0
N_UNEXPLAINED = 3
# Two substates that look the same get more decimals, up to this many.
MAX_DECIMALS = 6
OTHER, UNFAMILIAR, BASE = "other", "unfamiliar", "base"


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
    scale: str = PROBABILITY  # what terms are: PROBABILITY for a mixture, LOG_ODDS for a product


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
        What `predict_proba` says, with the interval over draws. If policies are multiplied, each draw of the features
        has a single best estimate of the policies, so this and all intervals below tell how far draws differ, and are
        narrower than what is unknown.
    available : array (U,) of bool
        Which actions can be taken.
    familiarity : float
        What `familiarity` says; 0 if nothing is observed, even though the features still have their terms.
    scale : {"probability", "log odds"}
        What the terms are: "probability" if policies are mixed, "log odds" if they are multiplied.
    terms : Interval of arrays (K + 2, U)
        How much each feature of `components_` favours each action; then the features of other draws that match none
        of them; then the unfamiliar part, or the base policy if policies are multiplied. They add up to `totals`. With
        prediction="map" they are those of the chosen draw; the intervals are still over all draws. Log odds below zero
        speak against an action, and are NaN for one that is not available.
    totals : Interval of arrays (U,)
        What the terms add up to: `probabilities`, or the log odds of each action, log p(u) minus its mean over the
        available actions, averaged over draws.
    times : Interval of arrays (K + 2, U), or None
        If policies are multiplied: how many times as probable each action is as in the same row without that source
        of terms. The interval is over draws.
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
    available: np.ndarray
    familiarity: float
    terms: Interval
    totals: Interval
    times: Interval | None
    substates: np.ndarray
    presence: np.ndarray
    parts: np.ndarray
    unexplained: np.ndarray
    nearest: tuple[Neighbour, ...]
    counterfactual: Counterfactual | None
    vocabulary: Vocabulary = field(repr=False)

    @property
    def scale(self) -> str:
        """What the terms are: "probability" of a mixture, "log odds" of a product."""
        return self.vocabulary.scale

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
        one = make_names_visible(self)
        sentences = (say(one) for say in told)
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
            If policies are mixed, the terms of one row and action add up to its probability. If they are multiplied,
            they are log odds and add up to those of the action, and `times` tells how many times as probable the action
            is as without that source.
        """
        import pandas  # half a second, which those who only read the text need not wait for

        has_times = any(one.times is not None for one in self)
        names = ("row", "source", "action", "term", "low", "high", *["times"] * has_times, "substate", "presence")
        lines: dict[str, list[Any]] = {name: [] for name in names}
        for one in self:
            n_sources, n_actions = one.terms.value.shape
            last = BASE if one.scale == LOG_ODDS else UNFAMILIAR
            sources = [*(f"feature {k}" for k in range(n_sources - 2)), OTHER, last]
            if one.times is not None:
                lines["times"] += one.times.value.ravel().tolist()
            lines["row"] += [one.row] * (n_sources * n_actions)
            lines["source"] += [source for source in sources for _ in range(n_actions)]
            lines["action"] += one.vocabulary.classes.tolist() * n_sources
            for name, numbers in zip(("term", "low", "high"), one.terms, strict=True):
                lines[name] += numbers.ravel().tolist()
            for name, numbers in (("substate", one.substates), ("presence", one.presence)):
                lines[name] += np.repeat(np.append(numbers, [np.nan, np.nan]), n_actions).tolist()
        return pandas.DataFrame(lines)


def make_names_visible(one: Explanation) -> Explanation:
    """The same reasons with all labels and names as they may be shown."""
    words, found = one.vocabulary, one.counterfactual
    return replace(
        one,
        action=name_label(one.action),
        nearest=tuple(
            near if near.action is None else near._replace(action=name_label(near.action)) for near in one.nearest
        ),
        counterfactual=None
        if found is None
        else found._replace(before=name_label(found.before), action=name_label(found.action)),
        vocabulary=replace(
            words,
            classes=np.array([name_label(label) for label in words.classes], dtype=object),
            columns=[make_visible(name) for name in words.columns],
        ),
    )


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
    return f"{one.action} with {say_estimate(one.probabilities, best)}; {say_level(one)}"


def say_level(one: Explanation) -> str:
    """What the intervals are: those of a product leave out how uncertain policies are, given the features of a draw."""
    level = f"{one.vocabulary.interval:.0%}"
    return f"ranges of {level} of the draws" if one.scale == LOG_ODDS else f"{level} intervals"


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
    if one.scale == LOG_ODDS:
        return say_amounts(one)
    reasons = [*find_reasons_for(one), *(k for k, _ in find_reasons_against(one)[:N_AGAINST])]
    features = dict.fromkeys([*one.present.tolist(), *(k for k in reasons if k < len(one.substates))])
    told = (f"{one.vocabulary.features[k]} {say_presence(one.substates[k], one.presence[k])}" for k in features)
    return "Present: " + ("; ".join(told) or "no feature") + "."


def say_amounts(one: Explanation) -> str:
    """Of a product: how much of the strongest features is present. Nearly all are, so not all of them are named.

    What a feature looks like is said once, here or where it is a reason.
    """
    more, less = find_effects(one)
    names = one.vocabulary.features.copy()
    for k in (*more[:N_FOR], *less[:N_AGAINST]):
        if k < len(names):
            names[k] = f"feature {k}"
    told = [f"{names[k]} {say_presence(one.substates[k], one.presence[k])}" for k in one.present[:N_PRESENT]]
    if len(one.present) > N_PRESENT:
        told.append(f"and less of {len(one.present) - N_PRESENT} more")
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
    last = "the teacher without any feature" if one.scale == LOG_ODDS else "the unfamiliar part"
    return [*(f"feature {k}" for k in range(len(one.substates))), "other features", last]


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
    if one.scale == LOG_ODDS:
        return say_effects(one)
    best, sources = int(np.argmax(one.probabilities.value)), name_sources(one)
    told = (f"{say_estimate(one.terms, k, best)} from {sources[k]}" for k in find_reasons_for(one))
    return "For it: " + ", ".join(told) + "."


def say_against(one: Explanation) -> str:
    """The strongest terms against the action."""
    if one.scale == LOG_ODDS:
        return ""  # `say_effects` has said both
    reasons, sources = find_reasons_against(one), name_sources(one)
    if not reasons:
        return ""
    told = (
        f"{say_estimate(one.terms, k, u)} from {sources[k]} for {one.vocabulary.classes[u]}"
        for k, u in reasons[:N_AGAINST]
    )
    more = f", and {len(reasons) - N_AGAINST} more" if len(reasons) > N_AGAINST else ""
    return "Against it: " + ", ".join(told) + more + "."


def find_effects(one: Explanation) -> tuple[list[int], list[int]]:
    """Of a product, the sources that make the action more probable, and those that make it less, strongest first.

    They are judged by how they change the odds of the action against all others: a probability near one cannot grow by
    much, yet the others' can shrink by much.
    """
    assert one.times is not None
    best = int(np.argmax(one.probabilities.value))
    others = one.available.copy()
    others[best] = False
    if not others.any():
        return [], []
    without = one.probabilities.value[others] / one.times.value[:, others]
    logs = np.log(one.times.value[:, best] * without.sum(axis=1) / one.probabilities.value[others].sum())
    order = np.argsort(-logs, kind="stable")
    more = [int(k) for k in order if logs[k] >= math.log(WORTH_TIMES)]
    return more, [int(k) for k in order[::-1] if logs[k] <= -math.log(WORTH_TIMES)]


def say_times(times: Interval, k: int, u: int, with_interval: bool = False) -> str:
    """How many times as probable a source makes an action, in words."""
    value, low, high = (float(numbers[k, u]) for numbers in times)
    word, size, least, most = ("more", value, low, high) if value >= 1 else ("less", 1 / value, 1 / high, 1 / low)
    if size >= MANY_TIMES:
        return f"over {MANY_TIMES:,.0f} times {word} likely"
    interval = f" ({say_factor(least)} to {say_factor(most)})" if with_interval else ""
    return f"{say_factor(size)} times{interval} {word} likely"


def say_factor(factor: float) -> str:
    """A factor with about two digits."""
    if factor >= MANY_TIMES:
        return f"over {MANY_TIMES:,.0f}"
    return f"{factor:.0f}" if factor >= 10 else f"{factor:.1f}" if factor >= 1.1 else f"{factor:.2f}"


def say_effect(one: Explanation, k: int) -> str:
    """What a source does to the action, and to its rival in this row."""
    assert one.times is not None
    n_features = len(one.substates)
    best, rival = int(np.argmax(one.probabilities.value)), find_rival(one, k)
    on_action = "" if is_about_one(one.times.value[k, best]) else say_times(one.times, k, best, with_interval=True)
    on_rival = ""
    if rival is not None and not is_about_one(one.times.value[k, rival]):
        on_rival = f"{one.vocabulary.classes[rival]} {say_times(one.times, k, rival)}"
    if k > n_features:
        return say_base(one, f"{one.action} {on_action}" if on_action else "", on_rival)
    name = one.vocabulary.features[k] if k < n_features else name_sources(one)[k]
    makes, changes = ("makes", "changes") if k < n_features else ("make", "change")
    if on_action:
        return f"{name} {makes} {one.action} {on_action}" + f" and {on_rival}" * bool(on_rival)
    return f"{name} hardly {changes} {one.action}" + f", but {makes} {on_rival}" * bool(on_rival)


def say_base(one: Explanation, *effects: str) -> str:
    """What the base policy favours, and what that does."""
    favourite = one.vocabulary.classes[int(np.nanargmax(one.terms.value[-1]))]
    told = ", ".join(filter(None, effects))
    return f"without any feature the teacher would favour {favourite}" + f": {told}" * bool(told)


def is_about_one(times: float) -> bool:
    """Whether a factor is not worth telling."""
    return abs(math.log(times)) < math.log(WORTH_TIMES) if times > 0 else False


def find_rival(one: Explanation, k: int) -> int | None:
    """The action that competes with the most probable one, with or without a source; None if no other is available.

    An action that moves more, but is improbable either way, is no rival.
    """
    assert one.times is not None
    probabilities, times = one.probabilities.value, one.times.value[k]
    rivals = one.available & (np.arange(len(probabilities)) != np.argmax(probabilities))
    if not rivals.any():
        return None
    without = np.divide(probabilities, times, out=np.zeros_like(probabilities), where=rivals & (times > 0))
    return int(np.argmax(np.where(rivals, np.maximum(probabilities, without), -1.0)))


def say_effects(one: Explanation) -> str:
    """Of a product: what makes the action more and less probable, each compared with the same row without it."""
    more, less = find_effects(one)
    lines = []
    for words, reasons, most in (("For it", more, N_FOR), ("Against it", less, N_AGAINST)):
        if reasons:
            rest = f"; and {len(reasons) - most} more" if len(reasons) > most else ""
            lines.append(f"{words}: {'; '.join(say_effect(one, k) for k in reasons[:most])}{rest}.")
    if not lines:
        return "No feature makes much of a difference." if one.available.sum() > 1 else ""
    return "\n  ".join([*lines, "Each is compared with the same row without it."])


def say_available(one: Explanation) -> str:
    """Which actions cannot be taken in this row."""
    if one.available.all():
        return ""
    if one.available.sum() == 1:
        return "No other action is available."
    return "Not available: " + ", ".join(str(label) for label in one.vocabulary.classes[~one.available]) + "."


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


TOLD_OF_FAMILIAR = (
    say_action,
    say_available,
    say_present,
    say_for,
    say_against,
    say_rest,
    say_nearest,
    say_counterfactual,
)


TOLD_OF_UNFAMILIAR = (say_unfamiliar, say_action_nonetheless, say_available, say_rest)
