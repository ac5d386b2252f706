"""The trivial approach (Sec. 2.4): group the observations by action, and learn the features of each group."""

import sys
import warnings
from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from whyact.errors import ChainsDisagreeWarning, warn_user
from whyact.estimators.base import CHAIN_CONSTRAINTS, PolicyLearner
from whyact.estimators.feature_policy import FeaturePolicyClassifier
from whyact.estimators.inputs import find_unit
from whyact.model import Priors


class GroupFeatures(FeaturePolicyClassifier):
    """The features of one group, without any action; it may have a single row, and columns without a number."""

    _least_rows = 1
    _needs_all_columns = False

    def log_density(self, X):
        """Log density of each row, in the unit that all groups share."""
        return self._predictor.log_density(X)


class PerActionFeaturesClassifier(PolicyLearner):
    """Features of each action by themselves; the action whose features explain an observation best.

    The demonstrations are grouped by their action, and the paper's model learns features in each group from the
    observations alone. A new observation z gets the probabilities

        P(u | z) proportional to  n_u * p(z | features of u),

    averaged over the draws of the features, with n_u the size of the group: the group whose features reconstruct the
    observation best speaks, with the substates summed out, so that more features are no advantage in themselves. No
    feature is shared between actions, which Hahn & Zoubir (2017) name as the drawback of this approach.

    Parameters
    ----------
    n_burn_in, n_draws, n_chains : int or None, default=None
        1500 sweeps before the first draw, 1500 after it, 4 chains; for each action.
    thin : int, default=5
    priors : Priors or None, default=None
    n_levels : int, default=100
    feature_values : {"positive", "real"}, default="positive"
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta).
    max_prediction_draws : int, default=200
    missing_action : label, default=None
        Rows whose action is not known are left out.
    unit : float or "auto", default="auto"
        What all observations are divided by before the priors apply.
    n_jobs : int or None, default=None
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    estimators_ : list of FeaturePolicyClassifier
        The features of each action, in the order of `classes_`; each has its `posterior_`.
    n_components_ : int
        Number of features of all actions together.
    components_ : ndarray (K, D)
        Their features, below each other.
    group_sizes_ : ndarray (U,)
    classes_, unit_

    Examples
    --------
    >>> from whyact import PerActionFeaturesClassifier, load_demo
    >>> demo = load_demo()
    >>> model = PerActionFeaturesClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
    >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:]).shape
    (40, 5)
    """

    _parameter_constraints: dict = {
        name: allowed for name, allowed in CHAIN_CONSTRAINTS.items() if name != "action_weight"
    } | {
        "priors": [Priors, None],
        "n_levels": FeaturePolicyClassifier._parameter_constraints["n_levels"],
        "feature_values": [StrOptions({"positive", "real"})],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_burn_in=None,
        n_draws=None,
        thin=5,
        n_chains=None,
        priors=None,
        n_levels=100,
        feature_values="positive",
        observation_weight=1.0,
        max_prediction_draws=200,
        missing_action=None,
        unit="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
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

    def _fit(self, X, y, checkpoint, checkpoint_every):
        if checkpoint is not None:
            raise ValueError(
                "checkpoint: the features of each action are a run of their own, so there is no one to keep."
            )
        self._validate_params()
        X = self._check_observations(X, reset=True)
        if y is None:
            raise ValueError("This classifier requires y to be passed, but the target y is None.")
        classes, actions = self._check_actions(y, len(X))
        if not len(classes):
            raise ValueError("y holds no action, and without actions there are no groups to learn from.")
        seeds = check_random_state(self.random_state).randint(0, 2**31, size=len(classes))
        unit = float(self.unit) if self.unit != "auto" else find_unit(X)
        shared = {name: getattr(self, name) for name in self._get_param_names() if name not in ("random_state", "unit")}
        estimators = []
        for u, seed in enumerate(seeds):
            if self.verbose:
                print(f"features of {classes[u]} ({np.sum(actions == u)} rows)", file=sys.stderr)
            group = GroupFeatures(**shared, unit=unit, action_weight=0.0, random_state=int(seed))
            with warnings.catch_warnings():  # one sentence for all groups, below
                warnings.simplefilter("ignore", UserWarning)
                estimators.append(group.fit(X[actions == u]))
        self.estimators_ = estimators
        self.classes_ = classes
        self.unit_ = unit
        self.group_sizes_ = np.bincount(actions[actions >= 0], minlength=len(classes))
        self.n_components_ = sum(group.n_components_ for group in estimators)
        self.components_ = np.concatenate([group.components_ for group in estimators])
        doubtful = [str(c) for c, group in zip(classes, estimators, strict=True) if not group.posterior_.chains_agree]
        if doubtful:
            warn_user(
                f"The chains of the features of {', '.join(doubtful)} disagree: raise n_burn_in and n_draws, or "
                "n_chains, and fit again.",
                ChainsDisagreeWarning,
            )
        return self

    def predict_proba(self, X):
        """Probability of each action, (N, U)."""
        check_is_fitted(self)
        X = self._check_observations(X, reset=False)
        log_densities = np.column_stack([group.log_density(X) for group in self.estimators_])
        return softmax(log_densities + np.log(self.group_sizes_), axis=1)

    def __str__(self):
        if not hasattr(self, "estimators_"):
            return repr(self)
        lines = [f"{self.n_components_} features of {len(self.classes_)} actions."]
        for label, size, group in zip(self.classes_, self.group_sizes_, self.estimators_, strict=True):
            lines.append(f"{label} ({size} demonstrations): {group}")
        return "\n".join(lines)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # In the two dimensions of scikit-learn's blobs, the features of any group reconstruct every row.
        tags.classifier_tags.poor_score = True
        return tags
