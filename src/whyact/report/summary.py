"""What a report shows, as plain data: everything in it can be written as JSON, and is tested without a page."""

import re

import numpy as np
from sklearn.utils.validation import check_is_fitted

import whyact
from whyact.explanation.describe import WORTH_NAMING
from whyact.posterior import DIAGNOSED, R_HAT_LIMIT
from whyact.report.explorer import pack_explorer
from whyact.report.layout import Layout, find_layout, name_columns
from whyact.report.plain import spread_evenly, to_name, to_names, to_number, to_numbers
from whyact.report.quality import measure_quality

N_ENTRIES = 12  # strongest entries of a feature that are shown unfolded, if they are worth naming
N_FOLDED = 48  # and so many more that can be unfolded,
N_FOLDED_OF_ALL = 600  # but not more than so many of all features together
ACTIONS_BUDGET = 100_000  # characters of the page for the names of the actions, which each feature repeats
N_PANELS = 12  # images or curves of a feature,
N_PANELS_OF_ALL = 240  # and not more than so many of all features together, but two of each
N_TRACE_POINTS = 150
N_CURVE_POINTS = 200
MAX_DEMONSTRATIONS = 2000

CITATION = (
    "J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001."
)
QUANTITIES = {
    "n_features": "number of features",
    "noise_variance": "noise in the observations (its variance)",
    "log_joint": "how well everything fits together (log joint density)",
    "n_active": "entries of the features that are not zero",
    "log_action_likelihood": "how well the actions are explained (log likelihood)",
}


def summarise(
    model,
    *,
    shape=None,
    kind: str | None = None,
    origin: str = "upper",
    test=None,
    title: str | None = None,
    source: str | None = None,
    max_demonstrations: int = MAX_DEMONSTRATIONS,
) -> dict:
    """Gather what the page about a fitted model shows.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    shape : tuple of int or None, default=None
        What a row of X is: (rows, columns) of an image, (2, rows, columns) of a frame and its difference to the one
        before, (channels, rows, columns); for curves (moments,) or (channels, moments).
    kind : {"bars", "image", "curve"} or None, default=None
        How features are drawn. None: images if there is a shape, else bars. "curve": columns are moments in time.
    origin : {"upper", "lower"}, default="upper"
        Where the first row of an image is drawn.
    test : tuple (X, y) or None, default=None
        Demonstrations that the model has not learned from. None: quality is measured on those it has learned from,
        and the page says that this is too optimistic. At most 2000 rows are predicted, evenly spread.
    title, source : str or None, default=None
        Heading of the page, and where the demonstrations come from.
    max_demonstrations : int, default=2000
        At most so many demonstrations can be explored; fewer if the page would become too large.

    Returns
    -------
    dict
        Lists, dicts, str, float, int, bool and None, no other type, and no float that is not finite.
    """
    if not hasattr(type(model), "policy"):  # the paper's alternatives have no policy for each feature
        raise TypeError(f"model must be a FeaturePolicyClassifier, got {type(model).__name__}.")
    check_is_fitted(model)
    if max_demonstrations < 1:
        raise ValueError(f"max_demonstrations must be at least 1, got {max_demonstrations!r}.")
    observations = np.asarray(model.observations_)
    layout = find_layout(observations.shape[1], shape, kind, origin)
    columns = name_columns(model, layout)
    return {
        "title": to_name(title or ("Why the teacher acts" if len(model.classes_) else "What the teacher sees")),
        "source": None if source is None else to_name(source),
        "kind": layout.kind,
        "origin": layout.origin,
        "is_scaled": hasattr(model, "column_range_"),
        "feature_values": str(model.posterior_.feature_values),
        "actions": to_names(np.asarray(model.classes_).tolist(), ACTIONS_BUDGET // max(int(model.n_components_), 1)),
        "number": summarise_number(model),
        "features": summarise_features(model, layout, columns),
        "quality": measure_quality(model, test),
        "diagnostics": summarise_diagnostics(model.posterior_, has_actions=len(model.classes_) > 0),
        "fit": summarise_fit(model),
        "explorer": pack_explorer(model, layout, columns, max_demonstrations),
        "citation": CITATION,
    }


def summarise_number(model) -> dict:
    """The number of features and P(K)."""
    probabilities = model.posterior_.n_features_probabilities
    draws = model.posterior_.traces["n_features"]
    low, high = np.quantile(draws, [0.05, 0.95], method="inverted_cdf")
    count = int(model.n_components_)
    limit = model.get_params().get("max_features")
    return {
        "count": count,
        "probability": float(probabilities.get(count, 0.0)),
        "most_allowed": None if limit is None else int(limit),
        "probabilities": [{"count": int(k), "probability": float(probabilities[k])} for k in sorted(probabilities)],
        "most_frequent": int(model.posterior_.modal_n_features),
        "low": int(low),
        "high": int(high),
        "is_growing": model.posterior_.growth() is not None,
    }


# --- features -----------------------------------------------------------------------------------------------


def summarise_features(model, layout: Layout, columns: list[str]) -> list[dict]:
    """One dict a feature: how it looks, what it makes the teacher do, how often it is present, how sure that is."""
    n_features = int(model.n_components_)
    n_folded = min(N_FOLDED, N_FOLDED_OF_ALL // max(n_features, 1)) if layout.kind == "bars" else 0
    max_panels = max(2, min(N_PANELS, N_PANELS_OF_ALL // max(n_features, 1)))
    return [
        {
            "index": k,
            "presence": float(model.posterior_.aligned.presence[k]),
            **summarise_substates(np.asarray(model.substates_)[:, k]),
            **summarise_entries(model.posterior_.aligned.features, k, columns, N_ENTRIES + n_folded),
            "n_panels": len(layout.panels),
            "panels": summarise_panels(model.posterior_.aligned.features, k, layout, max_panels),
            "policy": summarise_policy(model, k),
        }
        for k in range(n_features)
    ]


def summarise_substates(substates: np.ndarray) -> dict:
    present = substates > 0
    return {
        "prevalence": float(present.mean()),
        "typical_substate": float(np.median(substates[present])) if present.any() else None,
    }


def summarise_entries(features: dict, k: int, columns: list[str], n_entries: int) -> dict:
    """The strongest entries with their intervals, strongest first, and how strong the others are at most."""
    mean = features["mean"][k]
    order = np.argsort(-np.abs(mean), kind="stable")
    weaker = order[n_entries:]
    entries = [{"name": columns[d], **estimate(features, (k, d))} for d in order[:n_entries]]
    return {
        "entries": entries,
        "n_always_shown": min(N_ENTRIES, int(np.sum(np.abs(mean) >= WORTH_NAMING * abs(mean[order[0]])))),
        "weaker": {"n": len(weaker), "largest": float(np.abs(mean[weaker]).max(initial=0.0))},
    }


def summarise_panels(features: dict, k: int, layout: Layout, max_panels: int) -> list[dict]:
    """What is needed to draw the feature as images or curves: its strongest panels, in their order."""
    if layout.kind == "bars":
        return []
    panels = {name: layout.split(features[name][k]) for name in ("mean", "low", "high")}
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
    """Average a long curve piece by piece, so that no peak falls between two points."""
    starts = spread_evenly(len(values), N_CURVE_POINTS)
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))


def summarise_policy(model, k: int) -> list[dict]:
    """Probability of each action where the feature is alone, with its interval; nothing if no action was ever seen."""
    policies = model.posterior_.aligned.policies
    return [{"action": u, **estimate(policies, (k, u))} for u in range(len(model.classes_))]


def estimate(summary: dict, place: tuple[int, int]) -> dict:
    return {name: float(summary[name][place]) for name in ("mean", "low", "high")}


# --- chains and settings ------------------------------------------------------------------------------------


def summarise_diagnostics(posterior, has_actions: bool = True) -> dict:
    """Whether the chains agree, in words, numbers and traces."""
    can_tell = posterior.n_chains > 1 and posterior.n_draws >= 4
    table = posterior.diagnostics()
    return {
        "verdict": ("agree" if posterior.chains_agree else "disagree") if can_tell else "unknown",
        "sentence": posterior.agreement(),
        "n_chains": int(posterior.n_chains),
        "n_draws": int(posterior.n_draws),
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
    return trace[:, spread_evenly(trace.shape[1], N_TRACE_POINTS)]


def summarise_fit(model) -> dict:
    """How the model was fitted, and to what."""
    observations, actions = np.asarray(model.observations_), np.asarray(model.actions_)
    defaults = {name: say_value(value) for name, value in type(model)().get_params().items()}
    parameters = [
        {"name": name, "value": say_value(value), "is_default": defaults.get(name) == say_value(value)}
        for name, value in model.get_params().items()
    ]
    return {
        "version": whyact.__version__,
        "parameters": parameters,
        "n_rows": len(observations),
        "n_columns": int(observations.shape[1]),
        "n_missing_entries": int(np.isnan(observations).sum()),
        "n_missing_actions": int((actions < 0).sum()),
        "noise": float(np.sqrt(model.noise_variance_)),
        "unit": float(model.unit_),
        "decisiveness": float(model.posterior_.decisiveness),
    }


def say_value(value) -> str:
    """A parameter as text, without the address in memory that some objects show."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
