"""Shared by all tests."""

import os
import time

import pytest

BEGAN = time.monotonic()
# CI has to end in time, however slow its machine is on that day; everywhere else all tests run.
MINUTES = float(os.environ.get("WHYACT_TEST_MINUTES", "inf"))


def pytest_runtest_setup(item):
    """Leave out, and say so, what would begin after the time that is given."""
    if time.monotonic() - BEGAN > 60.0 * MINUTES:
        pytest.skip(f"the {MINUTES:g} minutes that CI has for tests were over; `make test` runs all of them")


@pytest.fixture(scope="session")
def demo():
    from whyact import load_demo

    return load_demo()


@pytest.fixture(scope="session")
def fitted(demo):
    """A model fitted to the first 80 demonstrations of the demo; do not change it."""
    from tests.support.plain import PLAIN
    from whyact import FeaturePolicyClassifier

    model = FeaturePolicyClassifier(**PLAIN, n_burn_in=600, n_draws=400, thin=4, n_chains=2, random_state=0)
    return model.fit(demo.X[:80], demo.y[:80])
