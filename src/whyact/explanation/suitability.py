"""Does the model suit the data? What a user should know before believing a fit, each in a sentence with the remedy.

The same sentences are at the end of `print(model)`, `whyact fit` and `whyact info`, and on top of the report; the
warning at the end of a fit in Python names them.
"""

from typing import Any, NamedTuple

import numpy as np

from whyact.cut_policies import spread_out
from whyact.errors import say_options
from whyact.explanation.matter import N_ROWS, find_what_matters
from whyact.explanation.names import find_names
from whyact.explanation.residuals import LARGEST_CORRELATION, Residual, examine_residual, say_residual
from whyact.intervals import format_scores
from whyact.model import restrict
from whyact.scaling import TOLERANCES, USUAL_TOLERANCE
from whyact.visible import make_visible

NEXT_TO_NOTHING = 0.01  # noise below this share of a typical column's range: features copy columns
FAR_WIDER = 10.0  # times the range of a typical column
LEAST_TO_HALVE = 0.02  # a tolerance below this leaves little to find by half of it
WEIGHT_OF_NEIGHBOURS = 0.3  # an observation weight to try where neighbouring rows are not independent
NOT_PREDICTED = "actions are predicted no better than without looking"


class Doubt(NamedTuple):
    """Something that speaks against a fitted model."""

    what: str  # in a few words
    sentence: str  # in one or two sentences, with what helps


def list_doubts(model: Any) -> list[str]:
    """What speaks against a fitted model, and what helps; empty if nothing does.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.

    Returns
    -------
    list of str
        One or two sentences for each doubt.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.explanation.suitability import list_doubts
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=1, random_state=0)
    >>> doubts = list_doubts(model.fit(demo.X[:80], demo.y[:80]))
    >>> len(doubts), doubts[0].split(":")[0]
    (1, 'With a single chain, convergence cannot be checked; run at least two')
    """
    return [doubt.sentence for doubt in find_doubts(model)]


def find_doubts(model: Any) -> list[Doubt]:
    """What speaks against a fitted model, the gravest first."""
    doubts = (
        ("the chains disagree", doubt_chains),
        ("there are more features than columns", doubt_number),
        ("the noise does not suit the columns", doubt_noise),
        (NOT_PREDICTED, doubt_predictions),
        ("what is left over is not only noise", doubt_residual),
    )
    found = [Doubt(what, told) for what, doubt in doubts if (told := doubt(model))]
    if found and found[0].what == "the chains disagree":
        found[0] = found[0]._replace(what=name_doubt_of_chains(model.posterior_))
    return found


def name_doubt_of_chains(posterior: Any) -> str:
    """What `doubt_chains` is about, in a few words."""
    if not posterior.can_compare_chains:
        return "whether the chains agree is not known"
    told = [] if posterior.chains_agree else ["the chains disagree"]
    if posterior.growth() is not None:
        told.append("the number of features is still growing")
    return ", and ".join(told)


def say_briefly(doubts: list[Doubt]) -> str:
    """All doubts in one sentence, and where to read more."""
    return f"Before you rely on this model: {'; '.join(doubt.what for doubt in doubts)}. print(model) says what helps."


def doubt_chains(model: Any) -> str:
    """Chains that have not found the same, or not yet all there is to find."""
    posterior = model.posterior_
    if posterior.chains_agree and posterior.can_compare_chains:
        return str(posterior.say_growth())
    return str(posterior.agreement())


def doubt_number(model: Any) -> str:
    """More features than columns."""
    n_columns = model.observations_.shape[1]
    if model.n_components_ <= n_columns:
        return ""
    if model.n_components is not None:
        return (
            f"n_components={model.n_components} asks for more features than there are columns ({n_columns}), so some "
            "copy columns. Without n_components, their number is inferred."
        )
    return (
        f"There are more features ({model.n_components_}) than columns ({n_columns}), so they copy columns more than "
        f"they summarise them. {advise_fewer(model)}"
    )


def advise_fewer(model: Any) -> str:
    """How to get fewer features, and what it costs, if that was tried."""
    tolerance = find_tolerance(model)
    larger = next((other for other in TOLERANCES if other > 1.01 * tolerance), None)
    own, other = find_trial(model), find_trial(model, larger)
    is_no_help = own is not None and other is not None and round(other.n_features) >= round(own.n_features)
    if larger is None or is_no_help:
        n_columns = model.observations_.shape[1]
        return f"Allow no more than columns: {say_remedy(model, max_features=n_columns)}."
    advice = f"A larger tolerance leaves fewer: {say_remedy(model, tolerance=larger)}"
    if own is None or other is None:
        return f"{advice}."
    scores = format_scores(other.log_score, own.log_score)
    return (
        f"{advice}; in trials about {other.n_features:.0f} instead of {own.n_features:.0f}, with a log score of hidden "
        f"actions of {scores[0]} instead of {scores[1]}."
    )


def doubt_noise(model: Any) -> str:
    """Free noise that is next to nothing, or that only suits the widest column."""
    if getattr(model, "tolerance_", None) is not None:
        return ""
    noise = float(np.sqrt(model.noise_variance_))
    ranges = np.nanmax(model.observations_, axis=0) - np.nanmin(model.observations_, axis=0)
    widest, typical = float(ranges.max()), float(np.median(ranges[ranges > 0])) if np.any(ranges > 0) else 0.0
    if noise < NEXT_TO_NOTHING * typical:
        return (
            f"The noise is next to nothing ({noise:.2g}; a typical column has a range of {typical:.2g}): the features "
            f"fit the data down to their last digit. Set a tolerance: {say_remedy(model, tolerance=USUAL_TOLERANCE)}."
        )
    if widest < FAR_WIDER * typical or noise >= NEXT_TO_NOTHING * widest:
        return ""
    name = make_visible(find_names(model)[int(np.argmax(ranges))])
    return (
        f"Column {name} is far wider than the others (its range is {widest:.2g}, that of a typical one {typical:.2g}), "
        f"but the noise ({noise:.2g}) is the same for all, so features mainly explain the wide ones. Scale the "
        f"columns: {say_remedy(model, scale_columns=True)}."
    )


def doubt_predictions(model: Any) -> str:
    """Actions that are predicted no better than without looking."""
    if not np.any(model.actions_ >= 0):
        return ""
    remedy = "Add columns that do, and check that each action stands in the row of what the teacher saw before it."
    score = find_score_of_hidden(model)
    if score is not None:
        usual = score_of_base_rates(model)
        if score > usual:
            return ""
        own, others = format_scores(score, usual)
        return (
            f"Hidden actions were predicted no better than by how often each one occurs (log score {own}, by frequency "
            f"{others}): the columns may not tell what the teacher decides by. {remedy}"
        )
    if is_better_than_most_frequent(model):
        return ""
    return (
        "Not even the demonstrations themselves are predicted better than by always naming the most frequent action: "
        f"the columns may not tell what the teacher decides by. {remedy}"
    )


def find_score_of_hidden(model: Any) -> float | None:
    """Log score of actions that trials have hidden, of the model that was chosen by them; None without trials."""
    trial = find_trial(model)
    if trial is not None:
        return float(trial.log_score)
    scores = getattr(model, "combination_scores_", None)
    if scores is not None:
        return float(scores[model.combination_])
    weights = getattr(model, "weight_scores_", None)
    return float(max(weights.values())) if weights else None


def find_trial(model: Any, tolerance: float | None = None) -> Any:
    """The trial of a tolerance, or of the one that was taken; None if there is none."""
    wanted = tolerance or getattr(model, "tolerance_", None) or 0.0
    trials = getattr(model, "tolerance_trials_", ())
    return next((trial for trial in trials if np.isclose(trial.tolerance, wanted)), None)


def is_better_than_most_frequent(model: Any) -> bool:
    """Whether the demonstrations, as if their actions were not known, are predicted better than by one action.

    They were learned from, so a good result proves nothing. But where not even they are predicted better, new ones will
    not be. To hide actions would take more chains, which is too much for a description.
    """
    known = np.flatnonzero(model.actions_ >= 0)
    rows = known[spread_out(len(known), N_ROWS)]
    available = None if model._result.available is None else model._result.available[rows]
    judged = model._predictor.predict(model.observations_[rows], one_draw=True, maximise=True, available=available)
    actions = model.actions_[rows]
    n_correct = int(np.sum(judged.probabilities[:, : len(model.classes_)].argmax(axis=1) == actions))
    counts = np.bincount(actions, minlength=len(model.classes_))
    there = np.ones((len(rows), len(counts)), bool) if available is None else available
    n_most = int(np.sum(np.where(there, counts, -1).argmax(axis=1) == actions))
    return n_correct > n_most or n_most == len(actions)  # a single action cannot be predicted better


def doubt_residual(model: Any) -> str:
    """What is left over and not only noise."""
    residual = examine_residual(model)
    if residual is None or residual.looks_like_noise:
        return ""
    return f"{say_residual(residual)} {advise_residual(model, residual)}"


def advise_residual(model: Any, residual: Residual) -> str:
    """What may find more structure, or take it less for evidence."""
    if residual.has_common_columns:
        if model.n_components is not None:
            return "Without n_components, their number is inferred."
        if model.max_features is not None and model.posterior_.modal_n_features >= model.max_features:
            return f"Allow more of them: {say_remedy(model, max_features=2 * model.max_features)}."
        tolerance = getattr(model, "tolerance_", None)
        if tolerance is not None and tolerance >= LEAST_TO_HALVE:
            return f"A smaller tolerance shows more of it: {say_remedy(model, tolerance=round(tolerance / 2, 3))}."
        if model.feature_values == "positive":
            return f"If it goes above and below zero, features can, too: {say_remedy(model, feature_values='real')}."
    if residual.of_neighbours > LARGEST_CORRELATION:
        return (
            "Let the observations count for less, because neighbouring rows are not independent: "
            f"{say_remedy(model, observation_weight=WEIGHT_OF_NEIGHBOURS)}."
        )
    return "Columns that measure the same could be left out, or be averaged."


def say_remedy(model: Any, **values: float | str) -> str:
    """The parameters to set; the published algorithm has few, so they need the exact one."""
    if model.sampler != "exact" and not {"feature_values", "observation_weight", "scale_columns"} & set(values):
        values = {"sampler": "exact", **values}
    return say_options(**values)


def find_tolerance(model: Any) -> float:
    """The noise as a share of the range of a column, held or not."""
    tolerance = getattr(model, "tolerance_", None)
    return tolerance or float(np.sqrt(model.noise_variance_)) / model._result.scaling.find_width(model.observations_)


def score_of_base_rates(model: Any) -> float:
    """Mean log probability of the demonstrations' actions, if each has its share among those that were available."""
    known = np.flatnonzero(model.actions_ >= 0)
    actions = model.actions_[known]
    counts = np.bincount(actions, minlength=len(model.classes_))
    available = None if model._result.available is None else model._result.available[known]
    shares = restrict(np.broadcast_to(counts, (len(known), len(counts))), available)
    return float(np.log(shares[np.arange(len(known)), actions]).mean())


def say_what_matters(model: Any, doubts: list[Doubt]) -> str:
    """How many features are enough to predict; nothing if it takes all of them, or if the model does not predict."""
    if any(doubt.what == NOT_PREDICTED for doubt in doubts):
        return ""
    matters = find_what_matters(model)
    if matters is None or len(matters.features) == model.n_components_:
        return ""
    names = [str(k) for k in np.sort(matters.features)]
    if len(names) == 1:
        which = f"Feature {names[0]} alone predicts"
    else:
        which = f"Features {', '.join(names[:-1])} and {names[-1]} predict"
    return f"{which} almost as well as all {model.n_components_} ({matters.share:.0%} of what they tell)."


def say_what_is_left(model: Any) -> str:
    """That what no feature explains looks like noise, as it should; if it does not, that is a doubt."""
    residual = examine_residual(model)
    return say_residual(residual) if residual is not None and residual.looks_like_noise else ""
