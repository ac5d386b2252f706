"""Simulation-based calibration: the truth's rank among the draws is uniform if data come from the prior."""

import numpy as np
import pytest
from scipy import stats

from whyact.model import Priors, make_demonstrations, make_target
from whyact.sampler.chain import anneal
from whyact.sampler.exact import start_from_prior
from whyact.sampler.sweep import run_sweeps
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
# How policies are combined, and what is ranked of it.
KINDS = [({}, ()), ({"decisiveness": "drawn"}, ("decisiveness",)), ({"combination": "product"}, ("policy_scale",))]


def rank_truth(rng, options, names, n_kept=63, thin=30):
    """Ranks of the true K, noise variance, number of active entries and `names`; ties are broken at random."""
    simulation = simulate(rng, N_ROWS, N_DIMENSIONS, N_ACTIONS, priors=PRIORS, n_levels=N_LEVELS, **options)
    data = make_demonstrations(simulation.observations, simulation.actions)
    target = make_target(PRIORS, n_actions=N_ACTIONS, n_dimensions=N_DIMENSIONS, n_levels=N_LEVELS, **options)
    state = start_from_prior(rng, data, target, PRIORS)
    state, _ = run_sweeps(rng, state, anneal(600, 1.0), data, target)
    drawn = np.empty((n_kept, 3 + len(names)))
    for i in range(n_kept):
        state, _ = run_sweeps(rng, state, np.ones(thin), data, target)
        drawn[i] = measure(state, names)
    truth = measure(simulation.state, names)
    below = (drawn < truth).sum(axis=0)
    ties = (drawn == truth).sum(axis=0)
    return below + rng.integers(0, ties + 1)


def measure(state, names):
    others = (getattr(state, name) for name in names)
    return len(state.features), state.noise_variance, np.count_nonzero(state.features), *others


def assert_calibrated(n_runs, options, names):
    rng = np.random.default_rng(2026)
    ranks = np.array([rank_truth(rng, options, names) for _ in range(n_runs)])
    for name, column in zip(("n_features", "noise_variance", "n_active", *names), ranks.T, strict=True):
        counts = np.bincount(column * N_BINS // 64, minlength=N_BINS)
        p = stats.chisquare(counts).pvalue
        print(f"{name}: ranks in {N_BINS} bins {counts.tolist()}, p = {p:.3f}")
        assert p > P_LIMIT, name


@pytest.mark.long
@pytest.mark.parametrize(("options", "names"), KINDS)
def test_truth_ranks_uniformly_among_the_draws(options, names):
    assert_calibrated(160, options, names)


@pytest.mark.large
@pytest.mark.parametrize(("options", "names"), KINDS)
def test_truth_ranks_uniformly_among_the_draws_in_many_runs(options, names):
    assert_calibrated(3000, options, names)
