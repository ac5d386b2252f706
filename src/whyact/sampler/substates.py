"""Substates on their grid: Eq. (inf::s) of the paper.

With everything else fixed, a substate s of row n and feature k has the weight

    exp(linear * s - precision * s^2 / 2)  *  P(action | s)^omega  *  prior(s),

where linear = zeta / sigma^2 * f_k . (z_n - sum over j != k of s_nj f_j) and precision = zeta / sigma^2 * f_k . f_k.
Both come from the Gram matrices Z F' and F F', so an entry costs O(K), not O(D). On the equidistant grid the Gaussian
part follows a recurrence of two multiplications, started at its mode.
"""

import math
from typing import NamedTuple

import numpy as np

from whyact.sampler.combining import UNKNOWN, change_tally, fill_tally, is_accepted, is_plain
from whyact.sampler.compiling import kernel
from whyact.sampler.limits import LOST, MOST_TRIES

# Levels that weigh less than this share of the sum so far are below the rounding of a double.
NEGLIGIBLE = 1e-18
ZERO, PRODUCTS, LOGS = 0, 1, 2
# Above this many levels on one side of the mode, neighbours are drawn together as a cell (see draw_level).
CELLS_PER_SIDE = 12


class ActionTerm(NamedTuple):
    """What a row's action says about one substate, given the other substates of the row.

    With the substate at s > 0 the action has the probability (contributions + s * policy) / (total + s), Eq. (mixture).
    """

    power: float  # omega; 0 where the action is unknown
    at_zero: float  # probability of the action at s = 0
    contributions: float  # sum of s_j phi_j(u) over the other features
    total: float  # sum of s_j over the other features
    policy: float  # phi_k(u)


@kernel
def action_probability(s, action_term):
    """P(action | s) for a substate s > 0, Eq. (mixture)."""
    return (action_term.contributions + s * action_term.policy) / (action_term.total + s)


@kernel
def log_gauss(level, step, linear, precision):
    """Log of the Gaussian part at a level, relative to s = 0."""
    s = level * step
    return s * (linear - 0.5 * precision * s)


@kernel
def find_peak(linear, precision, step, n_levels):
    """Level among 1 .. L - 1 at which the Gaussian part is largest."""
    if precision * step <= 0.0:
        return n_levels - 1 if linear > 0.0 else 1
    level = linear / (precision * step)
    if not level > 1.0:
        return 1
    if level >= n_levels - 1:
        return n_levels - 1
    return int(level + 0.5)


@kernel
def bound_number(linear, precision, width, n_levels):
    """A bound on the sum of the bounds of all cells, in units of the Gaussian part at its peak: a number of levels.

    Where the Gaussian part falls, cells add up to at most their first one plus the integral. There are up to three
    first ones: at the peak, below it, and above it if the mode lies between two levels.
    """
    step = 1.0 / (n_levels - 1)
    number = float(n_levels - 1)
    if precision > 0.0:
        number = min(number, 3.0 * width + math.sqrt(2.0 * math.pi / precision) / step)
    if linear < 0.0:
        number = min(number, width - 1.0 / (linear * step))
    return number


@kernel
def find_ends(near, width, upwards, rising, n_levels):
    """Return the end of a cell away from the peak, and the end at which the action is likelier."""
    if upwards:
        far = min(near + width - 1, n_levels - 1)
        return far, far if rising else near
    far = max(near - width + 1, 1)
    return far, near if rising else far


@kernel
def fill_cells(cells, peak, width, zero_cell, linear, precision, n_levels, action_term):
    """Fill `cells` with bounds on the weight of `width` levels each, first upwards from the peak, then downwards.

    Weights are relative to the Gaussian part at its peak. A cell's bound is its number of levels times the largest
    Gaussian value (at the end nearer to the peak) times the largest action probability (which is monotone in s, so at
    one of the ends). For width 1 the bound is the weight itself. Returns the number of upward cells, of all cells, and
    the sum of the bounds and of `zero_cell`, the weight of s = 0.
    """
    step = 1.0 / (n_levels - 1)
    rising = action_term.policy * action_term.total >= action_term.contributions
    has_action = action_term.power != 0.0
    top_action = max(action_probability(step, action_term), action_probability(1.0, action_term)) if has_action else 1.0
    at_peak = log_gauss(peak, step, linear, precision)
    shrink = math.exp(-precision * step * step * width * width)
    n_up = 0
    n_cells = 0
    cells_sum = zero_cell
    for upwards in (True, False):
        near = peak if upwards else peak - 1
        if near < 1:
            break
        gauss = math.exp(log_gauss(near, step, linear, precision) - at_peak)
        beyond = near + width if upwards else near - width
        # e(l + width) / e(l) = ratio, and the ratio itself shrinks by a constant factor from cell to cell
        log_ratio = log_gauss(beyond, step, linear, precision) - log_gauss(near, step, linear, precision)
        ratio = math.exp(min(log_ratio, 0.0))
        while 1 <= near <= n_levels - 1:
            far, likelier = find_ends(near, width, upwards, rising, n_levels)
            cell = gauss * (abs(far - near) + 1)
            if has_action:
                cell *= action_probability(likelier * step, action_term)
            cells[n_cells] = cell
            n_cells += 1
            cells_sum += cell
            gauss *= ratio
            ratio *= shrink
            if gauss * top_action * width < NEGLIGIBLE * cells_sum:
                break
            near = near + width if upwards else near - width
        if upwards:
            n_up = n_cells
    return n_up, n_cells, cells_sum


@kernel
def fill_cells_in_logs(cells, peak, width, log_zero, linear, precision, n_levels, action_term):
    """`fill_cells` for a large action weight, where P(action | s)^omega would underflow.

    Weights are relative to the largest one, whose logarithm is returned as well. The Gaussian part may fall by as much
    as the action part can rise before a level stops mattering.
    """
    step = 1.0 / (n_levels - 1)
    rising = action_term.policy * action_term.total >= action_term.contributions
    reach = 45.0 + action_term.power * abs(
        math.log(action_probability(1.0, action_term)) - math.log(action_probability(step, action_term))
    )
    at_peak = log_gauss(peak, step, linear, precision)
    n_up = 0
    n_cells = 0
    largest = log_zero
    for upwards in (True, False):
        near = peak if upwards else peak - 1
        while 1 <= near <= n_levels - 1:
            fall = log_gauss(near, step, linear, precision)
            if fall < at_peak - reach:
                break
            far, likelier = find_ends(near, width, upwards, rising, n_levels)
            log_action = math.log(action_probability(likelier * step, action_term))
            cells[n_cells] = fall + action_term.power * log_action + math.log(abs(far - near) + 1)
            largest = max(largest, cells[n_cells])
            n_cells += 1
            near = near + width if upwards else near - width
        if upwards:
            n_up = n_cells
    cells_sum = math.exp(log_zero - largest)
    for i in range(n_cells):
        cells[i] = math.exp(cells[i] - largest)
        cells_sum += cells[i]
    return n_up, n_cells, cells_sum, largest


@kernel
def choose_arithmetic(at_peak, n_levels, zero_prior, level_prior, action_term):
    """How to continue: ZERO if other levels are negligible, LOGS where products would underflow, otherwise PRODUCTS."""
    if at_peak < -600.0:
        log_zero = math.log(zero_prior) - math.log(level_prior)
        if action_term.power != 0.0:
            log_zero += action_term.power * math.log(action_term.at_zero)
        # the probability of an action is at most one
        if log_zero - at_peak - math.log(n_levels) > 45.0:
            return ZERO
        return LOGS
    return PRODUCTS if action_term.power == 0.0 or action_term.power == 1.0 else LOGS


@kernel
def draw_level(rng, cells, linear, precision, n_levels, zero_prior, level_prior, action_term):
    """Draw a level from its exact conditional.

    `zero_prior` is the prior weight of s = 0, `level_prior` that of every other level, `cells` is scratch memory for
    L + 1 numbers. The cost does not grow with the number of levels: many levels are bounded together in cells, a level
    is drawn inside the chosen cell, and kept with its weight over the cell's bound. With few levels, and for action
    weights other than 0 and 1, a cell is one level, its bound is exact, and nothing is ever rejected.
    """
    step = 1.0 / (n_levels - 1)
    peak = find_peak(linear, precision, step, n_levels)
    at_peak = log_gauss(peak, step, linear, precision)
    uniform = rng.random()
    arithmetic = choose_arithmetic(at_peak, n_levels, zero_prior, level_prior, action_term)
    if arithmetic == ZERO:
        return 0
    in_logs = arithmetic == LOGS
    width = 1
    if not in_logs:
        # in logarithms a cell's bound may be far too high where the action term is steep, so a cell is one level
        reach = min(math.sqrt(80.0 / precision), 1.0) if precision > 0.0 else 1.0
        width = max(1, int(reach / (step * CELLS_PER_SIDE)))

    if in_logs:
        log_zero = action_term.power * math.log(action_term.at_zero) + math.log(zero_prior) - math.log(level_prior)
        zero_cell = 0.0
    else:
        weight_at_zero = zero_prior / level_prior
        top_action = 1.0
        if action_term.power != 0.0:
            weight_at_zero *= action_term.at_zero
            top_action = max(action_probability(step, action_term), action_probability(1.0, action_term))
        zero_cell = weight_at_zero * math.exp(-at_peak)
        # a bound on the sum of the cells' bounds is mostly enough to see that s = 0 is drawn
        n_bound = bound_number(linear, precision, width, n_levels)
        if uniform * (zero_cell + n_bound * top_action) < zero_cell:
            return 0

    if in_logs:
        n_up, n_cells, cells_sum, largest = fill_cells_in_logs(
            cells, peak, width, log_zero, linear, precision, n_levels, action_term
        )
        zero_cell = math.exp(log_zero - largest)
    else:
        largest = at_peak
        n_up, n_cells, cells_sum = fill_cells(cells, peak, width, zero_cell, linear, precision, n_levels, action_term)

    for _ in range(MOST_TRIES * width):  # at least about one in `width` tries is kept
        left = uniform * cells_sum - zero_cell
        if left < 0.0:
            return 0
        cell = 0
        while cell < n_cells - 1 and left >= cells[cell]:
            left -= cells[cell]
            cell += 1
        near = peak + cell * width if cell < n_up else peak - 1 - (cell - n_up) * width
        if width == 1:
            return near
        if cell < n_up:
            low, high = near, min(near + width - 1, n_levels - 1)
        else:
            low, high = max(near - width + 1, 1), near
        n_inside = high - low + 1
        level = min(low + int(rng.random() * n_inside), high)
        s = level * step
        exact = math.exp(log_gauss(level, step, linear, precision) - largest)
        if in_logs:
            exact = math.exp(
                log_gauss(level, step, linear, precision)
                + action_term.power * math.log(action_probability(s, action_term))
                - largest
            )
        elif action_term.power != 0.0:
            exact *= action_probability(s, action_term)
        if rng.random() * cells[cell] < exact * n_inside:
            return level
        uniform = rng.random()
    raise FloatingPointError(LOST)


@kernel
def log_sum_of_levels(cells, linear, precision, n_levels, zero_prior, level_prior, action_term, width):
    """Log of the sum over all levels, relative to the likelihood at s = 0: what births integrate out.

    It is exact for `width` 1, and an upper bound for cells of more levels.
    """
    step = 1.0 / (n_levels - 1)
    peak = find_peak(linear, precision, step, n_levels)
    at_peak = log_gauss(peak, step, linear, precision)
    arithmetic = choose_arithmetic(at_peak, n_levels, zero_prior, level_prior, action_term)
    if arithmetic == ZERO:
        return math.log(zero_prior)
    if arithmetic == LOGS:
        log_zero = action_term.power * math.log(action_term.at_zero) + math.log(zero_prior) - math.log(level_prior)
        _, _, cells_sum, largest = fill_cells_in_logs(
            cells, peak, width, log_zero, linear, precision, n_levels, action_term
        )
        return math.log(cells_sum) + math.log(level_prior) + largest - action_term.power * math.log(action_term.at_zero)
    weight_at_zero = zero_prior / level_prior
    if action_term.power != 0.0:
        weight_at_zero *= action_term.at_zero
    zero_cell = weight_at_zero * math.exp(-at_peak)
    _, _, cells_sum = fill_cells(cells, peak, width, zero_cell, linear, precision, n_levels, action_term)
    log_zero_action = math.log(action_term.at_zero) if action_term.power != 0.0 else 0.0
    return math.log(cells_sum) + math.log(level_prior) + at_peak - log_zero_action


@kernel
def log_least_of_levels(linear, precision, n_levels, zero_prior, level_prior, action_term):
    """A lower bound on `log_sum_of_levels`: the larger one of the terms at zero and at the peak."""
    step = 1.0 / (n_levels - 1)
    peak = find_peak(linear, precision, step, n_levels)
    at_peak = math.log(level_prior) + log_gauss(peak, step, linear, precision)
    if action_term.power != 0.0:
        gain = math.log(action_probability(peak * step, action_term)) - math.log(action_term.at_zero)
        at_peak += action_term.power * gain
    return max(math.log(zero_prior), at_peak)


@kernel
def draw_substates(rng, substates, features, votes, scale, data, target):
    """Draw all substates in place, row by row; return the sum of squared residuals.

    For the plain mixture the action is part of the conditional. Otherwise a level is proposed without the action, and
    accepted with min(1, [P(u | s') / P(u | s)]^omega): the proposal cancels all but the action.
    The sparsity theta_k is marginalised, so an entry sees how many other rows have its feature at zero (Beta-Binomial);
    each of the L - 1 levels above zero gets an equal share of the slab.
    """
    n_features, n_rows = substates.shape
    n_levels = target.n_levels
    step = 1.0 / (n_levels - 1)
    projections = np.dot(data.observations, features.T)  # Z F'
    gram = np.dot(features, features.T)  # F F'
    cells = np.empty(n_levels + 1)
    levels = np.empty(n_features, np.int64)
    residual = np.empty(n_features)
    policy = np.empty(n_features)
    tally, changed = np.empty(target.n_actions), np.empty(target.n_actions)
    has_plain_actions = is_plain(data, target)
    n_nonzero = np.zeros(n_features, np.int64)
    for k in range(n_features):
        for n in range(n_rows):
            n_nonzero[k] += substates[k, n] > 0.0
    squares = data.sum_of_squares
    for n in range(n_rows):
        action = data.actions[n]
        omega = target.action_weight if action >= 0 and has_plain_actions else 0.0
        decides = action >= 0 and not has_plain_actions
        inverse = UNKNOWN  # 1 / P(u | s) of the row as it is
        first_gap, last_gap = data.row_splits[n], data.row_splits[n + 1]
        at_gaps = np.zeros(last_gap - first_gap)
        total_levels = 0
        contributions = 0.0
        for k in range(n_features):
            levels[k] = int(substates[k, n] * (n_levels - 1) + 0.5)
            residual[k] = projections[n, k]
            total_levels += levels[k]
            if omega != 0.0:
                policy[k] = votes.of_features[k, action]
                contributions += substates[k, n] * policy[k]
        for k in range(n_features):
            if levels[k] > 0:
                s = substates[k, n]
                for j in range(n_features):
                    residual[j] -= s * gram[k, j]
                for i in range(last_gap - first_gap):
                    at_gaps[i] += s * features[k, data.row_gaps[first_gap + i]]
        if decides:
            fill_tally(tally, levels, step, -1, votes)
        for k in range(n_features):
            old = levels[k]
            if old > 0:
                n_nonzero[k] -= 1
                total_levels -= old
                if omega != 0.0:
                    # summed again, not subtracted: the rest may be smaller than the rounding
                    contributions = 0.0
                    for j in range(n_features):
                        if j != k:
                            contributions += levels[j] * step * policy[j]
            own = gram[k, k]
            projection = residual[k]
            for i in range(last_gap - first_gap):  # missing entries say nothing
                f = features[k, data.row_gaps[first_gap + i]]
                own -= f * f
                projection += f * at_gaps[i]
            own = max(own, 0.0)
            linear = scale * (projection + old * step * own)
            total = total_levels * step
            zero_action = contributions / total if total_levels > 0 else 1.0 / target.n_actions
            new = draw_level(
                rng, cells, linear, scale * own, n_levels,
                n_rows - 1 - n_nonzero[k] + target.sparsity_zero,
                (n_nonzero[k] + target.sparsity_nonzero) / (n_levels - 1),
                ActionTerm(omega, zero_action, contributions, total, policy[k]),
            )  # fmt: skip
            if decides and new != old:
                change_tally(tally, changed, levels, k, new, step, votes)
                accepted, inverse = is_accepted(
                    rng, inverse, tally, changed, n, action, votes, data, target.action_weight
                )
                if accepted:
                    tally[:] = changed
                else:
                    new = old
            if new > 0:
                n_nonzero[k] += 1
                total_levels += new
                if omega != 0.0:
                    contributions += new * step * policy[k]
            if new != old:
                change = (new - old) * step
                levels[k] = new
                substates[k, n] = new / (n_levels - 1)
                for j in range(n_features):
                    residual[j] -= change * gram[k, j]
                for i in range(last_gap - first_gap):
                    at_gaps[i] += change * features[k, data.row_gaps[first_gap + i]]
        for k in range(n_features):
            if levels[k] > 0:
                squares -= substates[k, n] * (projections[n, k] + residual[k])
        for i in range(last_gap - first_gap):
            squares -= at_gaps[i] * at_gaps[i]
    return max(squares, 0.0)
