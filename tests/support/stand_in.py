"""Models that look fitted, built from made-up states without running a chain."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from whyact import FeaturePolicyClassifier
from whyact.estimators.inputs import CheckedInput
from whyact.fit_result import FitResult
from whyact.model import State
from whyact.sampler.draws import ChainDraws, RunEnd


def make_model(
    n_rows: int = 30,
    n_columns: int = 6,
    n_features: int = 3,
    labels: Sequence[Any] = ("brake", "go", "wait"),
    *,
    n_draws: int = 6,
    names: Sequence[str] | None = None,
    share_missing: float = 0.0,
    n_unknown: int = 0,
    n_runs: int = 2,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    available: np.ndarray | None = None,
    policies: np.ndarray | None = None,
    **parameters: Any,
) -> FeaturePolicyClassifier:
    """A FeaturePolicyClassifier whose chains hold noisy copies of one state; with empty `labels`, without actions.

    `numbers`: how many features each draw has, if not `n_features`; `policies` (K, U), if not drawn. Unless told
    otherwise, it is the paper's mixture.
    A decisiveness to be learned differs from draw to draw. The policies that a product predicts with are learned.
    """
    rng = np.random.default_rng(seed)
    model = FeaturePolicyClassifier(
        **{"combination": "mixture", "decisiveness": 1.0, "scale_columns": False} | parameters
    )
    n_actions = max(len(labels), 1)
    features = rng.exponential(size=(n_features, n_columns)) * (rng.random((n_features, n_columns)) < 0.4)
    if model.feature_values == "real":
        features *= rng.choice([-1, 1], features.shape)
    levels = rng.integers(0, 100, (n_features, n_rows)) * (rng.random((n_features, n_rows)) < 0.5)
    drawn = rng.dirichlet(np.full(n_actions, 0.5), n_features).reshape(n_features, n_actions) + 1e-6
    policies = drawn / drawn.sum(axis=1, keepdims=True) if policies is None else policies
    observations = (levels / 99).T @ features + 0.1 * rng.standard_normal((n_rows, n_columns))
    observations[rng.random(observations.shape) < share_missing] = np.nan
    actions = rng.integers(0, n_actions, n_rows) if len(labels) else np.full(n_rows, -1)
    actions[:n_unknown] = -1
    if available is not None:
        available = available | (actions[:, None] == np.arange(n_actions))

    scaling = model._make_scaling(observations)
    observations = scaling.scale_columns(observations)
    classes, columns = np.array(labels), None if names is None else np.array(names, dtype=object)
    given = CheckedInput(observations, columns, classes, actions, available)
    problem = model._make_problem(observations, given, scaling)
    base_policy = rng.dirichlet(np.full(n_actions, 5.0)) if model.combination == "product" else np.zeros(0)
    chains = []
    for _ in range(n_runs):
        chain = None
        for number in numbers or [n_features] * n_draws:
            noisy = features / scaling.unit * rng.uniform(0.9, 1.1, features.shape)
            decisiveness = rng.uniform(9, 15) if isinstance(model.decisiveness, str) else model.decisiveness
            scalars = [0.01] * (len(State._fields) - 5)
            state = State(
                levels[:number] / 99, noisy[:number], policies[:number], *scalars, decisiveness, base_policy
            )  # fmt: skip
            chain = chain or ChainDraws(state, model.n_levels)
            chain.append(state, rng.normal(), rng.normal())
        chains.append(chain)
    result = FitResult(
        parameters=model.get_params(deep=False),
        columns=columns,
        classes=classes,
        observations=observations,
        actions=actions,
        scaling=scaling,
        target=problem.target,
        chains=chains,
        end=RunEnd("", [seed], 0, [], []),
        available=available,
    )
    model._set_result(model._complete(result))
    return model
