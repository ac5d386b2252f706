"""A fitted model of clusters in a few lines of text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact.explanation.describe import say_how_many, say_looks, say_policy
from whyact.explanation.names import find_names
from whyact.explanation.support import say_support


def describe_clusters(model: Any, *, column_names: Sequence[str] | None = None, n_entries: int = 4) -> str:
    """Describe each cluster: where its mean differs most from the mean of all observations, and its policy.

    `model` is a fitted `ClusterPolicyClassifier`, which imports this module.
    """
    names = find_names(model, column_names)
    aligned = model.posterior_.aligned
    lines = [say_how_many(model, "cluster"), say_support(model, "cluster")]
    for k in range(model.n_components_):
        away = aligned.features.value[k] - model.posterior_.center
        rows = np.mean(model.labels_ == k)
        lines.append(f"  cluster {k}: {say_looks(away, names, n_entries, '{:+.2f}')} from the mean")
        lines.append(
            f"    -> {say_policy(model, k)}{rows:.0%} of the rows, found in {aligned.presence[k]:.0%} of the draws"
        )
    lines.append(model.posterior_.agreement())
    return "\n".join(lines)
