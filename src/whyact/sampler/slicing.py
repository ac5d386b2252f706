"""Slice sampling of a positive number (Neal, 2003), for the conditionals that are not conjugate."""

import math
from collections.abc import Callable
from typing import Any

from whyact.sampler.compiling import kernel
from whyact.sampler.limits import LOST, MOST_STEPS


def make_slice_sampler(log_density: Callable[..., float], width: float = 1.0) -> Any:
    """Make the kernel (rng, value, arguments) -> value that moves `value` > 0 by one slice step on its logarithm.

    `log_density(value, arguments)` is the log density of log(value): it includes the Jacobian. `width` is how far a
    step goes out, for a density that is wide; any width is exact.
    """

    def draw_slice(rng, value, arguments):
        start = math.log(value)
        floor = log_density(value, arguments) - rng.standard_exponential()
        # step out
        low = start - width * rng.random()
        high = low + width
        n_steps = 0
        while log_density(math.exp(low), arguments) > floor and n_steps < MOST_STEPS:
            low -= width
            n_steps += 1
        while log_density(math.exp(high), arguments) > floor and n_steps < MOST_STEPS:
            high += width
            n_steps += 1
        if n_steps == MOST_STEPS:
            raise FloatingPointError(LOST)
        while high - low > 1e-14 + 1e-15 * abs(start):
            point = low + rng.random() * (high - low)
            if log_density(math.exp(point), arguments) >= floor:
                return math.exp(point)
            if point < start:
                low = point
            else:
                high = point
        return value

    draw_slice.__qualname__ = draw_slice.__name__ = log_density.__name__.replace("log_density", "draw_slice")
    return kernel(draw_slice)
