"""The scikit-learn face of the model."""

import sys
import warnings
from numbers import Integral, Real
from types import FrameType

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from whyact.explain import describe
from whyact.model import Priors, make_demonstrations, make_target
from whyact.posterior import ChainsDisagreeWarning, Posterior
from whyact.prediction import Prediction, Predictor
from whyact.progress import CallbackSupportMixin, SegmentCallbacks, progress_bar, with_callbacks
from whyact.sampler.settings import AsPublished

# Observations are brought to this root mean square before sampling. The priors of Table 1 are not free of a unit:
# they expect a noise variance near 0.001, which at a root mean square of one is the opinion that the signal-to-noise
# ratio is 30 dB. At a quarter they leave 10 dB as plausible as 30 dB.
ROOT_MEAN_SQUARE = 0.25
# Sweeps and chains if not given. The paper runs 10,000 sweeps (Table 1) and says nothing of a burn-in, or of chains.
LENGTH = {"n_burn_in": 1500, "n_draws": 1500, "n_chains": 4}
LENGTH_AS_PUBLISHED = {"n_burn_in": 5000, "n_draws": 5000, "n_chains": 1}
# Beyond this the noise variance would not be a floating point number.
LARGEST = 1e150


class FeaturePolicyClassifier(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
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
    action_weight : float or "dimensions", default=1.0
        How often each action counts (omega); "dimensions" is the paper's D, for high-dimensional observations. 0
        learns the features from the observations alone.
    observation_weight : float, default=1.0
        Power of the observations' likelihood (zeta). Below one for real data whose residuals are not white noise.
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
        The policy of each feature; columns as `classes_`.
    substates_ : ndarray (N, K)
        How much of each feature is in each demonstration.
    noise_variance_ : float
    classes_ : ndarray (U,)
        The actions.
    posterior_ : Posterior
        All draws; P(K), intervals of the features, diagnostics, `to_arviz()`.
    unit_ : float
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

    _parameter_constraints: dict = {  # noqa: RUF012
        "n_burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "n_draws": [Interval(Integral, 1, None, closed="left"), None],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left"), None],
        "priors": [Priors, None],
        "n_levels": [Interval(Integral, 2, 65536, closed="both")],
        "feature_values": [StrOptions({"positive", "real"})],
        "action_weight": [Interval(Real, 0, None, closed="left"), StrOptions({"dimensions"})],
        "observation_weight": [Interval(Real, 0, None, closed="neither")],
        "prediction": [StrOptions({"mmse", "map"})],
        "max_prediction_draws": [Interval(Integral, 1, None, closed="left")],
        "missing_action": "no_validation",
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "sampler": [StrOptions({"exact", "as-published"}), AsPublished],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
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
        prediction="mmse",
        max_prediction_draws=200,
        missing_action=None,
        unit="auto",
        sampler="exact",
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
        self.action_weight = action_weight
        self.observation_weight = observation_weight
        self.prediction = prediction
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.unit = unit
        self.sampler = sampler
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None):
        """Infer features, substates and policies from demonstrations.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        y : array-like (N,) or None
            Actions, labels of any sortable type; `missing_action` where one is not known. None: none is known.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y)
        except BaseException:  # also Ctrl-C: the estimator stays as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X, y):
        # numba is imported at the first fit, not with the package
        from whyact.sampler.chain import N_SEGMENTS, run_chains
        from whyact.sampler.compiling import announce_compilation

        self._validate_params()
        published = self._find_published()
        length = {
            name: getattr(self, name) if getattr(self, name) is not None else default
            for name, default in (LENGTH_AS_PUBLISHED if published else LENGTH).items()
        }
        if length["n_draws"] < self.thin:
            raise ValueError(f"n_draws={length['n_draws']} must be at least thin={self.thin}, or no draw is kept.")
        X = self._check_observations(X, reset=True)
        classes, actions = self._check_actions(y, len(X))
        priors = Priors() if self.priors is None else self.priors
        unit = float(self.unit) if self.unit != "auto" else 1.0 if published else find_unit(X)
        target = make_target(
            priors,
            n_actions=max(len(classes), 1),
            n_dimensions=X.shape[1],
            n_levels=self.n_levels,
            observation_weight=self.observation_weight,
            action_weight=self.action_weight,
            feature_values=self.feature_values,
        )
        entropy = check_random_state(self.random_state).randint(0, 2**31, size=5)
        context = self._init_callback_context(max_subtasks=N_SEGMENTS)
        callbacks = SegmentCallbacks(self, context, X, y)
        announce_compilation(self.verbose, "run_sweeps_as_published" if published else "run_sweeps")
        with progress_bar(self.verbose, unit) as show:

            def on_progress(progress):
                show(progress)
                return callbacks(progress)

            chains = run_chains(
                np.random.SeedSequence(entropy[:4].tolist()),
                make_demonstrations(X, actions, unit),
                target,
                priors,
                n_burn_in=length["n_burn_in"],
                n_draws=length["n_draws"],
                n_chains=length["n_chains"],
                thin=self.thin,
                n_jobs=self.n_jobs,
                published=published,
                on_progress=on_progress,
            )
        callbacks.end()
        posterior = Posterior(chains, unit, self.feature_values, best_is_modal=published is None)
        self._set_fitted(posterior, target, classes, int(entropy[4]))
        if not self.posterior_.chains_agree:
            warn_user(self.posterior_.agreement(), ChainsDisagreeWarning)
        return self

    def _set_fitted(self, posterior, target, classes, seed):
        chosen = posterior.chosen_state()
        self.posterior_ = posterior
        self.unit_ = posterior.unit
        self.classes_ = classes
        self.components_ = chosen.features * posterior.unit
        self.n_components_ = self._n_features_out = len(chosen.features)
        self.policies_ = chosen.policies[:, : len(classes)]
        self.substates_ = chosen.substates.T
        self.noise_variance_ = chosen.noise_variance * posterior.unit**2
        self._predictor = Predictor(posterior, target, self.max_prediction_draws, seed)

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

    # --- what comes in --------------------------------------------------------------------------------------

    def _check_observations(self, X, reset):
        try:
            X = validate_data(
                self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan", ensure_min_samples=1
            )
        except ValueError as error:
            if "could not convert" in str(error):
                raise ValueError(f"X must hold numbers: {error}.") from None
            raise
        if not reset:
            return X
        if len(X) < 2:
            raise ValueError("X holds 1 sample (one row); at least 2 are needed to learn from.")
        empty = np.nonzero(np.isnan(X).all(axis=0))[0]
        if len(empty):
            names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))
            raise ValueError(f"X: column {names[empty[0]]!s} holds no number (all NaN); leave it out.")
        largest = np.nanmax(np.abs(X))
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise ValueError(f"X holds values of size {largest:.0e}, whose squares overflow; choose another unit.")
        if np.array_equal(X, np.broadcast_to(X[0], X.shape), equal_nan=True):
            warn_user("X: all rows are equal, so nothing in them can explain the actions.")
        return X

    def _check_actions(self, y, n_rows):
        """Return the sorted actions, and their index for each row (-1 where missing)."""
        if y is None:
            return np.array([]), np.full(n_rows, -1)
        labels, known = self._split_missing(y)
        if len(labels) != n_rows:
            raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} actions; inconsistent numbers of samples.")
        actions = np.full(n_rows, -1)
        if not known.any():
            return np.array([]), actions
        observed = labels[known]
        try:
            sorted(set(observed.tolist()))
        except TypeError as error:
            raise ValueError(f"y must hold labels of one sortable type: {error}.") from None
        if labels.dtype == object:  # None among strings or numbers made it an object array
            observed = np.array(observed.tolist())
        check_classification_targets(observed)
        classes, indices = np.unique(observed, return_inverse=True)
        if len(classes) == 1:
            raise ValueError(f"y holds one class only ({classes[0]!r}); at least two different actions are needed.")
        actions[known] = indices
        return classes, actions

    def _split_missing(self, y):
        """Return the labels and where they are known."""
        if hasattr(y, "to_numpy"):
            y = y.to_numpy()
        labels = column_or_1d(np.asarray(y) if not isinstance(y, list) else to_array(y), warn=True)
        marker = self.missing_action
        if marker is None:
            missing = (
                np.array([label is None for label in labels]) if labels.dtype == object else np.zeros(len(labels), bool)
            )
        elif isinstance(marker, float) and np.isnan(marker):
            missing = np.array([isinstance(label, (float, np.floating)) and np.isnan(label) for label in labels], bool)
        else:
            missing = np.array([label == marker for label in labels], bool)
        if labels.dtype.kind == "f" and not np.isfinite(labels[~missing]).all():
            raise ValueError("y contains NaN or infinity; mark missing actions with missing_action.")
        return labels, ~missing

    # --- what comes out -------------------------------------------------------------------------------------

    def _predict(self, X, **how) -> Prediction:
        check_is_fitted(self)
        X = self._check_observations(X, reset=False)
        return self._predictor.predict(X, n_jobs=self.n_jobs, **how)

    def predict_proba(self, X):
        """Probability of each action, (N, U); near uniform for an observation that no feature explains."""
        check_is_fitted(self)
        self._check_has_actions()
        use_map = self.prediction == "map"
        return self._predict(X, one_draw=use_map, maximise=use_map).probabilities

    def predict(self, X):
        """The most probable action for each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def familiarity(self, X):
        """How much of each observation the features explain, noise aside: 1 all, 0 nothing, (N,).

        A row near 0 is unlike every demonstration, or holds nothing at all, and its `predict_proba` is near uniform.
        What exceeds the noise in the residual counts as a feature never seen, whose policy nobody knows.
        """
        use_map = self.prediction == "map"
        return self._predict(X, one_draw=use_map, maximise=use_map).familiarity

    def transform(self, X):
        """How much of each feature of `components_` is in each row, (N, K), without looking at actions."""
        return self._predict(X, one_draw=True, maximise=self.prediction == "map").substates

    def inverse_transform(self, S):
        """Observations (N, D) that the substates (N, K) make up."""
        check_is_fitted(self)
        S = np.asarray(S, dtype=float)
        if S.ndim != 2 or S.shape[1] != self.n_components_:
            raise ValueError(f"S must have {self.n_components_} columns, one a feature; its shape is {S.shape}.")
        return S @ self.components_

    def score(self, X, y, sample_weight=None):
        """Accuracy on the rows whose action is known."""
        check_is_fitted(self)
        labels, known = self._split_missing(y)
        unseen = sorted({str(label) for label in labels[known]} - {str(label) for label in self.classes_})
        if unseen and len(self.classes_):
            warn_user(f"y holds actions never seen in training ({', '.join(unseen[:5])}); they count as wrong.")
        correct = np.array([a == b for a, b in zip(self.predict(X)[known], labels[known], strict=True)], dtype=float)
        if not known.any():
            raise ValueError("y holds no known action, so there is nothing to score.")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(correct, weights=weights))

    def _check_has_actions(self):
        if not len(self.classes_):
            raise ValueError("y held no action in fit, so none can be predicted; `transform` gives the substates.")

    def __str__(self):
        return describe(self) if hasattr(self, "posterior_") else repr(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # Positive features cannot point to where scikit-learn's centred blobs have negative entries.
        tags.classifier_tags.poor_score = self.feature_values == "positive"
        return tags


def warn_user(message, category=UserWarning):
    """Warn at the line of the user's code, whatever decorators scikit-learn puts between."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("whyact", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def to_array(y):
    """Turn a list into an array; one that mixes None with labels keeps its labels as they are."""
    if any(label is None for label in y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)


def find_unit(X: np.ndarray) -> float:
    """What to divide X by, so that its root mean square is ROOT_MEAN_SQUARE."""
    largest = float(np.nanmax(np.abs(X)))
    if largest == 0:
        return 1.0
    return largest * float(np.sqrt(np.nanmean(np.square(X / largest)))) / ROOT_MEAN_SQUARE
