"""What a new row shows: the mode over the box against a general solver, and actions against the model's own formula."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from whyact.model import action_probabilities, multiplied_probabilities
from whyact.sampler.new_rows import MixtureVoices, ProductVoices, fit_amounts, mix_policies, multiply_policies


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


# Beside the first action, the others are next to nothing; to the power of 30 they are nothing.
SURE = np.array([1 - 2e-12, 1.5e-12, 5e-13])


@pytest.mark.parametrize("decisiveness", [1.0, 0.3, 30.0])
def test_a_mixture_is_that_of_the_model_over_what_is_available(decisiveness):
    rng = np.random.default_rng(0)
    for policies in (SURE[None], rng.dirichlet(np.full(3, 0.1), 4) + 1e-200, 5.0 * rng.dirichlet(np.ones(3), 4)):
        voices = MixtureVoices(policies, np.array([decisiveness]))
        for available in ([False, True, True], [True, False, True], [False, False, True], [True] * 3, []):
            substates = rng.random(len(policies)) * (rng.random(len(policies)) < 0.7)
            mask, probabilities = np.array(available, bool), np.empty(3)
            holds = mix_policies(substates, 0, 0, voices, mask, probabilities)
            expected = action_probabilities(
                substates[:, None], policies, decisiveness, mask[None] if len(mask) else None
            )
            np.testing.assert_allclose(probabilities, expected[0], rtol=1e-10, atol=1e-300)
            assert holds == substates.any()


def test_a_decisive_teacher_still_chooses_where_the_surest_action_is_not_available():
    probabilities = np.empty(3)
    voices = MixtureVoices(SURE[None], np.array([30.0]))
    mix_policies(np.ones(1), 0, 0, voices, np.array([False, True, True]), probabilities)
    np.testing.assert_allclose(probabilities, [0.0, 1.0, 3.0**-30], rtol=1e-12)
    expected = action_probabilities(np.ones((1, 1)), SURE[None], 30.0, np.array([[False, True, True]]))
    np.testing.assert_allclose(probabilities, expected[0], rtol=1e-12)


def test_what_is_not_available_takes_no_digits_from_the_rest():
    """Even if it would have been taken with near certainty."""
    log_odds = np.array([[2000.0, 0.0, np.log(3.0)]])
    voices = ProductVoices(log_odds, np.zeros((1, 3)))
    probabilities = np.empty(3)
    multiply_policies(np.ones(1), 0, 0, voices, np.array([False, True, True]), probabilities)
    np.testing.assert_allclose(probabilities, [0.0, 0.25, 0.75])
    policies = np.array([[1.0, 1e-280, 1e-281]])
    logs = np.log(policies)
    voices = ProductVoices(logs - logs.mean(), np.zeros((1, 3)))
    multiply_policies(np.ones(1), 0, 0, voices, np.array([False, True, True]), probabilities)
    expected = multiplied_probabilities(np.ones((1, 1)), policies, np.ones(3) / 3, np.array([[False, True, True]]))
    np.testing.assert_allclose(probabilities, expected[0], rtol=1e-12)
