"""Does the model suit the data? What a user should know before believing a fit, each in a sentence with the remedy."""

from typing import Any

import numpy as np

from whyact.explanation.matter import find_what_matters
from whyact.explanation.residuals import examine_residual, say_residual

NEXT_TO_NOTHING = 0.01  # noise below this share of the widest column's range: features copy columns


def list_doubts(model: Any) -> list[str]:
    """What speaks against a fitted model, one sentence each; empty if nothing does."""
    doubts = []
    n_columns = model.observations_.shape[1]
    if model.n_components_ > n_columns:
        doubts.append(
            f"There are more features ({model.n_components_}) than columns ({n_columns}), so they copy columns more "
            "than they summarise them; a larger tolerance leaves fewer."
        )
    noise = float(np.sqrt(model.noise_variance_))
    widest = float(np.max(np.nanmax(model.observations_, axis=0) - np.nanmin(model.observations_, axis=0)))
    if getattr(model, "tolerance_", None) is None and noise < NEXT_TO_NOTHING * widest:
        doubts.append(
            f"The noise is next to nothing ({noise:.2g} of a range of {widest:.2g}): the features fit the data down to "
            "their last digit; set a tolerance, such as 0.05."
        )
    scores = getattr(model, "combination_scores_", None)
    if scores is not None and scores[model.combination_] <= score_of_base_rates(model):
        doubts.append(
            "Hidden actions were predicted no better than by how often each one occurs: the columns may not tell what "
            "the teacher decides by."
        )
    residual = examine_residual(model)
    if residual is not None and not residual.looks_like_noise:
        doubts.append(say_residual(residual))
    return doubts


def score_of_base_rates(model: Any) -> float:
    """Mean log probability of the demonstrations' actions, if each has its share among them."""
    counts = np.bincount(model.actions_[model.actions_ >= 0], minlength=len(model.classes_))
    shares = counts[counts > 0] / counts.sum()
    return float(np.sum(shares * np.log(shares)))


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
        f"no predictions in trials (features of a draw, and log score of hidden actions, by tolerance: {told})."
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
