"""Features: activations with their weights integrated out, then the weights.

For entry (k, d) the observations enter through linear = zeta / sigma^2 * s_k . (z_d - sum over j != k of s_j f_jd) and
precision = zeta / sigma^2 * s_k . s_k, taken from the Gram matrices S'Z and S'S. Integrating the weight out of
exp(linear w - precision w^2 / 2) p(w) gives the odds that the entry is active, Eq. (inf::activations).
Only features with m > 0 other active entries take part: an entry that is alone keeps its feature alive, and is left to
the births and deaths.
"""

import math

import numpy as np

from whyact.sampler.compiling import kernel
from whyact.sampler.limits import LOST, MOST_TRIES

SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
SQRT_TWO_PI = math.sqrt(2.0 * math.pi)


@kernel
def mills_ratio(x):
    """(1 - Phi(x)) / phi(x) for x >= 0, accurate far into the tail."""
    if x < 10.0:
        return SQRT_HALF_PI * math.erfc(x * SQRT_HALF) * math.exp(0.5 * x * x)
    # Laplace's continued fraction, read from its end; 30 terms are exact to rounding for x >= 10
    tail = x
    for i in range(30, 0, -1):
        tail = x + i / tail
    return 1.0 / tail


@kernel
def is_below_odds(threshold, factor, t):
    """Whether threshold < factor * sqrt(2 pi) exp(t^2 / 2) Phi(t), mostly decided by cheap bounds."""
    if t < 0.0:
        x = -t
        if threshold * (x + math.sqrt(x * x + 4.0)) < 2.0 * factor:
            return True
        if threshold * (3.0 * x + math.sqrt(x * x + 8.0)) > 4.0 * factor:
            return False
        return threshold < factor * mills_ratio(x)
    if t > 37.0:
        # in logs, where the exponential would overflow and Phi(t) is one
        return math.log(threshold) < math.log(factor * SQRT_TWO_PI) + 0.5 * t * t
    bulk = factor * math.exp(0.5 * t * t)
    if threshold < bulk * SQRT_HALF_PI:
        return True
    if threshold > bulk * SQRT_TWO_PI:
        return False
    return threshold < bulk * SQRT_HALF_PI * math.erfc(-t * SQRT_HALF)


@kernel
def draw_positive_normal(rng, t):
    """Draw x > 0 with density proportional to exp(-(x - t)^2 / 2) (Robert, 1995)."""
    if t > -0.4:
        for _ in range(MOST_TRIES):
            x = t + rng.standard_normal()
            if x > 0.0:
                return x
        raise FloatingPointError(LOST)
    rate = 0.5 * (-t + math.sqrt(t * t + 4.0))
    for _ in range(MOST_TRIES):
        x = rng.standard_exponential() / rate
        gap = x - t - rate
        if rng.standard_exponential() > 0.5 * gap * gap and x > 0.0:
            return x
    raise FloatingPointError(LOST)


@kernel
def draw_entry(rng, linear, precision, prior_odds, weight_scale, positive):
    """Draw one entry f = a w: 0 if inactive. An infinite `prior_odds` keeps it active."""
    threshold = 0.0
    if prior_odds < math.inf:
        uniform = rng.random()
        threshold = uniform / (1.0 - uniform) / prior_odds
    if positive:
        if precision <= 0.0:  # no row holds this feature: the prior
            return weight_scale * rng.standard_exponential() if threshold < 1.0 else 0.0
        root = math.sqrt(precision)
        t = (linear - 1.0 / weight_scale) / root
        if threshold > 0.0 and not is_below_odds(threshold, 1.0 / (weight_scale * root), t):
            return 0.0
        return draw_positive_normal(rng, t) / root
    posterior_precision = precision + 1.0 / weight_scale
    mean = linear / posterior_precision
    log_odds = 0.5 * (mean * linear - math.log(weight_scale * posterior_precision))
    if threshold > 0.0 and not math.log(threshold) < log_odds:
        return 0.0
    return mean + rng.standard_normal() / math.sqrt(posterior_precision)


@kernel
def reconstruct_gaps(substates, features, data):
    """Reconstruct the missing entries, column by column: they carry no information, so they are taken out again."""
    at_gaps = np.zeros(len(data.column_gaps))
    for d in range(features.shape[1] if len(at_gaps) > 0 else 0):
        for i in range(data.column_splits[d], data.column_splits[d + 1]):
            for k in range(len(features)):
                at_gaps[i] += substates[k, data.column_gaps[i]] * features[k, d]
    return at_gaps


@kernel
def leave_out_feature(k, projections, gram, features, residual):
    """Fill `residual` with s_k . (z_d - sum over j != k of s_j f_jd) for every dimension d."""
    residual[:] = projections[k]
    for j in range(len(features)):
        if j != k and gram[k, j] != 0.0:
            share = gram[k, j]
            for d in range(len(residual)):
                residual[d] -= share * features[j, d]


@kernel
def leave_out_gaps(k, d, old, own, residual, substates, at_gaps, data):
    """Correct s_k . s_k and the product with the residual for the rows in which dimension d is missing."""
    for i in range(data.column_splits[d], data.column_splits[d + 1]):
        s = substates[k, data.column_gaps[i]]
        own -= s * s
        residual += s * (at_gaps[i] - s * old)
    return max(own, 0.0), residual


@kernel
def update_gaps(k, d, change, substates, at_gaps, data):
    """Bring the reconstruction of the missing entries up to date."""
    for i in range(data.column_splits[d], data.column_splits[d + 1]):
        at_gaps[i] += substates[k, data.column_gaps[i]] * change


@kernel
def draw_features(rng, substates, features, squares, scale, weight_scale, ibp_concentration, data, target):
    """Draw all features in place; return the sum of squared residuals, brought up to date."""
    n_features, n_dimensions = features.shape
    projections = np.dot(substates, data.observations)  # S'Z
    gram = np.dot(substates, substates.T)  # S'S
    at_gaps = reconstruct_gaps(substates, features, data)
    residual = np.empty(n_dimensions)
    for k in range(n_features):
        leave_out_feature(k, projections, gram, features, residual)
        n_active = 0
        for d in range(n_dimensions):
            n_active += features[k, d] != 0.0
        for d in range(n_dimensions):
            old = features[k, d]
            own, product = leave_out_gaps(k, d, old, gram[k, k], residual[d], substates, at_gaps, data)
            n_others = n_active - (old != 0.0)
            odds = n_others / (ibp_concentration + n_dimensions - 1 - n_others) if n_others > 0 else math.inf
            new = draw_entry(rng, scale * product, scale * own, odds, weight_scale, target.positive)
            if new != old:
                n_active = n_others + (new != 0.0)
                features[k, d] = new
                squares += (new - old) * ((new + old) * own - 2.0 * product)
                update_gaps(k, d, new - old, substates, at_gaps, data)
    return max(squares, 0.0)
