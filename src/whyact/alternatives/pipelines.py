"""Features first, policies afterwards: a decomposition of scikit-learn, then the mixture of policies by EM."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.decomposition import NMF, PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
from whyact.alternatives.rank import count_by_bicrossvalidation
from whyact.alternatives.simplex import SimplexFactorization


class CountedDecomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator):
    """A decomposition whose number of components is known, or counted at fit.

    Parameters
    ----------
    decomposition : transformer with a parameter `n_components`
    n_components : int or "bicv", default="bicv"
        "bicv" counts by bi-cross-validation of the SVD.
    centre : bool, default=False
        Count on X minus the mean of its columns: for a decomposition that removes the mean itself, as PCA does. With
        the mean left in, it would be counted as a component that PCA does not need.

    Attributes
    ----------
    decomposition_ : the fitted decomposition
    n_components_ : int
    """

    def __init__(self, decomposition, n_components="bicv", centre=False):
        self.decomposition = decomposition
        self.n_components = n_components
        self.centre = centre

    def fit(self, X, y=None):
        """Count the components, then fit the decomposition; y is not looked at."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X, y=None):
        """Fit, and return the coefficients of each row."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if self.n_components == "bicv":
            self.n_components_ = count_by_bicrossvalidation(X - X.mean(axis=0) if self.centre else X)
        else:
            self.n_components_ = self.n_components
        self.decomposition_ = clone(self.decomposition).set_params(n_components=self.n_components_)
        coefficients = self.decomposition_.fit_transform(X)
        self._n_features_out = coefficients.shape[1]
        return coefficients

    def transform(self, X):
        """Coefficients of each row, (N, K)."""
        check_is_fitted(self)
        return self.decomposition_.transform(validate_data(self, X, dtype=np.float64, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = get_tags(self.decomposition).input_tags.positive_only
        return tags


def make_nmf_policies(n_components="bicv") -> Pipeline:
    """NMF of the observations without what is negative, then one policy for each factor.

    Coefficients are scaled so that the largest one of each factor is one, as the substates' is.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of factors; "bicv" chooses it by bi-cross-validation.
    """
    return make_pipeline(
        FunctionTransformer(clip_at_zero, validate=True, feature_names_out="one-to-one"),
        CountedDecomposition(make_nmf(None), n_components),
        MaxAbsScaler(),
        PolicyMixtureClassifier(),
    )


def make_pca_policies(n_components="bicv") -> Pipeline:
    """PCA of the observations, then two policies for each component: one for each sign of its coefficient.

    A mixture has no negative coefficients, so each is split into what is above and what is below zero.

    Parameters
    ----------
    n_components : int or "bicv", default="bicv"
        Number of components; "bicv" chooses it by bi-cross-validation.
    """
    return make_pipeline(
        CountedDecomposition(PCA(random_state=0), n_components, centre=True),
        FunctionTransformer(split_signs, validate=True, feature_names_out=name_signs),
        MaxAbsScaler(),
        PolicyMixtureClassifier(),
    )


def make_simplex_policies() -> Pipeline:
    """Factors on the simplex, their number by bi-cross-validation, then one policy for each."""
    return make_pipeline(SimplexFactorization(), PolicyMixtureClassifier())


def make_nmf(n_components) -> NMF:
    return NMF(n_components, init="nndsvda", max_iter=2000, tol=1e-5, random_state=0)


def clip_at_zero(X):
    return np.maximum(X, 0.0)


def split_signs(X):
    """The positive parts of all columns, then the negative ones."""
    return np.hstack([np.maximum(X, 0.0), np.maximum(-X, 0.0)])


def name_signs(transformer, names):
    return [f"{name}_{sign}" for sign in ("above", "below") for name in names]
