"""What matters, whether the residual looks like noise, and what speaks against a model."""

import numpy as np
import pytest

from whyact import FeaturePolicyClassifier
from whyact.explanation.matter import Speakers, find_what_matters, leave_out
from whyact.explanation.residuals import Residual, examine_residual, say_residual
from whyact.explanation.suitability import list_doubts, say_what_matters, score_of_base_rates

QUICK = {"n_burn_in": 1200, "n_draws": 60, "thin": 3, "n_chains": 2, "random_state": 0, "scale_columns": False}
pytestmark = pytest.mark.filterwarnings("ignore::whyact.ChainsDisagreeWarning")


def draw_blocks(rng, n_rows=150):
    """Three features of three columns each; the first one alone decides."""
    substates = rng.random((n_rows, 3)) * (rng.random((n_rows, 3)) < 0.7)
    X = substates @ np.kron(np.eye(3), np.ones(3)) + 0.05 * rng.standard_normal((n_rows, 9))
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-25.0 * (substates[:, 0] - 0.35)))).astype(int)


@pytest.fixture(scope="module", params=["product", "mixture"])
def fitted(request):
    X, y = draw_blocks(np.random.default_rng(0))
    return FeaturePolicyClassifier(**QUICK, combination=request.param).fit(X, y)


def test_only_what_decides_matters(fitted):
    deciding = int(np.argmax(fitted.components_[:, :3].sum(axis=1)))
    matters = find_what_matters(fitted)
    assert deciding in matters.features
    assert matters.share >= 0.95
    if fitted.combination_ == "product":  # in a mixture the others are what it is weighed against
        assert len(matters.features) == 1
        assert say_what_matters(fitted)[0].startswith("1 of them carries ")


def test_with_all_features_nothing_is_lost(fitted):
    amounts = fitted.transform(fitted.observations_[:50])
    speakers = Speakers(fitted, amounts, None)
    reference = speakers.combine(np.ones(fitted.n_components_, bool))
    assert np.allclose(reference, fitted.policy(amounts))
    order = leave_out(speakers, reference)
    assert sorted(order) == list(range(fitted.n_components_))
    assert speakers.project(order, reference) == pytest.approx(0.0, abs=1e-3)


def test_nothing_matters_without_actions():
    X, _ = draw_blocks(np.random.default_rng(1), 60)
    model = FeaturePolicyClassifier(**QUICK).fit(X)
    assert find_what_matters(model) is None
    assert say_what_matters(model) == []


def test_white_noise_looks_like_noise(fitted):
    residual = examine_residual(fitted)
    assert residual.looks_like_noise
    assert residual.n_dimensions == pytest.approx(residual.expected, rel=0.15)
    assert residual.of_neighbours == pytest.approx(0.0, abs=0.1)
    assert say_residual(residual) == "What the features leave unexplained looks like noise."


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_structure_in_the_residual_is_told(kind):
    rng = np.random.default_rng(2)
    X, y = draw_blocks(rng)
    if kind == "columns":  # a background that is above and below zero, which no positive feature can hold
        X += 0.3 * rng.standard_normal((len(X), 1)) * np.array([1, -1] * 4 + [1])
    else:
        X += np.cumsum(0.1 * rng.standard_normal(X.shape), axis=0) * 0.3
    # free noise, and as many features as there are in truth: what else is there must stay in the residual
    model = FeaturePolicyClassifier(**QUICK, combination="product", max_features=3).fit(X, y)
    residual = examine_residual(model)
    assert not residual.looks_like_noise
    assert say_residual(residual) in list_doubts(model)


def test_the_limits_of_noise():
    assert Residual(8.0, 10.0, 0.1).looks_like_noise
    assert "6 effective dimensions, noise would have 10" in say_residual(Residual(6.0, 10.0, 0.1))
    assert "neighbouring rows correlate by 0.30" in say_residual(Residual(9.0, 10.0, 0.3))
    assert say_residual(None) == ""


def test_actions_at_random_are_doubted():
    rng = np.random.default_rng(3)
    X, _ = draw_blocks(rng, 120)
    model = FeaturePolicyClassifier(**QUICK).fit(X, rng.integers(2, size=120))
    assert score_of_base_rates(model) == pytest.approx(-np.log(2), abs=0.02)
    assert any("no better than by how often each one occurs" in doubt for doubt in list_doubts(model))


def test_more_features_than_columns_are_doubted():
    X, y = draw_blocks(np.random.default_rng(4), 60)
    model = FeaturePolicyClassifier(**QUICK | {"n_burn_in": 300}, combination="mixture").fit(X, y)
    assert not any("than columns" in doubt for doubt in list_doubts(model))
    model.n_components_ = 10
    assert any("more features (10) than columns (9)" in doubt for doubt in list_doubts(model))
