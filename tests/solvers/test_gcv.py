"""Generalised cross-validation, against its definition."""

import numpy as np
import pytest
from scipy import linalg

from rflaf.solvers.gcv import caution, gcv_losses, spectrum_of_rows, spectrum_of_sums
from tests.solvers.test_ridge import each_intercept, sums, with_ones


@each_intercept
@pytest.mark.parametrize("m", [5, 40], ids=["tall", "wide"])
def test_sums_against_the_hat_matrix(rng, fit_intercept, m):
    n = 25
    phi, y = rng.standard_normal((n, m)) + 1, rng.standard_normal((n, 2)) + 3
    alphas = [1e-3, 0.1, 2.0]
    expected = []
    for alpha in alphas:
        design = with_ones(phi) if fit_intercept else phi
        penalty = n * alpha * np.eye(design.shape[1])
        if fit_intercept:
            penalty[-1, -1] = 0
        hat = design @ linalg.solve(design.T @ design + penalty, design.T)
        error = np.sum((y - hat @ y) ** 2) / n  # summed over the outputs
        rest = np.eye(n) - hat
        bound = caution(np.trace(rest) ** 2 / np.trace(rest @ rest))
        expected.append(error / (1 - np.trace(hat) / n) ** 2 * bound)
    spectrum = spectrum_of_sums(sums(phi, y), fit_intercept)
    np.testing.assert_allclose(gcv_losses(spectrum, alphas), expected, rtol=1e-6)
    rows = spectrum_of_rows(phi, y, np.ones(n), fit_intercept)
    np.testing.assert_allclose(gcv_losses(rows, alphas), expected, rtol=1e-6)


def test_a_row_of_weight_two_is_counted_twice(rng):
    phi, y = rng.standard_normal((90, 12)), rng.standard_normal((90, 2))
    weights = np.where(np.arange(90) < 30, 2.0, 1.0)
    stacked = sums(np.vstack([phi, phi[:30]]), np.vstack([y, y[:30]]))
    alphas = [1e-3, 0.1]
    one, other = (spectrum_of_sums(each, True) for each in (sums(phi, y, weights), stacked))
    np.testing.assert_allclose(gcv_losses(one, alphas), gcv_losses(other, alphas), rtol=1e-9)


def test_the_criterion_is_that_of_the_definition(rng):
    phi, y = rng.standard_normal((20, 8)), rng.standard_normal((20, 1))
    weights = rng.integers(1, 4, 20).astype(float)
    n = 20  # weights have no unit: it is the rows that count
    w = np.sqrt(np.diag(weights / weights.sum()))
    ones = np.ones((20, 1))
    spectrum = spectrum_of_rows(phi, y, weights, True)
    for alpha, found in zip((0.01, 1.0), gcv_losses(spectrum, [0.01, 1.0]), strict=True):
        design = w @ np.hstack([phi, ones])
        penalty = alpha * np.diag([1.0] * 8 + [0.0])
        hat = design @ linalg.solve(design.T @ design + penalty, design.T)
        rest = np.eye(20) - hat
        free = n - np.trace(hat)
        square = np.trace(rest @ rest)
        expected = np.sum((rest @ w @ y) ** 2) / (free / n) ** 2 * caution(free**2 / square)
        assert found == pytest.approx(expected, rel=1e-9)


def test_caution_is_for_few_degrees_of_freedom():
    """Of errors that so many degrees of freedom tell of, 19 in 20 are below the bound."""
    rng = np.random.default_rng(0)
    for degrees in (1, 3, 30):
        means = rng.chisquare(degrees, 20_000) / degrees
        assert np.mean(means * caution(degrees) > 1) == pytest.approx(0.95, abs=0.01)
    assert caution(10_000) < 1.05


def test_features_without_variance_leave_the_variance_of_the_targets(rng):
    y = rng.standard_normal((30, 1))
    spectrum = spectrum_of_rows(np.ones((30, 4)), y, np.ones(30), True)
    expected = np.var(y) / (29 / 30) ** 2 * caution(29)
    np.testing.assert_allclose(gcv_losses(spectrum, [1e-3, 1.0]), expected)
