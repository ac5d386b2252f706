"""Compile the kernels of samplers before several processes need them."""

import warnings
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from sklearn.base import clone

from whyact.model import COMBINATIONS

# Parameters that tell a sampler, and values that are enough to compile everything.
SHORTEST = {"n_burn_in": 1, "n_draws": 5, "n_chains": 2}


def compile_kernels(estimators: Iterable[Any], X: Any, y: Any, predictions: Sequence[str | None] = (None,)) -> None:
    """Compile the kernels of all samplers among some estimators, so that other processes find them in the cache.

    Each is fitted as briefly as possible and predicts a row, in every way of `predictions`; None is its own way.
    """
    samplers = [shorten(estimator) for estimator in estimators if is_sampler(estimator)]
    for estimator in chain.from_iterable(map(list_combinations, samplers)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = estimator.fit(X, y)
                for prediction in predictions:
                    fitted.predict_proba(X[:1]) if prediction is None else fitted.judge(X[:1], prediction)
        except Exception:  # the real fit will fail in the same way, where it is handled
            continue


def is_sampler(estimator: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, runs chains and so takes long."""
    return set(SHORTEST) <= {last_part(name) for name in estimator.get_params()}


def shorten(estimator: Any) -> Any:
    """A clone of a sampler with the shortest chains."""
    parameters = estimator.get_params()
    shortest = {name: SHORTEST[last_part(name)] for name in parameters if last_part(name) in SHORTEST}
    return set_seeds(estimator, 0).set_params(**shortest)


def list_combinations(estimator: Any) -> list[Any]:
    """The sampler, once for each way to combine policies if it is to choose, which takes many sweeps."""
    parameters = estimator.get_params()
    free = {name: None for name, value in parameters.items() if last_part(name) == "tolerance" and value == "auto"}
    estimator = clone(estimator).set_params(**free)
    names = [n for n, value in parameters.items() if last_part(n) == "combination" and value == "auto"]
    if not names:
        return [estimator]
    return [clone(estimator).set_params(**dict.fromkeys(names, way)) for way in COMBINATIONS]


def set_seeds(estimator: Any, seed: int) -> Any:
    """A clone in which everything that is random and has no seed gets this one."""
    estimator = clone(estimator)
    parameters = estimator.get_params()
    seeds = {name: seed for name in parameters if last_part(name) == "random_state" and parameters[name] is None}
    return estimator.set_params(**seeds)


def last_part(name: str) -> str:
    """Name of a parameter inside the step of a pipeline that has it."""
    return name.split("__")[-1]
