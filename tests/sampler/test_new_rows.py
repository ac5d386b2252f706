"""What a new row shows: the mode over the box against a general solver, and products of policies far from one."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from whyact.sampler.new_rows import ProductVoices, fit_amounts, multiply_policies


@pytest.mark.parametrize("scale", [0.5, 50.0, 1e5, 1e12])
@pytest.mark.parametrize("n_features", [0, 1, 3, 12])
def test_amounts_are_the_mode_over_the_box(scale, n_features):
    """Features that are alike, one of which is another one's copy, and one that is empty."""
    rng = np.random.default_rng(n_features)
    for _ in range(20):
        features = rng.exponential(size=(n_features, 8)) + rng.exponential(size=8)
        features[:1] = 0.0
        features[1:2] = features[2:3] if n_features > 2 else 1.0
        observation = rng.exponential(size=8) * rng.choice([0.5, 3.0])
        amounts = np.zeros(n_features)
        gram = features @ features.T
        fit_amounts(rng, amounts, features @ observation, gram, np.full(n_features, 0.5), scale, 100)
        if n_features == 0:
            continue
        # a slab of variance one is one more observation of zero for each substate
        stacked = np.vstack([np.sqrt(scale) * features.T, np.eye(n_features)])
        target = np.append(np.sqrt(scale) * observation, np.zeros(n_features))
        other = lsq_linear(stacked, target, bounds=(0.0, 1.0), tol=1e-14, max_iter=1000).x
        density = [-0.5 * np.sum((target - stacked @ found) ** 2) for found in (amounts, other)]
        assert density[0] >= density[1] - 1e-7 * max(abs(density[1]), 1.0)
        if scale < 1e10:  # beyond, rounding leaves open which of two that are alike it is
            np.testing.assert_allclose(amounts, other, atol=2e-4)


def test_what_is_not_available_takes_no_digits_from_the_rest():
    """Even if it would have been taken with near certainty."""
    log_odds = np.array([[2000.0, 0.0, np.log(3.0)]])
    voices = ProductVoices(log_odds, np.zeros((1, 3)))
    probabilities = np.empty(3)
    multiply_policies(np.ones(1), 0, 0, voices, np.array([False, True, True]), probabilities)
    np.testing.assert_allclose(probabilities, [0.0, 0.25, 0.75])
