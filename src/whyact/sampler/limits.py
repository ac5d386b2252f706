"""Loops of kernels that end, whatever the numbers are.

Ctrl-C waits for the end of a kernel, so a loop that runs until a random number fits must not run for ever. With numbers
that are infinite or not numbers it would: no comparison with them is true. So such loops have limits, far above what
any draw needs, and a kernel that reaches one stops the run with LOST. numba's own draws have such loops too: whatever
goes into one of them is checked here first.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from whyact.sampler.compiling import kernel

LOST = (
    "the sampler has left the range of floating point numbers; scale X, choose other priors, or, if this is a stored "
    "model or run, make it again."
)
MOST_TRIES = 10_000  # to draw what at least one in ten tries finds
MOST_STEPS = 10_000  # of a slice; the logarithms of all doubles are 1500 apart
MOST_BIRTHS = 10_000  # features at once
# Beta variables with two parameters below this one are found by so few tries that they may count as not found.
SMALLEST_SHAPE = 1e-4


@kernel
def draw_gamma(rng, shape):
    """Draw from the Gamma distribution with rate one."""
    if not 0.0 <= shape < math.inf:
        raise FloatingPointError(LOST)
    return rng.standard_gamma(shape)


@kernel
def draw_beta(rng, alpha, beta):
    """Draw from the Beta distribution."""
    if not (alpha > 0.0 and beta > 0.0 and SMALLEST_SHAPE <= max(alpha, beta) < math.inf):
        raise FloatingPointError(LOST)
    return rng.beta(alpha, beta)


@kernel
def draw_binomial(rng, n, probability):
    """Draw from the binomial distribution."""
    if not 0.0 <= probability <= 1.0:
        raise FloatingPointError(LOST)
    return rng.binomial(n, probability)


@kernel
def draw_number_of_births(rng, expected):
    """Draw a Poisson number of features that are born at once."""
    number = rng.poisson(expected) if 0.0 <= expected < MOST_BIRTHS else MOST_BIRTHS
    if not number < MOST_BIRTHS:
        raise FloatingPointError(LOST)
    return number


@contextmanager
def solvable_matrices() -> Iterator[None]:
    """A matrix that a kernel cannot factorise has lost its numbers, too: say so in the same words."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise FloatingPointError(LOST) from None
