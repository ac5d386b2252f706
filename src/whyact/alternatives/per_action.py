"""The trivial approach (Sec. 2.4): group the observations by action, and learn the features of each group."""

import sys
import warnings
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from whyact.errors import ChainsDisagreeWarning, warn_user
from whyact.estimators.base import CHAIN_CONSTRAINTS, PolicyLearner
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.inputs import CheckedInput, check_new_rows, check_observations
from whyact.model import Priors
from whyact.scaling import find_unit
from whyact.visible import make_visible


class GroupFeatures(FeaturePolicyClassifier):
    """The features of one group, learned without actions; it may have a single row, and empty columns."""

    _least_rows = 1
    _needs_all_columns = False

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log density of each row, in the unit that all groups share."""
        return self._predictor.log_density(X)


class PerActionFeaturesClassifier(PolicyLearner):
    """Learn the features of each action separately, and predict the action whose features explain a row best.

    The demonstrations are grouped by their action, and the paper's model learns the features of each group from the
    observations alone. A new observation z gets the probabilities

        P(u | z) proportional to  n_u * p(z | features of u),

    averaged over the draws of the features, with n_u the size of the group. The group whose features reconstruct the
    observation best has the say. The substates are summed out, so having more features is no advantage in itself. No
    feature is shared between actions, which Hahn & Zoubir (2017) name as the drawback of this approach.

    Parameters
    ----------
    n_burn_in : int or None, default=None
        Sweeps of each chain before the first draw, for each action. None means 1500.
    n_draws : int or None, default=None
        Sweeps of each chain after the burn-in, of which every `thin`-th is kept. None means 1500.
    thin : int, default=5
        Keep every `thin`-th sweep: n_draws // thin draws per chain.
    n_chains : int or None, default=None
        Number of independent chains for each action. None means 4. It takes at least two to check that they agree.
    priors : Priors or None, default=None
        The hyperpriors. None means `Priors()`, Table 1 of the paper.
    n_levels : int, default=100
        Number L of values on the grid {0, 1/(L-1), ..., 1} of the substates.
    feature_values : {"positive", "real"}, default="positive"
        - "positive": exponential weights; features are parts that add up.
        - "real": Gaussian weights; entries of features may be negative.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta). Use less than one if the residuals are not white noise.
    max_prediction_draws : int, default=200
        Predictions average over at most this many draws, spread evenly over the chains, with at least one per chain.
    missing_action : label, default=None
        The value in y that marks an action as unknown. Such rows are left out.
    unit : float or "auto", default="auto"
        What all observations are divided by before the priors apply. "auto" brings their root mean square to 1/4.
    n_jobs : int or None, default=None
        Number of processes for the chains. The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers; an int makes fits reproducible.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    estimators_ : list of FeaturePolicyClassifier
        The features of each action, in the order of `classes_`; each has its `posterior_`.
    n_components_ : int
        Number K of features of all actions together.
    components_ : ndarray of shape (K, D)
        The features of all actions, stacked in the order of `classes_`.
    group_sizes_ : ndarray of shape (U,)
        Number of demonstrations of each action.
    classes_ : ndarray of shape (U,)
        The actions.
    unit_ : float
        What the observations were divided by.
    n_features_in_ : int
        Number D of columns of X (scikit-learn calls them features).
    feature_names_in_ : ndarray of shape (D,)
        Names of the columns, if X was a data frame.

    See Also
    --------
    whyact.FeaturePolicyClassifier : Features that all actions share, each with its policy.

    References
    ----------
    J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001.

    Examples
    --------
    >>> from whyact import PerActionFeaturesClassifier, load_demo
    >>> demo = load_demo()
    >>> model = PerActionFeaturesClassifier(n_burn_in=100, n_draws=100, n_chains=2, random_state=0)
    >>> model = model.fit(demo.X[:80], demo.y[:80])
    >>> model.predict_proba(demo.X[80:90]).shape
    (10, 5)
    >>> len(model.estimators_)
    5
    """

    _parameter_constraints: dict[str, Any] = {
        name: allowed for name, allowed in CHAIN_CONSTRAINTS.items() if name != "action_weight"
    } | {
        "priors": [Priors, None],
        "n_levels": FeaturePolicyClassifier._parameter_constraints["n_levels"],
        "feature_values": [StrOptions({"positive", "real"})],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_burn_in: int | None = None,
        n_draws: int | None = None,
        thin: int = 5,
        n_chains: int | None = None,
        priors: Priors | None = None,
        n_levels: int = 100,
        feature_values: str = "positive",
        observation_weight: float = 1.0,
        max_prediction_draws: int = 200,
        missing_action: Any = None,
        unit: float | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.priors = priors
        self.n_levels = n_levels
        self.feature_values = feature_values
        self.observation_weight = observation_weight
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.unit = unit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(
        self, given: CheckedInput, checkpoint: Path | str | None, every: float, X: Any = None, y: Any = None
    ) -> "PerActionFeaturesClassifier":
        if checkpoint is not None:
            raise ValueError(
                "checkpoint: this classifier runs once for each action and keeps no checkpoints; fit without it."
            )
        if y is None:
            raise ValueError("This classifier requires y to be passed, but the target y is None.")
        X, classes, actions = given.observations, given.classes, given.actions
        if not len(classes):
            raise ValueError("y holds no action, so there are no groups to learn from; give the actions of the rows.")
        seeds = check_random_state(self.random_state).randint(0, 2**31, size=len(classes))
        unit = float(self.unit) if self.unit != "auto" else find_unit(X)
        shared = {name: getattr(self, name) for name in self._get_param_names() if name not in ("random_state", "unit")}
        estimators = []
        for u, seed in enumerate(seeds):
            if self.verbose:
                print(f"features of {make_visible(classes[u])} ({np.sum(actions == u)} rows)", file=sys.stderr)
            group = GroupFeatures(**shared, unit=unit, action_weight=0.0, scale_columns=False, random_state=int(seed))
            with warnings.catch_warnings():  # `_warn` says one sentence for all groups
                warnings.simplefilter("ignore", UserWarning)
                estimators.append(group.fit(X[actions == u]))
        self._forget_fit(X.shape[1], given.columns)
        self.estimators_ = estimators
        self.classes_ = classes
        self.unit_ = unit
        self.group_sizes_ = np.bincount(actions[actions >= 0], minlength=len(classes))
        self.n_components_ = sum(group.n_components_ for group in estimators)
        self.components_ = np.concatenate([group.components_ for group in estimators])
        return self

    def _warn(self) -> None:
        """One sentence for the chains of all groups."""
        groups = zip(self.classes_, self.estimators_, strict=True)
        doubtful = [str(label) for label, group in groups if not group.posterior_.chains_agree]
        if doubtful:
            warn_user(
                f"The chains of the features of {', '.join(doubtful)} disagree: raise n_burn_in and n_draws, or "
                "n_chains, and fit again.",
                ChainsDisagreeWarning,
            )

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probability of each action.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray of shape (N, U)
            Rows sum to one; columns as in `classes_`.

        Examples
        --------
        >>> from whyact import PerActionFeaturesClassifier, load_demo
        >>> demo = load_demo()
        >>> model = PerActionFeaturesClassifier(n_burn_in=20, n_draws=20, n_chains=1, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:82]).sum(axis=1).round(6).tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self)
        X = check_observations(self, X, reset=False)
        check_new_rows(X, self.unit_)
        log_densities = np.column_stack([group.log_density(X) for group in self.estimators_])
        return softmax(log_densities + np.log(self.group_sizes_), axis=1)

    def __str__(self) -> str:
        if not hasattr(self, "estimators_"):
            return repr(self)
        lines = [f"{self.n_components_} features of {len(self.classes_)} actions."]
        for label, size, group in zip(self.classes_, self.group_sizes_, self.estimators_, strict=True):
            lines.append(f"{label} ({size} demonstrations): {group}")
        return "\n".join(lines)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # In the two dimensions of scikit-learn's blobs, the features of any group reconstruct every row.
        tags.classifier_tags.poor_score = True
        return tags
