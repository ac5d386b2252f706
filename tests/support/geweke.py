"""Geweke's joint test: a chain that alternates sweeps and new data must follow the prior.

If every conditional is right, the chain (sweep given the data, then new data given the parameters) leaves the joint
distribution of parameters and data invariant, so its parameters are distributed as the prior, of which independent
draws are to be had. Means, variances and quantiles of each quantity are compared, with errors that know the chain's
autocorrelation.
"""

import math
import types

import numba
import numpy as np

from whyact.model import PRODUCT, Demonstrations, Priors, make_demonstrations, make_target
from whyact.sampler.compiling import OPTIONS
from whyact.sampler.sweep import run_sweeps
from whyact.scaling import hold_noise
from whyact.simulation import simulate

QUANTITIES = (
    "n_features",
    "n_active",
    "weight_sum",
    "noise_variance",
    "noise_shape",
    "noise_rate",
    "weight_scale",
    "ibp_mass",
    "ibp_concentration",
    "policy_concentration",
    "share_of_zeros",
    "substate_sum",
    "policy_spread",
    "first_policy",
    "first_feature_active",
    "policy_scale",
    "decisiveness",
    "base_policy",
)
N_QUANTITIES = len(QUANTITIES)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@numba.njit
def measure(state):
    """Quantities of a state, in the order of QUANTITIES; those of a state without features are constants."""
    values = np.zeros(N_QUANTITIES)
    n_features = len(state.features)
    values[0] = n_features
    values[1] = np.sum(state.features != 0.0)
    values[2] = np.sum(np.abs(state.features))
    values[3] = math.log(state.noise_variance)
    values[4] = math.log(state.noise_shape)
    values[5] = math.log(state.noise_rate)
    values[6] = math.log(state.weight_scale)
    values[7] = math.log(state.ibp_mass)
    values[8] = math.log(state.ibp_concentration)
    values[9] = math.log(state.policy_concentration)
    values[10] = 0.5
    if n_features > 0:
        values[10] = np.mean(state.substates == 0.0)
        values[11] = np.sum(state.substates)
        values[12] = np.mean(state.policies**2)
        # the order of the features must carry no information
        values[13] = state.policies[0, 0]
        values[14] = np.sum(state.features[0] != 0.0)
    values[15] = math.log(state.policy_scale)
    values[16] = math.log(state.decisiveness)
    if len(state.base_policy) > 0:
        values[17] = state.base_policy[0]
    return values


@numba.njit
def redraw_data(rng, state, data, target):
    """Draw new observations and actions given the parameters; what is missing stays missing."""
    n_rows, n_dimensions = data.observations.shape
    squares = 0.0
    for n in range(n_rows):
        for d in range(n_dimensions):
            z = math.sqrt(state.noise_variance) * rng.standard_normal()
            for k in range(len(state.features)):
                z += state.substates[k, n] * state.features[k, d]
            data.observations[n, d] = z
        for i in range(data.row_splits[n], data.row_splits[n + 1]):
            data.observations[n, data.row_gaps[i]] = 0.0
        for d in range(n_dimensions):
            squares += data.observations[n, d] ** 2
        if data.actions[n] >= 0:
            mixture = np.zeros(target.n_actions)
            if target.combination == PRODUCT:
                mixture += np.log(state.base_policy)
                for k in range(len(state.features)):
                    mixture += state.substates[k, n] * np.log(state.policies[k])
                mixture = np.exp(mixture - mixture.max())
            else:
                for k in range(len(state.features)):
                    mixture += state.substates[k, n] * state.policies[k]
            for u in range(target.n_actions):
                if len(data.available) > 0 and not data.available[n, u]:
                    mixture[u] = 0.0
            if target.combination != PRODUCT and mixture.sum() > 0.0:
                mixture = (mixture / mixture.max()) ** state.decisiveness
            elif mixture.sum() == 0.0:
                for u in range(target.n_actions):
                    mixture[u] = 1.0 if len(data.available) == 0 or data.available[n, u] else 0.0
            left = rng.random() * mixture.sum()
            action = -1
            for u in range(target.n_actions):
                if mixture[u] > 0.0:
                    action = u
                    left -= mixture[u]
                    if left < 0.0:
                        break
            data.actions[n] = action
    return Demonstrations(
        data.observations, data.actions, data.row_splits, data.row_gaps, data.column_splits, data.column_gaps,
        squares, data.n_observed, data.available,
    )  # fmt: skip


def make_joint_chain(sweeps):
    """The chain of some sweeps, right or wrong, and new data."""

    @numba.njit
    def run_joint_chain(rng, state, data, target, n_steps, thin):
        drawn = np.empty((n_steps, N_QUANTITIES))
        observation_weights = np.array([target.observation_weight])
        for i in range(n_steps):
            for _ in range(thin):
                state = sweeps(rng, state, observation_weights, data, target)[0]
                data = redraw_data(rng, state, data, target)
            drawn[i] = measure(state)
        return drawn

    return run_joint_chain


run_joint_chain = make_joint_chain(run_sweeps)


def rewire(kernel, **replaced):
    """A kernel that calls other functions than it does by the names given, as if its module held them."""
    function = kernel.py_func
    assert set(replaced) <= set(function.__code__.co_names), "it calls nothing of that name"
    changed = types.FunctionType(function.__code__, {**function.__globals__, **replaced}, function.__name__)
    return numba.njit(**OPTIONS)(changed)


def make_small_model(feature_values="positive", missing=False, silent=False, masked=False, noise=0.0, **options):
    """A model small enough to run a million sweeps, with hyperpriors that are neither flat nor pinned."""
    priors = Priors(
        noise_shape=(12.0, 3.0),
        noise_rate=(6.0, 4.0),
        ibp_mass=(6.0, 5.0),
        ibp_concentration=(5.0, 4.0),
        weight_scale=(9.0, 8.0),
        policy_concentration=(5.0, 5.0),
        sparsity=(1.5, 2.0),
        decisiveness=(6.0, 2.0),
        policy_scale=(6.0, 8.0),
    )
    if noise:
        priors = hold_noise(priors, noise)
    size = {"n_rows": 4, "n_dimensions": 3, "n_actions": 3}
    options = {"n_levels": 5, **options}
    target = make_target(
        priors,
        n_actions=3,
        n_dimensions=3,
        feature_values=feature_values,
        n_birth_tries=3,
        **options,
    )
    mask = np.zeros((4, 3), dtype=bool)
    hidden = np.zeros(4, dtype=bool)
    if missing:
        mask[0, 1] = mask[2, 0] = mask[2, 1] = True
        hidden[1] = hidden[2] = True
    hidden |= silent
    available = None
    if masked:
        available = np.ones((4, 3), dtype=bool)
        available[0, 1] = available[3, 0] = available[3, 2] = False

    given = {name: options[name] for name in ("n_levels", "decisiveness", "combination") if name in options}

    def draw_prior(rng):
        while True:
            simulation = simulate(rng, **size, priors=priors, feature_values=feature_values, **given)
            if target.min_features <= len(simulation.state.features) <= target.max_features:
                return simulation

    def start(rng):
        simulation = draw_prior(rng)
        observations = np.where(mask, np.nan, simulation.observations)
        actions = simulation.actions
        if masked:  # the first round draws new ones
            actions = available.argmax(axis=1)
        return simulation.state, make_demonstrations(observations, np.where(hidden, -1, actions), available=available)

    return target, draw_prior, start


def compare(chain, prior, quantities=QUANTITIES, skipped=()):
    """z scores of means, variances and quantiles of each quantity: chain (autocorrelated) against independent draws."""
    scores = {}
    for i, name in enumerate(quantities):
        x, y = chain[:, i], prior[:, i]
        if name in skipped:
            continue
        center, spread = y.mean(), y.std()
        statistics = {"mean": lambda v: v, "variance": lambda v: ((v - center) / spread) ** 2}  # noqa: B023
        for q in QUANTILES:
            edge = np.quantile(y, q)
            statistics[f"below {q:.0%}"] = lambda v, edge=edge: (v < edge).astype(float)
            if np.all(y == np.round(y)):  # counts have ties: also ask on the other side of the edge
                statistics[f"at most {q:.0%}"] = lambda v, edge=edge: (v <= edge).astype(float)
        for label, statistic in statistics.items():
            a, b = statistic(x), statistic(y)
            error = math.hypot(batch_error(a), b.std() / math.sqrt(len(b)))
            difference = a.mean() - b.mean()
            scores[name, label] = difference / error if error > 0 else (0.0 if difference == 0 else math.inf)
    return scores


def batch_error(values, n_batches=100):
    """Standard error of the mean from batch means, for batches far longer than the autocorrelation."""
    batches = values[: len(values) // n_batches * n_batches].reshape(n_batches, -1).mean(axis=1)
    return batches.std(ddof=1) / math.sqrt(n_batches)


def run_geweke(seed, n_steps, thin=1, n_prior=200_000, joint_chain=run_joint_chain, **model):
    """Return the z scores and, for a look, the relative difference of the means."""
    target, draw_prior, start = make_small_model(**model)
    rng = np.random.default_rng(seed)
    prior = np.array([measure(draw_prior(rng).state) for _ in range(n_prior)])
    state, data = start(rng)
    chain = joint_chain(rng, state, data, target, n_steps, thin)
    return compare(chain, prior, skipped=find_unused(model)), chain, prior


def find_unused(model):
    """Quantities that are not part of a model: no sweep moves them."""
    unused = {"n_features"} if "min_features" in model else set()
    if model.get("combination") == "product":
        return unused | {"policy_concentration", "decisiveness"}
    unused |= {"policy_scale", "base_policy"}
    return unused if model.get("decisiveness") == "drawn" else unused | {"decisiveness"}
