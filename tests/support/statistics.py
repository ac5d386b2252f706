"""Limits of the statistical tests, and what is held against them."""

import math

import numpy as np
from scipy import stats

# Each comparison asks for |z| < 4.5 (two-sided false alarm rate 7e-6) or p > 1e-5, with fixed seeds.
Z_LIMIT = 4.5


P_LIMIT = 1e-5


def chi_square_p(counts, probabilities):
    """p value of the chi-square test; cells with fewer than ten expected counts are put together."""
    expected = probabilities * counts.sum()
    small = expected < 10
    observed = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    if expected[-1] < 10:  # still too few: join them to the largest cell
        largest = expected[:-1].argmax()
        observed[largest] += observed[-1]
        expected[largest] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    if len(observed) == 1:
        return 1.0
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def batch_z(values, truth, n_batches=100):
    batches = values[: len(values) // n_batches * n_batches].reshape(n_batches, -1).mean(axis=1)
    return (batches.mean() - truth) / (batches.std(ddof=1) / math.sqrt(n_batches))
