"""No kernel runs for ever, whatever numbers it is given: Ctrl-C would wait for its end."""

import subprocess
import sys

import numpy as np
import pytest

from whyact.sampler.combining import Votes, bound_inverse_probability
from whyact.sampler.compiling import kernel
from whyact.sampler.features import draw_positive_normal
from whyact.sampler.limits import LOST, draw_beta, draw_binomial, draw_gamma, draw_number_of_births
from whyact.sampler.polya_gamma import draw_polya_gamma
from whyact.sampler.slicing import make_slice_sampler
from whyact.sampler.substates import ActionTerm, draw_level

# Each is a loop that does not end without its limit. They run in a process of their own, which can be killed.
ENDLESS = {
    "a truncated normal": lambda rng: draw_positive_normal(rng, np.nan),
    "a truncated normal, far out": lambda rng: draw_positive_normal(rng, -1e300),
    "polya-gamma": lambda rng: draw_polya_gamma(rng, np.nan),
    "polya-gamma, far out": lambda rng: draw_polya_gamma(rng, 1e250),
    "gamma": lambda rng: draw_gamma(rng, np.nan),
    "gamma, negative": lambda rng: draw_gamma(rng, -1e-3),
    "beta": lambda rng: draw_beta(rng, 1e-300, 1e-300),
    "binomial": lambda rng: draw_binomial(rng, 1000, np.nan),
    "births": lambda rng: draw_number_of_births(rng, 1e12),
    "births, not a number": lambda rng: draw_number_of_births(rng, np.nan),
    "a substate": lambda rng: draw_level(rng, np.empty(1002), np.nan, 1.0, 1001, 0.5, 5e-4, NO_ACTION),
    "a slice": lambda rng: draw_slice_flat(rng, 1.0, (0.0,)),
}
NO_ACTION = ActionTerm(0.0, 1.0, 0.0, 0.0, 1.0)


@kernel
def log_density_flat(value, arguments):
    """As flat as the density of a number that nothing says anything about."""
    return arguments[0]


draw_slice_flat = make_slice_sampler(log_density_flat)


def run_apart(code, seconds=500):
    """What a process of its own prints; it is killed, and the test fails, if it does not end."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_a_loop_that_would_not_end_says_what_is_wrong():
    code = (
        "import numpy as np\nfrom tests.sampler.test_limits import ENDLESS\n"
        "for name, draw in ENDLESS.items():\n"
        "    try:\n        print(name, draw(np.random.default_rng(0)))\n"
        "    except FloatingPointError as error:\n        print(error)\n"
    )
    assert run_apart(code) == [LOST] * len(ENDLESS)


def test_a_bound_ends_for_an_infinite_power():
    votes = Votes(False, np.inf, 0.0, np.ones((1, 2)), np.zeros(2))
    data = namedtuple_without_mask()
    assert bound_inverse_probability(np.array([0.9, 0.1]), 0, 0, votes, data) == 1.0


def namedtuple_without_mask():
    from whyact.model import make_demonstrations

    return make_demonstrations(np.ones((1, 2)), np.zeros(1, dtype=np.int64))


STATES = """
import numpy as np
from whyact.model import Priors, make_demonstrations, make_target
from whyact.sampler.chain import run_segment
from whyact.sampler.exact import start_from_prior

rng = np.random.default_rng(0)
observations, actions = rng.random((20, 6)), np.arange(20) % 3
data = make_demonstrations(observations, actions)
for options in ({}, {"decisiveness": "drawn"}, {"combination": "product"}):
    target = make_target(Priors(), n_actions=3, n_dimensions=6, **options)
    first = start_from_prior(rng, data, target, Priors())
    _, start, _ = run_segment(rng, first, np.ones(5), 0, 5, 1, data, target)
    for name in start._fields:
        for value in (np.nan, np.inf, 1e300, 1e150, 1e-300, 0.0, -1.0):
            old = getattr(start, name)
            state = start._replace(**{name: value if np.isscalar(old) else np.full_like(old, value)})
            try:
                run_segment(np.random.default_rng(1), state, np.ones(3), 5, 5, 1, data, target)
            except FloatingPointError as error:
                assert "range of floating point" in str(error)
    for factor in (1e-200, 1e100, 1e200, 1e300):
        absurd = make_demonstrations(observations * factor, actions)
        try:
            run_segment(np.random.default_rng(1), start, np.ones(3), 5, 5, 1, absurd, target)
        except FloatingPointError as error:
            assert "range of floating point" in str(error)
print("ended")
"""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_sweep_ends_from_any_state():
    assert run_apart(STATES) == ["ended"]


PREDICTIONS = """
import copy
from dataclasses import replace
import numpy as np
from whyact import FeaturePolicyClassifier
X, y = np.random.default_rng(0).random((12, 4)), np.arange(12) % 2
for combination in ("mixture", "product"):
    model = FeaturePolicyClassifier(
        n_burn_in=5, n_draws=5, n_chains=1, random_state=0, scale_columns=True, combination=combination
    ).fit(X, y)
    for tiny in (1e-120, 1e-150, 1e-160, 1e-200, 5e-324):
        scaling = replace(model._result.scaling, column_range=np.full(4, tiny))
        strange = copy.copy(model)
        strange._result = replace(model._result, scaling=scaling)
        for ask in (strange.predict_proba, strange.explain, lambda X: str(strange), lambda X: strange.score(X, y)):
            try:
                ask(X)
            except (ValueError, FloatingPointError) as error:
                assert "range of floating point" in str(error) or "overflow" in str(error), error
print("ended")
"""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_prediction_ends_for_any_range_of_the_columns():
    """As a model file may have them."""
    assert run_apart(PREDICTIONS) == ["ended"]
