"""The training kernels equal the specification in NumPy."""

import numpy as np
import pytest
import torch

from rflaf.bases import RBF, BSpline, Continued
from rflaf.fused import reference
from rflaf.nn import ops
from rflaf.nn.layouts import basis_name
from rflaf.nn.table_maps import table_map
from tests.nn import kernels_on_arrays as kernels

BASES = [RBF(17), RBF(65), Continued(BSpline(9))]
SHAPES = [(1, 1), (3, 7), (70, 1037), (200, 1100)]  # within a group, a tile, a task; several tasks


@pytest.fixture(params=BASES, ids=str)
def case(request, generator):
    """Map, tables and sigma of a basis, with coefficients of about 1."""

    def make(dtype):
        name = basis_name(request.param)
        a = torch.randn(request.param.n, generator=generator, dtype=torch.float64).to(dtype)
        return table_map(name), table_map(name).tables(a, dtype), ops.sigma(a, name), a

    return make


def close(found, expected, dtype):
    # tables are close to their basis to 2e-6 of its height; float32 sums add some of their own
    height = np.abs(expected).max()
    assert np.abs(found - expected).max() <= (2e-5 if dtype == torch.float64 else 1e-4) * height


def draw(generator, dtype, *shapes):
    return [torch.randn(s, generator=generator, dtype=dtype).numpy() for s in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_sums_and_slopes(case, shape, dtype, generator):
    maps, tables, sigma, a = case(dtype)
    z, g = draw(generator, dtype, shape, shape)
    block, out, dz = z[:, None], np.empty_like(z), np.empty_like(z)
    kernels.apply_tables(tables, block, out)
    close(out, reference.apply(sigma, z), dtype)
    sums = kernels.cell_sums(tables, block, g, dz)
    close(maps.pull_back(sums.copy(), a).numpy(), reference.adjoint(sigma, z, g), dtype)
    expected = reference.slope(sigma, z, g)
    assert np.abs(dz - expected).max() <= 2e-3 * np.abs(expected).max()  # order cell³
    np.testing.assert_array_equal(kernels.cell_sums(tables, block, g), sums)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outputs", [(), (3,)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_readout_of_rows_in_any_order(case, shape, outputs, dtype, generator):
    maps, tables, sigma, a = case(dtype)
    n, width = shape
    z, v, h = draw(generator, dtype, shape, (width, *outputs), (2 * n, *outputs))
    order = torch.randint(n, (2 * n,), generator=generator).numpy()  # some rows twice
    phi, dz = np.empty((2 * n, width), z.dtype), np.empty((2 * n, width), z.dtype)
    out = kernels.readout_tables(tables, z, order, v, phi)
    close(phi, reference.apply(sigma, z[order]), dtype)
    expected = reference.predict(sigma, z[order], v)
    scale = np.abs(phi).max() * width**0.5
    assert np.abs(out.reshape(expected.shape) - expected).max() <= 1e-4 * scale
    sums = kernels.readout_sums(tables, z, order, v, h, dz)
    close(maps.pull_back(sums.copy(), a).numpy(), reference.adjoint(sigma, z[order], (h, v)), dtype)
    slopes, product = np.empty_like(dz), reference.dense_upstream((h, v)).astype(z.dtype)
    close(sums, kernels.cell_sums(tables, z[order][:, None], product, slopes), dtype)
    close(dz, slopes, dtype)


def test_rows_that_are_not_there_are_refused(case, generator):
    _, tables, _, _ = case(torch.float32)
    z, v = draw(generator, torch.float32, (5, 40), 40)
    for wrong in (5, -1, 1 << 40):
        with pytest.raises(IndexError, match="from 0 to 4"):
            kernels.readout_tables(tables, z, np.array([0, wrong]), v, np.empty((2, 40), "f"))


def test_nan_and_infinity(case, generator):
    maps, tables, _, a = case(torch.float32)
    for wrong in (np.nan, np.inf, -np.inf):
        z, g = draw(generator, torch.float32, (3, 30), (3, 30))
        z[1, 11] = wrong  # within a group of eight
        z[1, 29] = wrong  # and outside
        out = np.empty_like(z)
        kernels.apply_tables(tables, z[:, None], out)
        gradient = maps.pull_back(kernels.cell_sums(tables, z[:, None], g), a)
        assert np.isnan(out).sum() == (2 if np.isnan(wrong) else 0)
        assert bool(gradient.isnan().all()) == bool(np.isnan(wrong))
        assert np.isnan(out[1, [11, 29]]).all() == bool(np.isnan(wrong))
