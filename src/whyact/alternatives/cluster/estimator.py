"""The clustering approach (Sec. 2.4): similar observations form a cluster, and every cluster has its policy."""

from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from whyact.alternatives.cluster.describe import describe_clusters
from whyact.alternatives.cluster.posterior import ClusterPosterior
from whyact.estimators.base import CHAIN_CONSTRAINTS, PolicyLearner
from whyact.estimators.inputs import CheckedInput
from whyact.fit_result import FitResult
from whyact.model import Demonstrations, PositivePairs
from whyact.prediction import spread_over_chains
from whyact.sampler.algorithm import Problem
from whyact.sampler.interrupts import interrupts_between_kernels
from whyact.scaling import Scaling, find_unit

if TYPE_CHECKING:
    from whyact.alternatives.cluster.evidence import Level, Sums
    from whyact.alternatives.cluster.sampler import ClusterState, ClusterTarget

# A spread of the observations below this share of their size is rounding.
ROUNDING = 1e-13


@dataclass(frozen=True)
class ClusterPriors(PositivePairs):
    """Gamma hyperpriors of the cluster model, as pairs of shape and rate.

    They apply to observations that are centred and have a root mean square of one.

    Parameters
    ----------
    noise_variance : pair of float, default=(1, 1)
        Prior of the typical variance within a cluster.
    noise_shape : pair of float, default=(2, 0.2)
        Prior of the shape of the inverse Gamma distribution of the clusters' variances. The larger the shape, the more
        alike the variances.
    mean_precision : pair of float, default=(1, 1)
        Prior of the ratio of the variance within a cluster to the variance of the clusters' means.
    concentration : pair of float, default=(1, 1)
        Prior of the concentration of the Chinese restaurant process. A larger rate expects fewer clusters.
    policy_concentration : pair of float, default=(1, 1)
        Prior of the symmetric Dirichlet parameter of the policies.

    Examples
    --------
    >>> from whyact import ClusterPriors
    >>> ClusterPriors(concentration=(1, 10)).concentration
    (1.0, 10.0)
    """

    noise_variance: tuple[float, float] = (1.0, 1.0)
    noise_shape: tuple[float, float] = (2.0, 0.2)
    mean_precision: tuple[float, float] = (1.0, 1.0)
    concentration: tuple[float, float] = (1.0, 1.0)
    policy_concentration: tuple[float, float] = (1.0, 1.0)


def make_cluster_target(
    priors: ClusterPriors,
    *,
    n_actions: int,
    observation_weight: float = 1.0,
    action_weight: float = 1.0,
    n_tries: int = 10,
) -> "ClusterTarget":
    """Flatten the options and the hyperpriors for the kernels."""
    from whyact.alternatives.cluster.sampler import ClusterTarget  # imports numba

    return ClusterTarget(
        n_actions=int(n_actions),
        n_levels=2,
        observation_weight=float(observation_weight),
        action_weight=float(action_weight),
        n_tries=int(n_tries),
        **{
            f"{field.name}_{part}": number
            for field in fields(priors)
            for part, number in zip(("shape", "rate"), getattr(priors, field.name), strict=True)
        },
    )


def sum_up_draw(state: "ClusterState", data: Demonstrations, target: "ClusterTarget") -> tuple[int, "Sums", "Level"]:
    """Number of clusters of a draw, sums over their rows, and what their evidence depends on."""
    # both import numba
    from whyact.alternatives.cluster.evidence import collect_sums
    from whyact.alternatives.cluster.sampler import find_clusters, level_of

    level = level_of(state, data, target)
    clusters = find_clusters(np.ascontiguousarray(state.substates))
    return len(state.substates), collect_sums(clusters, len(state.substates), level, data, target), level


class ClusterPrediction(NamedTuple):
    """Predictions for new rows."""

    probabilities: np.ndarray  # of the actions, (N, U)
    shares: np.ndarray  # probability of each cluster of the last draw, and of a new one, (N, K + 1)
    familiarity: np.ndarray  # probability that the row belongs to a cluster of the training rows, (N,)


class ClusterPolicyClassifier(PolicyLearner):
    """Learn clusters of similar observations, and one policy for every cluster.

    A Chinese restaurant process over the observations, Gaussian clusters z_n ~ Normal(m_c, v_c) with conjugate priors,
    and a Dirichlet policy for each. Means, variances and policies are integrated out; rows move one at a time, and
    whole clusters are split and merged. The number of clusters and the concentration are inferred. Hahn & Zoubir (2017)
    discuss this clustering approach as an alternative to their own model: it is as if every observation held exactly
    one feature, and all of it.

    Columns are centred and divided by one common unit. Clusters are round, so put a `StandardScaler` in front if the
    columns have different units.

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
    priors : ClusterPriors or None, default=None
        The hyperpriors. None means `ClusterPriors()`.
    n_tries : int, default=10
        Splits and merges tried in each sweep.
    action_weight : float, default=1.0
        How many times each action counts (omega). 0 clusters the observations alone.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta).
    prediction : {"mmse", "map"}, default="mmse"
        - "mmse": average over draws and clusters.
        - "map": the most probable cluster of the best draw, which may be a new one.
    max_prediction_draws : int, default=200
        "mmse" averages over at most this many draws, spread evenly over the chains, with at least one per chain.
    missing_action : label, default=None
        The value in y that marks an action as unknown. All may be unknown: then only clusters are learned.
    n_jobs : int or None, default=None
        Number of processes for the chains. The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers; an int makes fits reproducible.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    n_components_ : int
        The most probable number of clusters K.
    components_ : ndarray of shape (K, D)
        The clusters' means in the chosen draw (their posterior mean given its rows), largest cluster first.
    labels_ : ndarray of shape (N,)
        The cluster of each demonstration.
    substates_ : ndarray of shape (N, K)
        The same as indicators: 1 where the demonstration belongs to the cluster.
    policies_ : ndarray of shape (K, U)
        Posterior mean of each cluster's policy, given its rows; columns as in `classes_`.
    noise_variance_ : float
        The typical variance within a cluster.
    classes_ : ndarray of shape (U,)
        The actions.
    posterior_ : ClusterPosterior
        All draws: P(K), intervals of the means, diagnostics.
    unit_ : float
        What the centred observations were divided by.
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
    whyact.FeaturePolicyClassifier : Observations that hold several features, each with its policy.
    whyact.PatternPolicyClassifier : One policy for every pattern of features.

    References
    ----------
    J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001.

    Examples
    --------
    >>> from whyact import ClusterPolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = ClusterPolicyClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
    >>> model = model.fit(demo.X[:80], demo.y[:80])
    >>> model.predict_proba(demo.X[80:]).shape
    (40, 5)
    >>> model.labels_.shape
    (80,)
    """

    _parameter_constraints: dict[str, Any] = CHAIN_CONSTRAINTS | {
        "priors": [ClusterPriors, None],
        "n_tries": [Interval(Integral, 0, None, closed="left")],
        "prediction": [StrOptions({"mmse", "map"})],
    }

    def __init__(
        self,
        n_burn_in: int | None = None,
        n_draws: int | None = None,
        thin: int = 5,
        n_chains: int | None = None,
        priors: ClusterPriors | None = None,
        n_tries: int = 10,
        action_weight: float = 1.0,
        observation_weight: float = 1.0,
        prediction: str = "mmse",
        max_prediction_draws: int = 200,
        missing_action: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
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

    def _make_scaling(self, X: np.ndarray) -> Scaling:
        center = np.nanmean(X, axis=0)
        unit = find_unit(X - center, root_mean_square=1.0)
        if unit < ROUNDING * np.nanmax(np.abs(X)):  # equal rows: all that is left is the rounding of their mean
            unit = 1.0
        return Scaling(unit, center)

    def _make_problem(self, observations: np.ndarray, given: CheckedInput, scaling: Scaling) -> Problem:
        from whyact.alternatives.cluster.sampler import CLUSTERS  # imports numba

        priors = ClusterPriors() if self.priors is None else self.priors
        target = make_cluster_target(
            priors,
            n_actions=given.n_actions,
            observation_weight=self.observation_weight,
            action_weight=self.action_weight,
            n_tries=self.n_tries,
        )
        return Problem(scaling.to_sampler(observations, given.actions), target, priors, CLUSTERS, scaling.unit)

    def _summarise(self, result: FitResult) -> ClusterPosterior:
        return ClusterPosterior(result.chains, result.scaling.unit, result.scaling.center)

    def _set_fitted(self, result: FitResult) -> None:
        from whyact.alternatives.cluster.sampler import mean_parameters  # imports numba

        posterior, chosen = self.posterior_, self.posterior_.chosen
        self._data = result.scaling.to_sampler(result.observations, result.actions)
        means, policies = mean_parameters(*sum_up_draw(chosen, self._data, result.target))
        self.components_ = posterior.to_unit_of_observations(means)
        self.n_components_ = len(means)
        self.policies_ = policies[:, : len(result.classes)]
        self.substates_ = chosen.substates.T
        self.labels_ = chosen.substates.argmax(axis=0)
        self.noise_variance_ = chosen.noise_variance * posterior.unit**2

    def _predict(self, X: ArrayLike, one_draw: bool) -> ClusterPrediction:
        from whyact.alternatives.cluster.sampler import predict_from_draw  # imports numba

        check_is_fitted(self)
        rows = self._result.scaling.to_sampler(self._check_new_rows(X))
        posterior, data, target = self.posterior_, self._data, self._result.target
        states = [posterior.chosen] if one_draw else spread_over_chains(posterior, self.max_prediction_draws)
        n_rows = len(rows.observations)
        probabilities = np.zeros((n_rows, target.n_actions))
        familiarity = np.zeros(n_rows)
        shares = np.zeros((n_rows, 1))
        is_complete = len(data.row_gaps) == 0 and len(rows.row_gaps) == 0
        with threadpool_limits(limits=1, user_api="blas"), interrupts_between_kernels() as deliver_interrupt:
            for state in states:
                n_clusters, sums, level = sum_up_draw(state, data, target)
                shares = np.zeros((n_rows, n_clusters + 1))
                predict_from_draw(
                    rows.observations, rows.row_splits, rows.row_gaps, n_clusters, is_complete, state.concentration,
                    sums, level, probabilities, shares,
                )  # fmt: skip
                familiarity += 1.0 - shares[:, -1]
                deliver_interrupt()
        return ClusterPrediction(probabilities / len(states), shares, familiarity / len(states))

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probability of each action; near uniform for an observation far from all clusters.

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
        >>> from whyact import ClusterPolicyClassifier
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]] * 5, ["brake", "brake", "keep", "keep"] * 5
        >>> model = ClusterPolicyClassifier(n_burn_in=50, n_draws=50, n_chains=1, random_state=0).fit(X, y)
        >>> model.classes_[model.predict_proba([[0.0], [5.0]]).argmax(axis=1)].tolist()
        ['brake', 'keep']
        """
        check_is_fitted(self)
        self._check_has_actions()
        if self.prediction == "mmse":
            return self._predict(X, one_draw=False).probabilities
        with_new = np.vstack([self.policies_, np.full(len(self.classes_), 1.0 / len(self.classes_))])
        return with_new[self._predict(X, one_draw=True).shares.argmax(axis=1)]

    def predict_cluster(self, X: ArrayLike) -> np.ndarray:
        """Probability of each cluster of `components_`.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray of shape (N, K)
            What a row lacks to one is the probability that it belongs to a new cluster.

        Examples
        --------
        >>> from whyact import ClusterPolicyClassifier
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]] * 5, ["brake", "brake", "keep", "keep"] * 5
        >>> model = ClusterPolicyClassifier(n_burn_in=50, n_draws=50, n_chains=1, random_state=0).fit(X, y)
        >>> bool(model.predict_cluster([[0.0]]).argmax() == model.labels_[0])
        True
        """
        return self._predict(X, one_draw=True).shares[:, :-1]

    def familiarity(self, X: ArrayLike) -> np.ndarray:
        """Probability that each row belongs to one of the clusters of the demonstrations.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray of shape (N,)
            Near 0 for a row far from all clusters.

        Examples
        --------
        >>> from whyact import ClusterPolicyClassifier
        >>> X, y = [[0.0], [0.1], [5.0], [5.1]] * 5, ["brake", "brake", "keep", "keep"] * 5
        >>> model = ClusterPolicyClassifier(n_burn_in=50, n_draws=50, n_chains=1, random_state=0).fit(X, y)
        >>> (model.familiarity([[0.0], [100.0]]) > 0.5).tolist()
        [True, False]
        """
        return self._predict(X, one_draw=self.prediction == "map").familiarity

    def __str__(self) -> str:
        return describe_clusters(self) if hasattr(self, "posterior_") else repr(self)
