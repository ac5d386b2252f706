"""The models that a comparison knows by name."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags

from whyact.alternatives.pipelines import make_nmf_policies, make_pca_policies, make_simplex_policies
from whyact.comparison.classifiers import LABELS, Candidate, make_classifiers

# Sweeps and chains of the samplers: a third of the estimators' defaults in half the chains. Every model is fitted at
# least ten times, which takes about five minutes for 500 rows of 30 columns on two cores.
LENGTH = {"n_burn_in": 500, "n_draws": 500, "n_chains": 2}


class Contestant(NamedTuple):
    """A model that is known by name."""

    label: str
    make: Callable[[], Candidate]
    is_default: bool = True


def sampler(label: str, module: str, name: str, is_default: bool = True, **options: Any) -> Contestant:
    """One of our samplers; its module is imported when it is made."""
    return Contestant(
        label, lambda: Candidate(getattr(importlib.import_module(module), name)(**LENGTH, **options)), is_default
    )


def features(label: str, is_default: bool = True, **options: Any) -> Contestant:
    """The paper's model; it scales columns by itself."""
    return sampler(label, "whyact.estimators.feature_policy", "FeaturePolicyClassifier", is_default, **options)


def classifier(name: str, is_default: bool = True) -> Contestant:
    """One of the usual classifiers."""
    return Contestant(LABELS[name], lambda: make_classifiers(None)[name], is_default)


CONTESTANTS = {
    "features": features("feature policies"),
    # which of these two "features" takes is its own choice; by default only what it has chosen is compared
    "features-mixture": features("mixture of policies", is_default=False, combination="mixture"),
    "features-product": features("product of policies", is_default=False, combination="product"),
    "patterns": sampler("pattern policies", "whyact.alternatives.pattern.estimator", "PatternPolicyClassifier"),
    "clusters": sampler("cluster policies", "whyact.alternatives.cluster.estimator", "ClusterPolicyClassifier"),
    "per-action": sampler("features per action", "whyact.alternatives.per_action", "PerActionFeaturesClassifier"),
    "pca": Contestant("PCA + policies", lambda: Candidate(make_pca_policies())),
    "nmf": Contestant("NMF + policies", lambda: Candidate(make_nmf_policies())),
    "simplex": Contestant("simplex + policies", lambda: Candidate(make_simplex_policies()), False),
    "lr": classifier("lr"),
    "lda": classifier("lda", is_default=False),
    "knn": classifier("knn"),
    "forest": classifier("forest"),
    "boosting": classifier("boosting"),
    "mlp": classifier("mlp", is_default=False),
    "majority": Contestant("most frequent action", lambda: Candidate(DummyClassifier(strategy="prior"))),
}
DEFAULT = tuple(name for name, contestant in CONTESTANTS.items() if contestant.is_default)


def scales_by_itself(candidate: Candidate) -> bool:
    """Whether a model scales columns that need it."""
    return getattr(candidate.estimator, "scale_columns", False) is not False


def accepts_missing(candidate: Candidate) -> bool:
    """Whether a model can learn from rows with missing entries."""
    return bool(get_tags(candidate.estimator).input_tags.allow_nan)


def impute_first(candidate: Candidate) -> Candidate:
    """The same model, with missing entries replaced by the mean of their column first."""
    return put_first(SimpleImputer(keep_empty_features=True), candidate)


def scale_first(candidate: Candidate) -> Candidate:
    """The same model, with every column brought to the range from 0 to 1 first, so that features can be positive."""
    return put_first(MinMaxScaler(), candidate)


def put_first(transformer: Any, candidate: Candidate) -> Candidate:
    """A pipeline of both, with the same settings to choose from."""
    pipeline = make_pipeline(transformer, candidate.estimator)
    step = pipeline.steps[-1][0]
    settings = {f"{step}__{setting}": values for setting, values in candidate.settings.items()}
    return Candidate(pipeline, settings, candidate.n_folds)
