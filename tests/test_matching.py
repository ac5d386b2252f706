"""Which features of all draws are the same: one to one, whatever their size, by the mean of what was matched."""

import numpy as np
import pytest

from whyact.matching import SAME_FEATURE, assign, compare, make_prototypes, match_chain, normalise, refine
from whyact.model import State
from whyact.sampler.draws import ChainDraws

N_LEVELS = 101
NOISE = 0.6  # of entries and substates, which are about one


def make_chain(draws):
    """A chain of these draws, pairs of features and substates."""
    chain = None
    for features, substates in draws:
        policies = np.full((len(features), 2), 0.5)
        state = State(np.asarray(substates), np.asarray(features), policies, 0.1, 1, 1, 1, 1, 1, 1)
        chain = chain or ChainDraws(state, N_LEVELS)
        chain.append(state, 0.0, 0.0)
    return chain


def draw_noisily(rng, features, substates, n_draws, noise):
    """Draws of the same features in random order, each time a little different."""
    for _ in range(n_draws):
        order = rng.permutation(len(features))
        entries = np.maximum(features[order] + noise * rng.standard_normal(features.shape), 0.0)
        amounts = np.clip(substates[order] + noise * rng.standard_normal(substates.shape), 0.0, 1.0)
        yield entries, np.rint(amounts * (N_LEVELS - 1)) / (N_LEVELS - 1)


@pytest.fixture
def noisy():
    """Three features in 30 columns and 40 rows, and a chain in which two draws of a feature are hardly alike."""
    rng = np.random.default_rng(3)
    features = (rng.random((3, 30)) < 0.4) * rng.exponential(size=(3, 30))
    substates = (rng.random((3, 40)) < 0.4) * rng.random((3, 40))
    return features, substates, make_chain(draw_noisily(rng, features, substates, 30, NOISE))


def find_true(chain, features, substates):
    """Which of the true features each row is, by what is most alike."""
    return compare(chain.features, chain.levels.astype(float), *make_prototypes(features, substates)).argmax(axis=1)


def test_a_feature_that_drifts_is_one_feature(noisy):
    """Matched with one draw most are lost, matched with the mean hardly any."""
    features, substates, chain = noisy
    first = chain.state(0)
    single = make_prototypes(first.features, first.substates)
    (alone,) = match_chain(chain, [single], compare)
    (together,) = match_chain(chain, [refine([chain], single, compare)], compare)
    assert np.mean(alone >= 0) < 0.5
    assert np.mean(together >= 0) > 0.95
    true = find_true(chain, features, substates)
    order = true[:3]  # of the first draw, which gives the names
    assert np.array_equal(order[together[together >= 0]], true[together >= 0])


def test_means_are_settled(noisy):
    _, _, chain = noisy
    first = chain.state(0)
    means = refine([chain], make_prototypes(first.features, first.substates), compare)
    again = refine([chain], means, compare)
    for one, other in zip(means, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_size_of_a_feature_does_not_matter(noisy):
    """Neither that of the entries nor that of the substates, in single draws."""
    features, substates, chain = noisy
    prototypes = make_prototypes(features, substates)
    likeness = compare(chain.features, chain.levels.astype(float), *prototypes)
    larger = compare(7.0 * chain.features, 0.1 * chain.levels, *make_prototypes(0.2 * features, 3.0 * substates))
    np.testing.assert_allclose(likeness, larger)


def test_each_feature_of_a_draw_is_matched_at_most_once():
    likeness = np.array([[0.9, 0.8], [0.95, 0.1], [0.85, 0.2]])
    assert assign(likeness).tolist() == [1, 0, -1]


def test_what_is_not_alike_stays_apart():
    below, above = SAME_FEATURE - 1e-9, SAME_FEATURE
    assert assign(np.array([[below, 0.0], [0.0, above]])).tolist() == [-1, 1]
    assert assign(np.zeros((2, 0))).tolist() == [-1, -1]


def test_a_prototype_that_nothing_is_like_stays(noisy):
    _, _, chain = noisy
    alien = make_prototypes(np.eye(30)[:1], np.eye(40)[:1])
    for one, other in zip(refine([chain], alien, compare), alien, strict=True):
        assert np.array_equal(one, other)


def test_several_sets_are_matched_as_each_of_them_alone(noisy):
    features, substates, chain = noisy
    one, other = make_prototypes(features[:2], substates[:2]), make_prototypes(features[1:], substates[1:])
    together = match_chain(chain, [one, other], compare)
    for labels, prototypes in zip(together, (one, other), strict=True):
        assert np.array_equal(labels, match_chain(chain, [prototypes], compare)[0])


def test_zero_rows_have_no_direction():
    assert np.array_equal(normalise(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])
