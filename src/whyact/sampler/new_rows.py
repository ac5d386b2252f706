"""Substates and actions of a new observation, given draws of everything else (Sec. 4.3).

The action of a new row is unknown, so its substates depend on the observation alone. How often a feature is absent is
known from the training rows.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from whyact.sampler.compiling import inlined, kernel
from whyact.sampler.substates import ActionTerm, draw_level, find_peak, log_gauss, log_sum_of_levels

# Rounds of coordinate descent: for where the draws of a row start, and before the exact search of `fit_amounts`.
N_ROUNDS_TO_START = 30
N_ROUNDS_OF_AMOUNTS = 10
# A substate at the end of its range stays there if it would move by less than this.
SMALLEST_MOVE = 1e-9


class FlatDraws(NamedTuple):
    """Draws below each other: draw i has the features splits[i] to splits[i + 1]."""

    features: np.ndarray  # (sum of K, D)
    zero_priors: np.ndarray  # prior probability that the substate is zero, (sum of K,)
    splits: np.ndarray
    grams: np.ndarray  # F F' of each draw, flat, one after the other
    gram_splits: np.ndarray  # draw i has the entries gram_splits[i] to gram_splits[i + 1] of `grams`
    noise_variances: np.ndarray  # sigma^2 of each draw
    scales: np.ndarray  # zeta / sigma^2 of each draw
    voices: Any  # what the substates say about the action: `MixtureVoices`, `ProductVoices` or `PatternVoices`


class Rounds(NamedTuple):
    """What each average is made of: one entry for each row, kept round of its substates, and draw."""

    substates: np.ndarray  # (N, rounds, sum of K)
    shares: np.ndarray  # the share of the row that the features explain, (N, rounds, draws)


class MixtureVoices(NamedTuple):
    """Every feature has its own policy, and the substates mix them."""

    policies: np.ndarray  # (sum of K, U)
    decisiveness: np.ndarray  # tau of each draw: power of the mixture


class ProductVoices(NamedTuple):
    """Every feature has its own policy, and they are multiplied, each to the power of its substate."""

    log_odds: np.ndarray  # of the policies, centred over the actions, (sum of K, U)
    base: np.ndarray  # log odds of the base policy of each draw, (draws, U)


@kernel
def fit_to_observation(substates, projections, gram, n_rounds):
    """Fill in least squares over the box [0, 1]^K by coordinate descent: where the draws of a row start."""
    n_features = len(substates)
    for _ in range(n_rounds):
        largest = 0.0
        for k in range(n_features):
            if gram[k, k] > 0.0:
                slope = projections[k]
                for j in range(n_features):
                    slope -= gram[k, j] * substates[j]
                new = min(max(substates[k] + slope / gram[k, k], 0.0), 1.0)
                largest = max(largest, abs(new - substates[k]))
                substates[k] = new
        if largest < 1e-3:
            break


@kernel
def find_gram(i, gaps, draws):
    """Gram matrix of the features of draw i over the observed entries of a row."""
    first = draws.splits[i]
    n_features = draws.splits[i + 1] - first
    gram = draws.grams[draws.gram_splits[i] : draws.gram_splits[i + 1]].reshape((n_features, n_features))
    if len(gaps) > 0:
        gram = gram.copy()
        for k in range(n_features):
            for j in range(n_features):
                for d in gaps:
                    gram[k, j] -= draws.features[first + k, d] * draws.features[first + j, d]
    return gram


@kernel
def start_row(projections, gram, n_levels):
    """Substates near the row to start from."""
    substates = np.zeros(len(gram))
    fit_to_observation(substates, projections, gram, N_ROUNDS_TO_START)
    for k in range(len(gram)):
        substates[k] = np.rint(substates[k] * (n_levels - 1)) / (n_levels - 1)
    return substates


@kernel
def start_at_zero(projections, gram, n_levels):
    """Substates of zero to start from."""
    return np.zeros(len(gram))


@kernel
def climb_substates(rng, substates, projections, gram, zero_priors, scale, n_levels):
    """Move to a mode of the substates' posterior, one coordinate at a time (the MAP of Sec. 4.3)."""
    n_features = len(substates)
    step = 1.0 / (n_levels - 1)
    for _ in range(100):
        n_changed = 0
        for k in range(n_features):
            slope = projections[k]
            for j in range(n_features):
                if j != k:
                    slope -= gram[k, j] * substates[j]
            level = find_peak(scale * slope, scale * gram[k, k], step, n_levels)
            gain = log_gauss(level, step, scale * slope, scale * gram[k, k])
            gain += math.log((1.0 - zero_priors[k]) * step / zero_priors[k])
            new = level / (n_levels - 1) if gain > 0.0 else 0.0
            n_changed += new != substates[k]
            substates[k] = new
        if n_changed == 0:
            break


@kernel
def draw_row(rng, cells, substates, projections, gram, zero_priors, scale, n_levels):
    """Draw all substates of a new row once."""
    n_features = len(substates)
    step = 1.0 / (n_levels - 1)
    no_action = ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)
    for k in range(n_features):
        slope = projections[k]
        for j in range(n_features):
            if j != k:
                slope -= gram[k, j] * substates[j]
        level = draw_level(
            rng, cells, scale * slope, scale * gram[k, k], n_levels,
            zero_priors[k], (1.0 - zero_priors[k]) * step, no_action,
        )  # fmt: skip
        substates[k] = level / (n_levels - 1)


@kernel
def fit_amounts(rng, substates, projections, gram, zero_priors, scale, n_levels):
    """Fill in what a row shows of each feature: the mode over the box [0, 1]^K under a Gaussian slab of variance one.

    Unlike draws and the mode under the spike and slab, this is unique and changes smoothly with the observation.
    """
    n_features = len(substates)
    curvature = scale * gram
    for k in range(n_features):
        curvature[k, k] += 1.0
    for _ in range(N_ROUNDS_OF_AMOUNTS):
        for k in range(n_features):
            slope = find_slope(k, substates, projections, curvature, scale) + curvature[k, k] * substates[k]
            substates[k] = min(max(slope / curvature[k, k], 0.0), 1.0)
    find_mode_in_box(substates, projections, curvature, scale)


@kernel
def find_slope(k, substates, projections, curvature, scale):
    """Slope of the log density in the direction of substate k."""
    slope = scale * projections[k]
    for j in range(len(substates)):
        slope -= curvature[k, j] * substates[j]
    return slope


@kernel
def find_mode_in_box(substates, projections, curvature, scale):
    """Climb to the mode over the box by an active set, which ends after finitely many steps.

    The substates inside their range go to the mode given the others, or until the first one reaches an end of its
    range, where it is held. At the mode given those that are held, the one that would move inwards most is let go.
    """
    n_features = len(substates)
    is_free = (substates > 0.0) & (substates < 1.0)
    root = np.empty((n_features, n_features))
    for _ in range(10 * n_features + 10):
        free = np.nonzero(is_free)[0]
        step = np.empty(len(free))
        for i in range(len(free)):
            step[i] = find_slope(free[i], substates, projections, curvature, scale)
        solve_positive(curvature, free, root, step)
        length, first = 1.0, -1
        for i in range(len(free)):
            moved = substates[free[i]] + length * step[i]
            if moved > 1.0 or moved < 0.0:
                length = ((1.0 if moved > 1.0 else 0.0) - substates[free[i]]) / step[i]
                first = i
        for i in range(len(free)):
            substates[free[i]] = min(max(substates[free[i]] + length * step[i], 0.0), 1.0)
        if first >= 0:
            substates[free[first]] = 1.0 if step[first] > 0.0 else 0.0
            is_free[free[first]] = False
            continue
        largest, let_go = SMALLEST_MOVE, -1
        for k in range(n_features):
            if not is_free[k]:
                move = find_slope(k, substates, projections, curvature, scale) / curvature[k, k]
                move = move if substates[k] == 0.0 else -move
                if move > largest:
                    largest, let_go = move, k
        if let_go < 0:
            break
        is_free[let_go] = True


@kernel
def solve_positive(matrix, chosen, root, right):
    """Solve a system with some rows and columns of a positive definite matrix, in place of its right-hand side.

    By Cholesky's method, written out: for a dozen unknowns a call of LAPACK takes longer than the work.
    """
    for i in range(len(chosen)):
        for j in range(i + 1):
            value = matrix[chosen[i], chosen[j]]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            # rounding may take all that is left of a pivot
            root[i, j] = math.sqrt(max(value, 1e-14 * matrix[chosen[i], chosen[i]])) if i == j else value / root[j, j]
        for j in range(i):
            right[i] -= root[i, j] * right[j]
        right[i] /= root[i, i]
    for i in range(len(chosen) - 1, -1, -1):
        for j in range(i + 1, len(chosen)):
            right[i] -= root[j, i] * right[j]
        right[i] /= root[i, i]


@kernel
def multiply_policies(substates, draw, first, voices, available, probabilities):
    """Fill in the product of policies; without any feature it is the base policy, so there always is one."""
    probabilities[:] = voices.base[draw]
    for k in range(len(substates)):
        if substates[k] > 0.0:
            for u in range(len(probabilities)):
                probabilities[u] += substates[k] * voices.log_odds[first + k, u]
    largest = -math.inf
    for u in range(len(probabilities)):
        if not is_open(u, available):  # before the exponential, or what is left might underflow beside it
            probabilities[u] = -math.inf
        largest = max(largest, probabilities[u])
    total = 0.0
    for u in range(len(probabilities)):
        probabilities[u] = math.exp(probabilities[u] - largest)
        total += probabilities[u]
    for u in range(len(probabilities)):
        probabilities[u] /= total
    return True


@inlined
def is_open(u, available):
    """Whether action u is available in a row; an empty array: all are."""
    return len(available) == 0 or available[u]


@kernel
def count_open(available, n_actions):
    """The number of actions that are available in a row."""
    n_open = 0
    for u in range(n_actions):
        n_open += is_open(u, available)
    return n_open


@kernel
def restrict_to(available, weights):
    """Turn weights into a distribution over what is available; uniform if that has none (`model.restrict`)."""
    total = 0.0
    for u in range(len(weights)):
        if not is_open(u, available):
            weights[u] = 0.0
        total += weights[u]
    n_open = count_open(available, len(weights))
    for u in range(len(weights)):
        if is_open(u, available):
            weights[u] = weights[u] / total if total > 0.0 else 1.0 / n_open


@kernel
def sharpen(probabilities, decisiveness):
    """Raise a distribution to the power of tau, and normalise it again (`model.sharpen`)."""
    if decisiveness == 1.0:
        return
    largest = probabilities.max()
    total = 0.0
    for u in range(len(probabilities)):
        probabilities[u] = (probabilities[u] / largest) ** decisiveness
        total += probabilities[u]
    for u in range(len(probabilities)):
        probabilities[u] /= total


@kernel
def mix_policies(substates, draw, first, voices, available, probabilities):
    """Fill in the mixture of policies, Eq. (model::mixture); without any feature it is uniform: return False.

    Policies need not sum to one: a feature may speak louder than others. The power of tau is taken of what is
    available: beside an action that nobody can take, what is left might underflow.
    """
    n_actions = len(probabilities)
    probabilities[:] = 0.0
    for k in range(len(substates)):
        if substates[k] > 0.0:
            for u in range(n_actions):
                probabilities[u] += substates[k] * voices.policies[first + k, u]
    holds = probabilities.max() > 0.0
    restrict_to(available, probabilities)
    sharpen(probabilities, voices.decisiveness[draw])
    return holds


def make_row_predictor(
    name: str,
    find_probabilities: Callable[..., Any],
    draw: Callable[..., Any],
    climb: Callable[..., Any],
    start: Callable[..., Any],
    blends: bool,
) -> Any:
    """Make the kernel that predicts one new row.

    `find_probabilities` gives the probabilities of the available actions by substates, `draw` draws substates, `climb`
    finds the most probable ones, both from where `start` says. `blends`: whether what is unfamiliar counts as a feature
    never seen.
    """

    def predict_row(
        rng, observation, gaps, available, n_levels, n_warm, n_kept, noise_limit, draws, answers, rounds, n
    ):
        """Average the action probabilities over draws and over the substates of one new row: row n of the answers.

        With `n_kept` = 0 the substates are maximised instead of drawn. Adds up the probabilities (U) and the substates
        (sum of K) in place, and returns the familiarity: the share of what exceeds noise (`noise_limit` times the noise
        variance) that the features explain, averaged. What they leave unexplained counts as a feature never seen, whose
        policy is uniform. Every round is kept in `rounds`, unless that has no rows.
        """
        probabilities, mean_substates = answers.probabilities[n], answers.substates[n]
        n_actions = len(probabilities)
        n_open = count_open(available, n_actions)
        n_draws = len(draws.splits) - 1
        all_projections = np.dot(draws.features, observation)
        squares = np.dot(observation, observation)
        cells = np.empty(n_levels + 1)
        round_probabilities = np.empty(n_actions)
        familiarity = 0.0
        for i in range(n_draws):
            first, last = draws.splits[i], draws.splits[i + 1]
            n_features = last - first
            projections = all_projections[first:last]
            zero_priors = draws.zero_priors[first:last]
            scale = draws.scales[i]
            gram = find_gram(i, gaps, draws)
            substates = start(projections, gram, n_levels)
            n_rounds = max(n_kept, 1)
            for sweep in range(n_warm + n_rounds):
                if n_kept > 0:
                    draw(rng, cells, substates, projections, gram, zero_priors, scale, n_levels)
                else:
                    climb(rng, substates, projections, gram, zero_priors, scale, n_levels)
                if sweep < n_warm:
                    continue
                explained = 0.0
                residual = squares
                for k in range(n_features):
                    s = substates[k]
                    if s > 0.0:
                        mean_substates[first + k] += s / n_rounds
                        shared = 0.0
                        for j in range(n_features):
                            shared += gram[k, j] * substates[j]
                        explained += s * shared
                        residual -= s * (2.0 * projections[k] - shared)
                excess = max(residual - noise_limit * draws.noise_variances[i], 0.0)
                holds = find_probabilities(substates, i, first, draws.voices, available, round_probabilities)
                share = 1.0 if holds else 0.0
                if excess > 0.0:
                    share *= max(explained, 0.0) / (max(explained, 0.0) + excess)
                familiarity += share / (n_draws * n_rounds)
                familiar = share if blends else 1.0
                for u in range(n_actions):
                    blend = familiar * round_probabilities[u]
                    if is_open(u, available):
                        blend += (1.0 - familiar) / n_open
                    probabilities[u] += blend / (n_draws * n_rounds)
                if len(rounds.shares) > 0:
                    rounds.substates[n, sweep - n_warm, first:last] = substates
                    rounds.shares[n, sweep - n_warm, i] = share
        return familiarity

    predict_row.__qualname__ = predict_row.__name__ = name
    return kernel(predict_row)


predict_row_by_mixture = make_row_predictor(
    "predict_row_by_mixture", mix_policies, draw_row, climb_substates, start_row, blends=True
)


predict_row_by_product = make_row_predictor(
    "predict_row_by_product", multiply_policies, draw_row, fit_amounts, start_at_zero, blends=False
)


@kernel
def available_in(n, available):
    """Which actions are available in row n; an empty array if all are in all rows."""
    return available[n] if len(available) > 0 else np.empty(0, np.bool_)


# Kernels that Python calls are written out: numba does not find a closure in its cache again.
@kernel
def predict_rows_by_mixture(
    rng, observations, missing, available, n_levels, n_warm, n_kept, noise_limits, draws, answers, rounds
):
    """Predict a block of rows: fill in `answers` (probabilities, substates, familiarity), which must be zeros."""
    for n in range(len(observations)):
        answers.familiarity[n] = predict_row_by_mixture(
            rng, observations[n], np.nonzero(missing[n])[0], available_in(n, available), n_levels, n_warm, n_kept,
            noise_limits[n], draws, answers, rounds, n,
        )  # fmt: skip


@kernel
def predict_rows_by_product(
    rng, observations, missing, available, n_levels, n_warm, n_kept, noise_limits, draws, answers, rounds
):
    """`predict_rows_by_mixture` for a product of policies."""
    for n in range(len(observations)):
        answers.familiarity[n] = predict_row_by_product(
            rng, observations[n], np.nonzero(missing[n])[0], available_in(n, available), n_levels, n_warm, n_kept,
            noise_limits[n], draws, answers, rounds, n,
        )  # fmt: skip


@kernel
def integrate_later_substates(substates, projections, gram, scale):
    """Gaussian elimination from the last substate to the first: the density of each one if later ones are free.

    Only substates that are not zero take part. Returns slopes b (K) and precisions P (K, K): the log density of
    substate k is s_k (b_k - sum_{j < k} P_kj s_j) - P_kk s_k^2 / 2, as if the later ones were Gaussian.
    """
    n_features = len(substates)
    slopes = scale * projections
    precisions = scale * gram
    for k in range(n_features - 1, 0, -1):
        pivot = precisions[k, k]
        if substates[k] == 0.0 or not pivot > 1e-12 * scale:
            continue
        for i in range(k):
            share = precisions[i, k] / pivot
            slopes[i] -= share * slopes[k]
            for j in range(k):
                precisions[i, j] -= share * precisions[k, j]
    return slopes, precisions


@kernel
def weigh_row(rng, observation, gaps, n_levels, draws, log_weights):
    """Fill in, for each draw, the log of an unbiased estimate of p(z), the substates of the new row summed out.

    The substates are drawn one after the other, each from its density with the later ones integrated out as if they
    were Gaussian. With q the probability of drawing these substates, p(z, s) / q has the mean p(z). Where nothing is
    observed, p(z) is one.
    """
    all_projections = np.dot(draws.features, observation)
    squares = np.dot(observation, observation)
    n_observed = len(observation) - len(gaps)
    step = 1.0 / (n_levels - 1)
    cells = np.empty(n_levels + 1)
    no_action = ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)
    for i in range(len(draws.splits) - 1):
        first, last = draws.splits[i], draws.splits[i + 1]
        n_features = last - first
        projections = all_projections[first:last]
        zero_priors = draws.zero_priors[first:last]
        scale = draws.scales[i]
        gram = find_gram(i, gaps, draws)
        substates = start_row(projections, gram, n_levels)
        climb_substates(rng, substates, projections, gram, zero_priors, scale, n_levels)
        slopes, precisions = integrate_later_substates(substates, projections, gram, scale)
        log_weight = 0.0
        for k in range(n_features):
            linear = slopes[k]
            for j in range(k):
                linear -= precisions[k, j] * substates[j]
            precision = max(precisions[k, k], 0.0)
            level_prior = (1.0 - zero_priors[k]) * step
            level = draw_level(rng, cells, linear, precision, n_levels, zero_priors[k], level_prior, no_action)
            substates[k] = level / (n_levels - 1)
            # prior over the probability of drawing it: the sum over all levels, over the density of this one
            log_weight += log_sum_of_levels(
                cells, linear, precision, n_levels, zero_priors[k], level_prior, no_action, 1
            ) - log_gauss(level, step, linear, precision)
        residual = squares
        for k in range(n_features):
            residual -= 2.0 * substates[k] * projections[k]
            for j in range(n_features):
                residual += substates[k] * substates[j] * gram[k, j]
        observation_weight = scale * draws.noise_variances[i]
        log_weights[i] = (
            log_weight
            - 0.5 * observation_weight * n_observed * math.log(2.0 * math.pi * draws.noise_variances[i])
            - 0.5 * scale * max(residual, 0.0)
        )
