"""Drawing one of several alternatives."""

import math

from whyact.sampler.compiling import kernel

# Log of a share that vanishes in the rounding of a sum.
NEGLIGIBLE = -50.0


@kernel
def draw_index(rng, log_weights, n):
    """Draw an index below n with probability proportional to exp(log_weights); overwrites them."""
    largest = -math.inf
    for i in range(n):
        largest = max(largest, log_weights[i])
    total = 0.0
    for i in range(n):
        gap = log_weights[i] - largest
        log_weights[i] = math.exp(gap) if gap > NEGLIGIBLE else 0.0
        total += log_weights[i]
    left = rng.random() * total
    i = 0
    while i < n - 1 and left >= log_weights[i]:
        left -= log_weights[i]
        i += 1
    return i
