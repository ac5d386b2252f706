"""The model of Sec. 3: priors, variables, and the log joint density of Eq. (model::posterior).

    z_n = s_n F + noise,  F = A * W  (features: a binary activation times a weight, entry by entry),
    P(u_n | s_n, Phi) = sum_k s_nk phi_k(u_n) / sum_k s_nk,

with an Indian buffet process over A, exponential (or Gaussian) weights W, substates s_nk on the grid
{0, 1/(L-1), ..., 1} under a spike and slab, and Dirichlet policies phi_k. A row without any feature has the uniform
action distribution. Zero is not a weight, so F alone tells A and W where it matters. `simulation.py` draws from the
model.

Beyond the paper, the mixture may be raised to a power tau, the teacher's decisiveness, and policies may be multiplied
instead of mixed: P(u | s) proportional to phi_0(u) prod_k phi_k(u)^(s_k), with phi_0 the base policy and Gaussian log
odds. An action that is not available in a row has no probability there.
"""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, softmax, xlogy

UNLIMITED = 2**31 - 1  # features
# How the policies of the features present in a row are combined; their place here is what the kernels see.
COMBINATIONS = ("mixture", "product")
MIXTURE, PRODUCT = range(len(COMBINATIONS))
LEARNED = 0.0  # in place of a decisiveness: it is drawn


@dataclass(frozen=True)
class PositivePairs:
    """Base of the hyperpriors: every field is a pair of positive numbers."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            try:
                first, second = (float(number) for number in value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{type(self).__name__}.{field.name} must be a pair of positive numbers, got {value!r}."
                ) from None
            if not (0 < first < math.inf and 0 < second < math.inf):
                raise ValueError(
                    f"{type(self).__name__}.{field.name} must be a pair of positive numbers, got {value!r}."
                )
            object.__setattr__(self, field.name, (first, second))


@dataclass(frozen=True)
class Priors(PositivePairs):
    """The hyperpriors, with Table 1 of the paper as default.

    Each is a pair of positive numbers. Gamma distributions have shape and rate. The unit of the observations
    matters: the estimator scales them to a root mean square of 1/4.

    Parameters
    ----------
    noise_shape : pair, default=(1000, 1)
        Gamma prior of alpha_sigma, the shape of the noise variance's inverse Gamma. It is worth about 2000
        observed entries, a strong prior for small data.
    noise_rate : pair, default=(1, 1)
        Gamma prior of beta_sigma, the rate of the noise variance's inverse Gamma.
    ibp_mass : pair, default=(1, 1)
        Gamma prior of alpha_a. A larger rate expects fewer features.
    ibp_concentration : pair, default=(1, 10)
        Gamma prior of beta_a.
    weight_scale : pair, default=(1, 1)
        Inverse Gamma prior of gamma_w: the mean of positive weights, the variance of real ones.
    policy_concentration : pair, default=(1, 1)
        Gamma prior of alpha_phi, the symmetric Dirichlet parameter of the policies.
    sparsity : pair, default=(1, 1)
        Beta prior of theta_k, the probability that a substate of feature k is zero.
    decisiveness : pair, default=(2, 0.1)
        Gamma prior of tau, if it is learned: most probable at 10, between 3.6 and 47 with a probability of 90%.
    policy_scale : pair, default=(0.5, 2)
        Inverse Gamma prior of the variance of the log odds, where policies are multiplied. It has a heavy tail: a
        teacher may follow a sharp rule.

    Examples
    --------
    >>> from whyact import Priors
    >>> Priors(ibp_mass=(1, 10)).ibp_mass  # expects fewer features
    (1.0, 10.0)
    """

    noise_shape: tuple[float, float] = (1000.0, 1.0)
    noise_rate: tuple[float, float] = (1.0, 1.0)
    ibp_mass: tuple[float, float] = (1.0, 1.0)
    ibp_concentration: tuple[float, float] = (1.0, 10.0)
    weight_scale: tuple[float, float] = (1.0, 1.0)
    policy_concentration: tuple[float, float] = (1.0, 1.0)
    sparsity: tuple[float, float] = (1.0, 1.0)
    decisiveness: tuple[float, float] = (2.0, 0.1)
    policy_scale: tuple[float, float] = (0.5, 2.0)


class State(NamedTuple):
    """All latent variables. Features are in no particular order."""

    substates: np.ndarray  # S transposed, (K, N), values on the grid
    features: np.ndarray  # F = A * W, (K, D); zero where inactive
    policies: np.ndarray  # Phi, (K, U), rows sum to one
    noise_variance: float  # sigma_z^2
    noise_shape: float  # alpha_sigma
    noise_rate: float  # beta_sigma
    weight_scale: float  # gamma_w
    ibp_mass: float  # alpha_a
    ibp_concentration: float  # beta_a
    policy_concentration: float  # alpha_phi
    policy_scale: float = 1.0  # variance of the log odds of a policy, where policies are multiplied
    decisiveness: float = 1.0  # tau
    base_policy: np.ndarray = np.zeros(0)


class Demonstrations(NamedTuple):
    """Observations and actions as the kernels want them; made by `make_demonstrations`."""

    observations: np.ndarray  # Z, (N, D), zero where missing
    actions: np.ndarray  # index of the action, -1 where missing, (N,)
    row_splits: np.ndarray  # row n misses the columns row_gaps[row_splits[n]:row_splits[n + 1]]
    row_gaps: np.ndarray
    column_splits: np.ndarray  # and column d misses the rows column_gaps[...]
    column_gaps: np.ndarray
    sum_of_squares: float  # of the observed entries
    n_observed: int  # number of observed entries that tell how much noise there is, see `count_noisy`
    # whether each action is available, (N, U); (0, U) if all are in all rows
    available: np.ndarray = np.zeros((0, 0), np.bool_)


class Target(NamedTuple):
    """The distribution to sample from: options and hyperpriors, flat for the kernels; made by `make_target`."""

    n_actions: int
    n_levels: int  # L
    observation_weight: float  # zeta
    action_weight: float  # omega
    combination: int  # MIXTURE or PRODUCT
    decisiveness: float  # tau: power of the mixture of policies; LEARNED if it is drawn
    min_features: int  # the model given that there are at least this many features,
    max_features: int  # and at most this many
    positive: bool  # exponential weights, else Gaussian
    n_birth_tries: int  # per sweep
    n_whole_moves: int  # of whole features or their size, per sweep
    noise_shape_shape: float
    noise_shape_rate: float
    noise_rate_shape: float
    noise_rate_rate: float
    ibp_mass_shape: float
    ibp_mass_rate: float
    ibp_concentration_shape: float
    ibp_concentration_rate: float
    weight_scale_shape: float
    weight_scale_rate: float
    policy_concentration_shape: float
    policy_concentration_rate: float
    sparsity_zero: float
    sparsity_nonzero: float
    decisiveness_shape: float
    decisiveness_rate: float
    policy_scale_shape: float
    policy_scale_rate: float


def make_demonstrations(
    observations: ArrayLike,
    actions: ArrayLike,
    unit: float = 1.0,
    center: float | np.ndarray = 0.0,
    available: np.ndarray | None = None,
) -> Demonstrations:
    """Prepare observations (NaN where missing) and action indices (-1 where missing) for the kernels.

    `center` is taken off the observations, then they are divided by `unit`. `available` (N, U) tells which actions
    there are in each row; None: all.
    """
    observations = np.array(observations, dtype=np.float64, order="C", ndmin=2)
    if np.any(center):
        observations -= center
    observations /= unit
    missing = np.isnan(observations)
    row_gaps = np.nonzero(missing)[1]
    column_gaps = np.nonzero(missing.T)[1]
    observations[missing] = 0.0
    return Demonstrations(
        observations=observations,
        actions=np.array(actions, dtype=np.int64),
        row_splits=np.concatenate([[0], np.cumsum(missing.sum(axis=1))]).astype(np.int64),
        row_gaps=row_gaps.astype(np.int64),
        column_splits=np.concatenate([[0], np.cumsum(missing.sum(axis=0))]).astype(np.int64),
        column_gaps=column_gaps.astype(np.int64),
        sum_of_squares=float(np.vdot(observations, observations)),
        n_observed=count_noisy(observations, missing),
        available=np.zeros((0, 0), np.bool_) if available is None else np.array(available, dtype=np.bool_, order="C"),
    )


def count_noisy(observations: np.ndarray, missing: np.ndarray) -> int:
    """Number of observed entries in columns that are not zero throughout.

    A column of zeros has no noise, whatever the others have. If it counted, it would pull the noise down, and features
    would be spent on what is noise elsewhere. That its entries are zero still tells features to stay out of it.
    """
    observed = (~missing).sum(axis=0)
    holds_something = observations.any(axis=0)
    return int(observed[holds_something].sum() if holds_something.any() else observed.sum())


def make_target(
    priors: Priors,
    *,
    n_actions: int,
    n_dimensions: int,
    n_levels: int = 100,
    observation_weight: float = 1.0,
    action_weight: float | str = 1.0,
    combination: str = "mixture",
    decisiveness: float | str = 1.0,
    min_features: int = 0,
    max_features: int | None = None,
    feature_values: str = "positive",
    n_birth_tries: int | None = None,
    n_whole_moves: int = 0,
) -> Target:
    """Flatten the options and the hyperpriors.

    The action weight may be "dimensions", the paper's D, and the decisiveness "drawn", with all the rest. A product
    has no decisiveness: the scale of its log odds is learned.
    """
    tau = find_decisiveness(combination, decisiveness)
    if n_birth_tries is None:  # births that the action must accept take longer
        n_birth_tries = min(n_dimensions, 12 if combination == "mixture" and tau == 1.0 else 6)
    return Target(
        n_actions=int(n_actions),
        n_levels=int(n_levels),
        observation_weight=float(observation_weight),
        action_weight=float(n_dimensions if action_weight == "dimensions" else action_weight),
        combination=COMBINATIONS.index(combination),
        decisiveness=tau,
        min_features=int(min_features),
        max_features=UNLIMITED if max_features is None else int(max_features),
        positive=feature_values == "positive",
        n_birth_tries=int(n_birth_tries),
        n_whole_moves=int(n_whole_moves),
        noise_shape_shape=priors.noise_shape[0],
        noise_shape_rate=priors.noise_shape[1],
        noise_rate_shape=priors.noise_rate[0],
        noise_rate_rate=priors.noise_rate[1],
        ibp_mass_shape=priors.ibp_mass[0],
        ibp_mass_rate=priors.ibp_mass[1],
        ibp_concentration_shape=priors.ibp_concentration[0],
        ibp_concentration_rate=priors.ibp_concentration[1],
        weight_scale_shape=priors.weight_scale[0],
        weight_scale_rate=priors.weight_scale[1],
        policy_concentration_shape=priors.policy_concentration[0],
        policy_concentration_rate=priors.policy_concentration[1],
        sparsity_zero=priors.sparsity[0],
        sparsity_nonzero=priors.sparsity[1],
        decisiveness_shape=priors.decisiveness[0],
        decisiveness_rate=priors.decisiveness[1],
        policy_scale_shape=priors.policy_scale[0],
        policy_scale_rate=priors.policy_scale[1],
    )


def find_decisiveness(combination: str, decisiveness: float | str) -> float:
    """The decisiveness as the kernels see it."""
    if combination == "product":
        return 1.0
    return LEARNED if decisiveness == "drawn" else float(decisiveness)


def action_probabilities(
    substates: np.ndarray, policies: np.ndarray, decisiveness: float = 1.0, available: np.ndarray | None = None
) -> np.ndarray:
    """Mixture of the policies, Eq. (model::mixture), (N, U); uniform for rows without any feature.

    Features whose rows of `policies` do not sum to one speak louder or more quietly.

    With another decisiveness tau than one, the mixture to the power of tau, normalised again; over the actions that
    are available (N, U), if not all are.
    """
    return sharpen(restrict(substates.T @ policies, available), decisiveness)


def multiplied_probabilities(
    substates: np.ndarray, policies: np.ndarray, base_policy: np.ndarray, available: np.ndarray | None = None
) -> np.ndarray:
    """Product of the policies, each to the power of its substate, and of the base policy, (N, U)."""
    log_odds = center_log_odds(base_policy) + substates.T @ center_log_odds(policies)
    return softmax(restrict_log_odds(log_odds, available), axis=1)


def center_log_odds(policies: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities, centred over the actions: eta."""
    logs = np.log(policies)
    return logs - logs.mean(axis=-1, keepdims=True)


def restrict(weights: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Distributions (..., U) by weights, over what is available (None or empty: all); uniform where that has none.

    This comes before any power: beside an action that nobody can take, what is left might underflow.
    """
    if available is None or len(available) == 0:
        available = np.ones(weights.shape[-1], bool)
    there = np.broadcast_to(available, weights.shape)
    kept = np.where(there, weights, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    uniform = there / np.maximum(there.sum(axis=-1, keepdims=True), 1)
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), uniform)


def restrict_log_odds(log_odds: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Log odds (..., U), minus infinity where an action is not available (None or empty: all are)."""
    return log_odds if available is None or len(available) == 0 else np.where(available, log_odds, -np.inf)


def state_probabilities(state: State, target: Target, available: np.ndarray | None = None) -> np.ndarray:
    """P(u | s_n) of every row of a state, (N, U), in the way that the target combines policies."""
    if target.combination == PRODUCT:
        return multiplied_probabilities(state.substates, state.policies, state.base_policy, available)
    return action_probabilities(state.substates, state.policies, state.decisiveness, available)


def sharpen(probabilities: np.ndarray, decisiveness: float | np.ndarray) -> np.ndarray:
    """Distributions over the last axis, to the power of tau and normalised again."""
    if np.all(decisiveness == 1.0):
        return probabilities
    powers = (probabilities / probabilities.max(axis=-1, keepdims=True)) ** decisiveness
    return powers / powers.sum(axis=-1, keepdims=True)


def log_ibp(n_active: np.ndarray, patterns: np.ndarray, n_dimensions: int, mass: float, concentration: float) -> float:
    """Log P(A | alpha, beta), Eq. (ibp::infinitemodel), with K_h counting equal rows of A."""
    n_features = len(n_active)
    expected = mass * np.sum(concentration / (concentration + np.arange(n_dimensions)))
    repeats = np.unique(patterns, axis=0, return_counts=True)[1] if n_features else np.zeros(0)
    return float(
        xlogy(n_features, mass * concentration)
        - gammaln(repeats + 1.0).sum()
        - expected
        + betaln(n_active, n_dimensions - n_active + concentration).sum()
    )


def log_joint(state: State, data: Demonstrations, target: Target) -> float:
    """Log of Eq. (model::posterior), normalising constants included, with the weights zeta and omega."""
    known = data.actions >= 0
    probabilities = state_probabilities(state, target, data.available)[known, data.actions[known]]
    log_actions = np.log(np.maximum(probabilities, np.finfo(float).tiny)).sum()
    log_policies = log_of_log_odds(state, target) if target.combination == PRODUCT else log_of_policies(state, target)
    return float(log_joint_without_actions(state, data, target) + target.action_weight * log_actions + log_policies)


def log_of_policies(state: State, target: Target) -> float:
    """Log density of the policies under their Dirichlet, and of the decisiveness if it is drawn."""
    alpha, n_actions = state.policy_concentration, target.n_actions
    log_density = len(state.policies) * (gammaln(n_actions * alpha) - n_actions * gammaln(alpha))
    log_density += (alpha - 1) * np.log(state.policies).sum()
    if target.decisiveness == LEARNED:
        log_density += log_gamma(state.decisiveness, target.decisiveness_shape, target.decisiveness_rate)
    return float(log_density)


def log_of_log_odds(state: State, target: Target) -> float:
    """Log density of the centred log odds of all policies and the base policy, and of their variance."""
    log_odds = center_log_odds(np.vstack([state.policies, state.base_policy]))
    n_free = len(log_odds) * (target.n_actions - 1)
    return float(
        -0.5 * n_free * math.log(2 * math.pi * state.policy_scale)
        - 0.5 * np.vdot(log_odds, log_odds) / state.policy_scale
        + log_inverse_gamma(state.policy_scale, target.policy_scale_shape, target.policy_scale_rate)
    )


def log_joint_without_actions(state: State, data: Demonstrations, target: Target) -> float:
    """The part of Eq. (model::posterior) without actions and policies; with the prior of alpha_phi."""
    substates, features = state.substates, state.features
    n_dimensions = features.shape[1]
    n_rows = substates.shape[1]
    active = features != 0

    log_observations = (
        -0.5 * data.n_observed * math.log(2 * math.pi * state.noise_variance)
        - 0.5 * sum_squared_residuals(substates, features, data) / state.noise_variance
    )

    n_zero = (substates == 0).sum(axis=1)
    n_nonzero = n_rows - n_zero
    log_substates = (
        betaln(n_zero + target.sparsity_zero, n_nonzero + target.sparsity_nonzero)
        - betaln(target.sparsity_zero, target.sparsity_nonzero)
        - n_nonzero * math.log(target.n_levels - 1)
    ).sum()

    if target.positive:
        log_weights = -active.sum() * math.log(state.weight_scale) - features.sum() / state.weight_scale
    else:
        log_weights = (
            -0.5 * active.sum() * math.log(2 * math.pi * state.weight_scale)
            - 0.5 * np.vdot(features, features) / state.weight_scale
        )
    log_activations = log_ibp(active.sum(axis=1), active, n_dimensions, state.ibp_mass, state.ibp_concentration)

    log_hyper = (
        log_inverse_gamma(state.noise_variance, state.noise_shape, state.noise_rate)
        + log_gamma(state.noise_shape, target.noise_shape_shape, target.noise_shape_rate)
        + log_gamma(state.noise_rate, target.noise_rate_shape, target.noise_rate_rate)
        + log_gamma(state.ibp_mass, target.ibp_mass_shape, target.ibp_mass_rate)
        + log_gamma(state.ibp_concentration, target.ibp_concentration_shape, target.ibp_concentration_rate)
        + log_inverse_gamma(state.weight_scale, target.weight_scale_shape, target.weight_scale_rate)
        + log_gamma(state.policy_concentration, target.policy_concentration_shape, target.policy_concentration_rate)
    )
    return float(
        target.observation_weight * log_observations + log_substates + log_weights + log_activations + log_hyper
    )


def sum_squared_residuals(substates: np.ndarray, features: np.ndarray, data: Demonstrations) -> float:
    """Sum over the observed entries, in blocks of rows: no second array of the size of the observations."""
    n_rows, n_dimensions = data.observations.shape
    block = max(1, 2**16 // n_dimensions)
    total = 0.0
    for first in range(0, n_rows, block):
        last = min(first + block, n_rows)
        residual = data.observations[first:last] - substates[:, first:last].T @ features
        splits = data.row_splits[first : last + 1]
        rows = np.repeat(np.arange(last - first), np.diff(splits))
        residual[rows, data.row_gaps[splits[0] : splits[-1]]] = 0.0
        total += float(np.vdot(residual, residual))
    return total


def log_gamma(x: float, shape: float, rate: float) -> float:
    """Log density of the Gamma distribution with shape and rate."""
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1) * math.log(x) - rate * x


def log_inverse_gamma(x: float, shape: float, rate: float) -> float:
    """Log density of the inverse Gamma distribution."""
    return shape * math.log(rate) - math.lgamma(shape) - (shape + 1) * math.log(x) - rate / x
