"""Data sets of the paper's design (Sec. 5), and how features that were found are paired with the true ones."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from whyact.simulation import PEAK, GroundTruth, draw_ground_truth


class DataSet(NamedTuple):
    """A data set of the paper's design, and how it is drawn."""

    n_features: int
    snr_db: float
    run: int
    seed: int = 0
    peak: float = PEAK
    action_rule: str = "most-probable"

    def seeds(self) -> list[int]:
        """Random numbers depend on the data set alone, not on which others are in the study."""
        return [self.seed, self.n_features, round(1000 * self.snr_db) % 2**32, self.run]

    def draw(self) -> GroundTruth:
        """Draw it, again if the rows to learn from hold only one action: nobody could learn from these."""
        rng = np.random.default_rng(self.seeds())
        while True:
            truth = draw_ground_truth(rng, self.n_features, self.snr_db, peak=self.peak, action_rule=self.action_rule)
            if len(np.unique(truth.train[1])) > 1:
                return truth


def match_features(
    features: np.ndarray, substates: np.ndarray, true_features: np.ndarray, true_substates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pair features by what they add to the observations; return indices of the true and of the estimated ones."""
    # |s f' - s^ f^'|^2 = |s|^2 |f|^2 + |s^|^2 |f^|^2 - 2 (s . s^)(f . f^); a feature left over costs its own square
    products = (true_substates.T @ substates) * (true_features @ features.T)
    true_index, index = linear_sum_assignment(products, maximize=True)
    return true_index, index
