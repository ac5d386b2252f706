"""Draws of clusters: as those of features (Sec. 4.2), except where clusters differ."""

import numpy as np

from whyact.matching import normalise
from whyact.posterior import Posterior
from whyact.sampler.draws import ChainDraws


class ClusterPosterior(Posterior):
    """The draws of all chains of the cluster model, in the unit of the observations.

    The rows of `features` are the means of the clusters, and `substates` tell which rows belong to which cluster.

    Parameters
    ----------
    chains : list of ChainDraws
        The draws of each chain.
    unit : float
        What the centred observations were divided by before sampling.
    center : ndarray of shape (D,)
        What was subtracted from the observations before that; it is added to the means again.
    """

    _noun = "clusters"
    # each row is in one cluster, so a cluster that only some chains find shows in few rows
    _least_in_common = 0.9

    def __init__(self, chains: list[ChainDraws], unit: float, center: float | np.ndarray) -> None:
        # every row is in one cluster, so all clusters of a draw belong together
        super().__init__(chains, unit, feature_values="real", representative="modal")
        self.center = center

    def to_unit_of_observations(self, features: np.ndarray) -> np.ndarray:
        """Means as the chains hold them, in the unit of the observations and not centred."""
        means: np.ndarray = features * self.unit + self.center
        return means

    @property
    def _log_joint_in_logs(self) -> np.ndarray:
        """The log joint as it is: the policies of clusters are integrated out of it."""
        return self.traces["log_joint"]

    @staticmethod
    def _compare(
        features: np.ndarray, substates: np.ndarray, unit_features: np.ndarray, unit_substates: np.ndarray
    ) -> np.ndarray:
        """How alike clusters are: they are compared by their rows alone, not by their means."""
        likeness: np.ndarray = normalise(substates) @ unit_substates.T
        return likeness

    def _find_parts(self, chain: ChainDraws) -> np.ndarray:
        """How many rows each cluster explains."""
        return chain.levels.sum(axis=1, dtype=float)
