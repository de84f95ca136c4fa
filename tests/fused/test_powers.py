"""Sums of powers against their specification."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.fused import adjoint_powers, evaluate_powers, reference


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.integers(1, 40), st.integers(0, 700), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_both_passes(dtype, n, size, seed):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1.2, 1.2, size).astype(dtype)
    g = rng.standard_normal(size).astype(dtype)
    a = rng.standard_normal(n)
    out = np.empty_like(z)
    evaluate_powers(z, a, out)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    scale = np.abs(a) @ np.abs(z.astype(float)) ** np.arange(n)[:, None] + 1
    assert np.all(np.abs(out - reference.evaluate_powers(z, a)) <= tolerance * scale)
    bound = reference.adjoint_powers(np.abs(z), np.abs(g), n) + 1
    found, expected = adjoint_powers(z, g, n), reference.adjoint_powers(z, g, n)
    assert np.all(np.abs(found - expected) <= tolerance * bound)


def test_more_than_a_chunk():
    z = np.random.default_rng(0).uniform(-1, 1, 200_000)
    found = adjoint_powers(z, np.ones_like(z), 6)
    assert found == pytest.approx([np.sum(z**i) for i in range(6)], rel=1e-10)


def test_powers_that_overflow_are_infinite_and_silent():
    z = np.full(300, 1e4, np.float32)
    z[1] = -1e4
    z[2] = np.nan
    out = np.empty_like(z)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_powers(z, np.ones(40), out)
        sums = adjoint_powers(z, np.ones_like(z), 40)
    assert np.isposinf(out[0])
    assert np.isnan(out[2])
    assert np.isnan(sums[-1])


def test_powers_below_the_smallest_normal_number_count_as_zero():
    z = np.full(10, 1e-3, np.float32)
    sums = adjoint_powers(z, np.ones_like(z), 20)
    assert sums[12] == pytest.approx(10 * 1e-36, rel=1e-4)
    assert np.all(sums[13:] == 0)
