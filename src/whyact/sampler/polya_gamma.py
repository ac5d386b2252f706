"""Draws from the Polya-Gamma distribution PG(1, z), which makes logistic likelihoods Gaussian.

Devroye's method (Polson, Scott & Windle, 2013): X = 4 PG(1, z) is an exponentially tilted Jacobi variable. A proposal
comes from a mixture of an exponential above a point and a truncated inverse Gaussian below it, and is accepted by an
alternating series whose partial sums bound the density from both sides.
"""

import math

from whyact.sampler.compiling import kernel
from whyact.sampler.limits import LOST, MOST_TRIES

# Where the two forms of the series meet; either one is valid there.
MIDDLE = 0.64


@kernel
def normal_cdf(x):
    """P(Z < x) for a standard normal Z."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@kernel
def series_term(n, x):
    """Term n of the alternating series of the Jacobi density at x."""
    rate = (n + 0.5) * math.pi
    if x > MIDDLE:
        return rate * math.exp(-0.5 * rate * rate * x)
    width = 2.0 / (math.pi * x)
    return width * math.sqrt(width) * rate * math.exp(-2.0 * (n + 0.5) ** 2 / x)


@kernel
def draw_truncated_inverse_gaussian(rng, z):
    """Draw from the inverse Gaussian with mean 1 / z and shape 1, below MIDDLE."""
    if z * MIDDLE < 1.0:  # the mean is above: from the tail of 1 / chi-square, thinned by the tilt
        for _ in range(MOST_TRIES):
            first, second = rng.standard_exponential(), rng.standard_exponential()
            if first * first > 2.0 * second / MIDDLE:
                continue
            x = MIDDLE / (1.0 + MIDDLE * first) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
        raise FloatingPointError(LOST)
    mean = 1.0 / z
    for _ in range(MOST_TRIES):
        square = rng.standard_normal() ** 2
        x = mean + 0.5 * mean * mean * square
        x -= 0.5 * mean * math.sqrt(4.0 * mean * square + (mean * square) ** 2)
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if x <= MIDDLE:
            return x
    raise FloatingPointError(LOST)


@kernel
def is_below_density(rng, x):
    """Accept a proposal by the series: its partial sums are above and below the density in turn."""
    bound = series_term(0, x)
    height = rng.random() * bound
    for n in range(1, MOST_TRIES):
        if n % 2 == 1:
            bound -= series_term(n, x)
            if height <= bound:
                return True
        else:
            bound += series_term(n, x)
            if height > bound:
                return False
    raise FloatingPointError(LOST)


@kernel
def draw_polya_gamma(rng, z):
    """Draw from PG(1, z)."""
    z = 0.5 * abs(z)
    rate = 0.125 * math.pi**2 + 0.5 * z * z
    above = 0.5 * math.pi / rate * math.exp(-rate * MIDDLE)
    root = math.sqrt(1.0 / MIDDLE)
    below = 2.0 * math.exp(-z) * normal_cdf(root * (MIDDLE * z - 1.0))
    # exp(z) overflows where its factor is long zero
    if z < 300.0:
        below += 2.0 * math.exp(z) * normal_cdf(-root * (MIDDLE * z + 1.0))
    share_above = above / (above + below) if above + below > 0.0 else 0.0
    for _ in range(MOST_TRIES):
        if rng.random() < share_above:
            x = MIDDLE + rng.standard_exponential() / rate
        else:
            x = draw_truncated_inverse_gaussian(rng, z)
        if is_below_density(rng, x):
            return 0.25 * x
    raise FloatingPointError(LOST)
