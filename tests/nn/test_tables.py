"""The kernels of training against their specification."""

import numpy as np
import pytest

from rflaf import fused
from rflaf.fused import reference
from tests.nn import kernels_on_arrays as kernels

N_CELLS, LOW, CELL = 11, -2.0, 0.4
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
each_tail = pytest.mark.parametrize("straight", [False, True], ids=["held", "straight"])


def make(rng, channels, straight, dtype):
    """Cubics of any kind; straight lines in the rows of the tails."""
    cells = rng.standard_normal((channels, N_CELLS + 2, 4)).astype(dtype)
    cells[:, [0, -1], 2:] = 0
    return fused.Tables(cells, fused.tables_frame(LOW, CELL, N_CELLS, straight, dtype))


def draw(rng, shape, dtype):
    """Not within rounding of the end of a cell, where two cells are right."""
    cell = rng.integers(-2, N_CELLS + 2, shape)
    return (LOW + CELL * (cell + rng.uniform(0.01, 0.99, shape))).astype(dtype)


def close(found, expected, dtype):
    assert found.shape == expected.shape
    tol = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, atol=tol * np.abs(expected).max(initial=1))


@each_dtype
@each_tail
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (9, 1, 701), (5, 3, 4), (40, 70, 1), (2, 130, 17)], ids=str
)
def test_values_sums_and_slopes(shape, straight, dtype, rng):
    tables = make(rng, shape[1], straight, dtype)
    z, g = draw(rng, shape, dtype), rng.standard_normal(shape).astype(dtype)
    out, dz = np.empty_like(z), np.empty_like(z)
    kernels.apply_tables(tables, z, out)
    close(out, reference.apply_tables(tables, z), dtype)
    sums, slopes = reference.cell_sums(tables, z, g)
    close(kernels.cell_sums(tables, z, g, dz), sums, dtype)
    close(dz, slopes, dtype)
    close(kernels.cell_sums(tables, z, g), sums, dtype)


@each_dtype
@each_tail
@pytest.mark.parametrize("outputs", [(), (3,)], ids=str)
def test_readout_of_rows_in_any_order(outputs, straight, dtype, rng):
    tables, z = make(rng, 1, straight, dtype), draw(rng, (50, 613), dtype)
    order = rng.integers(0, 50, 70)
    v, g = (rng.standard_normal((n, *outputs)).astype(dtype) for n in (613, 70))
    phi, dz = np.empty((70, 613), dtype), np.empty((70, 613), dtype)
    out = kernels.readout_tables(tables, z, order, v, phi)
    expected_out, expected_phi = reference.readout_tables(tables, z, order, v)
    close(out, expected_out, dtype)
    close(phi, expected_phi, dtype)
    sums, slopes = reference.readout_sums(tables, z, order, v, g)
    close(kernels.readout_sums(tables, z, order, v, g, dz), sums, dtype)
    close(dz, slopes, dtype)


def test_missing_values_stay(rng):
    tables, z = make(rng, 2, True, np.float64), draw(rng, (3, 2, 9), np.float64)
    z[1, 1, 4] = np.nan
    out = np.empty_like(z)
    kernels.apply_tables(tables, z, out)
    expected = reference.apply_tables(tables, z)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    assert np.isnan(out).sum() == 1
