"""What a fit found, as a value: `fit` and `load` build the fitted estimator from it, and nothing else."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from whyact.cut_policies import CutPolicies
from whyact.model import MIXTURE
from whyact.posterior import Chosen
from whyact.sampler.draws import ChainDraws, RunEnd
from whyact.scaling import Scaling

# A loss of log score below this, in nats per action, does not matter; and how many standard errors make that sure.
NEGLIGIBLE_SCORE = 0.01
SURELY = 2.0


class ToleranceTrial(NamedTuple):
    """How a tolerance did in trials."""

    tolerance: float
    log_score: float  # mean log probability of the hidden actions
    behind: float  # how far it is behind the best of the smaller ones
    standard_error: float  # of that
    n_features: float  # how many features more than half of the draws hold, the mean over trials

    @property
    def is_lost(self) -> bool:
        """Whether it may cost score: it is not sure that it is behind by no more than is negligible."""
        return self.behind + SURELY * self.standard_error > NEGLIGIBLE_SCORE


@dataclass(frozen=True, eq=False)
class FitResult:
    """Everything that a fit found.

    Attributes
    ----------
    parameters : dict
        Of the estimator that was fitted.
    columns : ndarray (D,) of str or None
        Names of the columns of X, if they have any.
    classes : ndarray (U,)
        The actions, sorted; empty if none is known.
    observations : ndarray (N, D)
        After `scaling.scale_columns`, NaN where missing.
    actions : ndarray (N,)
        Index of `classes`, -1 where missing.
    scaling : Scaling
    target : Target
        The distribution that was sampled.
    chains : list of ChainDraws
    end : RunEnd
        Where the chains ended.
    chosen : Chosen or None
        Which features stand for those of all draws, if that is known.
    available : ndarray (N, U) or None
        Which actions are available in each row; None: all.
    cut : CutPolicies or None
        The policies that predictions use, if they are not those of the draws.
    adds_up : bool
        Whether predictions take the features of a mixture for parts of a whole.
    distance : float or None
        How far the predictions of single chains are apart (`Predictor.compare_chains`), if known.
    chain_weights : ndarray (chains,) or None
        How much each chain counts (`stacking.py`); None: all alike.
    choice : dict or None
        Log score of each way to combine policies, if it was to be chosen.
    tolerance_trials : tuple of ToleranceTrial or None
        What was tried, if the tolerance was to be chosen.
    weight_scores : dict or None
        Of the weights that were tried, if they were to be chosen.
    shape : tuple of int or None
        Axes of an observation that is a picture.
    source : str or None
        Where the demonstrations come from.
    """

    parameters: dict[str, Any]
    columns: np.ndarray | None
    classes: np.ndarray
    observations: np.ndarray = field(repr=False)
    actions: np.ndarray = field(repr=False)
    scaling: Scaling = field(repr=False)
    target: Any = field(repr=False)
    chains: list[ChainDraws] = field(repr=False)
    end: RunEnd = field(repr=False)
    chosen: Chosen | None = field(default=None, repr=False)
    available: np.ndarray | None = field(default=None, repr=False)
    cut: CutPolicies | None = field(default=None, repr=False)
    adds_up: bool = False
    distance: float | None = None
    chain_weights: np.ndarray | None = None
    choice: dict[str, float] | None = None
    tolerance_trials: tuple[ToleranceTrial, ...] | None = None
    weight_scores: dict[Any, float] | None = None
    shape: tuple[int, ...] | None = None
    source: str | None = None

    @property
    def is_decisiveness_learned(self) -> bool:
        """Whether policies are mixed, with a decisiveness that was not given."""
        given = self.parameters.get("decisiveness", 1.0)
        is_exact = self.parameters.get("sampler") == "exact"
        return isinstance(given, str) and is_exact and self.target.combination == MIXTURE and len(self.classes) > 0

    @property
    def prediction_seed(self) -> int:
        """Of the random numbers that every new row is predicted with."""
        return self.end.entropy[-1]
