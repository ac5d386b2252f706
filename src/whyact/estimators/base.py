"""What every model that learns from demonstrations shares: input, chains, labels, scikit-learn's face."""

import copy
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from whyact.errors import ChainsDisagreeWarning, warn_user
from whyact.estimators.callbacks import CallbackSupportMixin, SegmentCallbacks, with_callbacks
from whyact.estimators.inputs import to_array
from whyact.model import Priors, make_demonstrations, make_target
from whyact.posterior import Posterior
from whyact.prediction import Prediction, Predictor
from whyact.progress import progress_bar
from whyact.sampler.run import Problem

# Sweeps and chains if not given.
LENGTH = {"n_burn_in": 1500, "n_draws": 1500, "n_chains": 4}
# Beyond this the noise variance would not be a floating point number.
LARGEST = 1e150

# Parameters of every chain, for `_parameter_constraints`.
CHAIN_CONSTRAINTS: dict = {
    "n_burn_in": [Interval(Integral, 0, None, closed="left"), None],
    "n_draws": [Interval(Integral, 1, None, closed="left"), None],
    "thin": [Interval(Integral, 1, None, closed="left")],
    "n_chains": [Interval(Integral, 1, None, closed="left"), None],
    "action_weight": [Interval(Real, 0, None, closed="left")],
    "observation_weight": [Interval(Real, 0, None, closed="neither")],
    "max_prediction_draws": [Interval(Integral, 1, None, closed="left")],
    "missing_action": "no_validation",
    "n_jobs": [None, Integral],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class PolicyLearner(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of the classifiers that run chains. A subclass has the parameters of CHAIN_CONSTRAINTS and says

    - `_pose(X, actions, n_actions)`: the Problem to give to the chains;
    - `_summarise(problem, chains)`: the Posterior of their draws;
    - `_set_fitted(posterior, problem, classes, seed)`: the fitted attributes;
    - `predict_proba(X)`.
    """

    _least_rows = 2
    _needs_all_columns = True

    if TYPE_CHECKING:  # parameters that every subclass has
        n_burn_in: int | None
        n_draws: int | None
        n_chains: int | None
        thin: int
        n_jobs: int | None
        verbose: int
        random_state: Any
        missing_action: Any
        classes_: np.ndarray
        unit_: float

        def _pose(self, X: np.ndarray, actions: np.ndarray, n_actions: int) -> Problem: ...
        def _summarise(self, problem: Problem, chains: list) -> Posterior: ...
        def _set_fitted(self, posterior: Posterior, problem: Problem, classes: np.ndarray, seed: int) -> None: ...
        def predict_proba(self, X) -> np.ndarray: ...

    @with_callbacks
    def fit(self, X, y=None, *, checkpoint=None, checkpoint_every=60.0):
        """Infer everything from demonstrations.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        y : array-like (N,) or None
            Actions, labels of any sortable type; `missing_action` where one is not known. None: none is known.
        checkpoint : path or None
            Folder to keep the run in, made if it is not there. If the process dies, the same call goes on where the
            last checkpoint was and ends with the same draws, bit by bit, as a run that was never stopped. The folder
            stays; a finished run is found in it at once.
        checkpoint_every : float
            Seconds between two checkpoints. Where writing them is slow there are fewer: they take 2% of the time.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y, checkpoint, checkpoint_every)
        except BaseException:  # also Ctrl-C: the estimator stays as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X, y, checkpoint, checkpoint_every):
        self._validate_params()
        length = self._find_length()
        X = self._check_observations(X, reset=True)
        classes, actions = self._check_actions(y, len(X))
        entropy = check_random_state(self.random_state).randint(0, 2**31, size=5).tolist()
        problem = self._pose(X, actions, max(len(classes), 1))
        ends, chains = self._run_chains(problem, classes, entropy, length, checkpoint, checkpoint_every, X, y)
        posterior = self._summarise(problem, chains)
        self._set_fitted(posterior, problem, classes, ends.entropy[4])
        self._keep_run(X, actions, ends)
        if not posterior.chains_agree:
            warn_user(posterior.agreement(), ChainsDisagreeWarning)
        return self

    def _keep_run(self, observations, actions, ends):
        """What the run was about, and where it ended."""
        self.observations_, self.actions_, self._ends = observations, actions, ends
        self._fitted_parameters = self.get_params(deep=False)

    def _default_length(self) -> dict[str, int]:
        return LENGTH

    def _find_length(self) -> dict[str, int]:
        """Sweeps and chains, as given or by default."""
        length = {
            name: getattr(self, name) if getattr(self, name) is not None else default
            for name, default in self._default_length().items()
        }
        if length["n_draws"] < self.thin:
            raise ValueError(f"n_draws={length['n_draws']} must be at least thin={self.thin}, or no draw is kept.")
        return length

    def _run_chains(
        self, problem: Problem, classes, entropy: list[int], length: dict[str, Any], checkpoint, every, X, y
    ):
        """Where the chains end, and their draws."""
        # numba is imported at the first fit, not with the package
        from whyact.sampler.chain import N_MILESTONES, run_chains
        from whyact.sampler.compiling import announce_compilation
        from whyact.sampler.run import Ends, identify
        from whyact.storage.checkpoint import save_if_stopped

        identity = identify(problem, classes, self.thin, length["n_burn_in"], length["n_chains"])
        with self._keep_checkpoints(checkpoint, every, identity) as checkpoints:
            entropy, resumed = self._find_earlier_run(checkpoints, identity, problem, entropy, length)
            callbacks = SegmentCallbacks(self, self._init_callback_context(max_subtasks=N_MILESTONES), X, y)
            announce_compilation(self.verbose, problem.algorithm.kernel)
            n_sweeps = length["n_burn_in"] + length["n_draws"]
            with progress_bar(self.verbose, problem, n_sweeps) as show, save_if_stopped(checkpoints):

                def on_progress(progress):
                    show(progress)
                    if checkpoints:
                        checkpoints.keep(progress, entropy)
                    return progress.at_milestone and callbacks(progress)

                progress = run_chains(
                    np.random.SeedSequence(entropy[:4]),
                    problem.data,
                    problem.target,
                    problem.priors,
                    **length,
                    thin=self.thin,
                    n_jobs=self.n_jobs,
                    algorithm=problem.algorithm,
                    resumed=resumed,
                    on_progress=on_progress,
                )
            if checkpoints:
                checkpoints.write(progress, entropy)
            callbacks.end()
        rng_states = [rng.bit_generator.state for rng in progress.rngs]
        return Ends(identity, entropy, progress.n_done, progress.states, rng_states), progress.chains

    @contextmanager
    def _keep_checkpoints(self, folder, every, identity):
        """Yield the checkpoints in a folder; nothing if there is none to keep them in."""
        if folder is None:
            yield None
            return
        from whyact.storage.checkpoint import Checkpoints

        if not isinstance(every, int | float) or not every >= 0:
            raise ValueError(f"checkpoint_every must be a number of seconds, got {every!r}.")
        checkpoints = Checkpoints(folder, float(every), identity)
        try:
            yield checkpoints
        finally:
            checkpoints.close()

    def _find_earlier_run(self, checkpoints, identity, problem, entropy, length):
        """What the run's random numbers begin with, and where it was stopped (None: it has not begun)."""
        found = checkpoints.read(problem.data, problem.target, problem.algorithm.state) if checkpoints else None
        if found is None and getattr(self, "warm_start", False) and hasattr(self, "_ends"):
            found = self._go_on(identity)
        if found is None:
            return entropy, None
        begun_with, resumed = found
        n_kept = max(resumed.n_done - length["n_burn_in"], 0) // self.thin
        if len(resumed.chains) != length["n_chains"] or any(len(chain) != n_kept for chain in resumed.chains):
            raise ValueError("checkpoint: the draws in the folder are not those that its state speaks of.")
        if isinstance(self.random_state, Integral) and begun_with != entropy:
            raise ValueError(f"random_state={self.random_state} is not what the earlier run began with.")
        n_sweeps = length["n_burn_in"] + length["n_draws"]
        if resumed.n_done > n_sweeps:
            raise ValueError(
                f"n_draws asks for {n_sweeps} sweeps in all, but the earlier run has already done {resumed.n_done}."
            )
        return begun_with, resumed

    def _go_on(self, identity):
        """Where the last fit ended; a copy, so that it can be gone back to."""
        from whyact.sampler.chain import Progress
        from whyact.storage.codec import make_rng

        ends = self._ends
        if ends.identity != identity:
            raise ValueError(
                "warm_start=True draws more from the same posterior, so the data and all options but n_draws must be "
                "those of the last fit; set warm_start=False to begin anew."
            )
        rngs = [make_rng(state) for state in ends.rng_states]
        chains = copy.deepcopy(self.posterior_.chains)
        return ends.entropy, Progress(ends.n_done, ends.n_done, list(ends.states), rngs, chains)

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
        # the extremes, NaN aside, without a copy
        largest = max(float(np.fmax.reduce(X, axis=None, initial=0)), -float(np.fmin.reduce(X, axis=None, initial=0)))
        if largest / (1.0 if reset else self.unit_) > LARGEST or (reset and 0 < largest < 1 / LARGEST):
            raise ValueError(f"X holds values of size {largest:.0e}, whose squares overflow; choose another unit.")
        if not reset:
            return X
        if len(X) < self._least_rows:
            raise ValueError(f"X holds 1 sample (one row); at least {self._least_rows} are needed to learn from.")
        empty = np.nonzero(np.isnan(X).all(axis=0))[0]
        if len(empty) and self._needs_all_columns:
            names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))
            raise ValueError(f"X: column {names[empty[0]]!s} holds no number (all NaN); leave it out.")
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
            raise ValueError(
                f"y holds one class only ({str(classes[0])!r}); at least two different actions are needed."
            )
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

    def predict(self, X):
        """The most probable action for each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

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
            raise ValueError("y held no action in fit, so none can be predicted.")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class FeatureLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PolicyLearner):
    """Base of the models in which observations are sums of features; `prediction` is "mmse" or "map"."""

    if TYPE_CHECKING:
        prediction: str
        max_prediction_draws: int
        priors: Priors | None
        feature_values: str
        action_weight: float | str
        observation_weight: float
        unit: float | str

    def _pose_features(self, X, actions, n_actions, algorithm, n_levels, unit, **options) -> Problem:
        """The problem to find features; `unit` divides the observations where the user leaves it open.

        `options` go to `make_target`, those of the estimator's parameters that are not to be taken as they are.
        """
        priors = Priors() if self.priors is None else self.priors
        unit = float(self.unit) if self.unit != "auto" else unit
        target = make_target(
            priors,
            n_actions=n_actions,
            n_dimensions=X.shape[1],
            n_levels=n_levels,
            feature_values=self.feature_values,
            **{"observation_weight": self.observation_weight, "action_weight": self.action_weight, **options},
        )
        return Problem(make_demonstrations(X, actions, unit), target, priors, algorithm, unit)

    def _make_predictor(self, posterior, problem, seed) -> Predictor:
        return Predictor(posterior, problem.target, self.max_prediction_draws, seed)

    def _set_fitted(self, posterior, problem, classes, seed):
        chosen = self._chosen = posterior.chosen_state()
        self.posterior_ = posterior
        self.unit_ = posterior.unit
        self.classes_ = classes
        self.components_ = chosen.features * posterior.unit
        self.n_components_ = self._n_features_out = len(chosen.features)
        self.policies_ = posterior.speak_alone(chosen.policies)[:, : len(classes)]
        self.substates_ = chosen.substates.T
        self.noise_variance_ = chosen.noise_variance * posterior.unit**2
        self._predictor = self._make_predictor(posterior, problem, seed)

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

    def judge(self, X) -> Prediction:
        """All that is said about each row, at once: `predict_proba`, `transform` and `familiarity`.

        Returns a `Prediction`, a named tuple of `probabilities` (N, U), `substates` (N, K) and `familiarity` (N,). U is
        0 if fit has seen no action.
        """
        check_is_fitted(self)
        X = self._check_observations(X, reset=False)
        use_map = self.prediction == "map"
        judged = self._predictor.predict(X, one_draw=use_map, maximise=use_map, n_jobs=self.n_jobs)
        if not use_map:  # the average over many draws has no substates: their features differ
            chosen = self._predictor.predict(X, one_draw=True, maximise=False, n_jobs=self.n_jobs)
            judged = judged._replace(substates=chosen.substates)
        return judged._replace(probabilities=judged.probabilities[:, : len(self.classes_)])

    def inverse_transform(self, S):
        """Observations (N, D) that the substates (N, K) make up."""
        check_is_fitted(self)
        return self._check_substates(S) @ self.components_

    def _check_substates(self, substates) -> np.ndarray:
        substates = np.asarray(substates, dtype=float)
        if substates.ndim != 2 or substates.shape[1] != self.n_components_:
            raise ValueError(
                f"substates must have {self.n_components_} columns, one a feature; their shape is {substates.shape}."
            )
        return substates

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Positive features cannot point to where scikit-learn's centred blobs have negative entries.
        tags.classifier_tags.poor_score = self.feature_values == "positive"
        return tags
