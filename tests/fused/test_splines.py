"""Sums of splines against their specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline, PPoly

from rflaf import fused
from rflaf.fused import reference


def pieces_of(degree):
    """The splines on one cell of unit knots, powers × splines."""
    whole = BSpline.basis_element(np.arange(degree + 2.0))
    return np.ascontiguousarray(PPoly.from_spline(whole).c[:, degree : 2 * degree + 1][::-1, ::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    degree=st.integers(1, 4),
    n=st.integers(0, 60),
    inputs=st.integers(1, 5),
    splines=st.integers(1, 9),
    outputs=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_values_and_gradients(dtype, degree, n, inputs, splines, outputs, seed):
    rng = np.random.default_rng(seed)
    # some lie outside all splines; none at a knot, where slopes of linear ones jump
    cell = rng.integers(-2, splines + degree + 2, (n, inputs)) - degree
    x = (-1.5 + 0.25 * (cell + rng.uniform(0.01, 0.99, (n, inputs)))).astype(dtype)
    c = rng.standard_normal((inputs, splines, outputs)).astype(dtype)
    g = rng.standard_normal((n, outputs)).astype(dtype)
    given_ = x, -1.5, 0.25, pieces_of(degree), c
    tol = 1e-4 if dtype == np.float32 else 1e-11
    found = fused.combine_splines(*given_), *fused.spline_gradients(*given_, g)
    expected = reference.combine_splines(*given_), *reference.spline_gradients(*given_, g)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, atol=tol * np.abs(other).max(initial=1), rtol=0)


def test_missing_values_stay():
    x = np.array([[0.1, np.nan], [0.2, 0.3]])
    given_ = x, -1.0, 0.5, pieces_of(3), np.ones((2, 7, 1))
    for splines in (fused.combine_splines, reference.combine_splines):
        assert np.isnan(splines(*given_)[:, 0]).tolist() == [True, False]
