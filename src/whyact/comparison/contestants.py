"""The models that a comparison knows by name."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags

from whyact.alternatives.pipelines import make_nmf_policies, make_pca_policies, make_simplex_policies
from whyact.comparison.classifiers import LABELS, Candidate, make_classifiers

# Sweeps and chains of the samplers. A third of the estimators' defaults in half the chains: every model is fitted ten
# times and more, and so it is about five minutes for 500 rows of 30 columns on two cores.
LENGTH = {"n_burn_in": 500, "n_draws": 500, "n_chains": 2}
# Enough to compile everything.
SHORTEST = {"n_burn_in": 1, "n_draws": 5, "n_chains": 2}


class Contestant(NamedTuple):
    """A model by name."""

    label: str
    make: Callable[[], Candidate]
    is_default: bool = True


def sampler(label: str, module: str, name: str) -> Contestant:
    """One of our samplers, imported when it is made."""
    return Contestant(label, lambda: Candidate(getattr(importlib.import_module(module), name)(**LENGTH)))


def classifier(name: str, is_default: bool = True) -> Contestant:
    return Contestant(LABELS[name], lambda: make_classifiers(None)[name], is_default)


CONTESTANTS = {
    "features": sampler("feature policies", "whyact.estimators.feature_policy", "FeaturePolicyClassifier"),
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


def accepts_missing(candidate: Candidate) -> bool:
    return get_tags(candidate.estimator).input_tags.allow_nan


def impute_first(candidate: Candidate) -> Candidate:
    """Put the mean of a column where an entry is missing, then go on as before."""
    return put_first(SimpleImputer(keep_empty_features=True), candidate)


def scale_first(candidate: Candidate) -> Candidate:
    """Bring every column to the range from 0 to 1, where positive features can be, then go on as before."""
    return put_first(MinMaxScaler(), candidate)


def put_first(transformer, candidate: Candidate) -> Candidate:
    """A pipeline with the same settings to choose from."""
    pipeline = make_pipeline(transformer, candidate.estimator)
    step = pipeline.steps[-1][0]
    settings = {f"{step}__{setting}": values for setting, values in candidate.settings.items()}
    return Candidate(pipeline, settings, candidate.n_folds)
