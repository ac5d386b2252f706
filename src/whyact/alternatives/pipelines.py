"""Features first, policies afterwards: a decomposition of scikit-learn, then the mixture of policies by EM."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.decomposition import NMF, PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
from whyact.alternatives.rank import count_by_bicrossvalidation
from whyact.alternatives.simplex import SimplexFactorization


class CountedDecomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Fit a decomposition whose number of components is given, or counted from the data.

    Parameters
    ----------
    decomposition : transformer
        A transformer of scikit-learn with a parameter `n_components`.
    n_components : int or "bicv", default="bicv"
        Number of components; "bicv" counts them by bi-cross-validation of the SVD.
    centre : bool, default=False
        Count on X minus the mean of its columns. Use this if the decomposition itself removes the mean, as PCA does:
        otherwise the mean would be counted as a component that PCA does not need.

    Attributes
    ----------
    decomposition_ : transformer
        The fitted decomposition.
    n_components_ : int
        Number K of components.
    n_features_in_ : int
        Number D of columns of X (scikit-learn calls them features).
    feature_names_in_ : ndarray of shape (D,)
        Names of the columns, if X was a data frame.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from whyact import load_demo
    >>> from whyact.alternatives.pipelines import CountedDecomposition
    >>> CountedDecomposition(PCA(), centre=True).fit(load_demo().X).n_components_
    5
    """

    def __init__(self, decomposition: BaseEstimator, n_components: int | str = "bicv", centre: bool = False) -> None:
        self.decomposition = decomposition
        self.n_components = n_components
        self.centre = centre

    def fit(self, X: ArrayLike, y: object = None) -> "CountedDecomposition":
        """Count the components, then fit the decomposition.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations.
        y : object, default=None
            Ignored.

        Returns
        -------
        CountedDecomposition
            The fitted transformer.

        Examples
        --------
        >>> from sklearn.decomposition import PCA
        >>> from whyact import load_demo
        >>> from whyact.alternatives.pipelines import CountedDecomposition
        >>> CountedDecomposition(PCA(), n_components=3).fit(load_demo().X).decomposition_.components_.shape
        (3, 36)
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Fit, and return the coefficients of each row.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations.
        y : object, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (N, K)
            Coefficients.

        Examples
        --------
        >>> from sklearn.decomposition import PCA
        >>> from whyact import load_demo
        >>> from whyact.alternatives.pipelines import CountedDecomposition
        >>> CountedDecomposition(PCA(), n_components=3).fit_transform(load_demo().X).shape
        (120, 3)
        """
        rows: np.ndarray = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.n_components_ = self.n_components
        if self.n_components == "bicv":
            self.n_components_ = count_by_bicrossvalidation(rows - rows.mean(axis=0) if self.centre else rows)
        self.decomposition_ = clone(self.decomposition).set_params(n_components=self.n_components_)
        coefficients: np.ndarray = self.decomposition_.fit_transform(rows)
        self._n_features_out = coefficients.shape[1]
        return coefficients

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Coefficients of each row.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Observations.

        Returns
        -------
        ndarray of shape (N, K)
            Coefficients.

        Examples
        --------
        >>> from sklearn.decomposition import PCA
        >>> from whyact import load_demo
        >>> from whyact.alternatives.pipelines import CountedDecomposition
        >>> demo = load_demo()
        >>> CountedDecomposition(PCA(), n_components=3).fit(demo.X[:80]).transform(demo.X[80:]).shape
        (40, 3)
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        coefficients: np.ndarray = self.decomposition_.transform(rows)
        return coefficients

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = get_tags(self.decomposition).input_tags.positive_only
        return tags


def make_nmf_policies(n_components: int | str = "bicv") -> Pipeline:
    """Make a pipeline of NMF and one policy for each factor.

    Negative entries of the observations are set to zero. Coefficients are scaled so that the largest one of each factor
    is one, as it is for substates.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of factors; "bicv" chooses it by bi-cross-validation.

    Returns
    -------
    Pipeline
        Not fitted; its last step is a `PolicyMixtureClassifier`.

    Examples
    --------
    >>> from whyact import load_demo
    >>> from whyact.alternatives.pipelines import make_nmf_policies
    >>> demo = load_demo()
    >>> model = make_nmf_policies(5).fit(demo.X[:80], demo.y[:80])
    >>> model[-1].policies_.shape
    (5, 5)
    """
    return make_pipeline(
        FunctionTransformer(clip_at_zero, validate=True, feature_names_out="one-to-one"),
        CountedDecomposition(make_nmf(None), n_components),
        MaxAbsScaler(),
        PolicyMixtureClassifier(),
    )


def make_pca_policies(n_components: int | str = "bicv") -> Pipeline:
    """Make a pipeline of PCA and two policies for each component, one for each sign of its coefficient.

    A mixture has no negative coefficients, so each is split into its positive and its negative part.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of components; "bicv" chooses it by bi-cross-validation.

    Returns
    -------
    Pipeline
        Not fitted; its last step is a `PolicyMixtureClassifier`.

    Examples
    --------
    >>> from whyact import load_demo
    >>> from whyact.alternatives.pipelines import make_pca_policies
    >>> demo = load_demo()
    >>> model = make_pca_policies(4).fit(demo.X[:80], demo.y[:80])
    >>> model[-1].policies_.shape
    (8, 5)
    """
    return make_pipeline(
        CountedDecomposition(PCA(random_state=0), n_components, centre=True),
        FunctionTransformer(split_signs, validate=True, feature_names_out=name_signs),
        MaxAbsScaler(),
        PolicyMixtureClassifier(),
    )


def make_simplex_policies() -> Pipeline:
    """Make a pipeline of factors on the simplex, counted by bi-cross-validation, and one policy for each.

    Returns
    -------
    Pipeline
        Not fitted; its last step is a `PolicyMixtureClassifier`.

    Examples
    --------
    >>> from whyact import load_demo
    >>> from whyact.alternatives.pipelines import make_simplex_policies
    >>> demo = load_demo()
    >>> make_simplex_policies().fit(demo.X[:80], demo.y[:80]).predict_proba(demo.X[80:]).shape
    (40, 5)
    """
    return make_pipeline(SimplexFactorization(), PolicyMixtureClassifier())


def make_nmf(n_components: int | None) -> NMF:
    """NMF with the settings of all our comparisons."""
    return NMF(n_components, init="nndsvda", max_iter=2000, tol=1e-5, random_state=0)


def clip_at_zero(X: np.ndarray) -> np.ndarray:
    """Set negative entries to zero."""
    clipped: np.ndarray = np.maximum(X, 0.0)
    return clipped


def split_signs(X: np.ndarray) -> np.ndarray:
    """The positive parts of all columns, then the negative ones."""
    return np.hstack([np.maximum(X, 0.0), np.maximum(-X, 0.0)])


def name_signs(transformer: FunctionTransformer, names: Sequence[str]) -> list[str]:
    """Names of the columns that `split_signs` returns."""
    return [f"{name}_{sign}" for sign in ("above", "below") for name in names]
