"""Standardising."""

import numpy as np
import pytest
from scipy import sparse

from rflaf.inputs import scaling
from rflaf.inputs.scaling import FARTHEST, column_moments, standardise


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_and_standardised_columns(rng, dtype, monkeypatch):
    x = (rng.standard_normal((300, 4)) * [1, 1e3, 1e-3, 1] + [0, 5, 0, 100]).astype(dtype)
    weights = rng.uniform(0, 2, 300)
    mean, std = column_moments(x, weights)
    expected = np.average(x.astype(float), axis=0, weights=weights)
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-5)
    spread = np.sqrt(np.average((x - expected) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(std, spread, rtol=1e-5)
    got = standardise(x, mean, std, np.float64)
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ got, 0, atol=1e-5)
    np.testing.assert_allclose(share @ got**2, 1, rtol=1e-5)
    monkeypatch.setattr(scaling, "_blocks", lambda shape: [slice(0, 7), slice(7, shape[0])])
    for a, b in zip(column_moments(x, weights), (mean, std), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(standardise(x, mean, std, np.float64), got)


def test_columns_that_do_not_vary_become_zeros():
    x = np.column_stack([np.full(50, 0.1), np.full(50, 1e20), np.zeros(50), np.arange(50.0)])
    mean, std = column_moments(x, np.ones(50))
    np.testing.assert_array_equal(std[:3], 0)
    np.testing.assert_array_equal(standardise(x, mean, std, np.float32)[:, :3], 0)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_very_large_and_very_small_numbers(rng, size):
    x = size * rng.standard_normal((40, 1))
    mean, std = column_moments(x, np.ones(40))
    assert std[0] / size == pytest.approx(np.std(x / size))
    assert np.isfinite(standardise(x, mean, std, np.float32)).all()


def test_what_lies_too_far_out_is_brought_in():
    got = standardise(np.array([[1e300], [-1e300], [1.0]]), np.zeros(1), np.ones(1), np.float32)
    np.testing.assert_allclose(got.ravel(), [FARTHEST, -FARTHEST, 1.0])


def test_sparse_columns_are_not_centred(rng):
    x = rng.standard_normal((60, 3)) * [1, 10, 0]
    weights = rng.uniform(0, 1, 60)
    mean, scale = column_moments(sparse.csr_array(x), weights)
    np.testing.assert_array_equal(mean, 0)
    expected = np.sqrt(np.average(x**2, axis=0, weights=weights))
    np.testing.assert_allclose(scale, expected)
    got = standardise(sparse.csr_array(x), mean, scale, np.float32)
    assert sparse.issparse(got)
    dense = standardise(x, mean, scale, np.float32)
    np.testing.assert_allclose(got.toarray(), dense, rtol=1e-6)
