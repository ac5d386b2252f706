"""Shared by all tests."""

import pytest


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
