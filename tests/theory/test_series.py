"""Theorem 3.2 and corollary 3.3: against exact arithmetic, the closed form and integration."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm

from rflaf.theory import (
    P_k,
    Q_k,
    R_n,
    RepresentedClass,
    TensorSeries,
    feature_map,
    gaussian_kernel,
    log_R_n,
    rkhs_norm_bound,
    rotation_invariant_kernel,
    taylor_coefficients,
)

ANY = {"center": st.floats(-5, 5), "width": st.floats(0.5, 10)}


def odd_factorial(n):
    return prod(range(n, 0, -2))


def printed(k, p, shift):
    """P_k (shift -1) or Q_k (shift +1) as printed, in exact arithmetic."""
    return sum(
        (-1) ** (k - i)
        * Fraction(odd_factorial(2 * k + shift), odd_factorial(2 * i + shift))
        * comb(k, i)
        * Fraction(p) ** i
        for i in range(k + 1)
    )


def printed_R(n, p):
    k, odd = divmod(n, 2)
    return Fraction(p) * printed(k, p, 1) ** 2 if odd else printed(k, p, -1) ** 2


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0, 3.7, 12.0, 100.0])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 30, 60])
def test_polynomials_are_the_printed_sums(k, p):
    neighbours = [float(abs(printed(j, p, s))) for j in (k, k + 1) for s in (-1, 1)]
    scale = max(neighbours[0], neighbours[1])
    assert abs(P_k(k, p) - float(printed(k, p, -1))) <= 1e-12 * scale
    assert abs(Q_k(k, p) - float(printed(k, p, 1))) <= 1e-12 * scale


@pytest.mark.parametrize("n", [100, 333, 499, 500])
@pytest.mark.parametrize("p", [0.5, 1.0, 9.0, 50.0, 400.0, 3000.0])
def test_squares_are_right_to_order_500(n, p):
    with localcontext() as context:
        context.prec = 80
        size = [
            Decimal(R.numerator) / Decimal(R.denominator) / factorial(m)
            for m in (n - 1, n)
            for R in [printed_R(m, p)]
        ]
        # R_n/n! of either order: near a zero of one, the other gives the size
        got = log_R_n(n, p)
        expected = size[1].ln() + Decimal(factorial(n)).ln()
        worst = float(max(size) / size[1])
        assert abs(got - float(expected)) < 1e-12 * np.sqrt(worst) + 1e-15 * abs(float(expected))


def test_recurrence_of_the_appendix():
    for p in (Fraction(1, 3), Fraction(2), Fraction(17, 2)):
        y = [Fraction(1), p, (p - 1) ** 2]
        for n in range(2, 60):
            y.append((p - n) * y[n] - n * (p - n) * y[n - 1] + n * (n - 1) ** 2 * y[n - 2])
        for n, value in enumerate(y):
            assert value == printed_R(n, p)
            neighbour = float(max(y[n], n * y[n - 1])) if n else 1.0
            assert abs(R_n(n, float(p)) - float(value)) <= 1e-12 * neighbour


def test_derivatives_listed_in_the_appendix():
    listed = {
        3: [1, -6, 9, 0],
        4: [1, -12, 42, -36, 9],
        5: [1, -20, 130, -300, 225, 0],
        6: [1, -30, 315, -1380, 2475, -1350, 225],
        7: [1, -42, 651, -4620, 15435, -22050, 11025, 0],
        8: [1, -56, 1204, -12600, 67830, -182280, 220500, -88200, 11025],
    }
    for n, coefficients in listed.items():
        for p in (Fraction(3, 7), Fraction(5)):
            value = sum(c * p**i for i, c in enumerate(reversed(coefficients)))
            assert value == printed_R(n, p)


def test_values_beyond_floats_are_infinite_and_their_logarithm_is_not():
    assert np.isinf(R_n(500, 2.0))
    assert np.isfinite(log_R_n(500, 2.0))
    assert log_R_n(3, 0.0) == -np.inf


@given(**ANY, r=st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_series_sums_to_the_closed_form(center, width, r):
    t = taylor_coefficients(400, center=center, width=width)
    assert (t >= 0).all()
    total = np.polynomial.polynomial.polyval(r, t)
    assert abs(total - rotation_invariant_kernel(r, center=center, width=width)) < 1e-13


def test_narrow_gaussians_and_far_centers():
    t = taylor_coefficients(8000, center=2.0, width=0.1)
    closed = rotation_invariant_kernel(1.0, center=2.0, width=0.1)
    assert abs(t.sum() - closed) < 1e-13
    assert np.isfinite(taylor_coefficients(300, center=1e4, width=1e-4)).all()


@given(**ANY, seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_features_converge_to_the_kernel(center, width, seed):
    X = np.random.default_rng(seed).uniform(-0.35, 0.35, (5, 2))
    K = gaussian_kernel(X, center=center, width=width)
    errors = []
    for degree in (2, 6, 12):
        phi = feature_map(X, degree, center=center, width=width)
        errors.append(np.abs(phi @ phi.T - K).max())
    assert errors[2] < 1e-5
    assert errors[2] <= errors[0] + 1e-14


def test_features_of_unit_vectors_are_those_of_the_paper():
    x = np.array([[0.6, 0.8]])
    roots = np.sqrt(taylor_coefficients(4, center=0.9, width=0.7))
    phi = feature_map(x, 3, center=0.9, width=0.7)[0]
    cube = np.einsum("i,j,k->ijk", x[0], x[0], x[0]).ravel()
    np.testing.assert_allclose(np.abs(phi[7:]), roots[3] * np.abs(cube), rtol=1e-13)
    np.testing.assert_allclose(np.abs(phi[1:3]), roots[1] * np.abs(x[0]), rtol=1e-13)


def test_corollary_3_3_has_an_explicit_weight_function():
    """v(w) = sum_n <F_n, He_n(w)> / √(n! t_n) reaches D, and gives f back on the sphere."""
    c, h = 0.8, 0.6
    f = TensorSeries([0.3, [0.5, -0.2], [[0.4, 0.1], [0.1, -0.7]]])
    z, weight = roots_hermitenorm(200)
    weight = weight / weight.sum()
    w = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    weight = np.outer(weight, weight).ravel()
    t = taylor_coefficients(3, center=c, width=h)
    q = c / np.sqrt(1 + h * h)
    signs = np.sign([1.0, q, q * q - 1])
    hermite = [np.ones(len(w)), w, np.einsum("ni,nj->nij", w, w) - np.eye(2)]
    v = np.zeros(len(w))
    for n, (F, He) in enumerate(zip(f.tensors, hermite, strict=True)):
        inner = He.reshape(len(w), -1) @ np.ravel(F)
        v += signs[n] * inner / np.sqrt(factorial(n) * t[n])
    assert weight @ v**2 == pytest.approx(rkhs_norm_bound(f, center=c, width=h), rel=1e-10)
    for angle in (0.1, 2.0, 4.4):
        x = np.array([np.cos(angle), np.sin(angle)])
        B = np.exp(-((w @ x - c) ** 2) / (2 * h * h))
        assert weight @ (B * v) == pytest.approx(f([x])[0], abs=1e-9)


@given(seed=st.integers(0, 200), center=st.floats(0.3, 2.0), width=st.floats(0.5, 2.0))
@settings(max_examples=25, deadline=None)
def test_norm_bound_is_not_below_the_norm_of_the_interpolant(seed, center, width):
    rng = np.random.default_rng(seed)
    f = TensorSeries([rng.normal(), rng.normal(size=3), rng.normal(size=(3, 3))])
    X = rng.standard_normal((6, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = gaussian_kernel(X, center=center, width=width)
    y = f(X)
    norm = y @ np.linalg.lstsq(K, y, rcond=1e-10)[0]
    assert norm <= rkhs_norm_bound(f, center=center, width=width) * (1 + 1e-6)


def test_only_the_symmetric_part_counts():
    symmetric = TensorSeries([0.0, [0.0, 0.0], [[1.0, 2.0], [2.0, -1.0]]])
    other = TensorSeries([0.0, [0.0, 0.0], [[1.0, 5.0], [-1.0, -1.0]]])
    X = [[0.3, 0.7], [1.0, -2.0]]
    np.testing.assert_allclose(symmetric(X), other(X))
    a, b = (rkhs_norm_bound(f, center=0.5, width=1.0) for f in (symmetric, other))
    assert a == pytest.approx(b)


def test_orders_that_the_kernel_does_not_have():
    even = RepresentedClass(center=0.0, width=1.0)
    odd = TensorSeries([0.0, [1.0, 0.0]])
    assert odd not in even
    assert TensorSeries([1.0, [0.0, 0.0]]) in even  # 0/0 counts as 0
    assert odd in RepresentedClass(center=0.1, width=1.0)
    second = TensorSeries([0.0, [0.0], [[1.0]]])
    assert second not in RepresentedClass(center=np.sqrt(2.0), width=1.0)  # p = 1, R_2 = 0
    # zeros that a float misses by its last digit
    third = TensorSeries([0.0, [0.0], [[0.0]], [[[1.0]]]])
    for width in (0.3, 0.7, 1.1, 1.3):
        center = np.sqrt(3.0) * np.sqrt(1 + width**2)
        assert third not in RepresentedClass(center, width)
        assert third in RepresentedClass(center + 1e-6, width)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="'n_terms'"):
        taylor_coefficients(0, center=0.0, width=1.0)
    with pytest.raises(ValueError, match="'width'"):
        taylor_coefficients(3, center=0.0, width=0.0)
    with pytest.raises(ValueError, match="'p' parameter of P_k"):
        P_k(2, -1.0)
    with pytest.raises(ValueError, match=r"'degree'.*features"):
        feature_map(np.ones((2, 50)), 6, center=0.0, width=1.0)
    with pytest.raises(ValueError, match="NaN"):
        feature_map([[np.nan]], 2, center=0.0, width=1.0)
    with pytest.raises(ValueError, match="shape"):
        TensorSeries([1.0, [1.0, 2.0], [1.0, 2.0]])
    with pytest.raises(TypeError, match="TensorSeries"):
        rkhs_norm_bound([1.0], center=0.0, width=1.0)
