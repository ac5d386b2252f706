"""What was chosen or given, and why: how policies are combined, what need not be explained, and the rest of "auto".

Each choice is told in one place, here, for `print(model)`, `whyact info` and the report.
"""

from typing import Any

import numpy as np

from whyact.explanation.names import name_action
from whyact.explanation.voices import find_usual_policy, is_learned, is_product
from whyact.fit_result import NEGLIGIBLE_SCORE, ToleranceTrial
from whyact.intervals import format_scores
from whyact.scaling import MANY_COLUMNS, USUAL_TOLERANCE

NOT_TRIED = "a trial, with one chain that starts from rows, does not tell what many will say"


def tries_nothing(model: Any) -> bool:
    """Whether there are hundreds of columns and chains start from rows, as given or by default."""
    return bool(model.start != "prior" and model.n_features_in_ >= MANY_COLUMNS)


# --- how policies are combined ------------------------------------------------------------------------------


def say_combination(model: Any) -> list[str]:
    """How the policies of the features in a row are combined, and why; what the teacher does in a typical row."""
    if not len(model.classes_):
        return []
    if is_product(model):
        usual = find_usual_policy(model)
        best = int(np.argmax(usual))
        return [
            f"Policies are multiplied (product){say_why(model)}.",
            f"In a typical row: {name_action(model, best)} with {usual[best]:.2f}. Each line below: that feature in "
            "full compared with none of it, the others as usual.",
        ]
    learned = "learned" if is_learned(model) else "as set"
    told = [f"Policies are mixed (mixture){say_why(model)}. Decisiveness {model.decisiveness_:.3g} ({learned})."]
    if model.posterior_.adds_up:
        told.append("Features are taken for parts of a whole: what a row holds is weighed so that it adds up to one.")
    return told


def say_why(model: Any) -> str:
    """Why policies are combined in this way, to go on after it: asked for, better, or nothing to choose by."""
    scores = getattr(model, "combination_scores_", None)
    if scores is not None:
        return f": {say_scores(scores, model.combination_)}"
    parameters = model._result.parameters
    if parameters.get("combination") != "auto":
        return ", as asked"
    if parameters.get("sampler") != "exact":
        return ", as published"
    return f", as is usual: {NOT_TRIED}" if tries_nothing(model) else ", as there are too few actions to compare by"


def say_scores(scores: dict[str, float], taken: str) -> str:
    """How both ways to combine policies did on hidden actions, and what follows."""
    (other,) = set(scores) - {taken}
    own, others = format_scores(scores[taken], scores[other])
    told = f"on hidden actions its log score was {own}, the {other}'s {others} (0 is perfect)"
    if scores[taken] > scores[other]:
        return told
    return f"{told}; the {other} was not clearly better, so the usual one is kept"


# --- what need not be explained -----------------------------------------------------------------------------


def say_tolerance(model: Any) -> list[str]:
    """What need not be explained, and why so much; nothing if the noise was free."""
    tolerance = getattr(model, "tolerance_", None)
    if tolerance is None:
        return []
    share = f"{name_share(tolerance)} of a column's range need not be explained"
    if model.tolerance != "auto":
        return [f"{share}, as asked (tolerance)."]
    trials = getattr(model, "tolerance_trials_", None)
    if not trials:
        return [f"{share} (tolerance), {say_without_trials(model, tolerance)}."]
    return [f"{share} (tolerance). {say_trials(model, trials)}".rstrip()]


def say_without_trials(model: Any, tolerance: float) -> str:
    """Why a tolerance was taken that no trial has chosen."""
    if not np.any(model.actions_ >= 0):
        return "as is usual: there are no actions to choose another by"
    if tolerance > 1.01 * USUAL_TOLERANCE:
        return "because their values are no finer than that"
    if tries_nothing(model):
        return f"as is usual: {NOT_TRIED}"
    return "as is usual: there are too few actions to choose another by"


def say_trials(model: Any, trials: tuple[ToleranceTrial, ...]) -> str:
    """How the tolerance that was taken did in trials, beside the next one that was tried."""
    first, last = trials[0], trials[-1]
    if len(trials) == 1:
        return "No other one was tried."
    if last.is_lost:
        taken = trials[-2]
        score, lost = format_scores(taken.log_score, last.log_score)
        return (
            f"{name_share(last.tolerance)} was tried as well, but {say_doubt(model, last)} (log score of hidden "
            f"actions {lost}, with {name_share(taken.tolerance)} {score}){say_fewer(taken, last)}."
        )
    score, least = format_scores(last.log_score, first.log_score)
    return (
        f"Hidden actions were surely predicted as well as with {name_share(first.tolerance)} (log score {score}, with "
        f"{name_share(first.tolerance)} {least}){say_fewer(first, last)}."
    )


def say_doubt(model: Any, trial: ToleranceTrial) -> str:
    """Why a tolerance was not taken."""
    if trial.behind > NEGLIGIBLE_SCORE:
        return "it predicted worse"
    n_actions = int(np.sum(model.actions_ >= 0))
    return f"with {n_actions} actions it is not sure that it predicts as well"


def say_fewer(fewer: ToleranceTrial, more: ToleranceTrial) -> str:
    """How many features the larger tolerance leaves, if that is another number."""
    numbers = [f"{trial.n_features:.0f}" for trial in (fewer, more)]
    return "" if numbers[0] == numbers[1] else f"; it leaves about {numbers[1]} features instead of {numbers[0]}"


def name_share(tolerance: float) -> str:
    """A tolerance in percent."""
    return f"{100 * tolerance:.2g}%"


# --- what else was left to whyact to choose -----------------------------------------------------------------


def list_choices(model: Any) -> dict[str, str]:
    """What "auto" chose, in a few words, by parameter; those that "auto" leaves as in the paper are not listed."""
    choices = {}
    if model.scale_columns == "auto" and hasattr(model, "column_range_"):
        choices["scale_columns"] = "each column is scaled to its range"
    if model.tolerance == "auto" and model.tolerance_ is not None:
        choices["tolerance"] = f"{name_share(model.tolerance_)} of a column's range need not be explained"
    if model.start == "auto" and model.sampler == "exact" and tries_nothing(model):
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
