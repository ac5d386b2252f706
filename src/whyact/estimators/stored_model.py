"""From a model file back to a fitted estimator; parameters from files are checked before they are used."""

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import validate_parameter_constraints

from whyact.errors import DamagedFileError, ModelFileError
from whyact.estimators.feature_policy import (
    FeaturePolicyClassifier,
    find_bounds,
    find_priors,
    find_published,
    find_sampled_decisiveness,
    find_start,
)
from whyact.model import Target, make_target
from whyact.sampler.settings import AsPublished
from whyact.scaling import Scaling
from whyact.storage.model_reader import read_model

# Options that count something; a kernel that counts so far could not be stopped.
COUNTS = ("n_burn_in", "n_draws", "thin", "n_chains", "n_components", "max_features", "max_prediction_draws")
LARGEST_COUNT = 10**9


def complete_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Check parameters of the estimator without making one, and add the defaults of the others.

    Raises a ValueError that names the parameter whose value is not legal.
    """
    defaults = {name: given.default for name, given in signature(FeaturePolicyClassifier).parameters.items()}
    complete = defaults | parameters
    constraints = FeaturePolicyClassifier._parameter_constraints
    validate_parameter_constraints(constraints, complete, caller_name=FeaturePolicyClassifier.__name__)
    find_published(complete["sampler"])
    return complete


def check_stored_parameters(parameters: dict[str, Any]) -> None:
    """Parameters that come from a file must be known and legal."""
    known = FeaturePolicyClassifier._get_param_names()
    for name in parameters:
        if name not in known:
            raise DamagedFileError(f"'settings' has the unknown option {name[:50]!r}")
    if any(is_truth_for_number(name, value) for name, value in parameters.items()):
        raise DamagedFileError("'settings' has an option with a wrong value")
    try:
        complete = complete_parameters(parameters)
        published = find_published(complete["sampler"])
    except (ValueError, TypeError, OverflowError):
        raise DamagedFileError("'settings' has an option with a wrong value") from None
    numbers = [complete[name] for name in COUNTS] + [published.n_indicators if published else 0]
    if any(number is not None and number > LARGEST_COUNT for number in numbers):
        raise DamagedFileError("'settings' has an option with a value that is too large")


def is_truth_for_number(name: str, value: Any) -> bool:
    """Whether a truth value stands for a number: it passes for one in Python, but not as the size of an array."""
    constraints = FeaturePolicyClassifier._parameter_constraints[name]
    may_be_truth = constraints == "no_validation" or "boolean" in constraints
    numbers = value if isinstance(value, AsPublished) else (value,)
    return not may_be_truth and any(isinstance(number, bool) for number in numbers)


def make_stored_target(
    parameters: dict[str, Any],
    n_actions: int,
    n_dimensions: int,
    weights: dict[str, float],
    combination: str,
    scaling: Scaling,
) -> Target:
    """The distribution that was sampled, by the parameters in a file."""
    complete = complete_parameters(parameters)
    is_plain = n_actions < 2 or find_published(complete["sampler"])
    starts_from_rows = find_start(complete["start"], n_dimensions) == "rows"
    return make_target(
        find_priors(complete["priors"], scaling),
        n_actions=n_actions,
        n_dimensions=n_dimensions,
        n_levels=complete["n_levels"],
        feature_values=complete["feature_values"],
        combination=combination,
        decisiveness=1.0 if is_plain else find_sampled_decisiveness(complete["decisiveness"], starts_from_rows),
        **find_bounds(complete["n_components"], complete["max_features"], scaling.holds_noise),
        observation_weight=weights["observation_weight"],
        action_weight=weights["action_weight"],
    )


def load(path: Path | str, *, max_memory: float | None = None) -> FeaturePolicyClassifier:
    """Read a model that `FeaturePolicyClassifier.save` or `whyact fit` wrote.

    It predicts the same numbers, bit for bit. Nothing in the file is run, and a file that is damaged, or made to do
    harm, is refused in one sentence (`ModelFileError`, a ValueError).

    Parameters
    ----------
    path : Path or str
    max_memory : float or None, default=None
        Bytes that the file may ask for, if you trust it. None: what the environment variable WHYACT_MAX_MEMORY says
        (such as 4G), or else 100 times its size and 4 MiB more, so that a small file cannot fill the memory.

    Returns
    -------
    FeaturePolicyClassifier
        Fitted, with the default `n_jobs` and `verbose`; with `warm_start=True` it can draw more.

    Examples
    --------
    >>> import tempfile
    >>> from whyact import FeaturePolicyClassifier, load, load_demo
    >>> demo = load_demo()
    >>> model = FeaturePolicyClassifier(n_burn_in=300, n_draws=300, n_chains=2, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.fit(demo.X[:80], demo.y[:80]).save(f"{folder}/model.nc")
    ...     loaded = load(f"{folder}/model.nc")
    >>> bool((loaded.predict_proba(demo.X) == model.predict_proba(demo.X)).all())
    True
    """
    result = read_model(Path(path), check_stored_parameters, make_stored_target, max_memory)
    model = FeaturePolicyClassifier(**result.parameters)
    try:
        model._set_result(replace(result, parameters=model.get_params(deep=False)))
    except DamagedFileError as error:
        raise ModelFileError(f"{path} is not a whyact model: {error}.") from None
    return model
