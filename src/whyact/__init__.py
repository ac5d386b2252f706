"""whyact: learn why a teacher acts.

from whyact import FeaturePolicyClassifier
model = FeaturePolicyClassifier(random_state=0).fit(observations, actions)
print(model)
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from whyact.alternatives.cluster_policy import ClusterPolicyClassifier, ClusterPriors
    from whyact.alternatives.pattern_policy import PatternPolicyClassifier
    from whyact.alternatives.per_action import PerActionFeaturesClassifier
    from whyact.comparison import Comparison, compare
    from whyact.demo import load_demo
    from whyact.estimator import FeaturePolicyClassifier
    from whyact.model import Priors, simulate
    from whyact.model_files import load
    from whyact.posterior import ChainsDisagreeWarning
    from whyact.sampler.settings import AsPublished

# Names are imported when first used, so that `import whyact` is instant.
_HOMES = {
    "AsPublished": "whyact.sampler.settings",
    "ChainsDisagreeWarning": "whyact.posterior",
    "ClusterPolicyClassifier": "whyact.alternatives.cluster_policy",
    "ClusterPriors": "whyact.alternatives.cluster_policy",
    "Comparison": "whyact.comparison",
    "FeaturePolicyClassifier": "whyact.estimator",
    "PatternPolicyClassifier": "whyact.alternatives.pattern_policy",
    "PerActionFeaturesClassifier": "whyact.alternatives.per_action",
    "Priors": "whyact.model",
    "compare": "whyact.comparison",
    "load": "whyact.model_files",
    "load_demo": "whyact.demo",
    "simulate": "whyact.model",
}

__all__ = [
    "AsPublished",
    "ChainsDisagreeWarning",
    "ClusterPolicyClassifier",
    "ClusterPriors",
    "Comparison",
    "FeaturePolicyClassifier",
    "PatternPolicyClassifier",
    "PerActionFeaturesClassifier",
    "Priors",
    "compare",
    "load",
    "load_demo",
    "simulate",
]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'whyact' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOMES])
