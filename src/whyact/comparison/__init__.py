"""Which model predicts a teacher best: many models on the same folds; differences that are only luck count as ties.

`crossvalidation.py` has `compare` and its steps: `inputs.py` checks the rows and chooses models, `contestants.py` and
`classifiers.py` know them by name, `folds.py` splits the rows, `scoring.py` measures predictions. `results.py` has the
`Comparison`, `picture.py` draws it. `compiling.py` compiles kernels before several processes need them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyact.comparison.crossvalidation import compare, count_components
    from whyact.comparison.results import Comparison

# Names are imported when first used: the models need all of scikit-learn, and whoever only wants a score does not.
_HOMES = {
    "Comparison": "whyact.comparison.results",
    "compare": "whyact.comparison.crossvalidation",
    "count_components": "whyact.comparison.crossvalidation",
}

__all__ = ["Comparison", "compare", "count_components"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
