"""Does the model suit the data? What a user should know before believing a fit, each in a sentence with the remedy.

The same sentences are at the end of `print(model)`, `whyact fit` and `whyact info`, and on top of the report.
"""

from typing import Any

import numpy as np

from whyact.cut_policies import spread_out
from whyact.errors import say_options
from whyact.explanation.matter import N_ROWS, find_what_matters
from whyact.explanation.residuals import LARGEST_CORRELATION, Residual, examine_residual, say_residual
from whyact.model import restrict
from whyact.scaling import MANY_COLUMNS, TOLERANCES, USUAL_TOLERANCE

NEXT_TO_NOTHING = 0.01  # noise below this share of the widest column's range: features copy columns
LEAST_TO_HALVE = 0.02  # a tolerance below this leaves little to find by half of it
WEIGHT_OF_NEIGHBOURS = 0.3  # an observation weight to try where neighbouring rows are not independent


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
    doubts = (doubt_chains, doubt_number, doubt_noise, doubt_predictions, doubt_residual)
    return [told for doubt in doubts if (told := doubt(model))]


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
    return (
        f"There are more features ({model.n_components_}) than columns ({n_columns}), so they copy columns more than "
        f"they summarise them. {advise_fewer(model)}"
    )


def advise_fewer(model: Any) -> str:
    """How to get fewer features, and what it costs, if that was tried."""
    tolerance = find_tolerance(model)
    larger = next((other for other in TOLERANCES if other > 1.01 * tolerance), None)
    if larger is None:
        n_columns = model.observations_.shape[1]
        return f"Allow no more than columns: {say_remedy(model, max_features=n_columns)}."
    advice = f"A larger tolerance leaves fewer: {say_remedy(model, tolerance=larger)}"
    trials = {trial.tolerance: trial for trial in getattr(model, "tolerance_trials_", ())}
    own, other = find_trial(model), trials.get(larger)
    if own is None or other is None:
        return f"{advice}."
    return (
        f"{advice}; in trials about {other.n_features:.0f} instead of {own.n_features:.0f}, with a log score of hidden "
        f"actions of {other.log_score:.2f} instead of {own.log_score:.2f}."
    )


def doubt_noise(model: Any) -> str:
    """Free noise that is next to nothing."""
    if getattr(model, "tolerance_", None) is not None:
        return ""
    noise = float(np.sqrt(model.noise_variance_))
    widest = float(np.max(np.nanmax(model.observations_, axis=0) - np.nanmin(model.observations_, axis=0)))
    if noise >= NEXT_TO_NOTHING * widest:
        return ""
    return (
        f"The noise is next to nothing ({noise:.2g} of a range of {widest:.2g}): the features fit the data down to "
        f"their last digit. Set a tolerance: {say_remedy(model, tolerance=USUAL_TOLERANCE)}."
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
        return (
            f"Hidden actions were predicted no better than by how often each one occurs (log score {score:.2f}, by "
            f"frequency {usual:.2f}): the columns may not tell what the teacher decides by. {remedy}"
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


def find_trial(model: Any) -> Any:
    """The trial of the tolerance that was taken; None if there is none."""
    trials = getattr(model, "tolerance_trials_", ())
    return next((trial for trial in trials if np.isclose(trial.tolerance, model.tolerance_)), None)


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
    if model.sampler != "exact" and not {"feature_values", "observation_weight"} & set(values):
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


def say_tolerance(model: Any) -> list[str]:
    """What need not be explained, why, and how many features other tolerances leave."""
    tolerance = getattr(model, "tolerance_", None)
    if tolerance is None:
        return []
    trials = getattr(model, "tolerance_trials_", None)
    if not trials:
        return [f"Up to {tolerance:.2g} of a column's range need not be explained (tolerance)."]
    told = ", ".join(f"{trial.tolerance:.2g}: {trial.n_features:.0f} ({trial.log_score:.2f})" for trial in trials)
    return [
        f"Up to {tolerance:.2g} of a column's range need not be explained: the largest tolerance that surely cost "
        f"no predictions in trials (features, and log score of hidden actions, by tolerance: {told})."
    ]


def say_what_matters(model: Any) -> list[str]:
    """How many features carry nearly all that the model knows about the actions."""
    matters = find_what_matters(model)
    if matters is None or len(matters.features) == model.n_components_:
        return []
    listed = ", ".join(map(str, np.sort(matters.features)))
    count = len(matters.features)
    which = f"features {listed}" if count > 1 else f"feature {listed}"
    return [
        f"{count} of them carr{'y' if count > 1 else 'ies'} {matters.share:.0%} of what they tell about the actions: "
        f"{which}."
    ]


# --- what was left to whyact to choose ----------------------------------------------------------------------


def list_choices(model: Any) -> dict[str, str]:
    """What "auto" chose, in a few words, by parameter; those that "auto" leaves as in the paper are not listed."""
    choices = {}
    if model.scale_columns == "auto" and hasattr(model, "column_range_"):
        choices["scale_columns"] = "each column is scaled to its range"
    if model.tolerance == "auto" and model.tolerance_ is not None:
        choices["tolerance"] = f"{model.tolerance_:.2g} of a column's range need not be explained"
    if model.start == "auto" and model.sampler == "exact" and model.n_features_in_ >= MANY_COLUMNS:
        choices["start"] = "chains start from rows, as there are hundreds of columns"
    for name, what in (("observation_weight", "observations"), ("action_weight", "actions")):
        if getattr(model, name) == "auto":
            choices[name] = f"{what} count {getattr(model, f'{name}_'):g} times"
    if model.combination == "auto" and len(model.classes_):
        ways = {"product": "policies are multiplied (product)", "mixture": "policies are mixed (mixture)"}
        choices["combination"] = ways[model.combination_]
    return choices


def say_choices(model: Any, but: tuple[str, ...] = ()) -> list[str]:
    """What "auto" chose, in one sentence; `but`: parameters that are told elsewhere."""
    told = [words for name, words in list_choices(model).items() if name not in but]
    return [f"Chosen automatically: {'; '.join(told)}."] if told else []
