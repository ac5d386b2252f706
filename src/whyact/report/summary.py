"""What a report shows, as plain data that can be written as JSON and tested without a page."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from whyact.cut_policies import spread_out
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.tolerance_curve import count_features_over_tolerance, gather_known
from whyact.explanation.choices import say_choices, say_scores, say_tolerance
from whyact.explanation.describe import WORTH_NAMING
from whyact.explanation.plateau import ToleranceCurve
from whyact.explanation.suitability import find_doubts, say_what_is_left, say_what_matters
from whyact.explanation.support import say_who_finds_them
from whyact.explanation.voices import align_policies, find_times, find_usual_policy, is_learned, is_product
from whyact.intervals import Interval
from whyact.posterior import DIAGNOSED, R_HAT_LIMIT, Posterior
from whyact.report.explorer import pack_explorer
from whyact.report.layout import Layout, find_layout, name_places
from whyact.report.plain import Plain, to_name, to_names, to_number, to_numbers
from whyact.report.quality import measure_quality
from whyact.version import __version__

N_ENTRIES = 12  # strongest entries of a feature that are always shown, if they are worth naming,
N_FOLDED = 48  # and how many more can be unfolded,
N_FOLDED_OF_ALL = 600  # with this limit for all features together
ACTIONS_BUDGET = 100_000  # characters that the names of the actions may take on the page; each feature repeats them
N_PANELS = 12  # images or curves of a feature,
N_PANELS_OF_ALL = 240  # with this limit for all features together, but at least two of each
N_TRACE_POINTS = 150
NUMBERS = ("mean", "low", "high")  # what an interval of aligned features consists of
N_CURVE_POINTS = 200
MAX_DEMONSTRATIONS = 2000

CITATION = (
    "J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001."
)
QUANTITIES = {
    "n_features": "number of features",
    "noise_variance": "noise in the observations (variance)",
    "log_joint": "how well everything fits together (log joint density)",
    "n_active": "non-zero entries of the features",
    "log_action_likelihood": "how well the actions are explained (log likelihood)",
}


def summarise(
    model: FeaturePolicyClassifier,
    *,
    shape: Sequence[int] | None = None,
    kind: str | None = None,
    origin: str = "upper",
    test: tuple[Any, ...] | None = None,
    title: str | None = None,
    source: str | None = None,
    max_demonstrations: int = MAX_DEMONSTRATIONS,
    tolerances: bool | ToleranceCurve = False,
) -> Plain:
    """Gather what the page about a fitted model shows.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    shape : tuple of int or None, default=None
        What a row of X is: (rows, columns) of an image; (2, rows, columns) of a frame and its difference from the
        previous one; (channels, rows, columns); for curves (time steps,) or (channels, time steps).
    kind : {"bars", "image", "curve"} or None, default=None
        How features are drawn. None: as images if there is a shape, otherwise as bars. "curve": columns are steps in
        time.
    origin : {"upper", "lower"}, default="upper"
        Where the first row of an image is drawn.
    test : tuple (X, y) or (X, y, available) or None, default=None
        Demonstrations that the model did not learn from. None: quality is measured on those it learned from, and the
        page says that this is too optimistic. At most 2000 rows, evenly spread, are predicted.
    title, source : str or None, default=None
        Heading of the page, and where the demonstrations come from.
    max_demonstrations : int, default=2000
        How many demonstrations the page lets a reader explore at most; fewer if it would become too large.
    tolerances : bool or ToleranceCurve, default=False
        Whether to count features at several tolerances, with short chains that take some seconds or minutes; or what
        `model.count_features_over_tolerance()` has counted. False: only what the trials of the fit have found.

    Returns
    -------
    dict
        Lists, dicts, str, finite float, int, bool and None only, so that it can be written as JSON.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.report import summarise
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=100, n_draws=50, n_chains=1, random_state=0)
    >>> summary = summarise(model.fit(demo.X[:80], demo.y[:80]), test=(demo.X[80:], demo.y[80:]), shape=(6, 6))
    >>> len(summary["features"]) == model.n_components_
    True
    >>> summary["quality"]["n_rows"]
    40
    """
    if not isinstance(model, FeaturePolicyClassifier):  # the alternatives of Sec. 2.4 have no policy for each feature
        raise TypeError(f"model must be a FeaturePolicyClassifier, got {type(model).__name__}.")
    check_is_fitted(model)
    if max_demonstrations < 1:
        raise ValueError(f"max_demonstrations must be at least 1, got {max_demonstrations!r}.")
    layout = find_layout(model.n_features_in_, shape, kind, origin)
    columns, doubts = name_places(model, layout), find_doubts(model)
    return {
        "title": to_name(title or ("Why the teacher acts" if len(model.classes_) else "What the teacher sees")),
        "source": None if source is None else to_name(source),
        "kind": layout.kind,
        "origin": layout.origin,
        "is_scaled": hasattr(model, "column_range_"),
        "feature_values": str(model.posterior_.feature_values),
        "actions": to_names(model.classes_.tolist(), ACTIONS_BUDGET // max(model.n_components_, 1)),
        "number": summarise_number(model),
        "matters": say_what_matters(model, doubts),
        "doubts": [doubt.sentence for doubt in doubts],
        "left_over": say_what_is_left(model),
        "choices": "".join(say_choices(model)),
        "tolerance": summarise_tolerance(model, tolerances),
        "features": summarise_features(model, layout, columns),
        "quality": measure_quality(model, test),
        "diagnostics": summarise_diagnostics(model.posterior_, has_actions=len(model.classes_) > 0),
        "fit": summarise_fit(model),
        "explorer": pack_explorer(model, layout, columns, max_demonstrations),
        "citation": CITATION,
    }


def summarise_number(model: FeaturePolicyClassifier) -> Plain:
    """The number of features that are shown, who finds them, and P(K) of the draws."""
    posterior = model.posterior_
    probabilities = posterior.n_features_probabilities
    low, high = posterior.n_features_interval()
    return {
        "count": model.n_components_,
        "is_given": model.n_components is not None,
        "n_confirmed": int(np.sum(posterior.aligned.presence > 0.5)),
        "who_finds_them": say_who_finds_them(posterior) if model.n_components_ else "",
        "most_allowed": None if model.max_features is None else int(model.max_features),
        "probabilities": [{"count": k, "probability": probabilities[k]} for k in sorted(probabilities)],
        "most_frequent": posterior.modal_n_features,
        "low": low,
        "high": high,
    }


# --- features -----------------------------------------------------------------------------------------------


def summarise_features(model: FeaturePolicyClassifier, layout: Layout, columns: list[str]) -> list[Plain]:
    """One dict per feature: what it looks like, what it makes the teacher do, how often it is present, how sure."""
    n_features = model.n_components_
    n_folded = min(N_FOLDED, N_FOLDED_OF_ALL // max(n_features, 1)) if layout.kind == "bars" else 0
    max_panels = max(2, min(N_PANELS, N_PANELS_OF_ALL // max(n_features, 1)))
    policies = align_policies(model)
    times = find_times(model) if is_product(model) else None
    return [
        {
            "index": k,
            "presence": float(model.posterior_.aligned.presence[k]),
            **summarise_substates(model.substates_[:, k]),
            **summarise_entries(model.posterior_.aligned.features, k, columns, N_ENTRIES + n_folded),
            "n_panels": len(layout.panels),
            "panels": summarise_panels(model.posterior_.aligned.features, k, layout, max_panels),
            "policy": summarise_policy(model, policies, times, k),
        }
        for k in range(n_features)
    ]


def summarise_substates(substates: np.ndarray) -> Plain:
    """In how many demonstrations a feature is present, and how strong it typically is there."""
    present = substates > 0
    return {
        "prevalence": float(present.mean()),
        "typical_substate": float(np.median(substates[present])) if present.any() else None,
    }


def summarise_entries(features: Interval, k: int, columns: list[str], n_entries: int) -> Plain:
    """The strongest entries with their intervals, strongest first, and the strength of the strongest other one."""
    mean = features.value[k]
    order = np.argsort(-np.abs(mean), kind="stable")
    weaker = order[n_entries:]
    entries = [{"name": columns[d], **estimate(features, (k, d))} for d in order[:n_entries]]
    return {
        "entries": entries,
        "n_always_shown": min(N_ENTRIES, int(np.sum(np.abs(mean) >= WORTH_NAMING * abs(mean[order[0]])))),
        "weaker": {"n": len(weaker), "largest": float(np.abs(mean[weaker]).max(initial=0.0))},
    }


def summarise_panels(features: Interval, k: int, layout: Layout, max_panels: int) -> list[Plain]:
    """What is needed to draw the feature as images or curves: its strongest panels, in their original order."""
    if layout.kind == "bars":
        return []
    panels = {name: layout.split(numbers[k]) for name, numbers in zip(NUMBERS, features, strict=True)}
    strength = np.abs(panels["mean"]).reshape(len(layout.panels), -1).max(axis=1)
    chosen = np.sort(np.argsort(-strength, kind="stable")[:max_panels])
    if layout.kind == "image":
        return [{"name": layout.panels[p], "values": to_numbers(panels["mean"][p])} for p in chosen]
    return [
        {
            "name": layout.panels[p],
            "n_moments": layout.size[0],
            **{name: to_numbers(shorten_curve(rows[p])) for name, rows in panels.items()},
        }
        for p in chosen
    ]


def shorten_curve(values: np.ndarray) -> np.ndarray:
    """Average a long curve piece by piece, so that no peak is lost between two points."""
    starts = spread_out(len(values), N_CURVE_POINTS)
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))


def summarise_policy(
    model: FeaturePolicyClassifier, policies: Interval, times: np.ndarray | None, k: int
) -> list[Plain]:
    """Probability of each action with this feature in full, with its interval; empty without actions.

    With policies that are multiplied also `times`: how many times as probable it is as without the feature.
    """
    return [
        {"action": u, **estimate(policies, (k, u)), "times": None if times is None else to_number(times[k, u])}
        for u in range(len(model.classes_))
    ]


def estimate(summary: Interval, place: tuple[int, int]) -> Plain:
    """One number of an aligned summary, with its interval."""
    return {name: float(numbers[place]) for name, numbers in zip(NUMBERS, summary, strict=True)}


def summarise_tolerance(model: FeaturePolicyClassifier, tolerances: bool | ToleranceCurve = False) -> Plain:
    """What need not be explained (None if the noise was free), how other tolerances did, and how many features."""
    if isinstance(tolerances, ToleranceCurve):
        curve = tolerances
    else:
        curve = count_features_over_tolerance(model) if tolerances else gather_known(model)
    trials = getattr(model, "tolerance_trials_", ())
    return {
        "value": model.tolerance_,
        "why": "".join(say_tolerance(model)),
        "trials": [trial._asdict() for trial in trials],
        "counts": [count._asdict() for count in curve.counts],
        "own": curve.own._asdict(),
        "n_rows": curve.n_rows,
        "plateau": None if curve.plateau is None else curve.plateau._asdict(),
        "sentence": curve.sentence,
        "is_from_trials": tolerances is False,
    }


# --- chains and settings ------------------------------------------------------------------------------------


def summarise_diagnostics(posterior: Posterior, has_actions: bool = True) -> Plain:
    """Whether the chains agree, in words, numbers and traces."""
    can_tell = posterior.can_compare_chains
    table = posterior.diagnostics()
    return {
        "verdict": ("agree" if posterior.chains_agree else "disagree") if can_tell else "unknown",
        "is_growing": posterior.growth() is not None,
        "predict_alike": posterior.distance is not None,
        "sentence": posterior.agreement(),
        "share_in_common": posterior.share_in_common,
        "distance": posterior.distance,
        "n_chains": posterior.n_chains,
        "n_chains_with_weight": int(posterior.counts.sum()),
        "n_draws": posterior.n_draws,
        "r_hat_limit": R_HAT_LIMIT,
        "quantities": [
            {
                "name": name,
                "words": QUANTITIES[name],
                "is_stuck": bool(np.isposinf(table["r_hat"].sel(quantity=name))),
                **{measure: to_number(table[measure].sel(quantity=name)) for measure in table},
                "traces": to_numbers(thin_trace(posterior.traces[name])),
            }
            for name in DIAGNOSED
            if has_actions or name != "log_action_likelihood"
        ],
    }


def thin_trace(trace: np.ndarray) -> np.ndarray:
    """As many points of a trace (chain, draw) as are drawn."""
    return trace[:, spread_out(trace.shape[1], N_TRACE_POINTS)]


def summarise_fit(model: FeaturePolicyClassifier) -> Plain:
    """How the model was fitted, and to what."""
    observations, actions = model.observations_, model.actions_
    defaults = {name: say_value(value) for name, value in type(model)().get_params().items()}
    parameters = [
        {"name": name, "value": say_value(value), "is_default": defaults.get(name) == say_value(value)}
        for name, value in model.get_params().items()
    ]
    return {
        "version": __version__,
        "parameters": parameters,
        "n_rows": len(observations),
        "n_columns": observations.shape[1],
        "n_missing_entries": int(np.isnan(observations).sum()),
        "n_missing_actions": int((actions < 0).sum()),
        "noise": float(np.sqrt(model.noise_variance_)),
        "unit": float(model.unit_),
        **summarise_combination(model),
    }


def summarise_combination(model: FeaturePolicyClassifier) -> Plain:
    """How policies are combined, by which scores that was chosen (None if it was not), and what that takes."""
    scores = getattr(model, "combination_scores_", None)
    return {
        "combination": model.combination_,
        "combination_scores": None if scores is None else {name: to_number(score) for name, score in scores.items()},
        "why": "" if scores is None else say_scores(scores, model.combination_),
        "decisiveness": float(model.decisiveness_),
        "is_decisiveness_learned": is_learned(model),
        "adds_up": model.posterior_.adds_up,
        "base_policy": to_numbers(getattr(model, "base_policy_", [])),
        "usual_policy": to_numbers(find_usual_policy(model)) if is_product(model) else None,
    }


def say_value(value: Any) -> str:
    """A parameter as text, without the memory address that some objects show."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
