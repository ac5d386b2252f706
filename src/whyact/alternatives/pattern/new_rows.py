"""Substates and actions of a new observation, for policies of patterns (Sec. 2.4)."""

from typing import NamedTuple

import numpy as np

from whyact.alternatives.pattern.bits import climb_bits_of_new_row, draw_bits_of_new_row
from whyact.sampler.compiling import kernel
from whyact.sampler.new_rows import available_in, make_row_predictor, restrict_to, start_row


class PatternVoices(NamedTuple):
    """Every pattern of features in the training rows has its own policy."""

    splits: np.ndarray  # draw i has the patterns splits[i] to splits[i + 1]
    patterns: np.ndarray  # flat, K entries for each pattern of a draw with K features
    starts: np.ndarray  # where the patterns of a draw begin in `patterns`
    policies: np.ndarray  # posterior mean of each, (patterns, U)


@kernel
def look_up_pattern(substates, draw, first, voices, available, probabilities):
    """Fill in the policy of the pattern; return False if it was never seen, where it is the prior's, uniform."""
    holds = find_pattern(substates, draw, voices, probabilities)
    restrict_to(available, probabilities)
    return holds


@kernel
def find_pattern(substates, draw, voices, probabilities):
    """`look_up_pattern` with all actions available."""
    n_features = len(substates)
    for pattern in range(voices.splits[draw], voices.splits[draw + 1]):
        start = voices.starts[draw] + (pattern - voices.splits[draw]) * n_features
        k = 0
        while k < n_features and voices.patterns[start + k] == (substates[k] > 0.0):
            k += 1
        if k == n_features:
            probabilities[:] = voices.policies[pattern]
            return True
    probabilities[:] = 1.0 / len(probabilities)
    return False


predict_row_by_pattern = make_row_predictor(
    "predict_row_by_pattern", look_up_pattern, draw_bits_of_new_row, climb_bits_of_new_row, start_row, blends=True
)


@kernel
def predict_rows_by_pattern(
    rng, observations, missing, available, n_levels, n_warm, n_kept, noise_limits, draws, answers, rounds
):
    """`predict_rows_by_mixture` for policies of patterns."""
    for n in range(len(observations)):
        answers.familiarity[n] = predict_row_by_pattern(
            rng, observations[n], np.nonzero(missing[n])[0], available_in(n, available), n_levels, n_warm, n_kept,
            noise_limits[n], draws, answers, rounds, n,
        )  # fmt: skip
