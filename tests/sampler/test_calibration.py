"""Simulation-based calibration: the truth's rank among the draws is uniform if data come from the prior."""

import numpy as np
import pytest
from scipy import stats

from whyact.model import Priors, make_demonstrations, make_target, state_probabilities
from whyact.sampler.chain import anneal
from whyact.sampler.exact import start_from_prior
from whyact.sampler.sweep import run_sweeps
from whyact.scaling import hold_noise
from whyact.simulation import simulate

PRIORS = Priors(
    noise_shape=(30.0, 3.0),
    noise_rate=(4.0, 4.0),
    ibp_mass=(6.0, 3.0),
    ibp_concentration=(4.0, 4.0),
    weight_scale=(8.0, 8.0),
    decisiveness=(6.0, 2.0),
    policy_scale=(6.0, 8.0),
)
N_ROWS, N_DIMENSIONS, N_ACTIONS, N_LEVELS = 12, 5, 3, 10
N_BINS = 8
# Three or four chi-square tests with p > 1e-4: a correct sampler fails with probability 4e-4. The seed is fixed.
P_LIMIT = 1e-4
# How policies are combined, whether some actions are not available, where the noise is held, how many whole moves there
# are; and what is ranked of it beside what all have.
KINDS = [
    ({}, ()),
    ({"decisiveness": "drawn"}, ("decisiveness",)),
    ({"combination": "product"}, ("policy_scale",)),
    ({"masked": True}, ("policy_concentration",)),
    ({"combination": "product", "masked": True}, ("policy_scale",)),
    ({"noise": 0.5, "n_whole_moves": 2}, ("weight_scale",)),
]


def rank_truth(rng, kind, names, n_kept=63, thin=30):
    """Ranks of the true K, noise variance, number of active entries and `names`; ties are broken at random."""
    options = {name: value for name, value in kind.items() if name not in ("masked", "noise")}
    priors = hold_noise(PRIORS, kind["noise"]) if "noise" in kind else PRIORS
    given = {name: value for name, value in options.items() if name in ("decisiveness", "combination")}
    simulation = simulate(rng, N_ROWS, N_DIMENSIONS, N_ACTIONS, priors=priors, n_levels=N_LEVELS, **given)
    target = make_target(priors, n_actions=N_ACTIONS, n_dimensions=N_DIMENSIONS, n_levels=N_LEVELS, **options)
    actions, mask = simulation.actions, None
    if "masked" in kind:
        mask = rng.random((N_ROWS, N_ACTIONS)) < 0.6
        mask[np.arange(N_ROWS), rng.integers(N_ACTIONS, size=N_ROWS)] = True
        actions = draw_actions(rng, state_probabilities(simulation.state, target, mask))
    data = make_demonstrations(simulation.observations, actions, available=mask)
    state = start_from_prior(rng, data, target, priors)
    state, _ = run_sweeps(rng, state, anneal(600, 1.0), data, target)
    drawn = np.empty((n_kept, 3 + len(names)))
    for i in range(n_kept):
        state, _ = run_sweeps(rng, state, np.ones(thin), data, target)
        drawn[i] = measure(state, names)
    truth = measure(simulation.state, names)
    below = (drawn < truth).sum(axis=0)
    ties = (drawn == truth).sum(axis=0)
    return below + rng.integers(0, ties + 1)


def draw_actions(rng, probabilities):
    """One action for each row."""
    return (rng.random((len(probabilities), 1)) >= np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)


def measure(state, names):
    others = (getattr(state, name) for name in names)
    return len(state.features), state.noise_variance, np.count_nonzero(state.features), *others


def assert_calibrated(n_runs, kind, names):
    rng = np.random.default_rng(2026)
    ranks = np.array([rank_truth(rng, kind, names) for _ in range(n_runs)])
    for name, column in zip(("n_features", "noise_variance", "n_active", *names), ranks.T, strict=True):
        counts = np.bincount(column * N_BINS // 64, minlength=N_BINS)
        p = stats.chisquare(counts).pvalue
        print(f"{name}: ranks in {N_BINS} bins {counts.tolist()}, p = {p:.3f}")
        assert p > P_LIMIT, name


@pytest.mark.long
@pytest.mark.parametrize(("kind", "names"), KINDS)
def test_truth_ranks_uniformly_among_the_draws(kind, names):
    assert_calibrated(160, kind, names)


@pytest.mark.large
@pytest.mark.parametrize(("kind", "names"), KINDS)
def test_truth_ranks_uniformly_among_the_draws_in_many_runs(kind, names):
    assert_calibrated(3000, kind, names)
