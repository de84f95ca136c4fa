"""Sums of powers against NumPy's polynomials."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.fused import powers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.integers(1, 40), st.integers(0, 700), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_both_passes_are_numpys(dtype, n, size, seed):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1.2, 1.2, size).astype(dtype)
    g = rng.standard_normal(size).astype(dtype)
    a = rng.standard_normal(n)
    out = np.empty_like(z)
    powers.evaluate(z, a, out)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    scale = np.abs(a) @ np.abs(z.astype(float)) ** np.arange(n)[:, None] + 1
    assert np.all(np.abs(out - np.polynomial.polynomial.polyval(z.astype(float), a))
                  <= tolerance * scale)  # fmt: skip
    vander = np.vander(z.astype(float), n, increasing=True)
    bound = np.abs(vander).T @ np.abs(g) + 1
    assert np.all(np.abs(powers.adjoint(z, g, n) - vander.T @ g) <= tolerance * bound)


def test_more_than_a_chunk():
    z = np.random.default_rng(0).uniform(-1, 1, 200_000)
    found = powers.adjoint(z, np.ones_like(z), 6)
    assert found == pytest.approx([np.sum(z**i) for i in range(6)], rel=1e-10)


def test_powers_that_overflow_are_infinite_and_silent():
    z = np.full(300, 1e4, np.float32)
    z[1] = -1e4
    z[2] = np.nan
    out = np.empty_like(z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        powers.evaluate(z, np.ones(40), out)
        sums = powers.adjoint(z, np.ones_like(z), 40)
    assert np.isposinf(out[0])
    assert np.isnan(out[2])
    assert np.isnan(sums[-1])


def test_powers_below_the_smallest_normal_number_count_as_zero():
    z = np.full(10, 1e-3, np.float32)
    sums = powers.adjoint(z, np.ones_like(z), 20)
    assert sums[12] == pytest.approx(10 * 1e-36, rel=1e-4)
    assert np.all(sums[13:] == 0)
