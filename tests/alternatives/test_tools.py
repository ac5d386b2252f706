"""Numbers of features without a model of the actions, factors on the simplex, and the mixture of policies by EM."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments.simulations.measures import compare_with_truth
from experiments.simulations.study import DataSet
from whyact.alternatives.policy_mixture import PolicyMixtureClassifier
from whyact.alternatives.rank import bicrossvalidate, count_by_bicrossvalidation, count_by_minka
from whyact.alternatives.simplex import SimplexFactorization, find_pure_rows, fit_features, project_to_mixtures


@parametrize_with_checks([PolicyMixtureClassifier(), SimplexFactorization(), SimplexFactorization(n_components=2)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_bicrossvalidation_has_least_error_at_the_true_rank():
    truth = DataSet(7, 25.0, 0).draw()
    errors = bicrossvalidate(truth.observations)
    assert errors.argmin() == 7
    assert errors[0] > errors[3] > errors[7] < errors[12]


def test_bicrossvalidation_predicts_a_matrix_of_low_rank_exactly():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 12))
    errors = bicrossvalidate(X)
    assert errors[3] < 1e-15 * errors[0]
    assert errors[2] > 1e-3 * errors[0]


@pytest.mark.parametrize("count", [count_by_minka, count_by_bicrossvalidation])
@pytest.mark.parametrize("n_features", [5, 12])
def test_number_of_features_is_found_where_noise_is_weak(count, n_features):
    assert count(DataSet(n_features, 30.0, 1).draw().train[0]) == n_features


def test_mixture_coefficients_are_the_least_squares_solution_on_the_simplex():
    rng = np.random.default_rng(1)
    features = rng.exponential(size=(3, 6))
    X = rng.normal(0.7, 1.0, (5, 6))
    for row, found in zip(X, project_to_mixtures(X, features), strict=True):
        best = minimize(
            lambda s, row=row: np.sum((row - s @ features) ** 2), np.full(3, 1 / 3), bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1}, options={"ftol": 1e-12},
        )  # fmt: skip
        np.testing.assert_allclose(found, best.x, atol=1e-4)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1, abs=1e-4)


def test_features_are_not_negative():
    rng = np.random.default_rng(2)
    assert fit_features(rng.normal(size=(8, 4)), rng.random((8, 3))).min() >= 0


def test_pure_rows_are_found_among_mixtures():
    rng = np.random.default_rng(3)
    features = rng.exponential(size=(4, 10))
    mixtures = np.vstack([rng.dirichlet(np.ones(4), 30), np.eye(4)])
    assert set(find_pure_rows(mixtures @ features, 4)) == {30, 31, 32, 33}


def test_factors_recover_the_truth():
    truth = DataSet(5, 30.0, 2).draw()
    model = SimplexFactorization().fit(truth.observations)
    assert model.n_components_ == 5
    substates = model.transform(truth.observations)
    errors = compare_with_truth(
        model.components_, substates, truth.policies, truth.features, truth.substates, truth.policies
    )
    assert errors.rmse_features < 0.05
    assert errors.rmse_substates < 0.03


def test_em_finds_the_optimum_of_the_likelihood():
    rng = np.random.default_rng(4)
    S = rng.dirichlet(np.full(2, 0.5), 60)
    y = (rng.random(60) >= S @ [0.8, 0.3]).astype(int)
    model = PolicyMixtureClassifier(pseudo_count=0.0, tol=1e-9, max_iter=20_000).fit(S, y)

    def loss(p):
        mixture = S @ p
        return -np.log(np.where(y == 0, mixture, 1 - mixture)).sum()

    best = minimize(loss, [0.5, 0.5], bounds=[(1e-6, 1 - 1e-6)] * 2)
    np.testing.assert_allclose(model.policies_[:, 0], best.x, atol=1e-3)


def test_a_row_without_any_feature_has_uniform_actions():
    model = PolicyMixtureClassifier().fit(np.eye(2), ["a", "b"])
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), [[0.5, 0.5]])


def test_negative_coefficients_are_refused():
    with pytest.raises(ValueError, match="Negative values"):
        PolicyMixtureClassifier().fit([[1.0, -1.0], [0.5, 0.5]], [0, 1])
