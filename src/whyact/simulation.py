"""The generative process of Sec. 3, and the ground truth of the simulations in Sec. 5."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from whyact.model import Priors, State, action_probabilities, multiplied_probabilities

N_TRAIN = 80  # rows of the design to learn from; the others are for prediction
# The paper says that one action has high probability, and that policies are deterministic; how high is left open.
PEAK = 0.95


def draw_activations(rng: np.random.Generator, n_dimensions: int, mass: float, concentration: float) -> np.ndarray:
    """Draw A, (K, D), from the two-parameter Indian buffet process; the features are in random order."""
    rows: list[np.ndarray] = []
    counts: list[int] = []
    for d in range(n_dimensions):
        for k, count in enumerate(counts):
            if rng.random() < count / (concentration + d):
                rows[k][d] = True
                counts[k] += 1
        for _ in range(rng.poisson(mass * concentration / (concentration + d))):
            rows.append(np.arange(n_dimensions) == d)
            counts.append(1)
    activations = np.array(rows, dtype=bool).reshape(len(rows), n_dimensions)
    return rng.permutation(activations)


def draw_substates_from_prior(
    rng: np.random.Generator, n_features: int, n_rows: int, n_levels: int, sparsity: tuple[float, float]
) -> np.ndarray:
    """Draw S transposed, (K, N), from the spike and slab on the grid."""
    theta = rng.beta(*sparsity, size=(n_features, 1))
    levels = rng.integers(1, n_levels, size=(n_features, n_rows))
    return np.where(rng.random((n_features, n_rows)) < theta, 0, levels) / (n_levels - 1)


def draw_features_from_prior(
    rng: np.random.Generator, n_dimensions: int, mass: float, concentration: float, weight_scale: float, values: str
) -> np.ndarray:
    """Draw F = A * W, (K, D); `values` is "positive" or "real"."""
    activations = draw_activations(rng, n_dimensions, mass, concentration)
    weights = (
        rng.exponential(weight_scale, activations.shape)
        if values == "positive"
        else math.sqrt(weight_scale) * rng.standard_normal(activations.shape)
    )
    return np.where(activations, weights, 0.0)


def draw_hyperparameters(rng: np.random.Generator, priors: Priors, given: Mapping[str, Any]) -> dict[str, float]:
    """Draw the hyperparameters that are not given, and the noise variance."""

    def draw_gamma(name: str) -> float:
        shape, rate = getattr(priors, name)
        return rng.gamma(shape) / rate

    drawn = {
        name: given[name] if name in given else draw_gamma(name)
        for name in ("noise_shape", "noise_rate", "ibp_mass", "ibp_concentration", "policy_concentration")
    }
    drawn["weight_scale"] = given["weight_scale"] if "weight_scale" in given else 1.0 / draw_gamma("weight_scale")
    drawn["noise_variance"] = (
        given["noise_variance"]
        if "noise_variance" in given
        else drawn["noise_rate"] / max(rng.gamma(drawn["noise_shape"]), np.finfo(float).tiny)
    )
    return {name: float(value) for name, value in drawn.items()}


class Simulation(NamedTuple):
    """A draw from the generative process."""

    state: State
    observations: np.ndarray  # (N, D)
    actions: np.ndarray  # (N,)


def simulate(
    rng: np.random.Generator,
    n_rows: int,
    n_dimensions: int,
    n_actions: int,
    *,
    priors: Priors | None = None,
    n_levels: int = 100,
    feature_values: str = "positive",
    combination: str = "mixture",
    decisiveness: float | str = 1.0,
    **given: Any,
) -> Simulation:
    """Draw from the generative process: everything, or the rest given some of it.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_rows, n_dimensions, n_actions : int
        Number of observations, of their columns, and of the actions.
    priors : Priors or None, default=None
        The hyperpriors; None means `Priors()`, Table 1 of the paper.
    n_levels : int, default=100
        Number of values on the grid of the substates.
    feature_values : {"positive", "real"}, default="positive"
        Whether the weights of features are exponential or Gaussian.
    combination : {"mixture", "product"}, default="mixture"
        How the policies of the features in a row are combined.
    decisiveness : float or "drawn", default=1.0
        Power of the mixture of policies; "drawn": from its prior.
    **given
        Any field of `State`; each other variable is drawn from its distribution given its parents.

    Returns
    -------
    Simulation
        A named tuple of the `state`, `observations` (N, D) and `actions` (N,).

    Examples
    --------
    >>> import numpy as np
    >>> from whyact import simulate
    >>> simulation = simulate(np.random.default_rng(0), 20, 5, 3, noise_variance=0.01)
    >>> simulation.observations.shape, simulation.actions.shape
    ((20, 5), (20,))
    """
    priors = Priors() if priors is None else priors
    unknown = set(given) - set(State._fields)
    if unknown:
        raise TypeError(f"simulate: {sorted(unknown)[0]!r} is not a variable of the model; there are {State._fields}.")
    hyper = draw_hyperparameters(rng, priors, given)
    if "features" in given:
        features = np.asarray(given["features"], dtype=float)
    else:
        mass, concentration, scale = hyper["ibp_mass"], hyper["ibp_concentration"], hyper["weight_scale"]
        features = draw_features_from_prior(rng, n_dimensions, mass, concentration, scale, feature_values)
        n_known = [len(given[name]) for name in ("substates", "policies") if name in given]
        if n_known and len(features) != n_known[0]:
            raise ValueError("simulate: give `features` together with `substates` or `policies`, because they share K.")
    substates = (
        np.asarray(given["substates"], dtype=float)
        if "substates" in given
        else draw_substates_from_prior(rng, len(features), n_rows, n_levels, priors.sparsity)
    )
    if combination == "product":
        policies, extra = draw_product_from_prior(rng, len(features), n_actions, priors, given)
    else:
        policies = (
            np.asarray(given["policies"], dtype=float)
            if "policies" in given
            else draw_policies_from_prior(rng, len(features), n_actions, hyper["policy_concentration"])
        )
        extra = {"decisiveness": draw_decisiveness_from_prior(rng, priors, decisiveness)}
    state = State(substates=substates, features=features, policies=policies, **hyper | extra)
    return Simulation(state, *simulate_data(rng, state))


def draw_decisiveness_from_prior(rng: np.random.Generator, priors: Priors, decisiveness: float | str) -> float:
    """The decisiveness, drawn if it is to be learned."""
    if decisiveness != "drawn":
        return float(decisiveness)
    shape, rate = priors.decisiveness
    return float(rng.gamma(shape) / rate)


def draw_product_from_prior(
    rng: np.random.Generator, n_features: int, n_actions: int, priors: Priors, given: dict[str, Any]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Policies (K, U) with Gaussian log odds, and the base policy and the variance that belong to them."""
    shape, rate = priors.policy_scale
    scale = float(given.get("policy_scale", rate / max(rng.gamma(shape), np.finfo(float).tiny)))
    drawn = softmax(math.sqrt(scale) * rng.standard_normal((n_features + 1, n_actions)), axis=1)
    drawn = np.maximum(drawn, 1e-290)
    policies = np.asarray(given.get("policies", drawn[:-1]), dtype=float)
    return policies, {"policy_scale": scale, "base_policy": np.asarray(given.get("base_policy", drawn[-1]))}


def draw_policies_from_prior(rng: np.random.Generator, n_features: int, n_actions: int, alpha: float) -> np.ndarray:
    """Draw Phi, (K, U), from the symmetric Dirichlet, in logs because Gamma draws of a small shape underflow."""
    size = (n_features, n_actions)
    logs = np.log(rng.gamma(alpha + 1.0, size=size)) - rng.exponential(size=size) / alpha
    policies = np.exp(logs - logs.max(axis=1, initial=-np.inf, keepdims=True))
    return np.maximum(policies / policies.sum(axis=1, keepdims=True), 1e-290)


def simulate_data(rng: np.random.Generator, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Draw observations and actions given all latent variables; with a base policy, policies are multiplied."""
    mean = state.substates.T @ state.features
    observations = mean + math.sqrt(state.noise_variance) * rng.standard_normal(mean.shape)
    if len(state.base_policy):
        probabilities = multiplied_probabilities(state.substates, state.policies, state.base_policy)
    else:
        probabilities = action_probabilities(state.substates, state.policies, state.decisiveness)
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative[:, -1] = 1.0
    actions = (rng.random((len(mean), 1)) >= cumulative).sum(axis=1)
    return observations, actions


class GroundTruth(NamedTuple):
    """One simulated data set and what it was made of."""

    observations: np.ndarray  # (N, D)
    actions: np.ndarray  # (N,)
    substates: np.ndarray  # (N, K)
    features: np.ndarray  # (K, D)
    policies: np.ndarray  # (K, U)
    noise_variance: float

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Observations and actions to learn from."""
        return self.observations[:N_TRAIN], self.actions[:N_TRAIN]

    @property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Observations and actions to predict."""
        return self.observations[N_TRAIN:], self.actions[N_TRAIN:]


def draw_ground_truth(
    rng: np.random.Generator,
    n_features: int,
    snr_db: float,
    *,
    n_rows: int = 100,
    n_dimensions: int = 30,
    n_actions: int = 4,
    peak: float = PEAK,
    action_rule: str = "most-probable",
) -> GroundTruth:
    """Draw features, substates, noise, peaked policies and actions as Sec. 5 does.

    Two things are left open there. `peak` is the probability of a feature's favourite action; the others share the
    rest. Actions are the most probable ones of the mixture, since the paper argues for a deterministic teacher, or
    "drawn" from it.
    """
    weight_scale = 100.0 / rng.gamma(100.0)
    weights = rng.exponential(weight_scale, (n_features, n_dimensions))
    features = np.where(rng.random((n_features, n_dimensions)) < 0.5, weights, 0.0)
    substates = rng.dirichlet(np.full(n_features, 1.0 / n_features), n_rows)
    states = substates @ features
    noise_variance = float(np.mean(states**2) / 10 ** (snr_db / 10))
    observations = states + np.sqrt(noise_variance) * rng.standard_normal(states.shape)
    policies = np.full((n_features, n_actions), (1 - peak) / (n_actions - 1))
    policies[np.arange(n_features), rng.integers(n_actions, size=n_features)] = peak
    mixture = substates @ policies
    if action_rule == "drawn":
        actions = (rng.random((n_rows, 1)) >= np.cumsum(mixture, axis=1)[:, :-1]).sum(axis=1)
    else:
        actions = mixture.argmax(axis=1)
    return GroundTruth(observations, actions, substates, features, policies, noise_variance)
