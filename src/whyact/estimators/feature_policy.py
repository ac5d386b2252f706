"""The paper's model as a scikit-learn classifier and transformer."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from whyact.cut_decisiveness import N_DRAWS
from whyact.errors import ChainsDisagreeWarning, DoubtfulFitWarning, warn_user
from whyact.estimators.base import CHAIN_CONSTRAINTS
from whyact.estimators.callbacks import with_callbacks
from whyact.estimators.choose_by_trials import Choice, choose_by_trials
from whyact.estimators.feature_learner import FeatureLearner
from whyact.estimators.inputs import CheckedInput, check_available
from whyact.estimators.likelihood_weights import choose_weights
from whyact.estimators.tolerance_curve import MOST_ROWS, count_features_over_tolerance
from whyact.explanation.describe import describe
from whyact.explanation.plateau import ToleranceCurve
from whyact.explanation.rows import explain_rows
from whyact.explanation.suitability import find_doubts, say_briefly
from whyact.explanation.text import Explanations
from whyact.fit_result import FitResult
from whyact.model import (
    COMBINATIONS,
    LEARNED,
    PRODUCT,
    Priors,
    action_probabilities,
    multiplied_probabilities,
    restrict_log_odds,
)
from whyact.posterior import Posterior
from whyact.prediction import PREDICTIONS, Predictor, ProductPredictor
from whyact.sampler.algorithm import Algorithm, Problem
from whyact.sampler.settings import AsPublished
from whyact.scaling import (
    MANY_COLUMNS,
    TOLERANCES,
    USUAL_TOLERANCE,
    Scaling,
    find_least_tolerance,
    find_unit,
    hold_noise,
    looks_like_table,
    scale_by_range,
)
from whyact.storage.model_file import write_model

# The paper runs 10,000 sweeps (Table 1) and mentions neither a burn-in nor chains.
# Chains that start from rows do not mix, so many short ones say more than a few long ones.
LENGTH_FROM_ROWS = {"n_burn_in": 100, "n_draws": 100, "n_chains": 8}
LENGTH_AS_PUBLISHED = {"n_burn_in": 5000, "n_draws": 5000, "n_chains": 1}

# Options that the published algorithm does not have, with the values that it can live with.
EXACT_ONLY = {"n_components": (None,), "max_features": (None,), "start": ("auto", "prior"),
              "combination": ("auto", "mixture"), "decisiveness": ("auto", 1.0),
              "tolerance": ("auto", "free", None)}  # fmt: skip


class FeaturePolicyClassifier(FeatureLearner):
    """Learn why a teacher acts: latent features, how much of each is in every observation, one policy per feature.

    Observations are sums of positive, sparse features, z_n = s_n F + noise, and every feature present speaks for
    actions, or against them. In the paper's mixture, P(u_n) is proportional to sum_k s_nk phi_k(u_n); in a product, to
    phi_0(u_n) prod_k phi_k(u_n)^(s_nk). By default the one that predicts better is taken (see `combination`). The
    number of features, the features, the substates s_n and the policies phi_k are inferred together by Gibbs sampling
    (Hahn & Zoubir, 2017).

    Parameters
    ----------
    n_burn_in : int or None, default=None
        Sweeps of each chain before the first draw; None means 1500 (100 if it starts from rows, 5000 as published).
        With the exact sampler the
        observations' weight rises from 2% to its value during the first two thirds, so that chains do not freeze in a
        poor mode; a burn-in of 300 sweeps or more merges redundant features three times, with sweeps that do not
        count.
    n_draws : int or None, default=None
        Sweeps of each chain after the burn-in, of which every `thin`-th is kept; None means 1500 (100 if it starts from
        rows, 5000 as published).
    thin : int, default=5
        Keep every thin-th sweep: n_draws // thin draws per chain.
    n_chains : int or None, default=None
        Independent chains; None means 4 (8 if they start from rows, 1 as published). At least two are needed to check
        that they agree.
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
        Power of the observations' likelihood (zeta). Lower it where neighbouring rows are not independent; what need
        not be explained is what `tolerance` says.
        "auto": 1, 0.3, 0.1 or 0.03, whichever best predicts the actions of blocks of rows (every fourth of 24) that
        short chains did not learn from; this takes a few more fits. Keep the rows in chronological order to keep it
        honest.
    combination : {"auto", "mixture", "product"}, default="auto"
        How the policies of the features in a row are combined.

        - "mixture": the paper's, P(u) proportional to sum_k s_k phi_k(u). A feature can speak for an action only.
        - "product": P(u) proportional to phi_0(u) prod_k phi_k(u)^(s_k), with a base policy phi_0. A feature can also
          speak against an action. Predictions use policies that are learned from what a new row can show.
        - "auto": whichever better predicts actions that were hidden from short chains (see `combination_scores_`). If
          neither is clearly better, the product for a table (see `scale_columns`), otherwise the mixture.
    decisiveness : float, "auto" or "drawn", default="auto"
        Power tau of the mixture of policies, normalised again. 1 is the paper's mixture, which is never surer than its
        surest feature. Above one for a teacher who takes the action with the most support, as the paper assumes when
        it predicts. A product has none: the scale of its log odds is learned.

        - "auto": the paper's mixture is sampled, and tau is learned for predictions, from what a new row can show;
          so is whether the features of a row are parts of a whole, which tells how much each one counts for;
          where chains start from rows it is drawn, because in thousands of columns features that tell actions apart
          need it.
        - "drawn": tau is drawn with all the rest. With few columns predictions are about as good, but the number of
          features is found less often, and chains agree less often.
        - a number: held there.
    n_components : int or None, default=None
        The model given that there are this many features, for those who know it. They are shown as the densest draw has
        them. None: their number is inferred.
    max_features : int or None, default=None
        The model given that there are at most this many features.
    start : {"auto", "prior", "rows"}, default="auto"
        - "auto": "rows" for 300 columns or more, otherwise "prior".
        - "prior": one feature, everything drawn from the prior, and an annealed burn-in.
        - "rows": as many features as `max_features` (or 30) at the centres of k-means, for observations of hundreds or
          thousands of columns, in which features do not grow from single cells. The burn-in is not annealed, and
          nothing is merged.
    prediction : {"mmse", "map"}, default="mmse"
        - "mmse": average over draws and over the substates of the new row.
        - "map": the features of the consensus (see `components_`), and the most probable substates.
    max_prediction_draws : int, default=200
        "mmse" averages over at most this many draws, or one of each chain, of each chain in proportion to how well it
        predicts (`posterior_.chain_weights`).
    missing_action : label, default=None
        The value in y that marks an action as not observed. All may be missing: then only features are learned.
    unit : float or "auto", default="auto"
        What the observations are divided by before the priors apply; "auto" brings their root mean square to 1/4,
        so that the unit of X changes nothing but the unit of the features (as published: leaves them as they are).
    scale_columns : bool or "auto", default="auto"
        Bring each column to the range from 0 to 1 first, for columns of different units, of which the model would
        otherwise explain mainly the largest. Features, `observations_` and noise are then in shares of these ranges.
        "auto" does so if the columns look like a table: their ranges differ much, many lie far from zero, or all
        entries are whole numbers; and if a `tolerance` is given. Hundreds of columns that begin with the same value are
        the cells of a scan, and stay as they are.
    tolerance : float, "auto", "free" or None, default="auto"
        What need not be explained, as a share of a column's range (of a typical one, if columns are not scaled): the
        noise is held there, or has its floor there. It decides how many features there are.

        - "auto": for scaled columns held at 5%, or at 10% or 20% where hidden actions are surely predicted as well with
          it; never below what rounded values and the grid of the substates can carry. For 300 columns or more that are
          not scaled, with an `observation_weight` of one, a floor at 5%: the variance of the noise is that of these 5%
          and of what the features leave unexplained together. Otherwise, or with `priors` or `n_components`, the noise
          is free.
        - "free" or None: the noise is free, as in the paper.
    sampler : {"exact", "as-published"} or AsPublished, default="exact"
        - "exact": every step leaves the posterior invariant; annealed burn-in.
        - "as-published": the algorithm of Sec. 4.1 and 4.2 as the authors describe it, to compare; Table 1 as default:
          10,000 sweeps of one chain, from one feature drawn from the prior; P+, T_corr and N_t can be given as
          `AsPublished(birth_probability=0.01, merge_correlation=0.9, n_indicators=1000)`. Obvious misprints
          are corrected: the mean of the weights' conditional, the halves in that of gamma_w (and only active
          weights count), the share of each substate level in the slab, the Dirichlet of the policies. Kept although
          not exact: activations are drawn given their weights, of which inactive ones come from a truncated normal
          instead of the prior; births come from the prior and their acceptance ignores the actions; N_t pooled
          indicators make policies too sure; features that correlate by more than T_corr are merged in every sweep;
          newborn features are appended; the chosen draw is the one of highest joint density among those kept, over
          all numbers of features.
    n_jobs : int or None, default=None
        Number of processes for the chains (threads in prediction). The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers; the same one gives the same draws.
    warm_start : bool, default=False
        Whether a second `fit` draws more from the same posterior: with a larger `n_draws`, and all else as before, it
        ends with the draws that one fit with that `n_draws` would have had.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    components_ : ndarray (K, D)
        The features that more than half of all draws hold, counted with the weights of their chains, as the draw has
        them that the chains confirm most (as published: all features of the densest draw). Sorted by how much of each
        is in the demonstrations. `posterior_.consensus()` tells which chains hold each of them.
    n_components_ : int
        How many these are. `posterior_.n_features_probabilities` has P(K) of the draws, which mostly have some more.
    policies_ : ndarray (K, U)
        What each feature makes the teacher do where it is alone and full: its policy to the power of the decisiveness,
        or times the base policy; columns as `classes_`. Of a product, these are the policies that predictions use;
        `posterior_.consensus().policies` are those that were sampled, and `print`, the report and `explain` tell what a
        feature does where the others are as usual, or as they are in the row.
    substates_ : ndarray (N, K)
        How much of each feature is in each demonstration.
    observations_ : ndarray (N, D)
        The demonstrations, NaN where an entry is missing. No copy is made if X is an array of float64.
    actions_ : ndarray (N,)
        Their actions as indices of `classes_`, -1 where missing.
    noise_variance_ : float
        Variance of the noise in the chosen draw.
    combination_ : {"mixture", "product"}
        How the policies are combined.
    combination_scores_ : dict
        With `combination="auto"` only: mean log probability of the hidden actions for each combination.
    tolerance_ : float or None
        Where the noise was held, as a share of a column's range; None: it was free.
    tolerance_trials_ : tuple of ToleranceTrial
        If the tolerance was chosen: for each one tried, how well hidden actions were predicted, and with how many
        features.
    decisiveness_ : float
        The power of the mixture, the geometric mean over the draws; 1 for a product.
    base_policy_ : ndarray (U,)
        What the teacher does where no feature is present; uniform for a mixture.
    available_ : ndarray (N, U)
        If given to `fit`: which actions are available in each demonstration.
    observation_weight_, action_weight_ : float
        The weights that were used.
    weight_scores_ : dict
        With "auto" only: mean log probability of the actions that were held out, for each pair of weights tried.
    classes_ : ndarray (U,)
        The actions.
    posterior_ : Posterior
        All draws; P(K), intervals of the features, diagnostics, weights of the chains, `to_arviz()`.
    unit_ : float
        What the observations were divided by before sampling.
    column_low_, column_range_ : ndarray (D,)
        With `scale_columns` only: what was subtracted from each column, and what it was then divided by.
    shape_ : tuple of int
        Of a loaded model, if it was saved with one: the axes of an observation that is a picture.
    source_ : str
        Of a loaded model, if it was saved with one: where the demonstrations come from.
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

    _parameter_constraints: dict[str, Any] = CHAIN_CONSTRAINTS | {
        "priors": [Priors, None],
        "n_levels": [Interval(Integral, 2, 65536, closed="both")],
        "feature_values": [StrOptions({"positive", "real"})],
        "action_weight": [Interval(Real, 0, None, closed="left"), StrOptions({"dimensions", "auto"})],
        "observation_weight": [*CHAIN_CONSTRAINTS["observation_weight"], StrOptions({"auto"})],
        "combination": [StrOptions({"auto", *COMBINATIONS})],
        "decisiveness": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "drawn"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "start": [StrOptions({"auto", "prior", "rows"})],
        "prediction": [StrOptions(set(PREDICTIONS))],
        "unit": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "scale_columns": ["boolean", StrOptions({"auto"})],
        "tolerance": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto", "free"}), None],
        "sampler": [StrOptions({"exact", "as-published"}), AsPublished],
        "warm_start": ["boolean"],
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
        action_weight: float | str = 1.0,
        observation_weight: float | str = 1.0,
        combination: str = "auto",
        decisiveness: float | str = "auto",
        n_components: int | None = None,
        max_features: int | None = None,
        start: str = "auto",
        prediction: str = "mmse",
        max_prediction_draws: int = 200,
        missing_action: Any = None,
        unit: float | str = "auto",
        scale_columns: bool | str = "auto",
        tolerance: float | str | None = "auto",
        sampler: str | AsPublished = "exact",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
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
        self.combination = combination
        self.decisiveness = decisiveness
        self.n_components = n_components
        self.max_features = max_features
        self.start = start
        self.prediction = prediction
        self.max_prediction_draws = max_prediction_draws
        self.missing_action = missing_action
        self.unit = unit
        self.scale_columns = scale_columns
        self.tolerance = tolerance
        self.sampler = sampler
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _make_scaling(self, X: np.ndarray) -> Scaling:
        wanted = self.scale_columns
        if wanted == "auto":
            # a tolerance that was given is a share of each column's range, unless these are cells of a scan
            is_share = isinstance(self.tolerance, Real) and X.shape[1] < MANY_COLUMNS
            wanted = (looks_like_table(X) or is_share) and not self._find_published()
        scaling = scale_by_range(X) if wanted else Scaling()
        if self.unit != "auto":
            unit = float(self.unit)
        else:
            unit = 1.0 if self._find_published() else find_unit(scaling.scale_columns(X))
        return replace(scaling, unit=unit).with_noise(self._find_noise(X, scaling), self.tolerance, X)

    def _find_noise(self, X: np.ndarray, scaling: Scaling) -> float:
        """Where the noise is held, or its floor, as far as that is known before any trial; 0: it is free."""
        if self.tolerance in (None, "free") or self._find_published():
            return 0.0
        observations = scaling.scale_columns(X)
        if self.tolerance != "auto":
            return float(self.tolerance) * scaling.find_width(observations)
        # a given number of features may leave more unexplained than a tolerance says
        if self.priors is not None or self.n_components is not None:
            return 0.0
        # the residual of pictures and scans is never white, so with free noise features would only grow in number
        is_scan = X.shape[1] >= MANY_COLUMNS and self.observation_weight == 1.0
        if scaling.column_range is None and not is_scan:
            return 0.0
        tolerance = max(USUAL_TOLERANCE, find_least_tolerance(observations, self.n_levels))
        return tolerance * scaling.find_width(observations)

    @with_callbacks  # type: ignore[untyped-decorator]  # sklearn has no types
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        available: ArrayLike | None = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Infer everything from demonstrations.

        If it fails, or is stopped by Ctrl-C, the estimator stays as it was.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        y : array-like (N,) or None, default=None
            Actions, labels of any sortable type; `missing_action` where one is not known. None: none is known.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns in the order of the sorted labels. None: all.
        checkpoint : path or None, default=None
            Folder to keep the run in, created if it does not exist. If the process dies, the same call continues from
            the last checkpoint and ends with the same draws, bit for bit, as a run that was never stopped. The folder
            stays; a finished run is loaded from it at once.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints. Where writing is slow there are fewer: they take at most 2% of the time.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).n_components_
        5
        """
        self._validate_params()
        if self.n_components is not None and self.max_features is not None:
            raise ValueError("n_components fixes the number of features, so max_features must be None.")
        self._fit(self._check_input(X, y, available), checkpoint, checkpoint_every, X, y)
        self._warn()
        return self

    def _fit_quietly(self, given: CheckedInput) -> Self:
        """Learn from checked input without a word about what it comes to, for trials."""
        return self._fit(given, None, 0.0)

    def _warn(self) -> None:
        """Name what speaks against the fit."""
        doubts = find_doubts(self)
        if not self.posterior_.can_compare_chains:
            doubts = doubts[1:]  # whoever asks for a single chain knows that there is nothing to compare
        if doubts:
            category = DoubtfulFitWarning if self.posterior_.chains_agree else ChainsDisagreeWarning
            warn_user(say_briefly(doubts), category)

    def _make_problem(self, observations: np.ndarray, given: CheckedInput, scaling: Scaling) -> Problem:
        starts_from_rows = find_start(self.start, observations.shape[1]) == "rows"
        algorithm = self._find_algorithm(observations.shape[1])
        choice = self._choose(given._replace(observations=observations), scaling)
        scaling = replace(scaling, noise=choice.noise)
        options: dict[str, Any] = {"combination": choice.combination}
        options |= find_bounds(self.n_components, self.max_features, scaling.holds_noise)
        # without actions there is nothing to be decisive about
        is_plain = self._find_published() or not len(given.classes)
        options["decisiveness"] = 1.0 if is_plain else find_sampled_decisiveness(self.decisiveness, starts_from_rows)
        scores = None
        if "auto" in (self.observation_weight, self.action_weight):
            weights = choose_weights(self, choice.combination, scaling, given._replace(observations=observations))
            options |= {"observation_weight": weights.observation_weight, "action_weight": weights.action_weight}
            scores = weights.scores
        problem = self._make_feature_problem(observations, given, scaling, algorithm, self.n_levels, **options)
        return problem._replace(
            noise=choice.noise, tolerance_trials=choice.trials, choice=choice.scores, weight_scores=scores
        )

    def _find_priors(self, scaling: Scaling) -> Priors:
        return find_priors(self.priors, scaling)

    def _choose(self, given: CheckedInput, scaling: Scaling) -> Choice:
        """How to combine policies and where to hold the noise, by the parameters or by trials."""
        if self._find_published() or not len(given.classes):
            return Choice("mixture", noise=scaling.noise)
        is_table = scaling.column_range is not None
        usual = COMBINATIONS[::-1] if is_table else COMBINATIONS
        combinations = usual if self.combination == "auto" else (self.combination,)
        n_columns = given.observations.shape[1]
        if n_columns >= MANY_COLUMNS and find_start(self.start, n_columns) == "rows":
            # such chains do not mix, so one short chain does not tell what the average of many will say
            return Choice(combinations[0], noise=scaling.noise)
        tolerances: tuple[float, ...] = ()
        if self.tolerance == "auto" and scaling.noise:
            least = find_least_tolerance(given.observations, self.n_levels)
            tolerances = tuple(sorted({max(tolerance, least) for tolerance in TOLERANCES}))
        # numba is imported at the first fit, not with the package
        from whyact.sampler.compiling import announce_compilation

        announce_compilation(self.verbose, self._find_algorithm(n_columns).kernel)  # the trials are silent about it
        return choose_by_trials(self, given, scaling, combinations, tolerances)

    def _complete(self, result: FitResult) -> FitResult:
        """Learn what predictions use instead of what was sampled, and how far those of single chains are apart."""
        if not len(result.classes) or self._find_published():
            return result
        result = self._learn_for_predictions(result)
        predictor = self._make_predictor(result, self._summarise(result))
        distance = predictor.compare_chains(result.observations, result.available, self.n_jobs)
        return replace(result, distance=distance)

    def _learn_for_predictions(self, result: FitResult) -> FitResult:
        """Policies of a product, or the decisiveness of a mixture, and how much each chain counts."""
        if result.target.combination == PRODUCT:
            return self._learn_policies(result)
        result = replace(result, chosen=self._summarise(result).representatives)  # to find it once is enough
        is_cut = self.decisiveness == "auto" and result.target.decisiveness != LEARNED
        return self._learn_decisiveness(result) if is_cut else result

    def _learn_policies(self, result: FitResult) -> FitResult:
        """The same, with the policies that predictions use.

        The chains are weighed first, because the policies are those of the draws that predict.
        """
        rows = result.observations, result.actions, result.available
        predictor = ProductPredictor(
            self._summarise(result), result.target, self.max_prediction_draws, result.prediction_seed, None
        )
        held_out = predictor.hold_out(*rows, self.n_jobs)
        result = replace(result, chain_weights=predictor.weigh_chains(held_out.probabilities))
        posterior = self._summarise(result)
        predictor = ProductPredictor(posterior, result.target, self.max_prediction_draws, result.prediction_seed, None)
        learned = predictor.learn(*rows, self.n_jobs, self.verbose, held_out.scale)
        return replace(result, chosen=posterior.representatives, cut=learned.cut)

    def _learn_decisiveness(self, result: FitResult) -> FitResult:
        """The same draws, with the decisiveness and the strengths of the features that predictions use."""
        predictor = Predictor(self._summarise(result), result.target, N_DRAWS, result.prediction_seed)
        plain, as_parts = predictor.learn_decisiveness(
            result.observations, result.actions, result.available, self.n_jobs
        )
        adds_up = as_parts.log_density > plain.log_density
        tau = as_parts.value if adds_up else plain.value
        chains = [chain.with_scalar("decisiveness", tau) for chain in result.chains]
        return replace(result, chains=chains, adds_up=adds_up)

    def _make_predictor(self, result: FitResult, posterior: Posterior) -> Predictor:
        if result.target.combination != PRODUCT:
            return super()._make_predictor(result, posterior)
        return ProductPredictor(posterior, result.target, self.max_prediction_draws, result.prediction_seed, result.cut)

    def _find_algorithm(self, n_columns: int) -> Algorithm:
        """The sampler, by the parameters."""
        # numba is imported at the first fit, not with the package
        from whyact.sampler.as_published import make_published
        from whyact.sampler.exact import EXACT
        from whyact.sampler.starts import FROM_ROWS

        published = self._find_published()
        if published:
            self._check_nothing_is_exact_only()
            return make_published(published)
        return FROM_ROWS if find_start(self.start, n_columns) == "rows" else EXACT

    def _check_nothing_is_exact_only(self) -> None:
        for name, possible in EXACT_ONLY.items():
            if getattr(self, name) not in possible:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs sampler='exact'; the published algorithm has no such option."
                )
        for name in ("observation_weight", "action_weight"):
            if getattr(self, name) == "auto":
                raise ValueError(f"{name}='auto' needs sampler='exact'; give a number for the published algorithm.")

    def _set_fitted(self, result: FitResult) -> None:
        super()._set_fitted(result)
        self.combination_ = COMBINATIONS[result.target.combination]
        self.decisiveness_ = self.posterior_.decisiveness
        if len(result.classes):
            self.base_policy_ = self._combine(np.zeros((1, self.n_components_)))[0]
            self.policies_ = self._combine(np.eye(self.n_components_))
        noise = result.scaling.noise
        self.tolerance_ = noise / result.scaling.find_width(result.observations) if noise else None
        if result.tolerance_trials is not None:
            self.tolerance_trials_ = result.tolerance_trials
        if result.choice is not None:
            self.combination_scores_ = result.choice
        if result.available is not None:
            self.available_ = result.available
        self.observation_weight_ = result.target.observation_weight
        self.action_weight_ = result.target.action_weight
        if result.scaling.column_range is not None:
            self.column_low_, self.column_range_ = result.scaling.column_low, result.scaling.column_range
        if result.weight_scores is not None:
            self.weight_scores_ = result.weight_scores
        if result.shape is not None:
            self.shape_ = result.shape
        if result.source is not None:
            self.source_ = result.source

    def _summarise(self, result: FitResult) -> Posterior:
        return Posterior(
            result.chains,
            result.scaling.unit,
            self.feature_values,
            representative=self._find_representative(),
            chosen=result.chosen,
            averages_policies=result.is_decisiveness_learned,
            adds_up=result.adds_up,
            distance=result.distance,
            chain_weights=result.chain_weights,
        )

    def _find_representative(self) -> str:
        """What stands for all draws: fewer than `n_components` features would not be what was asked for."""
        if self._find_published():
            return "joint"
        return "consensus" if self.n_components is None else "modal"

    def _default_length(self, n_columns: int) -> dict[str, int]:
        if self._find_published():
            return LENGTH_AS_PUBLISHED
        return LENGTH_FROM_ROWS if find_start(self.start, n_columns) == "rows" else super()._default_length(n_columns)

    def _find_published(self) -> AsPublished | None:
        """Settings of the published algorithm, or None for the exact sampler."""
        return find_published(self.sampler)

    def policy(self, substates: ArrayLike, available: ArrayLike | None = None) -> np.ndarray:
        """Probability of each action, given how much of each feature is present, and nothing else.

        Parameters
        ----------
        substates : array-like (N, K)
            Between 0 and 1, columns as the rows of `components_`. Without any feature it is the base policy.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.

        Returns
        -------
        ndarray (N, U)
            Columns as `classes_`.

        Examples
        --------
        >>> import numpy as np
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> model = model.fit(demo.X[:80], demo.y[:80])
        >>> bool(np.allclose(model.policy(np.eye(5)), model.policies_))  # each feature alone
        True
        """
        check_is_fitted(self)
        self._check_has_actions()
        checked = self._check_substates(substates)
        if not ((checked >= 0) & (checked <= 1)).all():
            raise ValueError("substates must be between 0 and 1.")
        return self._combine(checked, check_available(available, len(checked), self.classes_))

    def _combine(self, substates: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of the actions by substates (N, K) of the chosen draw, (N, U)."""
        chosen, cut = self.posterior_.chosen_on_average, self._result.cut
        if cut is not None:
            log_odds = cut.chosen_base + substates @ cut.chosen_log_odds
            return softmax(restrict_log_odds(log_odds, available), axis=1)
        if self._result.target.combination == PRODUCT:
            return multiplied_probabilities(substates.T, chosen.policies, chosen.base_policy, available)
        return action_probabilities(substates.T, self.posterior_.find_votes(chosen), chosen.decisiveness, available)

    def save(self, path: Path | str, *, shape: tuple[int, ...] | None = None, source: str | None = None) -> None:
        """Write the fitted model to one netCDF4 file, which appears whole or not at all; `whyact.load` reads it.

        It holds the draws, the demonstrations, the options and where the chains ended, and is readable by xarray and
        ArviZ (docs/files.md describes it).

        Parameters
        ----------
        path : Path or str
        shape : tuple of int or None, default=None
            Axes of an observation that is a picture, such as (2, 21, 65); kept as `shape_`. None: that of the file
            which the model was loaded from, if any.
        source : str or None, default=None
            Where the demonstrations come from; kept as `source_`. None: as for `shape`.

        Examples
        --------
        >>> import tempfile
        >>> from whyact import FeaturePolicyClassifier, load, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.fit(demo.X[:80], demo.y[:80]).save(f"{folder}/model.nc", shape=(6, 6))
        ...     loaded = load(f"{folder}/model.nc")
        >>> loaded.shape_
        (6, 6)
        """
        check_is_fitted(self)
        result = replace(
            self._result,
            # what was set after the fit has no effect on the model, except for how to predict
            parameters=self._result.parameters | {"prediction": self.prediction},
            shape=self._result.shape if shape is None else tuple(shape),
            source=self._result.source if source is None else source,
        )
        write_model(Path(path), result, self.posterior_)

    def explain(
        self, X: ArrayLike, *, available: ArrayLike | None = None, n_nearest: int = 3, interval: float = 0.9
    ) -> Explanations:
        """Reasons for what `predict_proba` says about each row.

        Which features are present, how much each favours each action (terms that add up to the probability or, if
        policies are multiplied, to the log odds), and how sure that is; which part of the observation each feature
        covers, and what none explains; the most similar demonstrations; the smallest change of the substates that would
        change the action.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.
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
        >>> bool(abs(reasons[0].terms.value.sum(axis=0) - reasons[0].totals.value).max() < 1e-12)
        True
        """
        check_is_fitted(self)
        self._check_has_actions()
        if not isinstance(n_nearest, int | np.integer) or n_nearest < 0:
            raise ValueError(f"n_nearest must be a whole number, 0 or more, got {n_nearest!r}.")
        if not isinstance(interval, int | float | np.floating) or not 0 < interval < 1:
            raise ValueError(f"interval must be a probability between 0 and 1, got {interval!r}.")
        observations = self._check_new_rows(X)
        return explain_rows(
            self._result,
            self._predictor,
            observations,
            available=check_available(available, len(observations), self.classes_),
            use_map=self._find_rule(),
            n_nearest=n_nearest,
            interval=interval,
            n_jobs=self.n_jobs,
        )

    def count_features_over_tolerance(
        self, tolerances: Sequence[float] | None = None, *, max_rows: int = MOST_ROWS
    ) -> ToleranceCurve:
        """How many features there are if the model may be wrong by so much.

        For each tolerance two short chains learn from some of the demonstrations, with the noise held there. A number
        that stays the same over a range of tolerances is a finding about the data. With more rows, small tolerances may
        show more features.

        Parameters
        ----------
        tolerances : sequence of float or None, default=None
            Shares of a column's range (of a typical one, if columns are not scaled). None: 0.03, 0.05, 0.1, 0.15, 0.2
            and 0.3, none below what rounded values and the grid of the substates can carry.
        max_rows : int, default=300
            At most so many demonstrations are learned from, first those with an action.

        Returns
        -------
        ToleranceCurve
            A named tuple of `counts` (tolerance and number of features), `own` (of this model) and `n_rows`; `plateau`
            is where the number settles, and `str()` of it a table with a sentence.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> curve = model.fit(demo.X[:80], demo.y[:80]).count_features_over_tolerance()
        >>> curve.plateau.most
        5
        """
        return count_features_over_tolerance(self, tolerances, max_rows=max_rows)

    def __str__(self) -> str:
        return describe(self) if hasattr(self, "posterior_") else repr(self)


def find_bounds(n_components: int | None, max_features: int | None, holds_noise: bool) -> dict[str, Any]:
    """How many features there are at least and at most, and how many moves of whole features each sweep tries.

    With free noise, as on the paper's design, such moves cost more than they bring (`benchmarks/moves.py`). Where the
    noise is held, chains stay apart more without them; and if the number is given, nothing else exchanges features.
    """
    if n_components is None:
        return {"max_features": max_features, "n_whole_moves": int(holds_noise)}
    return {"min_features": n_components, "max_features": n_components, "n_whole_moves": 1}


def find_start(start: str, n_columns: int) -> str:
    """Where chains start: as given, or by default."""
    if start != "auto":
        return start
    return "rows" if n_columns >= MANY_COLUMNS else "prior"


def find_sampled_decisiveness(decisiveness: float | str, starts_from_rows: bool) -> float | str:
    """The decisiveness of the mixture that is sampled: as given, or by default."""
    if decisiveness != "auto":
        return decisiveness
    return "drawn" if starts_from_rows else 1.0


def find_priors(priors: Priors | None, scaling: Scaling) -> Priors:
    """The hyperpriors: as given, or by default; with the noise where it is held."""
    priors = Priors() if priors is None else priors
    return hold_noise(priors, scaling.noise / scaling.unit, scaling.n_floor) if scaling.noise else priors


def find_published(sampler: str | AsPublished) -> AsPublished | None:
    """Settings of the published algorithm, checked; None for the exact sampler."""
    if isinstance(sampler, str):
        return None if sampler == "exact" else AsPublished()
    birth_probability, merge_correlation, n_indicators = sampler
    if not 0 <= birth_probability < 1:
        raise ValueError(f"sampler: birth_probability must be at least 0 and below 1, got {birth_probability!r}.")
    if not -1 <= merge_correlation <= 1:
        raise ValueError(f"sampler: merge_correlation must be between -1 and 1, got {merge_correlation!r}.")
    if not isinstance(n_indicators, int | np.integer) or n_indicators < 1:
        raise ValueError(f"sampler: n_indicators must be a whole number above 0, got {n_indicators!r}.")
    return AsPublished(float(birth_probability), float(merge_correlation), int(n_indicators))
