"""An alternative to starting a chain from one feature drawn from the prior.

In thousands of dimensions a feature hardly ever grows from one entry: a singleton must pay for itself before it has a
second one. Chains that start from whole observations find in tens of sweeps what the others do not find at all.
"""

import numpy as np
from scipy.optimize import nnls

from whyact.model import UNLIMITED, Demonstrations, Priors, State, Target
from whyact.sampler.exact import EXACT, start_from_prior

N_FEATURES = 30
ROWS_PER_FEATURE = 4
# Entries of a centre below this share of the observations' root mean square are set to zero.
SMALL = 0.08


def start_from_rows(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start with the centres of k-means as features, and substates by non-negative least squares."""
    from sklearn.cluster import KMeans  # slow to import, and seldom needed

    state = start_from_prior(rng, data, target, priors)
    if target.min_features:  # centres may be fewer
        return state
    observations = data.observations
    n_rows = len(observations)
    wanted = N_FEATURES if target.max_features == UNLIMITED else target.max_features
    n_features = max(1, min(wanted, n_rows // ROWS_PER_FEATURE, len(np.unique(observations, axis=0))))
    features = KMeans(n_features, n_init=1, random_state=int(rng.integers(2**31))).fit(observations).cluster_centers_
    small = SMALL * np.sqrt(data.sum_of_squares / max(data.n_observed, 1))
    features = np.where((features > small) if target.positive else (np.abs(features) > small), features, 0.0)
    features = features[(features != 0).any(axis=1)]
    if len(features) == 0:  # all centres are near zero
        return state
    substates = np.array([nnls(features.T, row)[0] for row in observations]).T
    largest = substates.max(axis=1, initial=0.0)
    held = largest > 0
    if not held.any():
        return state
    features = features[held] * largest[held, None]
    n_steps = target.n_levels - 1
    substates = np.rint(substates[held] / largest[held, None] * n_steps) / n_steps
    policies = np.stack([substates @ (data.actions == u) for u in range(target.n_actions)], axis=1) + 1.0
    residual = observations - substates.T @ features
    return state._replace(
        substates=np.ascontiguousarray(substates),
        features=features,
        policies=policies / policies.sum(axis=1, keepdims=True),
        noise_variance=float(max(np.mean(residual**2), 1e-3 * data.sum_of_squares / max(data.n_observed, 1), 1e-12)),
    )


# Annealing would melt the start, and the score that merging relies on is too rough in thousands of dimensions.
FROM_ROWS = EXACT._replace(start=start_from_rows, anneals=False, merge=None)
