"""The unique coefficient model (Sec. 2.4): every pattern of features has its own policy."""

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from whyact.alternatives.pattern.describe import describe_patterns
from whyact.estimators.base import CHAIN_CONSTRAINTS
from whyact.estimators.feature_learner import FeatureLearner
from whyact.estimators.inputs import CheckedInput
from whyact.fit_result import FitResult
from whyact.model import Priors, State, Target
from whyact.posterior import Posterior
from whyact.prediction import Predictor
from whyact.sampler.algorithm import Problem
from whyact.scaling import Scaling

if TYPE_CHECKING:
    from whyact.alternatives.pattern.new_rows import PatternVoices


class PatternPolicies(NamedTuple):
    """The patterns of features among the training rows, most frequent first, and their policies."""

    patterns: np.ndarray  # (P, K), True where the feature is present
    counts: np.ndarray  # how often each action was seen with each pattern, (P, U)
    policies: np.ndarray  # posterior mean, (P, U)


def find_pattern_policies(
    substates: np.ndarray, actions: np.ndarray, n_actions: int, concentration: float, action_weight: float
) -> PatternPolicies:
    """Count the actions of each pattern; substates have the shape (K, N)."""
    present = np.ascontiguousarray(substates.T > 0)
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    which = which.ravel()
    counts = np.zeros((len(patterns), n_actions))
    known = actions >= 0
    np.add.at(counts, (which[known], actions[known]), 1.0)
    order = np.argsort(-np.bincount(which, minlength=len(patterns)), kind="stable")
    weighted = action_weight * counts + concentration
    policies = weighted / weighted.sum(axis=1, keepdims=True)
    return PatternPolicies(patterns[order], counts[order], policies[order])


class PatternPredictor(Predictor):
    """Predict with one policy for each pattern among the training rows, whose actions it needs for that."""

    climbs_at_random = True

    def __init__(self, posterior: Posterior, target: Target, max_draws: int, seed: int, *, actions: np.ndarray) -> None:
        super().__init__(posterior, target, max_draws, seed)
        self.actions = actions

    def find_voices(self, states: list[State]) -> "PatternVoices":
        """The patterns of each draw and their policies, below each other."""
        from whyact.alternatives.pattern.new_rows import PatternVoices  # imports numba

        found = [
            find_pattern_policies(
                state.substates,
                self.actions,
                self.target.n_actions,
                state.policy_concentration,
                self.target.action_weight,
            )
            for state in states
        ]
        sizes = [one.patterns.size for one in found]
        return PatternVoices(
            splits=np.cumsum([0, *(len(one.patterns) for one in found)]),
            patterns=np.concatenate([one.patterns.ravel() for one in found]),
            starts=np.cumsum([0, *sizes]),
            policies=np.concatenate([one.policies for one in found]),
        )

    @property
    def predict_rows(self) -> Callable[..., None]:
        """The kernel that looks up the policy of a pattern."""
        from whyact.alternatives.pattern.new_rows import predict_rows_by_pattern  # imports numba

        return predict_rows_by_pattern


class PatternPolicyClassifier(FeatureLearner):
    """Learn features that are present or absent, and one policy for every pattern of features.

    Observations are sums of positive, sparse features, z_n = s_n F + noise with s_nk in {0, 1}. All observations with
    the same pattern s_n share a policy, which is integrated out (Dirichlet-categorical). Features and actions may
    therefore be related in any way, but what is learned for one pattern says nothing about another: a pattern never
    seen has the prior's policy, which is uniform. This is the unique coefficient model that Hahn & Zoubir (2017)
    discuss as an alternative to their own. Priors, features and noise are those of `FeaturePolicyClassifier`.

    Parameters
    ----------
    n_burn_in : int or None, default=None
        Sweeps of each chain before the first draw. None means 1500.
    n_draws : int or None, default=None
        Sweeps of each chain after the burn-in, of which every `thin`-th is kept. None means 1500.
    thin : int, default=5
        Keep every `thin`-th sweep: n_draws // thin draws per chain.
    n_chains : int or None, default=None
        Number of independent chains. None means 4. It takes at least two to check that they agree.
    priors : Priors or None, default=None
        The hyperpriors. None means `Priors()`, Table 1 of the paper; its `sparsity` is the prior of how many rows lack
        a feature.
    feature_values : {"positive", "real"}, default="positive"
        - "positive": exponential weights; features are parts that add up.
        - "real": Gaussian weights; entries of features may be negative.
    action_weight : float, default=1.0
        How many times each action counts (omega). 0 learns the features from the observations alone.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta). Use less than one if the residuals are not white noise.
    prediction : {"mmse", "map"}, default="mmse"
        - "mmse": average over draws and over the patterns that the new row may have.
        - "map": the best draw, and the most probable pattern.
    max_prediction_draws : int, default=200
        "mmse" averages over at most this many draws, spread evenly over the chains, with at least one per chain.
    missing_action : label, default=None
        The value in y that marks an action as unknown. All may be unknown: then only features are learned.
    unit : float or "auto", default="auto"
        What the observations are divided by before the priors apply. "auto" brings their root mean square to 1/4.
    n_jobs : int or None, default=None
        Number of processes for the chains, and of threads for prediction. The results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers; an int makes fits reproducible.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : ndarray of shape (K, D)
        The features that more than half of all draws hold, as one draw has them. The feature that most
        demonstrations hold comes first.
    n_components_ : int
        How many these are.
    substates_ : ndarray of shape (N, K)
        1 where the demonstration holds the feature, 0 elsewhere.
    patterns_ : ndarray of shape (P, K)
        The patterns among the demonstrations, most frequent first; True where the feature is present.
    pattern_counts_ : ndarray of shape (P, U)
        How often each action was seen with each pattern.
    policies_ : ndarray of shape (P, U)
        Posterior mean of the policy of each pattern; columns as in `classes_`.
    noise_variance_ : float
        Variance of the noise in the chosen draw.
    classes_ : ndarray of shape (U,)
        The actions.
    posterior_ : Posterior
        All draws: P(K), intervals of the features, diagnostics. They hold no policies, which are integrated out.
    unit_ : float
        What the observations were divided by.
    observations_ : ndarray of shape (N, D)
        The demonstrations, NaN where an entry is missing.
    actions_ : ndarray of shape (N,)
        Their actions as indices of `classes_`, -1 where unknown.
    n_features_in_ : int
        Number D of columns of X (scikit-learn calls them features).
    feature_names_in_ : ndarray of shape (D,)
        Names of the columns, if X was a data frame.

    See Also
    --------
    whyact.FeaturePolicyClassifier : One policy for every feature, mixed.
    whyact.ClusterPolicyClassifier : One policy for every cluster of observations.

    References
    ----------
    J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001.

    Examples
    --------
    >>> from whyact import PatternPolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = PatternPolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
    >>> model = model.fit(demo.X[:80], demo.y[:80])
    >>> model.predict_proba(demo.X[80:]).shape
    (40, 5)
    >>> model.patterns_.shape[1] == model.n_components_
    True
    """

    _parameter_constraints: dict[str, Any] = CHAIN_CONSTRAINTS | {
        "priors": [Priors, None],
        "feature_values": [StrOptions({"positive", "real"})],
        "prediction": [StrOptions({"mmse", "map"})],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_burn_in: int | None = None,
        n_draws: int | None = None,
        thin: int = 5,
        n_chains: int | None = None,
        priors: Priors | None = None,
        feature_values: str = "positive",
        action_weight: float = 1.0,
        observation_weight: float = 1.0,
        prediction: str = "mmse",
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
        self.feature_values = feature_values
        self.action_weight = action_weight
        self.observation_weight = observation_weight
        self.prediction = prediction
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.unit = unit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_problem(self, observations: np.ndarray, given: CheckedInput, scaling: Scaling) -> Problem:
        from whyact.alternatives.pattern.sampler import PATTERNS  # imports numba

        return self._make_feature_problem(observations, given, scaling, PATTERNS, n_levels=2)

    def _summarise(self, result: FitResult) -> Posterior:
        return Posterior(result.chains, result.scaling.unit, self.feature_values)

    def _make_predictor(self, result: FitResult, posterior: Posterior) -> PatternPredictor:
        return PatternPredictor(
            posterior, result.target, self.max_prediction_draws, result.prediction_seed, actions=result.actions
        )

    def _set_fitted(self, result: FitResult) -> None:
        super()._set_fitted(result)
        chosen = self.posterior_.chosen
        self.patterns_, self.pattern_counts_, self.policies_ = find_pattern_policies(
            chosen.substates,
            result.actions,
            len(result.classes),
            chosen.policy_concentration,
            result.target.action_weight,
        )

    def predict_proba(self, X: ArrayLike, available: ArrayLike | None = None) -> np.ndarray:
        """Probability of each action; uniform for a pattern of features that no demonstration holds.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations; NaN where an entry is missing.
        available : array-like of shape (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.

        Returns
        -------
        ndarray of shape (N, U)
            Rows sum to one; columns as in `classes_`.

        Examples
        --------
        >>> from whyact import PatternPolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = PatternPolicyClassifier(n_burn_in=50, n_draws=50, n_chains=1, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:82]).sum(axis=1).round(6).tolist()
        [1.0, 1.0]
        """
        return super().predict_proba(X, available)

    def familiarity(self, X: ArrayLike) -> np.ndarray:
        """How familiar each observation is, from 0 (unlike all demonstrations) to 1.

        It is the probability that some demonstration has the pattern of the row, times the share of the row that the
        features explain. A row without any feature is familiar if there are demonstrations like it.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray of shape (N,)
            Numbers from 0 to 1.

        Examples
        --------
        >>> from whyact import PatternPolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = PatternPolicyClassifier(n_burn_in=50, n_draws=50, n_chains=1, random_state=0)
        >>> strange = demo.X[0].max() - demo.X[0]
        >>> familiar, not_familiar = model.fit(demo.X[:80], demo.y[:80]).familiarity([demo.X[0], strange])
        >>> bool(familiar > not_familiar)
        True
        """
        return super().familiarity(X)

    def __str__(self) -> str:
        return describe_patterns(self) if hasattr(self, "posterior_") else repr(self)
