"""whyact: learn why a teacher acts.

from whyact import FeaturePolicyClassifier
model = FeaturePolicyClassifier(random_state=0).fit(observations, actions)
print(model)
"""

import importlib
from typing import TYPE_CHECKING, Any

from whyact.version import __version__ as __version__

if TYPE_CHECKING:
    from whyact.alternatives.cluster.estimator import ClusterPolicyClassifier, ClusterPriors
    from whyact.alternatives.pattern.estimator import PatternPolicyClassifier
    from whyact.alternatives.per_action import PerActionFeaturesClassifier
    from whyact.comparison import Comparison, compare
    from whyact.demo import load_demo
    from whyact.errors import ChainsDisagreeWarning, DoubtfulFitWarning, WhyactError
    from whyact.estimators.feature_policy import FeaturePolicyClassifier
    from whyact.estimators.stored_model import load
    from whyact.model import Priors
    from whyact.sampler.settings import AsPublished
    from whyact.simulation import simulate

# Names are imported when first used, so that `import whyact` is instant.
_HOMES = {
    "AsPublished": "whyact.sampler.settings",
    "ChainsDisagreeWarning": "whyact.errors",
    "ClusterPolicyClassifier": "whyact.alternatives.cluster.estimator",
    "ClusterPriors": "whyact.alternatives.cluster.estimator",
    "Comparison": "whyact.comparison",
    "DoubtfulFitWarning": "whyact.errors",
    "FeaturePolicyClassifier": "whyact.estimators.feature_policy",
    "PatternPolicyClassifier": "whyact.alternatives.pattern.estimator",
    "PerActionFeaturesClassifier": "whyact.alternatives.per_action",
    "Priors": "whyact.model",
    "WhyactError": "whyact.errors",
    "compare": "whyact.comparison",
    "load": "whyact.estimators.stored_model",
    "load_demo": "whyact.demo",
    "simulate": "whyact.simulation",
}

__all__ = [
    "AsPublished",
    "ChainsDisagreeWarning",
    "ClusterPolicyClassifier",
    "ClusterPriors",
    "Comparison",
    "DoubtfulFitWarning",
    "FeaturePolicyClassifier",
    "PatternPolicyClassifier",
    "PerActionFeaturesClassifier",
    "Priors",
    "WhyactError",
    "compare",
    "load",
    "load_demo",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'whyact' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
