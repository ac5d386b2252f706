"""What a fitted model says, in a few lines of text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact.explanation.choices import say_choices, say_combination, say_tolerance
from whyact.explanation.names import find_names, name_action
from whyact.explanation.suitability import find_doubts, say_what_is_left, say_what_matters
from whyact.explanation.support import say_support
from whyact.explanation.text import WORTH_TIMES, say_factor
from whyact.explanation.voices import align_policies, find_times, is_product
from whyact.intervals import Interval
from whyact.visible import make_visible

# Entries below this share of the strongest one are not worth naming, nor are actions below this probability.
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
    posterior, doubts = model.posterior_, find_doubts(model)
    lines = [
        " ".join(filter(None, [say_how_many(model, "feature"), say_what_matters(model, doubts)])),
        say_support(model, "feature"), *say_choices(model, but=("tolerance", "combination")), *say_tolerance(model),
        *say_combination(model),
    ]  # fmt: skip
    for k, policy in enumerate(say_policies(model)):
        lines.append(f"  feature {k}: {say_looks(posterior.aligned.features.value[k], names, n_entries)}")
        lines.append(f"    -> {policy}{say_rows(model, k)}")
    if posterior.can_compare_chains and posterior.chains_agree:  # if not, it is the first doubt
        lines.append(posterior.agreement())
    if left := say_what_is_left(model):
        lines.append(left)
    return "\n".join([*lines, *(f"! {doubt.sentence}" for doubt in doubts)])


def say_policies(model: Any) -> list[str]:
    """What each feature makes the teacher do, each to go on with a semicolon at its end; nothing without actions."""
    if not len(model.classes_):
        return [""] * model.n_components_
    policies = align_policies(model)
    if not is_product(model):
        return [say_policy(model, k, policies) for k in range(model.n_components_)]
    return [
        f"{say_changes(model, times)}; with all of it: {say_mean(model, k, policies)}"
        for k, times in enumerate(find_times(model))
    ]


def say_how_many(model: Any, noun: str) -> str:
    """How many there are."""
    count = model.n_components_
    asked = ", as asked (n_components)," if getattr(model, "n_components", None) is not None else ""
    return (
        f"{count} {noun}{'s' * (count != 1)}{asked} explain{'s' * (count == 1)} {len(model.substates_)} demonstrations."
    )


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
    return f"{name_action(model, best)} with {mean:.2f} ({aligned.interval:.0%} interval {low:.2f} to {high:.2f}); "


def say_mean(model: Any, k: int, policies: Interval) -> str:
    """Of a product: the most probable actions with all of a feature, the first one with how far draws differ."""
    order = np.argsort(-policies.value[k], kind="stable")[:2]
    best, second = int(order[0]), int(order[-1])
    mean, low, high = (numbers[k, best] for numbers in policies)
    level = f"{model.posterior_.aligned.interval:.0%} of the draws"
    told = f"{name_action(model, best)} with {mean:.2f} ({level} {low:.2f} to {high:.2f})"
    if second != best and policies.value[k, second] >= WORTH_NAMING:
        told += f", {name_action(model, second)} with {policies.value[k, second]:.2f}"
    return f"{told}; "


def say_changes(model: Any, times: np.ndarray) -> str:
    """Of a product: which actions a feature makes most likely and most unlikely where it is full, by which factor."""
    most, least = int(np.argmax(times)), int(np.argmin(times))
    told = []
    if times[most] >= WORTH_TIMES:
        told.append(f"raises {name_action(model, most)} ({say_factor(times[most])} times)")
    if times[least] <= 1 / WORTH_TIMES:
        told.append(f"lowers {name_action(model, least)} ({say_factor(1 / times[least])} times)")
    return ", ".join(told) or "changes little"


def say_rows(model: Any, k: int) -> str:
    """How often a feature occurs."""
    rows, draws = np.mean(model.substates_[:, k] > 0), model.posterior_.aligned.presence[k]
    return f"in {rows:.0%} of the rows, found in {draws:.0%} of the draws"
