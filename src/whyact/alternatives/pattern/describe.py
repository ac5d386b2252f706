"""A fitted model of patterns in a few lines of text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact.explanation.describe import say_how_many, say_looks
from whyact.explanation.names import find_names, name_action
from whyact.explanation.support import say_support

N_PATTERNS = 12


def describe_patterns(model: Any, *, column_names: Sequence[str] | None = None, n_entries: int = 4) -> str:
    """Describe each feature, and the policy of the most frequent patterns of features.

    `model` is a fitted `PatternPolicyClassifier`, which imports this module.
    """
    names = find_names(model, column_names)
    aligned = model.posterior_.aligned
    lines = [say_how_many(model, "feature"), say_support(model, "feature")]
    for k in range(model.n_components_):
        looks = say_looks(aligned.features.value[k], names, n_entries)
        lines.append(
            f"  feature {k}: {looks}; in {np.mean(model.substates_[:, k] > 0):.0%} of the rows, "
            f"found in {aligned.presence[k]:.0%} of the draws"
        )
    if len(model.classes_):
        for pattern, counts, policy in zip(
            model.patterns_[:N_PATTERNS], model.pattern_counts_, model.policies_, strict=False
        ):
            held = ", ".join(map(str, np.nonzero(pattern)[0])) or "no feature"
            best = int(np.argmax(policy))
            lines.append(
                f"  pattern ({held}) -> {name_action(model, best)} with {policy[best]:.2f} ({counts.sum():.0f} actions)"
            )
        if len(model.patterns_) > N_PATTERNS:
            lines.append(f"  and {len(model.patterns_) - N_PATTERNS} more patterns")
    lines.append(model.posterior_.agreement())
    return "\n".join(lines)
