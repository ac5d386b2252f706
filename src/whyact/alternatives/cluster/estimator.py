"""The clustering approach (Sec. 2.4): similar observations form a cluster, and every cluster has its policy."""

from dataclasses import dataclass, fields
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from whyact.alternatives.cluster.describe import describe_clusters
from whyact.estimators.base import CHAIN_CONSTRAINTS, PolicyLearner
from whyact.estimators.inputs import find_unit
from whyact.model import PositivePairs, make_demonstrations
from whyact.posterior import Posterior
from whyact.prediction import spread_over_chains
from whyact.sampler.run import Problem

# A spread of the observations below this share of their size is rounding.
ROUNDING = 1e-13


@dataclass(frozen=True)
class ClusterPriors(PositivePairs):
    """Gamma hyperpriors of the cluster model, as pairs of shape and rate.

    They apply to observations that are centred and have a root mean square of one.

    Parameters
    ----------
    noise_variance : pair, default=(1, 1)
        The typical variance inside a cluster.
    noise_shape : pair, default=(2, 0.2)
        How alike the clusters' variances are: the shape of their inverse Gamma distribution.
    mean_precision : pair, default=(1, 1)
        Variance inside a cluster over the variance of the clusters' means.
    concentration : pair, default=(1, 1)
        Concentration of the Chinese restaurant process. A larger rate expects fewer clusters.
    policy_concentration : pair, default=(1, 1)
        Symmetric Dirichlet parameter of the policies.
    """

    noise_variance: tuple[float, float] = (1.0, 1.0)
    noise_shape: tuple[float, float] = (2.0, 0.2)
    mean_precision: tuple[float, float] = (1.0, 1.0)
    concentration: tuple[float, float] = (1.0, 1.0)
    policy_concentration: tuple[float, float] = (1.0, 1.0)


def make_cluster_target(
    priors: ClusterPriors, *, n_actions: int, observation_weight=1.0, action_weight=1.0, n_tries=10
):
    """Flatten the options and the hyperpriors."""
    from whyact.alternatives.cluster.sampler import ClusterTarget

    return ClusterTarget(
        int(n_actions),
        2,
        float(observation_weight),
        float(action_weight),
        int(n_tries),
        *(number for field in fields(priors) for number in getattr(priors, field.name)),
    )


def sum_up_draw(state, data, target):
    """Number of clusters of a draw, sums over their rows, and what their evidence depends on."""
    from whyact.alternatives.cluster.evidence import collect_sums
    from whyact.alternatives.cluster.sampler import find_clusters, level_of

    level = level_of(state, data, target)
    clusters = find_clusters(np.ascontiguousarray(state.substates))
    return len(state.substates), collect_sums(clusters, len(state.substates), level, data, target), level


class ClusterPrediction(NamedTuple):
    """What is said about new rows."""

    probabilities: np.ndarray  # of the actions, (N, U)
    shares: np.ndarray  # probability of each cluster of the last draw, and of a new one, (N, K + 1)
    familiarity: np.ndarray  # probability that the row belongs to a cluster of the training rows, (N,)


class ClusterPolicyClassifier(PolicyLearner):
    """Clusters of similar observations, and one policy for every cluster.

    A Chinese restaurant process over the observations, Gaussian clusters z_n ~ Normal(m_c, v_c) with conjugate priors,
    and a Dirichlet policy for each. Means, variances and policies are integrated out; rows move one at a time, and
    clusters are split and merged at once. The number of clusters and the concentration are inferred. This is the
    clustering approach that Hahn & Zoubir (2017) discuss beside their own model: as if every observation held one
    feature only, and held it fully.

    Parameters
    ----------
    n_burn_in, n_draws, n_chains : int or None, default=None
        1500 sweeps before the first draw, 1500 after it, 4 chains.
    thin : int, default=5
    priors : ClusterPriors or None, default=None
    n_tries : int, default=10
        Splits and merges tried in each sweep.
    action_weight : float, default=1.0
        How often each action counts (omega). 0 clusters the observations alone.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta).
    prediction : {"mmse", "map"}, default="mmse"
        - "mmse": average over draws and clusters.
        - "map": the most probable cluster of the best draw, which may be a new one.
    max_prediction_draws : int, default=200
    missing_action : label, default=None
    n_jobs : int or None, default=None
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    n_components_ : int
        The most probable number of clusters.
    components_ : ndarray (K, D)
        The clusters' means in the chosen draw (their posterior mean given its rows), largest cluster first.
    labels_ : ndarray (N,)
        The cluster of each demonstration.
    substates_ : ndarray (N, K)
        The same as indicators.
    policies_ : ndarray (K, U)
        Posterior mean of each cluster's policy, given its rows.
    noise_variance_ : float
        The typical variance inside a cluster.
    classes_, posterior_, unit_
        As in `FeaturePolicyClassifier`. Columns are centred and divided by one common unit. Where columns have
        different units, put a `StandardScaler` in front: clusters are round.

    Examples
    --------
    >>> from whyact import ClusterPolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = ClusterPolicyClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
    >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:]).shape
    (40, 5)
    """

    _parameter_constraints: dict = CHAIN_CONSTRAINTS | {
        "priors": [ClusterPriors, None],
        "n_tries": [Interval(Integral, 0, None, closed="left")],
        "prediction": [StrOptions({"mmse", "map"})],
    }

    def __init__(
        self,
        n_burn_in=None,
        n_draws=None,
        thin=5,
        n_chains=None,
        priors=None,
        n_tries=10,
        action_weight=1.0,
        observation_weight=1.0,
        prediction="mmse",
        max_prediction_draws=200,
        missing_action=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.priors = priors
        self.n_tries = n_tries
        self.action_weight = action_weight
        self.observation_weight = observation_weight
        self.prediction = prediction
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _pose(self, X, actions, n_actions):
        from whyact.alternatives.cluster.sampler import CLUSTERS

        priors = ClusterPriors() if self.priors is None else self.priors
        center = np.nanmean(X, axis=0)
        unit = find_unit(X - center, root_mean_square=1.0)
        if unit < ROUNDING * np.nanmax(np.abs(X)):  # equal rows: what is left is the rounding of their mean
            unit = 1.0
        target = make_cluster_target(
            priors,
            n_actions=n_actions,
            observation_weight=self.observation_weight,
            action_weight=self.action_weight,
            n_tries=self.n_tries,
        )
        return Problem(make_demonstrations(X - center, actions, unit), target, priors, CLUSTERS, unit, center)

    def _summarise(self, problem, chains):
        return Posterior(chains, problem.unit, "real", center=problem.center, of_clusters=True)

    def _set_fitted(self, posterior, problem, classes, seed):
        from whyact.alternatives.cluster.sampler import mean_parameters

        chosen = posterior.chosen_state()
        means, policies = mean_parameters(*sum_up_draw(chosen, problem.data, problem.target))
        self.posterior_ = posterior
        self.unit_ = posterior.unit
        self.classes_ = classes
        self.components_ = posterior.to_unit_of_observations(means)
        self.n_components_ = len(means)
        self.policies_ = policies[:, : len(classes)]
        self.substates_ = chosen.substates.T
        self.labels_ = chosen.substates.argmax(axis=0)
        self.noise_variance_ = chosen.noise_variance * posterior.unit**2
        self._problem = problem

    def _predict(self, X, one_draw: bool) -> ClusterPrediction:
        from whyact.alternatives.cluster.sampler import predict_from_draw
        from whyact.sampler.interrupts import interrupts_between_kernels

        check_is_fitted(self)
        X = self._check_observations(X, reset=False)
        posterior, (data, target, *_) = self.posterior_, self._problem
        rows = make_demonstrations(X - posterior.center, np.full(len(X), -1), posterior.unit)
        states = [posterior.chosen_state()] if one_draw else spread_over_chains(posterior, self.max_prediction_draws)
        probabilities = np.zeros((len(X), target.n_actions))
        familiarity = np.zeros(len(X))
        shares = np.zeros((len(X), 1))
        is_complete = len(data.row_gaps) == 0 and len(rows.row_gaps) == 0
        with threadpool_limits(limits=1, user_api="blas"), interrupts_between_kernels() as deliver_interrupt:
            for state in states:
                n_clusters, sums, level = sum_up_draw(state, data, target)
                shares = np.zeros((len(X), n_clusters + 1))
                predict_from_draw(
                    rows.observations, rows.row_splits, rows.row_gaps, n_clusters, is_complete, state.concentration,
                    sums, level, probabilities, shares,
                )  # fmt: skip
                familiarity += 1.0 - shares[:, -1]
                deliver_interrupt()
        return ClusterPrediction(probabilities / len(states), shares, familiarity / len(states))

    def predict_proba(self, X):
        """Probability of each action, (N, U); near uniform for an observation far from all clusters."""
        check_is_fitted(self)
        self._check_has_actions()
        if self.prediction == "mmse":
            return self._predict(X, one_draw=False).probabilities
        with_new = np.vstack([self.policies_, np.full(len(self.classes_), 1.0 / len(self.classes_))])
        return with_new[self._predict(X, one_draw=True).shares.argmax(axis=1)]

    def predict_cluster(self, X):
        """Probability of each cluster of `components_`, (N, K); the rest to one is that of a new cluster."""
        return self._predict(X, one_draw=True).shares[:, :-1]

    def familiarity(self, X):
        """Probability that a row belongs to one of the clusters of the demonstrations, (N,)."""
        return self._predict(X, one_draw=self.prediction == "map").familiarity

    def __str__(self):
        return describe_clusters(self) if hasattr(self, "posterior_") else repr(self)
