"""Substates that are 0 or 1, drawn in blocks: all combinations of a few bits of a row are weighed.

One bit at a time is not enough. Where f_1 = f_2 + f_3, a row could not get from the one to the other two.
"""

import numpy as np

from whyact.sampler.compiling import kernel
from whyact.sampler.random_choice import draw_index

# Number of bits of a row that are drawn together.
BLOCK_SIZE = 5


@kernel
def shuffle_features(rng, n_features):
    """A random order of the features, to be cut into blocks."""
    order = np.arange(n_features)
    for k in range(n_features - 1, 0, -1):
        other = int(rng.random() * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order


@kernel
def weigh_codes(fields, products, n_bits, log_weights):
    """Fill in the log weight of every combination of bits: sum_b s_b fields_b - sum_{b > c} s_b s_c products_bc."""
    log_weights[0] = 0.0
    for b in range(n_bits):
        for code in range(1 << b):  # with bit b on top of the bits below it
            log_weight = log_weights[code] + fields[b]
            for c in range(b):
                if code >> c & 1:
                    log_weight -= products[b, c]
            log_weights[code + (1 << b)] = log_weight


@kernel
def weigh_block_of_new_row(block, substates, projections, gram, zero_priors, scale, log_weights):
    """Fill in the log weight of all combinations of a block of bits of a new row, whose action is unknown."""
    n_bits = len(block)
    fields = np.empty(n_bits)
    products = np.empty((n_bits, n_bits))
    inside = np.zeros(len(substates), np.bool_)
    inside[block] = True
    for b in range(n_bits):
        k = block[b]
        slope = projections[k] - 0.5 * gram[k, k]
        for j in range(len(substates)):
            if not inside[j]:
                slope -= gram[k, j] * substates[j]
        fields[b] = scale * slope + np.log((1.0 - zero_priors[k]) / zero_priors[k])
        for c in range(b):
            products[b, c] = scale * gram[k, block[c]]
    weigh_codes(fields, products, n_bits, log_weights)


@kernel
def draw_bits_of_new_row(rng, cells, substates, projections, gram, zero_priors, scale, n_levels):
    """Draw all bits of a new row once, one random block after the other.

    The arguments are those of `draw_row`; `cells` and `n_levels` are not needed here.
    """
    log_weights = np.empty(1 << BLOCK_SIZE)
    order = shuffle_features(rng, len(substates))
    for first in range(0, len(substates), BLOCK_SIZE):
        block = order[first : first + BLOCK_SIZE]
        weigh_block_of_new_row(block, substates, projections, gram, zero_priors, scale, log_weights)
        code = draw_index(rng, log_weights, 1 << len(block))
        for b in range(len(block)):
            substates[block[b]] = code >> b & 1


@kernel
def climb_bits_of_new_row(rng, substates, projections, gram, zero_priors, scale, n_levels):
    """Move to a mode of the bits' posterior: the best combination of random blocks, until nothing changes.

    The arguments are those of `climb_substates`; `n_levels` is not needed here.
    """
    log_weights = np.empty(1 << BLOCK_SIZE)
    n_idle = 0
    for _ in range(100):
        n_changed = 0
        order = shuffle_features(rng, len(substates))
        for first in range(0, len(substates), BLOCK_SIZE):
            block = order[first : first + BLOCK_SIZE]
            weigh_block_of_new_row(block, substates, projections, gram, zero_priors, scale, log_weights)
            code = np.argmax(log_weights[: 1 << len(block)])
            for b in range(len(block)):
                bit = float(code >> b & 1)
                n_changed += bit != substates[block[b]]
                substates[block[b]] = bit
        n_idle = n_idle + 1 if n_changed == 0 else 0
        if n_idle == (1 if len(substates) <= BLOCK_SIZE else 5):
            break
