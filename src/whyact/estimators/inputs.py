"""What comes in: observations and actions, checked."""

import numpy as np

# Observations are brought to this root mean square before sampling. The priors of Table 1 are not free of a unit:
# they expect a noise variance near 0.001, which at a root mean square of one is the opinion that the signal-to-noise
# ratio is 30 dB. At a quarter they leave 10 dB as plausible as 30 dB.
ROOT_MEAN_SQUARE = 0.25


def to_array(y):
    """Turn a list into an array; one that mixes None with labels keeps its labels as they are."""
    if any(label is None for label in y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)


def find_unit(X: np.ndarray, root_mean_square: float = ROOT_MEAN_SQUARE) -> float:
    """What to divide X by, so that it has this root mean square."""
    largest = float(np.nanmax(np.abs(X)))
    if largest == 0:
        return 1.0
    return largest * float(np.sqrt(np.nanmean(np.square(X / largest)))) / root_mean_square
