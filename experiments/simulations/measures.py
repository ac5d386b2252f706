"""How far estimated features, substates and policies are from the truth (Sec. 5.1 and 5.2).

A feature and its substates are determined only up to a scale, and features have no order. Two rules settle this.

Assignment: true and estimated features are paired so that the sum over pairs of |s_k f_k' - s^_j f^_j'|^2 is smallest.
What a feature adds to the observations, s_k f_k', does not depend on the scale.

Scale: each estimated feature is given the length of the true one it is paired with, and its substates are divided by
the same factor. The only divisors are lengths of true features, so no scale can inflate an error.

A true feature without a partner counts as estimated by zero, with the uniform policy. Surplus features count in the
number of features and in the reconstruction.
"""

from typing import NamedTuple

import numpy as np

from experiments.harness.ground_truth import match_features


class Errors(NamedTuple):
    """Errors of one run."""

    rmse_features: float  # root mean square over the entries of F, in its unit
    rmse_substates: float  # over the entries of S
    rmse_states: float  # over the entries of X = S F
    mad_policies: float  # mean absolute deviation over the entries of Phi


def compare_with_truth(
    features: np.ndarray,
    substates: np.ndarray,
    policies: np.ndarray,
    true_features: np.ndarray,
    true_substates: np.ndarray,
    true_policies: np.ndarray,
) -> Errors:
    """Compare features (K, D), substates (N, K) and policies (K, U) with the truth; K may differ."""
    true_index, index = match_features(features, substates, true_features, true_substates)
    lengths = np.linalg.norm(features[index], axis=1)
    true_lengths = np.linalg.norm(true_features[true_index], axis=1)
    factors = np.divide(true_lengths, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    found_features = np.zeros_like(true_features)
    found_features[true_index] = features[index] * factors[:, None]
    found_substates = np.zeros_like(true_substates)
    shrink = np.divide(lengths, true_lengths, out=np.zeros_like(lengths), where=true_lengths > 0)
    found_substates[:, true_index] = substates[:, index] * shrink
    found_policies = np.full_like(true_policies, 1.0 / true_policies.shape[1])
    found_policies[true_index] = policies[index]
    return Errors(
        root_of_mean_square(found_features - true_features),
        root_of_mean_square(found_substates - true_substates),
        root_of_mean_square(substates @ features - true_substates @ true_features),
        float(np.mean(np.abs(found_policies - true_policies))),
    )


def root_of_mean_square(values: np.ndarray) -> float:
    """Over all entries."""
    return float(np.sqrt(np.mean(np.square(values))))
