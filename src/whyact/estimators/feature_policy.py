"""The scikit-learn face of the model."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from whyact.estimators.base import CHAIN_CONSTRAINTS, FeatureLearner
from whyact.estimators.inputs import find_unit
from whyact.explanation.describe import describe
from whyact.explanation.rows import explain_rows
from whyact.explanation.text import Explanations
from whyact.model import Priors, action_probabilities
from whyact.posterior import Posterior
from whyact.sampler.settings import AsPublished

# The paper runs 10,000 sweeps (Table 1) and says nothing of a burn-in, or of chains.
LENGTH_AS_PUBLISHED = {"n_burn_in": 5000, "n_draws": 5000, "n_chains": 1}

# Options that the paper's own algorithm does not have, with their defaults.
EXACT_ONLY = {"decisiveness": 1.0, "max_features": None, "start": "prior"}


class FeaturePolicyClassifier(FeatureLearner):
    """Learn why a teacher acts: latent features, how much of each is in every observation, one policy per feature.

    Observations are sums of positive, sparse features, z_n = s_n F + noise, and every feature present speaks for
    actions: P(u_n) is proportional to sum_k s_nk phi_k(u_n). The number of features, the features, the substates s_n
    and the policies phi_k are inferred together by Gibbs sampling (Hahn & Zoubir, 2017).

    Parameters
    ----------
    n_burn_in : int or None, default=None
        Sweeps of each chain before the first draw; None means 1500 (5000 as published). With the exact sampler the
        observations' weight rises from 2% to its value during the first two thirds, so that chains do not freeze in a
        poor mode; from 300 sweeps on, features that say the same are merged three times. The sweeps that this takes
        are not counted.
    n_draws : int or None, default=None
        Sweeps of each chain after the burn-in, of which every `thin`-th is kept; None means 1500 (5000 as published).
    thin : int, default=5
        Keep every so many sweeps: n_draws // thin draws a chain.
    n_chains : int or None, default=None
        Independent chains; None means 4 (1 as published). Two or more can tell whether they agree.
    priors : Priors or None, default=None
        The hyperpriors; None means `Priors()`, Table 1 of the paper.
    n_levels : int, default=100
        Number L of values on the grid {0, 1/(L-1), ..., 1} of the substates.
    feature_values : {"positive", "real"}, default="positive"
        - "positive": exponential weights, features are parts that add up.
        - "real": Gaussian weights.
    action_weight : float, "dimensions" or "auto", default=1.0
        How often each action counts (omega); "dimensions" is the paper's D, for high-dimensional observations. 0
        learns the features from the observations alone. "auto": 1 or 10, see `observation_weight`.
    observation_weight : float or "auto", default=1.0
        Power of the observations' likelihood (zeta). Below one for real data whose residuals are not white noise.
        "auto": 1, 0.3, 0.1 or 0.03, whichever predicts best the actions of blocks of rows (every fourth of 24)
        that short chains did not learn from; takes some further fits. Rows in the order of time make it honest.
    decisiveness : float, default=1.0
        Power tau of the mixture of policies, normalised again. 1 is the paper's mixture, which is never surer than its
        surest feature; above one for a teacher who takes the action that most speaks for, as the paper assumes when it
        predicts. Driving data want about 10.
    max_features : int or None, default=None
        The model given that there are at most so many features.
    start : {"prior", "rows"}, default="prior"
        - "prior": one feature, everything drawn from the prior, and an annealed burn-in.
        - "rows": as many features as `max_features` (or 30) at the centres of k-means, for observations of hundreds or
          thousands of columns, in which features do not grow from single cells. The burn-in is not annealed, and
          nothing is merged.
    prediction : {"mmse", "map"}, default="mmse"
        - "mmse": average over draws and over the substates of the new row.
        - "map": the best draw among those with the most probable number of features, and the most probable substates.
    max_prediction_draws : int, default=200
        "mmse" averages over at most so many draws, spread evenly over the chains, and at least one a chain.
    missing_action : label, default=None
        The value in y that marks an action as not observed. All may be missing: then only features are learned.
    unit : float or "auto", default="auto"
        What the observations are divided by before the priors apply; "auto" brings their root mean square to 1/4,
        so that the unit of X changes nothing but the unit of the features (as published: leaves them as they are).
    scale_columns : bool, default=False
        Bring each column to the range from 0 to 1 first, for columns of different units, of which the model would else
        explain the largest only. Features, `observations_` and noise are then in shares of these ranges.
    sampler : {"exact", "as-published"} or AsPublished, default="exact"
        - "exact": every step leaves the posterior invariant; annealed burn-in.
        - "as-published": the algorithm of Sec. 4.1 and 4.2 as the authors describe it, to compare; Table 1 as default:
          10,000 sweeps of one chain, from one feature drawn from the prior; P+, T_corr and N_t can be given as
          `AsPublished(birth_probability=0.01, merge_correlation=0.9, n_indicators=1000)`. Misprints that cannot be
          meant are corrected: the mean of the weights' conditional, the halves in that of gamma_w (and only active
          weights count), the share of each substate level in the slab, the Dirichlet of the policies. Kept although
          not exact: activations are drawn given their weights, of which inactive ones come from a truncated normal
          instead of the prior; births come from the prior and their acceptance ignores the actions; N_t pooled
          indicators make policies too sure; features that correlate by more than T_corr are merged in every sweep;
          newborn features are appended; the chosen draw is the one of highest joint density among those kept, over
          all numbers of features.
    n_jobs : int or None, default=None
        Number of processes for the chains (threads in prediction). The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
    warm_start : bool, default=False
        Whether a second `fit` draws more from the same posterior: with a larger `n_draws`, and all else as before, it
        ends with the draws that one fit with that `n_draws` would have had.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : ndarray (K, D)
        The features of the chosen draw: the best one among those with the most probable K (see `sampler`). Sorted by
        how much of each is in the demonstrations.
    n_components_ : int
        The most probable number of features (as published: that of the chosen draw).
    policies_ : ndarray (K, U)
        What each feature makes the teacher do where it is alone: its policy, to the power of the decisiveness; columns
        as `classes_`.
    substates_ : ndarray (N, K)
        How much of each feature is in each demonstration.
    observations_ : ndarray (N, D)
        The demonstrations, NaN where an entry is missing. No copy is made if X is an array of float64.
    actions_ : ndarray (N,)
        Their actions as indices of `classes_`, -1 where missing.
    noise_variance_ : float
    observation_weight_, action_weight_ : float
        The weights that were used.
    weight_scores_ : dict
        With "auto" only: mean log probability of the actions left out, for each pair of weights that was tried.
    classes_ : ndarray (U,)
        The actions.
    posterior_ : Posterior
        All draws; P(K), intervals of the features, diagnostics, `to_arviz()`.
    unit_ : float
    column_low_, column_range_ : ndarray (D,)
        With `scale_columns` only: what was taken off each column, and what it was then divided by.
    n_features_in_, feature_names_in_
        As in scikit-learn. There "features" are the columns of X.

    See Also
    --------
    whyact.simulate : Draw demonstrations from the model.
    sklearn.decomposition.NMF : Features without actions, for a known number.

    References
    ----------
    J. Hahn, A. M. Zoubir: Bayesian Nonparametric Feature and Policy Learning for Decision-Making, arXiv:1702.08001.

    Examples
    --------
    >>> from whyact import FeaturePolicyClassifier, load_demo
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
    >>> model = model.fit(demo.X[:80], demo.y[:80])
    >>> model.n_components_
    5
    """

    _parameter_constraints: dict = CHAIN_CONSTRAINTS | {
        "priors": [Priors, None],
        "n_levels": [Interval(Integral, 2, 65536, closed="both")],
        "feature_values": [StrOptions({"positive", "real"})],
        "action_weight": [Interval(Real, 0, None, closed="left"), StrOptions({"dimensions", "auto"})],
        "observation_weight": [*CHAIN_CONSTRAINTS["observation_weight"], StrOptions({"auto"})],
        "decisiveness": [Interval(Real, 0, None, closed="neither")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "start": [StrOptions({"prior", "rows"})],
        "prediction": [StrOptions({"mmse", "map"})],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "scale_columns": ["boolean"],
        "sampler": [StrOptions({"exact", "as-published"}), AsPublished],
        "warm_start": ["boolean"],
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
        action_weight=1.0,
        observation_weight=1.0,
        decisiveness=1.0,
        max_features=None,
        start="prior",
        prediction="mmse",
        max_prediction_draws=200,
        missing_action=None,
        unit="auto",
        scale_columns=False,
        sampler="exact",
        n_jobs=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.n_burn_in = n_burn_in
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.priors = priors
        self.n_levels = n_levels
        self.feature_values = feature_values
        self.action_weight = action_weight
        self.observation_weight = observation_weight
        self.decisiveness = decisiveness
        self.max_features = max_features
        self.start = start
        self.prediction = prediction
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.unit = unit
        self.scale_columns = scale_columns
        self.sampler = sampler
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_observations(self, X, reset):
        X = super()._check_observations(X, reset)
        if reset:
            for name in ("column_low_", "column_range_", "shape_", "source_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            if self.scale_columns:
                self.column_low_ = np.nanmin(X, axis=0)
                spread = np.nanmax(X, axis=0) - self.column_low_
                self.column_range_ = np.where(spread > 0, spread, 1.0)
        return (X - self.column_low_) / self.column_range_ if hasattr(self, "column_range_") else X

    def inverse_transform(self, S):
        """Observations (N, D) that the substates (N, K) make up, in their own unit."""
        return self._unscale_columns(super().inverse_transform(S))

    def _unscale_columns(self, observations):
        """Undo `scale_columns`."""
        if not hasattr(self, "column_range_"):
            return observations
        return observations * self.column_range_ + self.column_low_

    def _pose(self, X, actions, n_actions):
        published = self._find_published()
        if published:
            from whyact.sampler.as_published import make_published

            self._check_nothing_is_exact_only()
            return self._pose_features(X, actions, n_actions, make_published(published), self.n_levels, 1.0)
        from whyact.sampler.exact import EXACT
        from whyact.sampler.starts import FROM_ROWS

        options = {"decisiveness": self.decisiveness, "max_features": self.max_features}
        if "auto" in (self.observation_weight, self.action_weight):
            from whyact.estimators.likelihood_weights import choose_weights

            weights = choose_weights(self, X, actions)
            options |= {"observation_weight": weights.observation_weight, "action_weight": weights.action_weight}
            self.weight_scores_ = weights.scores
        algorithm = FROM_ROWS if self.start == "rows" else EXACT
        return self._pose_features(X, actions, n_actions, algorithm, self.n_levels, find_unit(X), **options)

    def _check_nothing_is_exact_only(self):
        for name, default in EXACT_ONLY.items():
            if getattr(self, name) != default:
                raise ValueError(f"{name}={getattr(self, name)!r} needs sampler='exact'; the paper's own has it not.")
        for name in ("observation_weight", "action_weight"):
            if getattr(self, name) == "auto":
                raise ValueError(f"{name}='auto' needs sampler='exact'; for the paper's own give a number.")

    def _set_fitted(self, posterior, problem, classes, seed):
        super()._set_fitted(posterior, problem, classes, seed)
        self.observation_weight_ = problem.target.observation_weight
        self.action_weight_ = problem.target.action_weight

    def _summarise(self, problem, chains):
        return Posterior(
            chains, problem.unit, self.feature_values, best_is_modal=self.sampler == "exact",
            decisiveness=self.decisiveness,
        )  # fmt: skip

    def _default_length(self):
        return LENGTH_AS_PUBLISHED if self._find_published() else super()._default_length()

    def _find_published(self):
        """Settings of the paper's own algorithm, or None for the exact sampler."""
        if self.sampler == "exact":
            return None
        if self.sampler == "as-published":
            return AsPublished()
        birth_probability, merge_correlation, n_indicators = self.sampler
        if not 0 <= birth_probability < 1:
            raise ValueError(f"sampler: birth_probability must be at least 0 and below 1, got {birth_probability!r}.")
        if not -1 <= merge_correlation <= 1:
            raise ValueError(f"sampler: merge_correlation must be between -1 and 1, got {merge_correlation!r}.")
        if not isinstance(n_indicators, int | np.integer) or n_indicators < 1:
            raise ValueError(f"sampler: n_indicators must be a whole number above 0, got {n_indicators!r}.")
        return AsPublished(float(birth_probability), float(merge_correlation), int(n_indicators))

    def policy(self, substates):
        """Probability of each action, (N, U), if so much of each feature is present, and nothing else.

        Parameters
        ----------
        substates : array-like (N, K)
            Between 0 and 1, columns as the rows of `components_`. Without any feature the policy is uniform.
        """
        check_is_fitted(self)
        self._check_has_actions()
        substates = self._check_substates(substates)
        if not ((substates >= 0) & (substates <= 1)).all():
            raise ValueError("substates must be between 0 and 1.")
        return action_probabilities(substates.T, self._chosen.policies, self.posterior_.decisiveness)

    def save(self, path):
        """Write the fitted model to one netCDF4 file, which appears whole or not at all; `whyact.load` reads it.

        It holds the draws, the demonstrations, the options and where the chains ended, and is readable by xarray and
        ArviZ (docs/files.md describes it). Before, `shape_` may be set, such as (2, 21, 65), if an observation is a
        picture, and `source_`, where the demonstrations come from.
        """
        from whyact.storage.model_file import save

        save(self, path)

    def explain(self, X, *, n_nearest: int = 3, interval: float = 0.9) -> Explanations:
        """Reasons for what `predict_proba` says of each row.

        Which features are present, how much each speaks for each action (terms that add up to the probability), and how
        sure that is; which part of the observation each feature covers, and what none explains; the demonstrations most
        alike; the smallest change of the substates that would change the action.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        n_nearest : int, default=3
            How many demonstrations to name.
        interval : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        Explanations
            A sequence of `Explanation`; `str()` of it, or of one, is a text, and `to_frame()` a table.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> reasons = model.fit(demo.X[:80], demo.y[:80]).explain(demo.X[80:])
        >>> bool(abs(reasons[0].terms.value.sum(axis=0) - model.predict_proba(demo.X[80:81])[0]).max() < 1e-12)
        True
        """
        check_is_fitted(self)
        self._check_has_actions()
        if not isinstance(n_nearest, int | np.integer) or n_nearest < 0:
            raise ValueError(f"n_nearest must be a whole number, 0 or more, got {n_nearest!r}.")
        if not isinstance(interval, int | float | np.floating) or not 0 < interval < 1:
            raise ValueError(f"interval must be a probability between 0 and 1, got {interval!r}.")
        return explain_rows(self, self._check_observations(X, reset=False), n_nearest, interval)

    def __str__(self):
        return describe(self) if hasattr(self, "posterior_") else repr(self)
