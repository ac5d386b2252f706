"""The unique coefficient model (Sec. 2.4): every pattern of features has its own policy."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from whyact.alternatives.pattern.describe import describe_patterns
from whyact.estimators.base import CHAIN_CONSTRAINTS, FeatureLearner
from whyact.estimators.inputs import find_unit
from whyact.model import Priors
from whyact.posterior import Posterior
from whyact.prediction import Predictor


class PatternPolicies(NamedTuple):
    """Which patterns of features the training rows hold, most frequent first, and what is known of their policies."""

    patterns: np.ndarray  # (P, K), True where the feature is present
    counts: np.ndarray  # how often each action was seen with it, (P, U)
    policies: np.ndarray  # posterior mean, (P, U)


def find_pattern_policies(substates, actions, n_actions, concentration, action_weight) -> PatternPolicies:
    """Count the actions of each pattern; substates (K, N)."""
    present = np.ascontiguousarray(substates.T > 0)
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    which = which.ravel()
    counts = np.zeros((len(patterns), n_actions))
    spoken = actions >= 0
    np.add.at(counts, (which[spoken], actions[spoken]), 1.0)
    order = np.argsort(-np.bincount(which, minlength=len(patterns)), kind="stable")
    weighted = action_weight * counts + concentration
    policies = weighted / weighted.sum(axis=1, keepdims=True)
    return PatternPolicies(patterns[order], counts[order], policies[order])


class PatternPredictor(Predictor):
    """Predict with a policy for each pattern that the training rows hold."""

    climbs_at_random = True

    def __init__(self, *arguments, actions):
        super().__init__(*arguments)
        self.actions = actions

    def find_voices(self, states):
        from whyact.alternatives.pattern.new_rows import PatternVoices

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
    def predict_rows(self):
        from whyact.alternatives.pattern.new_rows import predict_rows_by_pattern

        return predict_rows_by_pattern


class PatternPolicyClassifier(FeatureLearner):
    """Features that are present or absent, and one policy for every pattern of them.

    Observations are sums of positive, sparse features, z_n = s_n F + noise with s_nk in {0, 1}. All observations of
    the same pattern s_n share a policy, which is integrated out (Dirichlet-categorical). So the relation between
    features and actions may be of any kind, but what is learned for one pattern says nothing about another: the
    policy of a pattern never seen is the prior's, the uniform one. This is the unique coefficient model that Hahn &
    Zoubir (2017) discuss beside their own. Prior, features and noise are those of `FeaturePolicyClassifier`.

    Parameters
    ----------
    n_burn_in, n_draws, n_chains : int or None, default=None
        As in `FeaturePolicyClassifier`: 1500 sweeps before the first draw, 1500 after it, 4 chains.
    thin : int, default=5
    priors : Priors or None, default=None
    feature_values : {"positive", "real"}, default="positive"
    action_weight : float, default=1.0
        How often each action counts (omega). 0 learns the features from the observations alone.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta).
    prediction : {"mmse", "map"}, default="mmse"
    max_prediction_draws : int, default=200
    missing_action : label, default=None
    unit : float or "auto", default="auto"
    n_jobs : int or None, default=None
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    components_ : ndarray (K, D)
        The features of the chosen draw.
    n_components_ : int
        The most probable number of features.
    substates_ : ndarray (N, K)
        1 where the demonstration holds the feature.
    patterns_ : ndarray (P, K)
        The patterns among the demonstrations, most frequent first.
    pattern_counts_ : ndarray (P, U)
        How often each action was seen with each.
    policies_ : ndarray (P, U)
        Posterior mean of the policy of each pattern.
    noise_variance_, classes_, posterior_, unit_
        As in `FeaturePolicyClassifier`; the posterior holds no policies.

    See Also
    --------
    whyact.FeaturePolicyClassifier : One policy for every feature, mixed.

    Examples
    --------
    >>> from whyact import PatternPolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = PatternPolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
    >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:]).shape
    (40, 5)
    """

    _parameter_constraints: dict = CHAIN_CONSTRAINTS | {
        "priors": [Priors, None],
        "feature_values": [StrOptions({"positive", "real"})],
        "prediction": [StrOptions({"mmse", "map"})],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_burn_in=None,
        n_draws=None,
        thin=5,
        n_chains=None,
        priors=None,
        feature_values="positive",
        action_weight=1.0,
        observation_weight=1.0,
        prediction="mmse",
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

    def _pose(self, X, actions, n_actions):
        from whyact.alternatives.pattern.sampler import PATTERNS

        return self._pose_features(X, actions, n_actions, PATTERNS, 2, find_unit(X))

    def _summarise(self, problem, chains):
        return Posterior(chains, problem.unit, self.feature_values)

    def _make_predictor(self, posterior, problem, seed):
        return PatternPredictor(
            posterior, problem.target, self.max_prediction_draws, seed, actions=problem.data.actions
        )

    def _set_fitted(self, posterior, problem, classes, seed):
        super()._set_fitted(posterior, problem, classes, seed)
        chosen = posterior.chosen_state()
        self.patterns_, self.pattern_counts_, self.policies_ = find_pattern_policies(
            chosen.substates,
            problem.data.actions,
            len(classes),
            chosen.policy_concentration,
            problem.target.action_weight,
        )

    def predict_proba(self, X):
        """Probability of each action, (N, U); uniform for a pattern of features that no demonstration holds."""
        return super().predict_proba(X)

    def familiarity(self, X):
        """Probability that the demonstrations hold the pattern of a row, times the share of it that features explain.

        A row without any feature is familiar if there are demonstrations like it.
        """
        return super().familiarity(X)

    def __str__(self):
        return describe_patterns(self) if hasattr(self, "posterior_") else repr(self)
