"""The formula of each basis, against known values."""

from math import erf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline as ScipyBSpline

from rflaf.bases import FIXED_ACTIVATIONS, RBF, BSpline, Chebyshev, Fixed, Polynomial

nan, inf = np.nan, np.inf


def test_rbf_is_the_papers_formula():
    basis = RBF(17)
    assert basis.width == 4 / 16
    np.testing.assert_array_equal(basis.centers, np.linspace(-2, 2, 17))
    z = np.array([0.3, -1.1])
    expected = np.exp(-((z[:, None] - basis.centers) ** 2) / (2 * 0.25**2))
    np.testing.assert_allclose(basis(z), expected, rtol=1e-13)


def test_rbf_with_its_own_centres_and_widths():
    centers, widths = np.array([-1.0, 0.0, 0.3]), np.array([0.5, 0.1, 2.0])
    basis = RBF(centers=centers, width=widths)
    assert (basis.n, basis.grid) == (3, (-1.0, 0.3))
    np.testing.assert_allclose(basis(0.7), np.exp(-0.5 * ((0.7 - centers) / widths) ** 2))
    assert RBF(centers=centers).width == pytest.approx(0.65)
    assert RBF(1).width == 4.0
    with pytest.raises(ValueError, match="read-only"):
        basis.centers[0] = 0


@given(
    st.integers(1, 5),
    st.integers(0, 20),
    st.floats(-5, 5),
    st.floats(0.1, 10),
    st.floats(0, 1),
)
def test_bsplines_sum_to_one_inside(degree, more, low, length, place):
    basis = BSpline(degree + 1 + more, low, low + length, degree)
    values = basis(low + place * length)
    assert values.sum() == pytest.approx(1, abs=1e-9)
    assert (values > -1e-12).all()


@pytest.mark.parametrize("degree", range(1, 6))
def test_bsplines_are_those_of_scipy(degree):
    basis = BSpline(10, -1, 3, degree)
    z = np.linspace(-1, 3, 100, endpoint=False)
    expected = ScipyBSpline.design_matrix(z, basis.knots, degree).toarray()
    np.testing.assert_allclose(basis(z), expected, atol=1e-12)


@pytest.mark.parametrize("degree", range(1, 6))
@pytest.mark.parametrize("side", [-1, 1])
def test_bspline_extrapolation(degree, side, rng):
    a = rng.standard_normal(9)
    edge = side * 2.0

    def sigma(extrapolate, z, order=0):
        basis = BSpline(9, -2, 2, degree, extrapolate)
        return basis.combine(a, np.atleast_1d(np.asarray(z, float)), order)

    step = BSpline(9, -2, 2, degree).spacing
    outside = edge + side * step * np.array([degree, degree + 0.5, 100])
    np.testing.assert_allclose(sigma("zero", outside), 0, atol=1e-12)
    np.testing.assert_array_equal(sigma("zero", side * inf), 0)
    value, slope = sigma("zero", edge)[0], sigma("constant", edge, 1)[0]
    np.testing.assert_allclose(sigma("constant", outside), value)
    np.testing.assert_array_equal(sigma("constant", outside, 1), 0)
    np.testing.assert_allclose(sigma("linear", outside), value + slope * (outside - edge))
    np.testing.assert_allclose(sigma("linear", outside, 1), slope)
    assert sigma("linear", side * inf)[0] == np.sign(slope) * side * inf


@pytest.mark.parametrize("degree", range(1, 6))
@pytest.mark.parametrize("extrapolate", ["zero", "constant", "linear"])
def test_bsplines_are_continuous_everywhere(degree, extrapolate):
    basis = BSpline(8, -2, 2, degree, extrapolate)
    z = np.concatenate([basis.knots, [-2, 2]])
    np.testing.assert_allclose(basis(z - 1e-9), basis(z + 1e-9), atol=1e-7)


def test_polynomials_are_powers_and_may_overflow():
    np.testing.assert_array_equal(Polynomial(4)([2.0, -1.0]), [[1, 2, 4, 8], [1, -1, 1, -1]])
    a = np.array([0.0, 0, 0, -1, 0])
    big = Polynomial(5).combine(a, np.array([1e20, inf], np.float32))
    np.testing.assert_array_equal(big, [-inf, -inf])


@given(st.floats(-1e6, 1e6))
def test_chebyshev_never_explodes(z):
    assert np.abs(Chebyshev(40, -1, 2)(z)).max() <= 1 + 1e-9


def test_chebyshev_is_numpys():
    x = np.linspace(-1, 1, 50)
    expected = np.polynomial.chebyshev.chebvander(x, 9)
    np.testing.assert_allclose(Chebyshev(10, 0, 4)(2 * x + 2), expected, atol=1e-12)


def test_fixed_activations_have_their_known_values():
    at = {
        "relu": (1.5, 0.0),
        "cos": (np.cos(1.5), np.cos(1.5)),
        "tanh": (np.tanh(1.5), -np.tanh(1.5)),
        "sigmoid": (1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(1.5))),
        "silu": (1.5 / (1 + np.exp(-1.5)), -1.5 / (1 + np.exp(1.5))),
        "gelu": (0.75 * (1 + erf(1.5 / 2**0.5)), -0.75 * (1 - erf(1.5 / 2**0.5))),
        "softplus": (np.log1p(np.exp(1.5)), np.log1p(np.exp(-1.5))),
        "elu": (1.5, np.expm1(-1.5)),
        "gaussian": (np.exp(-1.125), np.exp(-1.125)),
    }
    assert set(at) == set(FIXED_ACTIVATIONS)
    for name, expected in at.items():
        np.testing.assert_allclose(Fixed(name)([1.5, -1.5])[:, 0], expected, rtol=1e-9)
        assert not Fixed(name).learnable


BAD = [
    (lambda: RBF(0), "'n' parameter of RBF must be an int in the range"),
    (lambda: RBF(2.5), "'n' parameter of RBF must be an int"),
    (lambda: RBF(), "needs 'n'"),
    (lambda: RBF(5, 2, -2), "'low' parameter of RBF must be less than 'high'. Got low=2"),
    (lambda: RBF(5, nan, 2), "'low' parameter of RBF must be finite"),
    (lambda: RBF(5, -2, inf), "'high' parameter of RBF must be finite"),
    (lambda: RBF(5, width=0), "'width' parameter of RBF"),
    (lambda: RBF(5, width=inf), "'width' parameter of RBF must be a float in the range"),
    (lambda: RBF(5, width=[1.0, 2.0]), r"'width' parameter.*vector of 5 numbers. Got shape \(2,\)"),
    (lambda: RBF(2, width=[1.0, -1.0]), "'width' parameter of RBF must be positive"),
    (lambda: RBF(centers=[1.0, 0.0]), "increasing order"),
    (lambda: RBF(3, centers=[0.0, 1.0]), "vector of 3 numbers"),
    (lambda: RBF(centers=[0.0, nan]), "'centers' parameter of RBF must be finite"),
    (lambda: RBF(centers=[[0.0, 1.0]]), "vector of one or more numbers"),
    (lambda: BSpline(0), "'n' parameter of BSpline must be an int in the range"),
    (lambda: BSpline(8, degree=0), "'degree' parameter of BSpline must be an int in the range"),
    (lambda: BSpline(8, degree=6), r"range \[1, 5\]. Got 6"),
    (lambda: BSpline(3, degree=3), "'n' parameter of BSpline must be more than 'degree'"),
    (lambda: BSpline(8, 1, 1), "must be less than 'high'"),
    (lambda: BSpline(8, extrapolate="clip"), "'extrapolate' parameter of BSpline must be a str"),
    (lambda: Polynomial(0), "'n' parameter of Polynomial"),
    (lambda: Chebyshev(4, 3, -3), "'low' parameter of Chebyshev must be less than"),
    (lambda: Fixed("swish"), "'name' parameter of Fixed must be a str among"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_slopes_of_linear_splines_at_knots_and_edges():
    basis = BSpline(9, degree=1, extrapolate="linear")
    a = np.arange(9.0) ** 2
    slopes = np.diff(a) / 0.5
    at_knots = basis.derivative(np.linspace(-2, 2, 9)) @ a
    np.testing.assert_allclose(at_knots, [*slopes, slopes[-1]])  # from the right, at the end inside
    np.testing.assert_allclose(basis([-3.0, 3.0]) @ a, [-slopes[0], 64 + slopes[-1]])
