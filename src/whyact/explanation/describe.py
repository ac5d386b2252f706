"""What a fitted model says, in a few lines of text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact.explanation.suitability import list_doubts, say_choices, say_tolerance, say_what_matters
from whyact.explanation.text import WORTH_TIMES, say_factor
from whyact.explanation.voices import align_policies, find_times, find_usual_policy, is_learned, is_product
from whyact.intervals import Interval
from whyact.visible import make_visible

# Entries below this share of the strongest one are not worth naming.
WORTH_NAMING = 0.05


def describe(model: Any, *, column_names: Sequence[str] | None = None, n_entries: int = 4) -> str:
    """Describe each feature: what it looks like, what it makes the teacher do, how sure.

    Parameters
    ----------
    model : FeaturePolicyClassifier
        Fitted.
    column_names : sequence of str or None, default=None
        None: those of the data frame that the model was fitted to, or x0, x1, ...
    n_entries : int, default=4
        How many of a feature's strongest entries to name.

    Returns
    -------
    str

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> from whyact.explanation.describe import describe
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> text = describe(model.fit(demo.X[:80], demo.y[:80]), column_names=demo.column_names)
    >>> text.startswith("5 features explain 80 demonstrations")
    True
    """
    names = find_names(model, column_names)
    aligned = model.posterior_.aligned
    lines = [
        say_how_many(model, "feature"), *say_what_matters(model), *say_choices(model, but=("tolerance", "combination")),
        *say_tolerance(model), *say_combination(model),
    ]  # fmt: skip
    policies = align_policies(model)
    times = find_times(model) if is_product(model) else None
    for k in range(model.n_components_):
        lines.append(f"  feature {k}: {say_looks(aligned.features.value[k], names, n_entries)}")
        rows = np.mean(model.substates_[:, k] > 0)
        policy = say_policy(model, k, policies) + ("" if times is None else say_pull(model, times[k]))
        lines.append(f"    -> {policy}in {rows:.0%} of the rows, found in {aligned.presence[k]:.0%} of the draws")
    if model.posterior_.can_compare_chains and model.posterior_.chains_agree:  # if not, it is the first doubt
        lines.append(model.posterior_.agreement())
    return "\n".join([*lines, *(f"! {doubt}" for doubt in list_doubts(model))])


def find_names(model: Any, column_names: Sequence[str] | None = None) -> Sequence[str]:
    """Names of the columns of X: as given, as in the data frame that the model was fitted to, or x0, x1, ..."""
    if column_names is not None:
        return column_names
    return name_columns(getattr(model, "feature_names_in_", None), model.n_features_in_)


def name_columns(names: np.ndarray | None, n_columns: int) -> Sequence[str]:
    """The names of columns, or x0, x1, ... if they have none."""
    return [f"x{d}" for d in range(n_columns)] if names is None else list(names)


def name_action(model: Any, action: int) -> str:
    """The label of an action, for a sentence."""
    return make_visible(model.classes_[action])


def say_how_many(model: Any, what: str) -> str:
    """How many there are, and how sure that is."""
    count = model.n_components_
    return (
        f"{count} {what}{'s' * (count != 1)} explain{'s' * (count == 1)} {len(model.substates_)} demonstrations "
        f"({say_support(model.posterior_, count)}); noise {np.sqrt(model.noise_variance_):.3g}."
    )


def say_support(posterior: Any, count: int) -> str:
    """Whether all chains find them, and how many the draws have."""
    low, high = posterior.n_features_interval()
    draws = f"draws have {low}" + f" to {high}" * (high > low)
    if posterior.representative != "consensus" or posterior.n_chains == 1 or not count:
        return draws
    n_in_all = int(np.sum(posterior.aligned.in_all_chains))
    whom = "all" if n_in_all == count else n_in_all or "none"
    return f"{whom} found by {name_chains(posterior.n_chains, int(posterior.counts.sum()))}; {draws}"


def name_chains(n_chains: int, n_with_weight: int) -> str:
    """All chains that have weight, in words; there are at least two chains."""
    which = " that have weight" if n_with_weight < n_chains else ""
    if n_with_weight == 1:
        return "the only chain that has weight"
    return ("both chains" if n_with_weight == 2 else f"all {n_with_weight} chains") + which


def find_strongest(entries: np.ndarray) -> list[int]:
    """The entries worth naming, strongest first."""
    order = np.argsort(-np.abs(entries))
    return [d for d in order if abs(entries[d]) > WORTH_NAMING * abs(entries[order[0]])]


def say_looks(entries: np.ndarray, names: Sequence[str], n_entries: int, form: str = "{:.2f}") -> str:
    """Name the strongest entries with their values."""
    named = find_strongest(entries)
    rest = f" and {len(named) - n_entries} more" if len(named) > n_entries else ""
    return ", ".join(f"{make_visible(names[d])} {form.format(entries[d])}" for d in named[:n_entries]) + rest


def name_strongest(entries: np.ndarray, names: Sequence[str], n_entries: int) -> str:
    """Name the strongest entries, in few words."""
    named = find_strongest(entries)
    return ", ".join(make_visible(names[d]) for d in named[:n_entries]) + (", ..." if len(named) > n_entries else "")


def say_policy(model: Any, k: int, policies: Interval | None = None) -> str:
    """Name the favourite action of a feature or cluster with its interval; nothing if no action was ever seen.

    `policies` as `align_policies` finds them; None: those of the aligned draws.
    """
    if not len(model.classes_):
        return ""
    aligned = model.posterior_.aligned
    policies = aligned.policies if policies is None else policies
    best = int(np.argmax(policies.value[k]))
    mean, low, high = (numbers[k, best] for numbers in policies)
    level = f"{aligned.interval:.0%} {'of the draws' if is_product(model) else 'interval'}"
    return f"{name_action(model, best)} with {mean:.2f} ({level} {low:.2f} to {high:.2f}); "


def say_combination(model: Any) -> list[str]:
    """How the policies of the features in a row are combined, and why; what the teacher does without any."""
    if not len(model.classes_):
        return []
    if is_product(model):
        usual = find_usual_policy(model)
        best = int(np.argmax(usual))
        return [
            f"Policies are multiplied (product){say_why(model)}.",
            f"With the usual amount of every feature: {name_action(model, best)} with {usual[best]:.2f}. What follows "
            "is for all of a feature, and the usual amount of the others.",
        ]
    learned = "learned" if is_learned(model) else "as set"
    told = [f"Policies are mixed (mixture){say_why(model)}; decisiveness {model.decisiveness_:.3g} ({learned})."]
    if model.posterior_.adds_up:
        told.append("Features are taken for parts of a whole: what a row holds is weighed so that it adds up to one.")
    return told


def say_why(model: Any) -> str:
    """Why policies are combined in this way: asked for, better on hidden actions, or nothing to choose by."""
    scores = getattr(model, "combination_scores_", None)
    if scores is not None:
        (other,) = set(scores) - {model.combination_}
        own, others = scores[model.combination_], scores[other]
        told = f": on hidden actions its log score was {own:.2f}, the {other}'s {others:.2f}"
        return told if own > others else f"{told}, which is not clearly better"
    parameters = model._result.parameters
    if parameters.get("combination") != "auto":
        return ", as asked"
    return ", as published" if parameters.get("sampler") != "exact" else ", as there are too few actions to compare by"


def say_pull(model: Any, times: np.ndarray) -> str:
    """Of a product: which actions a feature makes most likely and most unlikely where it is full, by which factor."""
    most, least = int(np.argmax(times)), int(np.argmin(times))
    told = []
    if times[most] >= WORTH_TIMES:
        told.append(f"{name_action(model, most)} {say_factor(times[most])} times more likely")
    if times[least] <= 1 / WORTH_TIMES:
        told.append(f"{name_action(model, least)} {say_factor(1 / times[least])} times less likely")
    return f"{' and '.join(told)} than without it; " if told else ""
