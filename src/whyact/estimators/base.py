"""What every model that learns from demonstrations shares: input, chains, labels, scikit-learn's interface."""

import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from whyact.errors import ChainsDisagreeWarning, DamagedFileError, warn_user
from whyact.estimators.callbacks import CallbackSupportMixin, SegmentCallbacks, with_callbacks
from whyact.estimators.inputs import (
    CheckedInput,
    check_available,
    check_new_rows,
    check_observations,
    check_rows_to_learn_from,
    check_taken,
    code_actions,
    split_missing,
)
from whyact.fit_result import FitResult
from whyact.posterior import Posterior
from whyact.progress import progress_bar
from whyact.sampler.algorithm import Problem
from whyact.sampler.draws import ChainDraws, Progress, RunEnd
from whyact.scaling import Scaling
from whyact.storage.checkpoint import open_checkpoints
from whyact.storage.door import check_chains, frame_problem

if TYPE_CHECKING:
    from pathlib import Path

    from whyact.sampler.run import RunLength

# Sweeps and chains if not given.
LENGTH = {"n_burn_in": 1500, "n_draws": 1500, "n_chains": 4}
N_ENTROPY = 5  # four numbers for the chains, one for predictions

# Parameters of every chain, for `_parameter_constraints`.
CHAIN_CONSTRAINTS: dict[str, Any] = {
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


class PolicyLearner(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Base of the classifiers that run chains. A subclass has the parameters of CHAIN_CONSTRAINTS and says

    - `_make_scaling(X)`: how observations are scaled;
    - `_make_problem(observations, given, scaling)`: the Problem to give to the chains;
    - `_summarise(result)`: the Posterior of their draws;
    - `_set_fitted(result)`: the fitted attributes of its own, once `posterior_` and those of all models are set;
    - `predict_proba(X)`.
    """

    _least_rows = 2
    _needs_all_columns = True

    if TYPE_CHECKING:  # parameters and fitted attributes that every subclass has
        n_burn_in: int | None
        n_draws: int | None
        n_chains: int | None
        thin: int
        n_jobs: int | None
        verbose: int
        random_state: Any
        missing_action: Any
        classes_: np.ndarray
        posterior_: Posterior
        _result: FitResult

        def _make_scaling(self, X: np.ndarray) -> Scaling: ...
        def _make_problem(self, observations: np.ndarray, given: CheckedInput, scaling: Scaling) -> Problem: ...
        def _summarise(self, result: FitResult) -> Posterior: ...
        def _set_fitted(self, result: FitResult) -> None: ...
        def predict_proba(self, X: ArrayLike) -> np.ndarray: ...

    @with_callbacks  # type: ignore[untyped-decorator]  # sklearn has no types
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        checkpoint: "Path | str | None" = None,
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
        self._fit(self._check_input(X, y), checkpoint, checkpoint_every, X, y)
        self._warn()
        return self

    def _check_input(self, X: ArrayLike, y: ArrayLike | None, available: Any = None) -> CheckedInput:
        """Demonstrations, checked."""
        observations, columns = self._check_rows_to_learn_from(X)
        classes, actions = code_actions(y, len(observations), self.missing_action)
        mask = check_available(available, len(observations), classes)
        check_taken(mask, actions, classes)
        return CheckedInput(observations, columns, classes, actions, mask)

    def _check_rows_to_learn_from(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray | None]:
        """X as an array, and the names of its columns, if they have any."""
        blank = copy.copy(self)  # scikit-learn sets attributes while it checks
        for name in ("n_features_in_", "feature_names_in_"):
            blank.__dict__.pop(name, None)
        observations = check_observations(blank, X, reset=True)
        columns = getattr(blank, "feature_names_in_", None)
        check_rows_to_learn_from(
            observations, columns, least_rows=self._least_rows, needs_all_columns=self._needs_all_columns
        )
        return observations, columns

    def _fit(
        self, given: CheckedInput, checkpoint: "Path | str | None", every: float, X: Any = None, y: Any = None
    ) -> Self:
        """Learn from checked input; X and y are only shown to callbacks."""
        length = self._find_length(given.observations.shape[1])
        entropy = check_random_state(self.random_state).randint(0, 2**31, size=N_ENTROPY).tolist()
        scaling = self._make_scaling(given.observations)
        observations = scaling.scale_columns(given.observations)
        problem = self._make_problem(observations, given, scaling)
        end, chains = self._run(problem, length, given.classes, entropy, checkpoint, every, X, y)
        result = FitResult(
            parameters=self.get_params(deep=False),
            columns=given.columns,
            classes=given.classes,
            observations=observations,
            actions=given.actions,
            scaling=replace(scaling, noise=problem.noise),
            target=problem.target,
            chains=chains,
            end=end,
            available=given.available,
            choice=problem.choice,
            tolerance_trials=problem.tolerance_trials,
            weight_scores=problem.weight_scores,
        )
        self._set_result(self._complete(result))
        return self

    def _warn(self) -> None:
        """Say what the user should know about the fit."""
        if not self.posterior_.chains_agree:
            warn_user(self.posterior_.agreement(), ChainsDisagreeWarning)

    def _complete(self, result: FitResult) -> FitResult:
        """What is learned once the chains have ended."""
        return result

    def _default_length(self, n_columns: int) -> dict[str, int]:
        return LENGTH

    def _find_length(self, n_columns: int) -> "RunLength":
        """Sweeps and chains, as given or by default."""
        from whyact.sampler.run import RunLength  # numba is imported at the first fit, not with the package

        length = {
            name: getattr(self, name) if getattr(self, name) is not None else default
            for name, default in self._default_length(n_columns).items()
        }
        if length["n_draws"] < self.thin:
            raise ValueError(f"n_draws={length['n_draws']} must be at least thin={self.thin}, or no draw is kept.")
        return RunLength(**length, thin=self.thin)

    def _run(
        self,
        problem: Problem,
        length: "RunLength",
        classes: np.ndarray,
        entropy: list[int],
        checkpoint: "Path | str | None",
        every: float,
        X: Any,
        y: Any,
    ) -> tuple[RunEnd, list[ChainDraws]]:
        """Where the chains end, and their draws."""
        # numba is imported at the first fit, not with the package
        from whyact.sampler.chain import N_MILESTONES
        from whyact.sampler.compiling import announce_compilation
        from whyact.sampler.run import identify, run_problem

        identity = identify(problem, classes, length)
        with open_checkpoints(checkpoint, every, identity) as checkpoints:
            callbacks = SegmentCallbacks(self, self._init_callback_context(max_subtasks=N_MILESTONES), X, y)
            announce_compilation(self.verbose, problem.algorithm.kernel)
            with progress_bar(self.verbose, problem, length.n_sweeps) as show:

                def on_progress(progress: Progress) -> bool:
                    show(progress)
                    return progress.at_milestone and callbacks(progress)

                run = run_problem(
                    problem,
                    length,
                    identity,
                    entropy,
                    is_seeded=isinstance(self.random_state, Integral),
                    earlier=self._find_earlier_run(problem, identity),
                    checkpoints=checkpoints,
                    n_jobs=self.n_jobs,
                    on_progress=on_progress,
                )
            callbacks.end()
        return run

    def _find_earlier_run(self, problem: Problem, identity: str) -> tuple[RunEnd, list[ChainDraws]] | None:
        """The last fit, if more is to be drawn from the same posterior."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "_result"):
            return None
        end, chains = self._result.end, self.posterior_.chains
        if end.identity != identity:  # of other data or options, which `run_problem` says
            return end, chains
        try:
            check_chains(end.states, chains, frame_problem(problem))
        except DamagedFileError as error:
            raise ValueError(
                f"warm_start=True cannot go on from the last fit, because {error}; set warm_start=False to start over."
            ) from None
        return end, chains

    def _set_result(self, result: FitResult) -> None:
        """Become the fitted estimator; nothing of an earlier fit stays."""
        posterior = self._summarise(result)
        self._forget_fit(result.observations.shape[1], result.columns)
        self._result = result
        self.posterior_ = posterior
        self.classes_ = result.classes
        self.unit_ = result.scaling.unit
        self.observations_, self.actions_ = result.observations, result.actions
        self._set_fitted(result)

    def _forget_fit(self, n_columns: int, columns: np.ndarray | None) -> None:
        """Remove the attributes of an earlier fit, and take note of the columns of X."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.n_features_in_ = n_columns
        if columns is not None:
            self.feature_names_in_ = columns

    def _check_new_rows(self, X: ArrayLike) -> np.ndarray:
        """New rows as what `observations_` holds."""
        observations = self._result.scaling.scale_columns(check_observations(self, X, reset=False))
        check_new_rows(observations, self._result.scaling.unit)
        return observations

    # --- what comes out -------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable action for each row.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray (N,)
            Labels of `classes_`.

        Examples
        --------
        >>> from whyact import ClusterPolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = ClusterPolicyClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).predict(demo.X[80:]).shape
        (40,)
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the rows whose action is known.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        y : array-like (N,)
            Actions; rows with `missing_action` do not count.
        sample_weight : array-like (N,) or None, default=None
            How much each row counts.

        Returns
        -------
        float

        Examples
        --------
        >>> from whyact import ClusterPolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = ClusterPolicyClassifier(n_burn_in=200, n_draws=200, n_chains=2, random_state=0)
        >>> 0 < model.fit(demo.X[:80], demo.y[:80]).score(demo.X[80:], demo.y[80:]) <= 1
        True
        """
        check_is_fitted(self)
        return self._score(self.predict(X), y, sample_weight)

    def _score(self, predicted: np.ndarray, y: ArrayLike, sample_weight: ArrayLike | None) -> float:
        """Accuracy of predictions on the rows whose action is known."""
        labels, known = split_missing(y, self.missing_action)
        unseen = sorted({str(label) for label in labels[known]} - {str(label) for label in self.classes_})
        if unseen and len(self.classes_):
            warn_user(f"y holds actions never seen in training ({', '.join(unseen[:5])}); they count as wrong.")
        correct = np.array([a == b for a, b in zip(predicted[known], labels[known], strict=True)], dtype=float)
        if not known.any():
            raise ValueError("y holds no known action, so there is nothing to score.")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(correct, weights=weights))

    def _check_has_actions(self) -> None:
        if not len(self.classes_):
            raise ValueError("y held no action in fit, so none can be predicted.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
