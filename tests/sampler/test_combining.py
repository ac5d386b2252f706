"""How policies are combined: the kernels against the model's own formulas, and the bounds that save births their sums.

Random cases are many and their seeds are fixed. What is compared is exact up to rounding, so there are no false alarms.
"""

import math

import numpy as np
import pytest
from scipy import special

from whyact.model import (
    Priors,
    action_probabilities,
    center_log_odds,
    make_demonstrations,
    make_target,
    multiplied_probabilities,
)
from whyact.sampler.combining import (
    HUGE,
    SMALLEST,
    UNKNOWN,
    bound_gain,
    bound_inverse_probability,
    change_tally,
    fill_bounds,
    fill_tally,
    find_votes,
    inverse_probability,
    is_accepted,
    is_plain,
    log_gain_of_column,
    log_likelihood_of_rows,
    log_probability,
    tally_rows,
)

# combination and decisiveness
KINDS = [("mixture", 0.3), ("mixture", 1.0), ("mixture", 12.0), ("product", 1.0)]
N_ROWS, N_FEATURES, N_ACTIONS, N_LEVELS = 6, 3, 4, 5


def draw_mask(rng, n_rows, n_actions, masked):
    """Some actions are missing in most rows, never all; none in the first row, all but one in the second."""
    if not masked:
        return None
    available = rng.random((n_rows, n_actions)) < 0.6
    available[np.arange(n_rows), rng.integers(n_actions, size=n_rows)] = True
    available[0] = True
    available[1] = np.arange(n_actions) == 1
    return available


def make_case(seed, kind, masked, n_features=N_FEATURES):
    """Substates with an empty first row, policies, base policy, their votes, data and target."""
    combination, decisiveness = kind
    rng = np.random.default_rng(seed)
    levels = rng.integers(1, N_LEVELS, (n_features, N_ROWS)) * (rng.random((n_features, N_ROWS)) < 0.6)
    levels[:, 0] = 0
    policies = np.maximum(rng.dirichlet(np.full(N_ACTIONS, 0.3), n_features), 1e-12)
    policies = policies.reshape(n_features, N_ACTIONS) / policies.sum(axis=-1, keepdims=True)
    base_policy = rng.dirichlet(np.ones(N_ACTIONS)) if combination == "product" else np.zeros(0)
    available = draw_mask(rng, N_ROWS, N_ACTIONS, masked)
    choices = np.ones((N_ROWS, N_ACTIONS)) if available is None else available
    actions = [rng.choice(np.flatnonzero(row)) for row in choices]
    data = make_demonstrations(np.zeros((N_ROWS, 1)), actions, available=available)
    target = make_target(
        Priors(), n_actions=N_ACTIONS, n_dimensions=1, n_levels=N_LEVELS, combination=combination,
        decisiveness=decisiveness,
    )  # fmt: skip
    votes = find_votes(policies, base_policy, decisiveness, target)
    return levels / (N_LEVELS - 1), policies, base_policy, votes, data, target


def find_probabilities(substates, policies, base_policy, kind, available):
    """P(u | s) by the formulas of the model."""
    combination, decisiveness = kind
    if combination == "product":
        return multiplied_probabilities(substates, policies, base_policy, available)
    return action_probabilities(substates, policies, decisiveness, available)


# --- probabilities -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_probability_by_the_tally_is_that_of_the_model(kind, masked):
    for seed in range(30):
        substates, policies, base_policy, votes, data, _ = make_case(seed, kind, masked)
        expected = find_probabilities(substates, policies, base_policy, kind, data.available)
        tallies = tally_rows(substates, -1, votes)
        for n, u in np.ndindex(N_ROWS, N_ACTIONS):
            if masked and not data.available[n, u]:
                assert expected[n, u] == 0.0
                continue
            assert log_probability(tallies[n], n, u, votes, data) == pytest.approx(math.log(expected[n, u]), abs=1e-9)
            assert inverse_probability(tallies[n], n, u, votes, data) == pytest.approx(1 / expected[n, u], rel=1e-9)
        assert np.allclose(expected.sum(axis=1), 1.0)
        taken = np.log(expected[np.arange(N_ROWS), data.actions])
        assert log_likelihood_of_rows(tallies, votes, data) == pytest.approx(taken.sum(), abs=1e-8)
        data.actions[2] = -1
        assert log_likelihood_of_rows(tallies, votes, data) == pytest.approx(taken.sum() - taken[2], abs=1e-8)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_without_any_feature_the_action_is_uniform_or_the_base_policys(kind, masked):
    substates, _, base_policy, votes, data, _ = make_case(0, kind, masked, n_features=0)
    tallies = tally_rows(substates, -1, votes)
    for n in range(N_ROWS):
        weights = base_policy if kind[0] == "product" else np.ones(N_ACTIONS)
        weights = weights * data.available[n] if masked else weights
        for u in np.flatnonzero(weights):
            expected = weights[u] / weights.sum()
            assert inverse_probability(tallies[n], n, u, votes, data) == pytest.approx(1 / expected, rel=1e-12)
            assert log_probability(tallies[n], n, u, votes, data) == pytest.approx(math.log(expected), abs=1e-12)


def log_softmax_of_tally(tally, kind, available):
    """Log P(u | s) in logarithms throughout; minus infinity where not available."""
    combination, decisiveness = kind
    logs = tally if combination == "product" else decisiveness * np.log(np.maximum(tally / tally.max(), SMALLEST))
    logs = np.where(available, logs, -np.inf)
    return logs - special.logsumexp(logs)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, ("mixture", 300.0)])
def test_huge_and_tiny_tallies_neither_overflow_nor_lose_the_action(kind, masked):
    _, _, _, votes, data, _ = make_case(0, kind, masked)
    rng = np.random.default_rng(7)
    n_overflows = 0
    for _ in range(300):
        n = int(rng.integers(N_ROWS))
        if kind[0] == "product":
            tally = rng.choice([1.0, 100.0, 3000.0]) * rng.standard_normal(N_ACTIONS)
        else:
            tally = np.exp(-rng.choice([1.0, 20.0, 600.0]) * rng.random(N_ACTIONS))
        available = data.available[n] if masked else np.ones(N_ACTIONS, dtype=bool)
        # an action that is not available must not matter, however large its tally is
        alone = np.where(available, tally, -1e6 if kind[0] == "product" else 0.0)
        expected = log_softmax_of_tally(alone, kind, available)
        for u in np.flatnonzero(available):
            log_p = log_probability(tally, n, u, votes, data)
            assert log_p == pytest.approx(expected[u], rel=1e-9, abs=1e-9)
            assert log_p <= 0.0
            inverse = inverse_probability(tally, n, u, votes, data)
            n_overflows += inverse > HUGE
            if expected[u] > -600:
                assert inverse == pytest.approx(math.exp(-expected[u]), rel=1e-6)
            else:
                assert inverse > 1e250
    assert n_overflows > 20 or kind in KINDS[:2]


def test_actions_of_no_weight_are_left_out_without_an_error():
    """Shares below exp(-42) are not added: the sum changes by less than its rounding."""
    for kind in KINDS:
        votes, data = make_case(0, kind, False)[3:5]
        tally = np.array([0.0, -45.0, -60.0, -43.0]) if kind[0] == "product" else np.array([1.0, 1e-19, 1e-70, 1e-25])
        expected = log_softmax_of_tally(tally, kind, np.ones(4, dtype=bool))
        for u in range(4):
            assert log_probability(tally, 2, u, votes, data) == pytest.approx(expected[u], rel=1e-12, abs=1e-15)


# --- tallies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_are_sums_of_votes_with_one_left_out_or_changed(kind):
    step = 1 / (N_LEVELS - 1)
    rng = np.random.default_rng(3)
    for seed in range(20):
        substates, policies, base_policy, votes, _, _ = make_case(seed, kind, False)
        ballots = center_log_odds(policies) if kind[0] == "product" else policies
        base = center_log_odds(base_policy) if kind[0] == "product" else np.zeros(N_ACTIONS)
        assert np.allclose(tally_rows(substates, -1, votes), base + substates.T @ ballots, atol=1e-12)
        k, new = int(rng.integers(N_FEATURES)), int(rng.integers(N_LEVELS))
        without = np.where(np.arange(N_FEATURES)[:, None] == k, 0.0, substates)
        assert np.allclose(tally_rows(substates, k, votes), base + without.T @ ballots, atol=1e-12)
        n = int(rng.integers(N_ROWS))
        levels = np.rint(substates[:, n] / step).astype(np.int64)
        tally, changed = np.empty(N_ACTIONS), np.empty(N_ACTIONS)
        fill_tally(tally, levels, step, -1, votes)
        assert np.allclose(tally, base + substates[:, n] @ ballots, atol=1e-12)
        change_tally(tally, changed, levels, k, new, step, votes)
        assert np.allclose(changed, base + without[:, n] @ ballots + new * step * ballots[k], atol=1e-12)


def test_what_a_mixture_leaves_for_an_action_is_not_lost_to_rounding():
    """A feature that is sure goes; another one hardly says anything for its action."""
    target = make_case(0, ("mixture", 2.0), False)[-1]
    policies = np.array([[1.0 - 3e-200, 1e-200, 1e-200, 1e-200], [1e-30, 1.0 - 3e-30, 1e-30, 2e-30]])
    votes = find_votes(policies, np.zeros(0), 2.0, target)
    levels, changed, tally = np.array([4, 4]), np.empty(4), np.empty(4)
    fill_tally(tally, levels, 0.25, -1, votes)
    change_tally(tally, changed, levels, 0, 0, 0.25, votes)
    assert changed == pytest.approx(policies[1], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_only_the_papers_mixture_is_plain(kind, masked):
    data, target = make_case(0, kind, masked)[4:]
    assert is_plain(data, target) == (kind == ("mixture", 1.0) and not masked)


def test_learned_decisiveness_is_never_plain():
    target = make_target(Priors(), n_actions=2, n_dimensions=1, decisiveness="drawn")
    assert not is_plain(make_demonstrations(np.zeros((1, 1)), [0]), target)


# --- acceptance ----------------------------------------------------------------------------------------------


def make_pair(kind, log_odds_before, log_odds_after):
    """Tallies of a row of two actions of which the second is taken, by its log odds, and the rest for `is_accepted`."""
    target = make_target(Priors(), n_actions=2, n_dimensions=1, combination=kind[0], decisiveness=kind[1])
    data = make_demonstrations(np.zeros((1, 1)), [1])
    votes = find_votes(np.full((1, 2), 0.5), np.full(2, 0.5), kind[1], target)
    tallies = [np.array([-0.5, 0.5]) * log_odds for log_odds in (log_odds_before, log_odds_after)]
    if kind[0] == "mixture":  # the odds are the ratio of the tallies to the power of tau
        tallies = [np.array([1.0, math.exp(tally[1] / (0.5 * kind[1]))]) for tally in tallies]
    return (*tallies, 0, 1, votes, data)


@pytest.mark.parametrize("kind", [("product", 1.0), ("mixture", 12.0), ("mixture", 0.5)])
@pytest.mark.parametrize("action_weight", [0.0, 0.4, 1.0, 2.5])
@pytest.mark.parametrize(
    "shift", [0.0, 3.0, -2000.0]
)  # also where the action is nearly sure, and where 1 / P overflows
def test_a_proposal_is_accepted_as_often_as_the_action_wants(kind, action_weight, shift):
    rng = np.random.default_rng(0)
    if kind[0] == "mixture":
        shift = max(shift, -600.0 * kind[1])  # the tally of a mixture must not underflow
    for before, after in [(0.1, -0.3), (-0.3, 0.1), (0.2, 0.2), (1.0, -2.0)]:
        pair = make_pair(kind, before + shift, after + shift)
        tally, changed, *row = pair
        known = inverse_probability(tally, *row)
        for inverse in (UNKNOWN, known):
            found = [is_accepted(rng, inverse, *pair, action_weight) for _ in range(5_000)]
            gain = special.log_expit(after + shift) - special.log_expit(before + shift)
            expected = min(1.0, math.exp(action_weight * gain))
            share = np.mean([accepted for accepted, _ in found])
            # 5 standard errors: a false alarm in 12,000 for all 288 together
            assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / 5_000) + 1e-12
            then = {True: (UNKNOWN, inverse_probability(changed, *row)), False: (known,)}
            assert all(after_it in then[accepted] for accepted, after_it in found)


def test_an_action_of_no_weight_never_rejects():
    """Not even where the inverse probability overflows."""
    rng = np.random.default_rng(0)
    for odds in ((1.0, -5.0), (-2000.0, -3000.0), (1.0, -2000.0)):
        assert is_accepted(rng, UNKNOWN, *make_pair(("product", 1.0), *odds), 0.0)[0]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cheap_bound_is_above_the_inverse_probability(kind, masked):
    n_tight = n_all = 0
    for seed in range(100):
        substates, _, _, votes, data, _ = make_case(seed, kind, masked)
        tallies = tally_rows(substates, -1, votes)
        for n in range(N_ROWS):
            action = int(np.argmax(np.where(is_in(data, n), tallies[n], -np.inf)))
            inverse = inverse_probability(tallies[n], n, action, votes, data)
            bound = bound_inverse_probability(tallies[n], n, action, votes, data)
            assert bound >= inverse * (1 - 1e-12)
            n_tight += bound < 3 * inverse
            n_all += 1
    if kind[1] >= 1:
        assert n_tight > 0.5 * n_all  # it is of use


def is_in(data, n):
    """Which actions are available in a row."""
    return data.available[n] if len(data.available) else np.ones(N_ACTIONS, bool)


# --- gains and their bound -----------------------------------------------------------------------------------


def find_gain(case, column, policy, kind, action_weight):
    """The gain in log-likelihood by one more feature, by the formulas of the model."""
    substates, policies, base_policy, _, data, _ = case
    grown = np.vstack([substates, column]), np.vstack([policies, policy])
    after = find_probabilities(*grown, base_policy, kind, data.available)
    before = find_probabilities(substates, policies, base_policy, kind, data.available)
    known = data.actions >= 0
    rows = np.flatnonzero(known), data.actions[known]
    return action_weight * np.sum(np.log(after[rows]) - np.log(before[rows]))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_column_gains_more_than_the_bound(kind, masked):
    """Random features, votes and columns, also in a model without features; columns that gain most included."""
    rng = np.random.default_rng(11)
    n_tight = 0
    for seed in range(120):
        action_weight = float(rng.choice([0.4, 1.0, 2.5]))
        case = make_case(seed, kind, masked, n_features=int(rng.integers(4)))
        substates, _, _, votes, data, target = case
        target = target._replace(action_weight=action_weight)
        data.actions[int(rng.integers(N_ROWS))] = -1
        policy = np.maximum(rng.dirichlet(np.full(N_ACTIONS, rng.choice([0.1, 1.0]))), 1e-12)
        if seed % 3 == 0:  # a feature for what the teacher did in one row
            policy[:] = 0.01
            policy[data.actions[int(rng.integers(N_ROWS))]] = 1.0
        policy /= policy.sum()
        vote = center_log_odds(policy) if kind[0] == "product" else policy
        tallies = tally_rows(substates, -1, votes)
        expected, lacks = np.zeros((N_ROWS, N_ACTIONS)), np.zeros(N_ROWS)
        fill_bounds(tallies, votes, data, expected, lacks)
        bound = bound_gain(tallies, vote, votes, data, target, expected, lacks)
        columns = rng.integers(0, N_LEVELS, (20, N_ROWS)) / (N_LEVELS - 1)
        columns[0], columns[1] = 1.0, 1 / (N_LEVELS - 1)
        # rows do not know of each other: the best column takes the best level of each
        levels = np.arange(N_LEVELS) / (N_LEVELS - 1)
        gains = [[find_gain(case, s * row, policy, kind, action_weight) for s in levels] for row in np.eye(N_ROWS)]
        columns[2] = levels[np.argmax(gains, axis=1)]
        for column in columns:
            gain = log_gain_of_column(tallies, column, vote, votes, data, target)
            assert gain == pytest.approx(find_gain(case, column, policy, kind, action_weight), abs=1e-8)
            assert gain <= bound + 1e-9
        n_tight += log_gain_of_column(tallies, columns[2], vote, votes, data, target) > 0.3 * bound > 0
        assert 0.0 <= bound <= action_weight * lacks.sum() + 1e-9
    assert n_tight > 20  # the bound is of use
