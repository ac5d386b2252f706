"""The exact sampler of the unique coefficient model (Sec. 2.4): a policy for every pattern of features.

Substates are 0 or 1. The pattern of a row is the set of features that it holds. Rows of the same pattern share a
policy, drawn from a Dirichlet distribution and integrated out: an action seen c times among n rows of a pattern has the
probability (c + alpha) / (n + U alpha). Features, noise and their hyperparameters are those of the paper's model, and
so are the kernels that draw them; the buffet over the activations gives the number of features.

Rows are coupled through the counts of their patterns, so the column of a newborn feature cannot be summed out row by
row. It is proposed row by row instead, each given the rows before it; the product of the sums is the proposal's weight,
and the acceptance is exact (a birth and the death that undoes it have the same weight).
"""

import math
from collections.abc import Callable

import numpy as np

from whyact.alternatives.pattern.bits import BLOCK_SIZE, shuffle_features, weigh_codes
from whyact.model import Demonstrations, Priors, State, Target, log_joint_without_actions
from whyact.sampler.algorithm import Algorithm
from whyact.sampler.births import draw_empty_features, draw_weight, insert_row, remove_row
from whyact.sampler.compiling import kernel
from whyact.sampler.exact import start_from_prior
from whyact.sampler.features import draw_features, reconstruct_gaps
from whyact.sampler.hyperparameters import count_active, draw_ibp, draw_noise, draw_weight_scale
from whyact.sampler.merging import drop_features, merge_features
from whyact.sampler.policies import draw_slice_concentration, log_action_gain, log_marginal_of_actions
from whyact.sampler.random_choice import draw_index
from whyact.sampler.sweep import SweepInfo


@kernel
def leave_out(k, n_features):
    """Mark one feature, or none for k = -1."""
    left_out = np.zeros(n_features, np.bool_)
    if k >= 0:
        left_out[k] = True
    return left_out


@kernel
def group_rows(substates, left_out):
    """Number the patterns of the rows: equal numbers for equal patterns. Marked features are left out.

    Returns the number of each row's pattern, and how many patterns there are.
    """
    n_features, n_rows = substates.shape
    patterns = np.zeros(n_rows, np.int64)
    n_patterns = 1
    for k in range(n_features):
        if left_out[k]:
            continue
        renamed = np.full(2 * n_patterns, -1)
        n_patterns = 0
        for n in range(n_rows):
            finer = 2 * patterns[n] + (substates[k, n] > 0.0)
            if renamed[finer] < 0:
                renamed[finer] = n_patterns
                n_patterns += 1
            patterns[n] = renamed[finer]
    return patterns, n_patterns


@kernel
def count_actions(patterns, n_patterns, data, target):
    """How often each action was seen with each pattern, (patterns, U)."""
    counts = np.zeros((n_patterns, target.n_actions))
    for n in range(len(patterns)):
        if data.actions[n] >= 0:
            counts[patterns[n], data.actions[n]] += 1.0
    return counts


@kernel
def log_gain(group, code, action, counts, totals, concentration, target):
    """Log probability of a row's action if the row joins `group` with the bits `code` of the features left out."""
    if action < 0:
        return 0.0
    return log_action_gain(
        counts[group, code, action], totals[group, code], target.action_weight, concentration, target.n_actions
    )


@kernel
def count_row(group, code, action, change, counts, totals):
    """Add a row to the counts (change 1), or remove it (-1)."""
    if action >= 0:
        counts[group, code, action] += change
        totals[group, code] += change


@kernel
def sum_squares(substates, features, projections, gram, data):
    """Sum of squared residuals of the observed entries, from the Gram matrices."""
    overlaps = np.dot(substates, substates.T)
    squares = data.sum_of_squares
    for k in range(len(features)):
        for n in range(substates.shape[1]):
            squares -= 2.0 * substates[k, n] * projections[n, k]
        for j in range(len(features)):
            squares += overlaps[k, j] * gram[k, j]
    for missing in reconstruct_gaps(substates, features, data):
        squares -= missing * missing
    return max(squares, 0.0)


@kernel
def choose_block_size(n_rows, n_actions):
    """BLOCK_SIZE, or less where the table of counts would be very large."""
    size = BLOCK_SIZE
    while size > 1 and (n_rows << size) * n_actions > 2**24:
        size -= 1
    return size


@kernel
def draw_bits(rng, substates, features, scale, concentration, data, target):
    """Draw all substates in place, one random block of features after the other; return the sum of squared residuals.

    A row draws the bits of a block from all their combinations. While a block is drawn, the patterns of all other
    features do not change, so a table of counts tells what a row's action says about its bits.
    """
    n_features, n_rows = substates.shape
    projections = np.dot(data.observations, features.T)  # Z F'
    gram = np.dot(features, features.T)  # F F'
    n_present = np.zeros(n_features)
    for k in range(n_features):
        n_present[k] = substates[k].sum()
    order = shuffle_features(rng, n_features)
    block_size = choose_block_size(n_rows, target.n_actions)
    log_weights = np.empty(1 << block_size)
    fields = np.empty(block_size)
    products = np.empty((block_size, block_size))
    held = np.empty(n_features, np.int64)
    log_gain_unseen = log_action_gain(0.0, 0.0, target.action_weight, concentration, target.n_actions)
    for first in range(0, n_features, block_size):
        block = order[first : first + block_size]
        n_codes = 1 << len(block)
        left_out = np.zeros(n_features, np.bool_)
        left_out[block] = True
        groups, n_groups = group_rows(substates, left_out)
        counts = np.zeros((n_groups, n_codes, target.n_actions))
        totals = np.zeros((n_groups, n_codes))
        codes = np.zeros(n_rows, np.int64)
        for n in range(n_rows):
            for b in range(len(block)):
                codes[n] += int(substates[block[b], n]) << b
            count_row(groups[n], codes[n], data.actions[n], 1.0, counts, totals)
        for n in range(n_rows):
            group, action = groups[n], data.actions[n]
            count_row(group, codes[n], action, -1.0, counts, totals)
            n_held = 0
            for j in range(n_features):
                if not left_out[j] and substates[j, n] > 0.0:
                    held[n_held] = j
                    n_held += 1
            for b in range(len(block)):
                k = block[b]
                n_present[k] -= substates[k, n]
                odds = (n_present[k] + target.sparsity_nonzero) / (n_rows - 1 - n_present[k] + target.sparsity_zero)
                product = projections[n, k]
                for i in range(n_held):
                    product -= overlap(n, k, held[i], gram, features, data)
                fields[b] = scale * (product - 0.5 * overlap(n, k, k, gram, features, data)) + math.log(odds)
                for c in range(b):
                    products[b, c] = scale * overlap(n, k, block[c], gram, features, data)
            weigh_codes(fields, products, len(block), log_weights)
            if action >= 0:
                for code in range(n_codes):
                    # most combinations were never seen, and those all have the same gain
                    log_weights[code] += log_gain_unseen if totals[group, code] == 0.0 else log_action_gain(
                        counts[group, code, action], totals[group, code], target.action_weight, concentration,
                        target.n_actions,
                    )  # fmt: skip
            code = draw_index(rng, log_weights, n_codes)
            count_row(group, code, action, 1.0, counts, totals)
            for b in range(len(block)):
                substates[block[b], n] = code >> b & 1
                n_present[block[b]] += substates[block[b], n]
    return sum_squares(substates, features, projections, gram, data)


@kernel
def overlap(n, k, j, gram, features, data):
    """f_k . f_j over the observed entries of row n."""
    product = gram[k, j]
    for i in range(data.row_splits[n], data.row_splits[n + 1]):
        d = data.row_gaps[i]
        product -= features[k, d] * features[j, d]
    return product


@kernel
def weigh_column(
    rng, column, propose, weight, residual, observed, groups, n_groups, scale, concentration, data, target
):
    """Propose the column of a singleton row by row (or take it as it is), and return the log of its weight.

    The weight is the ratio of the joint densities with and without the feature, over the probability of proposing the
    column. `residual` and `groups` are without the feature.
    """
    n_rows = len(column)
    counts = np.zeros((n_groups, 2, target.n_actions))
    totals = np.zeros((n_groups, 2))
    joint_counts = np.zeros((n_groups, 1, target.n_actions))  # without the feature
    joint_totals = np.zeros((n_groups, 1))
    n_present = 0
    log_weight = 0.0
    for n in range(n_rows):
        group, action = groups[n], data.actions[n]
        log_present = math.log(
            (n_present + target.sparsity_nonzero) / (n + target.sparsity_zero + target.sparsity_nonzero)
        )
        log_absent = math.log(
            (n - n_present + target.sparsity_zero) / (n + target.sparsity_zero + target.sparsity_nonzero)
        )
        log_present += log_gain(group, 1, action, counts, totals, concentration, target)
        log_absent += log_gain(group, 0, action, counts, totals, concentration, target)
        if observed[n]:
            log_present += scale * weight * (residual[n] - 0.5 * weight)
        largest = max(log_present, log_absent)
        log_sum = largest + math.log(math.exp(log_present - largest) + math.exp(log_absent - largest))
        log_weight += log_sum - log_gain(group, 0, action, joint_counts, joint_totals, concentration, target)
        if propose:
            column[n] = 1.0 if math.log(rng.random()) < log_present - log_sum else 0.0
        bit = int(column[n])
        n_present += bit
        count_row(group, bit, action, 1.0, counts, totals)
        count_row(group, 0, action, 1.0, joint_counts, joint_totals)
    return log_weight


@kernel
def draw_births_and_deaths_of_bits(rng, substates, features, scale, state, data, target):
    """Try births and deaths of singletons in random dimensions; return substates, features, and how many of each."""
    n_rows, n_dimensions = data.observations.shape
    birth_rate = state.ibp_mass * state.ibp_concentration / (state.ibp_concentration + n_dimensions - 1)
    n_births = 0
    n_deaths = 0
    column = np.empty(n_rows)
    observed = np.empty(n_rows, np.bool_)
    for _ in range(target.n_birth_tries):
        d = int(rng.random() * n_dimensions)
        n_active = count_active(features)
        n_singletons = 0
        for k in range(len(features)):
            n_singletons += n_active[k] == 1 and features[k, d] != 0.0
        is_birth = rng.random() < 0.5
        if not is_birth and n_singletons == 0:
            continue
        dying = -1
        if not is_birth:
            chosen = int(rng.random() * n_singletons)
            for k in range(len(features)):
                if n_active[k] == 1 and features[k, d] != 0.0:
                    if chosen == 0:
                        dying = k
                    chosen -= 1
        residual = data.observations[:, d].copy()
        for k in range(len(features)):
            if k != dying and features[k, d] != 0.0:
                for n in range(n_rows):
                    residual[n] -= substates[k, n] * features[k, d]
        observed[:] = True
        for i in range(data.column_splits[d], data.column_splits[d + 1]):
            observed[data.column_gaps[i]] = False
        groups, n_groups = group_rows(substates, leave_out(dying, len(features)))
        if is_birth:
            weight = draw_weight(rng, state.weight_scale, target.positive)
        else:
            weight = features[dying, d]
            column[:] = substates[dying]
        log_weight = weigh_column(
            rng, column, is_birth, weight, residual, observed, groups, n_groups, scale, state.policy_concentration,
            data, target,
        )  # fmt: skip
        log_uniform = -rng.standard_exponential()
        if is_birth:
            if log_uniform < log_weight + math.log(birth_rate / (n_singletons + 1)):
                newborn = np.zeros(n_dimensions)
                newborn[d] = weight
                place = int(rng.random() * (len(features) + 1))
                features = insert_row(features, newborn, place)
                substates = insert_row(substates, column, place)
                n_births += 1
        elif log_uniform < math.log(n_singletons / birth_rate) - log_weight:
            features = remove_row(features, dying)
            substates = remove_row(substates, dying)
            n_deaths += 1
    return substates, features, n_births, n_deaths


@kernel
def run_sweeps_of_patterns(rng, state, observation_weights, data, target):
    """Draw every variable from its conditional, once for each observation weight."""
    info = SweepInfo(0, 0, 0.0)
    for observation_weight in observation_weights:
        substates = state.substates.copy()
        features = state.features.copy()
        scale = observation_weight / state.noise_variance
        squares = draw_bits(rng, substates, features, scale, state.policy_concentration, data, target)
        squares = draw_features(
            rng, substates, features, squares, scale, state.weight_scale, state.ibp_concentration, data, target
        )
        noise_variance, noise_shape, noise_rate = draw_noise(
            rng, squares, state.noise_variance, state.noise_shape, observation_weight, data, target
        )
        scale = observation_weight / noise_variance
        substates, features, n_births, n_deaths = draw_births_and_deaths_of_bits(
            rng, substates, features, scale, state, data, target
        )
        substates, features, policies = draw_empty_features(
            rng, substates, features, np.empty((len(features), 0)), state, target
        )
        patterns, n_patterns = group_rows(substates, leave_out(-1, len(substates)))
        counts = count_actions(patterns, n_patterns, data, target)
        policy_concentration = draw_slice_concentration(
            rng, state.policy_concentration,
            (target.action_weight * counts, target.policy_concentration_shape, target.policy_concentration_rate),
        )  # fmt: skip
        weight_scale = draw_weight_scale(rng, features, target)
        ibp_mass, ibp_concentration = draw_ibp(rng, features, state.ibp_concentration, target)
        state = State(
            substates, features, policies, noise_variance, noise_shape, noise_rate,
            weight_scale, ibp_mass, ibp_concentration, policy_concentration, state.policy_scale, state.decisiveness,
            state.base_policy,
        )  # fmt: skip
        info = SweepInfo(n_births, n_deaths, log_marginal_of_actions(counts, policy_concentration))
    return state, info


def log_joint_of_patterns(state: State, data: Demonstrations, target: Target) -> float:
    """Log joint density of all variables, with the policies integrated out."""
    patterns, n_patterns = group_rows(state.substates, leave_out(-1, len(state.substates)))
    counts = count_actions(patterns, n_patterns, data, target)
    log_actions = log_marginal_of_actions(target.action_weight * counts, state.policy_concentration)
    return log_joint_without_actions(state, data, target) + float(log_actions)


def start(rng: np.random.Generator, data: Demonstrations, target: Target, priors: Priors) -> State:
    """Start as the exact sampler does, but without policies, which are integrated out."""
    state = start_from_prior(rng, data, target, priors)
    return state._replace(policies=np.empty((len(state.features), 0)))


def run(
    rng: np.random.Generator, state: State, observation_weights: np.ndarray, data: Demonstrations, target: Target
) -> tuple[State, SweepInfo]:
    """Run one sweep for each observation weight."""
    state, info = run_sweeps_of_patterns(rng, state, observation_weights, data, target)
    return state, info


def merge(
    rng: np.random.Generator,
    state: State,
    data: Demonstrations,
    target: Target,
    between_kernels: Callable[[], None],
) -> State:
    """Merge features that say the same, then drop those that others can replace."""
    state = merge_features(rng, state, data, target, run, log_joint_of_patterns, between_kernels)
    return drop_features(rng, state, data, target, run, log_joint_of_patterns, between_kernels)


PATTERNS = Algorithm("run_sweeps_of_patterns", start, run, log_joint_of_patterns, merge, has_policies=False)
