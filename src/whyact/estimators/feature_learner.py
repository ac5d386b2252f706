"""What the models share in which observations are sums of features: their problem, predictions and judgements."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from whyact.estimators.base import PolicyLearner
from whyact.estimators.inputs import CheckedInput, check_available
from whyact.fit_result import FitResult
from whyact.model import Priors, make_target
from whyact.posterior import Posterior
from whyact.prediction import PREDICTIONS, Prediction, Predictor
from whyact.sampler.algorithm import Algorithm, Problem
from whyact.scaling import Scaling, find_unit


class FeatureLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PolicyLearner):  # type: ignore[misc]
    """Base of the models in which observations are sums of features; `prediction` is "mmse" or "map"."""

    if TYPE_CHECKING:
        prediction: str
        max_prediction_draws: int
        priors: Priors | None
        feature_values: str
        action_weight: float | str
        observation_weight: float | str
        unit: float | str

    def _make_scaling(self, X: np.ndarray) -> Scaling:
        return Scaling(find_unit(X) if self.unit == "auto" else float(self.unit))

    def _make_feature_problem(
        self,
        observations: np.ndarray,
        given: CheckedInput,
        scaling: Scaling,
        algorithm: Algorithm,
        n_levels: int,
        **options: Any,
    ) -> Problem:
        """The problem to find features.

        `options` go to `make_target`, overriding those of the estimator's parameters that cannot be used as they
        are.
        """
        priors = self._find_priors(scaling)
        target = make_target(
            priors,
            n_actions=given.n_actions,
            n_dimensions=observations.shape[1],
            n_levels=n_levels,
            feature_values=self.feature_values,
            **{"observation_weight": self.observation_weight, "action_weight": self.action_weight, **options},
        )
        data = scaling.to_sampler(observations, given.actions, given.available)
        return Problem(data, target, priors, algorithm, scaling.unit)

    def _find_priors(self, scaling: Scaling) -> Priors:
        return Priors() if self.priors is None else self.priors

    def _make_predictor(self, result: FitResult, posterior: Posterior) -> Predictor:
        return Predictor(posterior, result.target, self.max_prediction_draws, result.prediction_seed)

    def _set_fitted(self, result: FitResult) -> None:
        chosen = self.posterior_.chosen
        self.components_ = chosen.features * result.scaling.unit
        self.n_components_ = self._n_features_out = len(chosen.features)
        self.policies_ = self.posterior_.speak_alone(chosen)[:, : len(result.classes)]
        self.substates_ = chosen.substates.T
        self.noise_variance_ = chosen.noise_variance * result.scaling.unit**2
        self._predictor = self._make_predictor(result, self.posterior_)

    def _find_rule(self, prediction: str | None = None) -> bool:
        """Whether to predict by MAP."""
        rule = self.prediction if prediction is None else prediction
        if rule not in PREDICTIONS:
            raise ValueError(f"prediction must be {' or '.join(map(repr, PREDICTIONS))}, got {rule!r}.")
        return rule == "map"

    def _predict(
        self, X: ArrayLike, *, one_draw: bool, maximise: bool, available: ArrayLike | None = None
    ) -> Prediction:
        check_is_fitted(self)
        observations = self._check_new_rows(X)
        return self._predictor.predict(
            observations,
            one_draw=one_draw,
            maximise=maximise,
            available=check_available(available, len(observations), self.classes_),
            n_jobs=self.n_jobs,
        )

    def predict(self, X: ArrayLike, available: ArrayLike | None = None) -> np.ndarray:
        """The most probable action for each row.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.

        Returns
        -------
        ndarray (N,)
            Labels of `classes_`.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).predict(demo.X[80:]).shape
        (40,)
        """
        probabilities = self.predict_proba(X, available)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: ArrayLike, available: ArrayLike | None = None) -> np.ndarray:
        """Probability of each action.

        In a mixture it is near uniform for an observation that no feature explains.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`; the others have no probability. None: all.

        Returns
        -------
        ndarray (N, U)
            Columns as `classes_`.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:]).shape
        (40, 5)
        """
        check_is_fitted(self)
        self._check_has_actions()
        use_map = self._find_rule()
        return self._predict(X, one_draw=use_map, maximise=use_map, available=available).probabilities

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> float:
        """Accuracy on the rows whose action is known.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        y : array-like (N,)
            Actions; rows with `missing_action` do not count.
        sample_weight : array-like (N,) or None, default=None
            How much each row counts.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.

        Returns
        -------
        float

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> 0 < model.fit(demo.X[:80], demo.y[:80]).score(demo.X[80:], demo.y[80:]) <= 1
        True
        """
        check_is_fitted(self)
        return self._score(self.predict(X, available), y, sample_weight)

    def familiarity(self, X: ArrayLike) -> np.ndarray:
        """How much of each observation the features explain, noise aside: 1 all, 0 nothing.

        A row near 0 is unlike every demonstration, or holds nothing at all, and its `predict_proba` means little: in a
        mixture it is near uniform, in a product it may be sure nevertheless.
        What exceeds the noise in the residual counts as a feature never seen, whose policy nobody knows.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray (N,)

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).familiarity(-demo.X[80:82]).round(1)
        array([0., 0.])
        """
        use_map = self._find_rule()
        return self._predict(X, one_draw=use_map, maximise=use_map).familiarity

    def transform(self, X: ArrayLike) -> np.ndarray:
        """How much of each feature of `components_` is in each row, without looking at actions.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.

        Returns
        -------
        ndarray (N, K)
            Substates between 0 and 1.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).transform(demo.X[80:]).shape
        (40, 5)
        """
        return self._predict(X, one_draw=True, maximise=self._find_rule()).substates

    def judge(self, X: ArrayLike, prediction: str | None = None, available: ArrayLike | None = None) -> Prediction:
        """Everything that is known about each row, at once: `predict_proba`, `transform` and `familiarity`.

        Parameters
        ----------
        X : array-like (N, D)
            Observations; NaN where an entry is missing.
        prediction : {"mmse", "map"} or None, default=None
            How to predict; None: as the parameter `prediction` says.
        available : array-like (N, U) of bool or None, default=None
            Which actions can be taken in each row, columns as `classes_`. None: all.

        Returns
        -------
        Prediction
            A named tuple of `probabilities` (N, U), `substates` (N, K) and `familiarity` (N,). U is 0 if fit has seen
            no action.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> judged = model.fit(demo.X[:80], demo.y[:80]).judge(demo.X[80:], prediction="map")
        >>> judged.probabilities.shape, judged.familiarity.shape
        ((40, 5), (40,))
        """
        check_is_fitted(self)
        observations = self._check_new_rows(X)
        return self._judge(observations, prediction, check_available(available, len(observations), self.classes_))

    def judge_demonstrations(self, rows: ArrayLike | None = None, prediction: str | None = None) -> Prediction:
        """What `judge` returns for the demonstrations themselves, as if their actions were not known.

        Parameters
        ----------
        rows : array-like of int or None, default=None
            Which of the demonstrations; None: all.
        prediction : {"mmse", "map"} or None, default=None
            How to predict; None: as the parameter `prediction` says.

        Returns
        -------
        Prediction
            As `judge` returns it.

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
        >>> model.fit(demo.X[:80], demo.y[:80]).judge_demonstrations([0, 1, 2]).probabilities.shape
        (3, 5)
        """
        check_is_fitted(self)
        which = slice(None) if rows is None else np.asarray(rows)
        available = None if self._result.available is None else self._result.available[which]
        return self._judge(self.observations_[which], prediction, available)

    def _judge(self, observations: np.ndarray, prediction: str | None, available: np.ndarray | None) -> Prediction:
        """Judge rows that are scaled as `observations_` is."""
        use_map = self._find_rule(prediction)
        judged = self._predictor.predict(
            observations, one_draw=use_map, maximise=use_map, available=available, n_jobs=self.n_jobs
        )
        if not use_map:  # the average over many draws has no substates: their features differ
            chosen = self._predictor.predict(observations, one_draw=True, maximise=False, n_jobs=self.n_jobs)
            judged = judged._replace(substates=chosen.substates)
        return judged._replace(probabilities=judged.probabilities[:, : len(self.classes_)])

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Observations that substates make up, in their own unit.

        Parameters
        ----------
        S : array-like (N, K)
            Substates, columns as the rows of `components_`.

        Returns
        -------
        ndarray (N, D)

        Examples
        --------
        >>> from whyact import FeaturePolicyClassifier, load_demo
        >>> demo = load_demo()
        >>> model = FeaturePolicyClassifier(n_burn_in=600, n_draws=600, n_chains=2, random_state=0)
        >>> model = model.fit(demo.X[:80], demo.y[:80])
        >>> model.inverse_transform(model.transform(demo.X[80:])).shape
        (40, 36)
        """
        check_is_fitted(self)
        return self._result.scaling.unscale_columns(self._check_substates(S) @ self.components_)

    def _check_substates(self, substates: ArrayLike) -> np.ndarray:
        checked = np.asarray(substates, dtype=float)
        if checked.ndim != 2 or checked.shape[1] != self.n_components_:
            raise ValueError(
                f"substates must have {self.n_components_} columns, one per feature; their shape is {checked.shape}."
            )
        return checked

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Positive features cannot point to where scikit-learn's centred blobs have negative entries.
        tags.classifier_tags.poor_score = self.feature_values == "positive"
        return tags
