"""Noise variance and hyperparameters: conjugate draws where possible, slice sampling elsewhere.

Two variables are integrated out: the rate beta_sigma when sigma^2 and alpha_sigma are drawn (with alpha_sigma near 1000
the two would otherwise creep along together), and the mass alpha_a when the concentration beta_a is drawn.
All Gamma distributions have shape and rate.
"""

import math

import numpy as np

from whyact.sampler.compiling import kernel
from whyact.sampler.limits import draw_gamma
from whyact.sampler.slicing import make_slice_sampler

# Relative error that a sum of squared residuals may have.
ROUNDING = 1e-12


@kernel
def log_density_noise_variance(variance, arguments):
    """Log density of log sigma^2 given the residuals and alpha_sigma, with beta_sigma integrated out."""
    half_count, half_squares, shape, rate_shape, rate_rate = arguments
    log_density = -(half_count + shape) * math.log(variance) - (shape + rate_shape) * math.log(
        rate_rate + 1.0 / variance
    )
    if half_squares > 0.0:
        log_density -= half_squares / variance
    return log_density


draw_slice_noise_variance = make_slice_sampler(log_density_noise_variance)


@kernel
def log_density_noise_shape(shape, arguments):
    """Log density of log alpha_sigma given sigma^2, with beta_sigma integrated out."""
    variance, rate_shape, rate_rate, shape_shape, shape_rate = arguments
    return (
        shape_shape * math.log(shape)
        - shape_rate * shape
        + math.lgamma(shape + rate_shape)
        - math.lgamma(shape)
        - shape * math.log(variance)
        - (shape + rate_shape) * math.log(rate_rate + 1.0 / variance)
    )


draw_slice_noise_shape = make_slice_sampler(log_density_noise_shape)


@kernel
def floor_at_rounding(squares, data):
    """Keep a sum of squared residuals, a difference of large numbers, above its rounding.

    Otherwise the density has no bound as sigma^2 goes to zero where data have no noise.
    """
    return max(squares, ROUNDING * (data.sum_of_squares + data.n_observed / 16.0))


@kernel
def draw_noise(rng, squares, variance, shape, observation_weight, data, target):
    """Draw sigma^2, alpha_sigma and beta_sigma given the sum of squared residuals of the observed entries."""
    half_weight = 0.5 * observation_weight
    squares = floor_at_rounding(squares, data)
    variance = draw_slice_noise_variance(
        rng, variance,
        (half_weight * data.n_observed, half_weight * squares, shape, target.noise_rate_shape, target.noise_rate_rate),
    )  # fmt: skip
    shape = draw_slice_noise_shape(
        rng, shape,
        (variance, target.noise_rate_shape, target.noise_rate_rate, target.noise_shape_shape, target.noise_shape_rate),
    )  # fmt: skip
    rate = draw_gamma(rng, target.noise_rate_shape + shape) / (target.noise_rate_rate + 1.0 / variance)
    return variance, shape, rate


@kernel
def draw_weight_scale(rng, features, target):
    """Draw gamma_w: the mean of positive weights, the variance of real ones (inverse Gamma in both cases)."""
    n_active = 0.0
    total = 0.0
    for f in features.flat:
        if f != 0.0:
            n_active += 1.0
            total += f if target.positive else f * f
    if not target.positive:
        n_active *= 0.5
        total *= 0.5
    return (target.weight_scale_rate + total) / draw_gamma(rng, target.weight_scale_shape + n_active)


@kernel
def expected_features_per_mass(concentration, n_dimensions):
    """Sum over d of beta / (beta + d - 1): the IBP's expected number of features for alpha = 1."""
    total = 0.0
    for d in range(n_dimensions):
        total += 1.0 / (concentration + d)
    return concentration * total


@kernel
def log_density_ibp_concentration(concentration, arguments):
    """Log density of log beta_a given the number of active entries per feature, with alpha_a integrated out."""
    n_active, n_dimensions, shape, rate, mass_shape, mass_rate = arguments
    n_features = len(n_active)
    log_density = (
        (shape + n_features) * math.log(concentration)
        - rate * concentration
        - (mass_shape + n_features) * math.log(mass_rate + expected_features_per_mass(concentration, n_dimensions))
        - n_features * math.lgamma(n_dimensions + concentration)
    )
    for k in range(n_features):
        log_density += math.lgamma(n_dimensions - n_active[k] + concentration)
    return log_density


draw_slice_ibp_concentration = make_slice_sampler(log_density_ibp_concentration)


@kernel
def count_active(features):
    """Number of active entries of each feature."""
    n_active = np.zeros(len(features))
    for k in range(len(features)):
        for d in range(features.shape[1]):
            n_active[k] += features[k, d] != 0.0
    return n_active


@kernel
def draw_ibp_mass(rng, n_features, n_dimensions, concentration, target):
    """Draw alpha_a given beta_a and the number of features: Gamma."""
    return draw_gamma(rng, target.ibp_mass_shape + n_features) / (
        target.ibp_mass_rate + expected_features_per_mass(concentration, n_dimensions)
    )


@kernel
def draw_ibp(rng, features, concentration, target):
    """Draw beta_a with alpha_a integrated out, then alpha_a, which is Gamma; return mass and concentration."""
    n_features, n_dimensions = features.shape
    n_active = count_active(features)
    concentration = draw_slice_ibp_concentration(
        rng, concentration,
        (
            n_active, n_dimensions, target.ibp_concentration_shape, target.ibp_concentration_rate,
            target.ibp_mass_shape, target.ibp_mass_rate,
        ),
    )  # fmt: skip
    return draw_ibp_mass(rng, n_features, n_dimensions, concentration, target), concentration
