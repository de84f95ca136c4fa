"""The table against the basis it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf import Activation, fused
from rflaf.bases import RBF, Basis, BSpline
from tests.conftest import TABLE_BASES


def relative_error(sigma, table, dtype, z=None):
    low, high = sigma.basis.reach(1e-9)
    if z is None:
        z = np.linspace(low - 0.3, high + 0.3, 30_011)
    z = z.astype(dtype)
    exact = sigma(z.astype(np.float64))
    inside = (z >= low) & (z <= high)
    return np.abs(table(z) - exact)[inside].max() / np.abs(exact[inside]).max()


@pytest.mark.parametrize("basis", TABLE_BASES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_default_error(basis, dtype, rng):
    sigma = Activation(basis, rng.standard_normal(basis.n))
    assert relative_error(sigma, sigma.table(), dtype) <= 2e-6


@pytest.mark.parametrize("n", [9, 65, 257])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_default_error_for_many_functions_and_signs_that_cancel(n, dtype):
    """With alternating signs sigma is small and rough: the table must become finer."""
    alternating = Activation(RBF(n), (-1.0) ** np.arange(n))
    plain = Activation(RBF(n), np.ones(n))
    table = alternating.table()
    assert relative_error(alternating, table, dtype) <= 2e-6
    assert table.layout.n_cells > 1.5 * plain.table().layout.n_cells


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=9),
    st.floats(-3, 3),
    st.floats(1e-2, 100),
)
def test_default_error_for_any_coefficients(a, low, length):
    if not np.abs(a).max() > 1e-3:
        return
    sigma = Activation(RBF(len(a), low, low + length), a)
    assert relative_error(sigma, sigma.table(), np.float64) <= 2e-6


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_error_follows_the_tolerance(tol, rng):
    sigma = Activation(RBF(17), rng.standard_normal(17))
    table = sigma.table(tol)
    assert relative_error(sigma, table, np.float64) <= tol
    assert relative_error(sigma, table, np.float64) >= tol / 1000  # and no finer than asked for


def test_the_error_falls_with_the_fourth_power_of_the_cell(rng):
    sigma = Activation(RBF(17), rng.standard_normal(17))
    parts = np.array([4, 6, 8, 12, 16, 24])
    layouts = [fused.basis_layout(sigma.basis, int(p), 1e-14) for p in parts]
    tables = [layout.table(sigma.coefficients) for layout in layouts]
    errors = [relative_error(sigma, table, np.float64) for table in tables]
    slope = np.polyfit(np.log(1 / parts), np.log(errors), 1)[0]
    assert slope == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_splines_up_to_the_third_degree_are_exact_with_a_cell_to_a_knot(degree, rng):
    sigma = Activation(BSpline(20, degree=degree), rng.standard_normal(20))
    table = sigma.table()
    assert table.layout.n_cells <= 20 + degree + 1
    assert relative_error(sigma, table, np.float64) < 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gaussian_table_ends_in_zero(dtype, rng):
    table = Activation(RBF(9), rng.standard_normal(9)).table()
    far = np.array([-np.inf, -1e30, -100, 100, 1e30, np.inf], dtype)
    np.testing.assert_array_equal(table(far), 0)
    np.testing.assert_array_equal(fused.slope(table, far[None], np.ones((1, 6), dtype)), 0)


def test_nothing_but_zero_coefficients():
    table = Activation(RBF(9), np.zeros(9)).table()
    np.testing.assert_array_equal(table(np.linspace(-3, 3, 50)), 0)


def test_too_many_cells_is_an_error():
    sigma = Activation(RBF(2, -2, 2, width=1e-6), np.ones(2))
    with pytest.raises(ValueError, match="Expected at most 262144"):
        sigma.table()


def test_a_basis_of_ones_own():
    """Functions, parameters and a tail are all that a new basis gives."""

    class Hats(Basis):
        tail = "constant"
        n, low, high = 5, 0.0, 4.0

        def functions(self, z, order=0):
            for i in range(5):
                hat = np.maximum(1 - np.abs(z - i), 0)
                yield -np.sign(z - i) * (hat > 0) if order else hat

        def parameters(self):
            return {}

    basis = Hats()
    sigma = Activation(basis, basis.fit(np.cos))
    z = np.linspace(-3, 7, 1001)
    np.testing.assert_allclose(sigma.table()(z), sigma(z), atol=1e-12)
    np.testing.assert_allclose(sigma.table()(z), np.interp(z, range(5), sigma(np.arange(5.0))))


@pytest.mark.parametrize("low", [1e6, -5e5, 1e9])
def test_a_grid_far_from_zero_is_refused(low):
    sigma = Activation(RBF(32, low, low + 1), np.ones(32))
    with pytest.raises(ValueError, match="too far from zero"):
        sigma.table()


@pytest.mark.parametrize("low", [-1e4, 3e3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_grid_off_zero_never_leads_out_of_the_table(low, dtype, rng):
    sigma = Activation(RBF(16, low, low + 16), rng.standard_normal(16))
    z = np.linspace(low - 10, low + 26, 4001).astype(dtype)
    exact = sigma(z.astype(np.float64))
    np.testing.assert_allclose(sigma.table()(z), exact, atol=1e-5 * np.abs(exact).max())
    gradient = fused.adjoint(sigma.table(), z[None], np.ones((1, z.size), dtype))
    expected = sigma.basis(z.astype(np.float64)).sum(axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)
