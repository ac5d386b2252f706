"""Models that look fitted, made of states that are simply said: no chain runs."""

import numpy as np

from whyact import FeaturePolicyClassifier
from whyact.model import State
from whyact.sampler.draws import ChainDraws


def make_model(
    n_rows=30, n_columns=6, n_features=3, labels=("brake", "go", "wait"), *, n_draws=6, names=None, share_missing=0.0,
    n_unknown=0, n_runs=2, seed=0, numbers=None, **parameters,
):  # fmt: skip
    """A FeaturePolicyClassifier whose chains hold noisy copies of one state; without labels, without actions.

    `numbers`: how many features each draw has, if not all of them.
    """
    rng = np.random.default_rng(seed)
    model = FeaturePolicyClassifier(**parameters)
    n_actions = max(len(labels), 1)
    features = rng.exponential(size=(n_features, n_columns)) * (rng.random((n_features, n_columns)) < 0.4)
    if model.feature_values == "real":
        features *= rng.choice([-1, 1], features.shape)
    levels = rng.integers(0, 100, (n_features, n_rows)) * (rng.random((n_features, n_rows)) < 0.5)
    policies = rng.dirichlet(np.full(n_actions, 0.5), n_features).reshape(n_features, n_actions) + 1e-6
    policies /= policies.sum(axis=1, keepdims=True)
    observations = (levels / 99).T @ features + 0.1 * rng.standard_normal((n_rows, n_columns))
    observations[rng.random(observations.shape) < share_missing] = np.nan
    actions = rng.integers(0, n_actions, n_rows) if len(labels) else np.full(n_rows, -1)
    actions[:n_unknown] = -1

    model.n_features_in_ = n_columns
    if model.scale_columns:
        observations = model._check_observations(observations, reset=True)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    problem = model._pose(observations, actions, n_actions)
    chains = []
    for _ in range(n_runs):
        chain = None
        for number in numbers or [n_features] * n_draws:
            noisy = features / problem.unit * rng.uniform(0.9, 1.1, features.shape)
            state = State(levels[:number] / 99, noisy[:number], policies[:number], *[0.01] * (len(State._fields) - 3))
            chain = chain or ChainDraws(state, model.n_levels)
            chain.append(state, rng.normal(), rng.normal())
        chains.append(chain)
    model._set_fitted(model._summarise(problem, chains), problem, np.array(labels), seed)
    model.observations_, model.actions_ = observations, actions
    return model
