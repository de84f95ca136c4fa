"""The factorisation, where the matrix is fine and where rounding has spoilt it."""

import numpy as np
import pytest
from scipy import linalg

from rflaf.solvers.linalg import (
    factorise,
    solve_factored,
    solve_positive,
    unwhiten,
    whiten,
)


@pytest.fixture
def matrix(rng):
    half = rng.standard_normal((12, 20))
    return half @ half.T


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_factor_of_a_positive_matrix(matrix, rng, order):
    given = np.array(matrix, order=order)
    factor = np.tril(factorise(given, 0.5))
    np.testing.assert_allclose(factor @ factor.T, matrix + 0.5 * np.eye(12), rtol=1e-12)


def test_solutions(matrix, rng):
    right = rng.standard_normal((12, 3))
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(solve_positive(matrix.copy(), right), expected, rtol=1e-9)
    factor = factorise(matrix.copy())
    np.testing.assert_allclose(solve_factored(factor, right), expected, rtol=1e-9)
    np.testing.assert_allclose(solve_factored(factor, right[:, 0]), expected[:, 0], rtol=1e-9)
    both = whiten(factor, whiten(factor, right), transposed=True)
    np.testing.assert_allclose(both, expected, rtol=1e-9)
    np.testing.assert_allclose(whiten(factor, unwhiten(factor, right), True), right, rtol=1e-9)
    white = whiten(factor, matrix)
    np.testing.assert_allclose(whiten(factor, white.T), np.eye(12), atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, -1e-13], ids=["singular", "slightly indefinite"])
def test_a_matrix_that_is_not_positive_definite(rng, shift):
    """Near the least-norm solution, and the equations hold to rounding."""
    half = rng.standard_normal((20, 8))
    matrix = half @ half.T
    matrix[np.diag_indices(20)] += shift
    right = half @ rng.standard_normal((8, 3))
    with pytest.raises(linalg.LinAlgError):
        linalg.cholesky(matrix - 1e-12 * np.eye(20))
    solution = solve_positive(matrix.copy() - 1e-12 * np.eye(20), right)
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-9)
    # Where the matrix has no say, what is left is rounding over the floor: 1e-16 over 1e-12. (The
    # former solver left those directions out by their eigenvalues, at the price of a second
    # algorithm; the equations do not see them.)
    np.testing.assert_allclose(solution, np.linalg.pinv(half @ half.T) @ right, atol=1e-3)


@pytest.mark.parametrize("size", [3, 70, 300])  # LAPACK works in blocks of 64 or so
def test_a_floor_is_found_whatever_the_size(rng, size):
    """The matrix is as it was before each attempt: the factor is that of matrix + floor."""
    half = rng.standard_normal((size, max(size // 3, 1)))
    matrix = half @ half.T
    factor = np.tril(factorise(matrix.copy()))
    rest = factor @ factor.T - matrix
    floor = rest.diagonal().mean()
    assert 0 <= floor < 1e-8 * matrix.diagonal().mean()
    np.testing.assert_allclose(rest, floor * np.eye(size), atol=1e-9 * matrix.diagonal().mean())


def test_a_matrix_that_is_negative_through_and_through():
    factor = np.tril(factorise(-np.eye(4)))
    assert np.isfinite(factor).all()
    assert np.diag(factor).min() > 0


def test_a_matrix_of_zeros_and_one_of_none():
    assert np.isfinite(factorise(np.zeros((3, 3)))).all()
    assert factorise(np.array([[4.0]]))[0, 0] == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(matrix, value):
    matrix[3, 3] = value
    with pytest.raises(ValueError, match="not finite"):
        factorise(matrix)
