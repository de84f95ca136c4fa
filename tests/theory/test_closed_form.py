"""Theorem 3.1 and its extension against quadrature, simulation and 60-digit arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm
from scipy.stats import ortho_group

from rflaf.theory import gaussian_cross_kernel, gaussian_kernel, rotation_invariant_kernel

MODERATE = {"center": st.floats(-3, 3), "width": st.floats(0.4, 5)}
NODES, WEIGHTS = roots_hermitenorm(600)
NODES, WEIGHTS = NODES[WEIGHTS > 1e-30], WEIGHTS[WEIGHTS > 1e-30]
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def bump(z, c, h):
    return np.exp(-0.5 * ((z - c) / h) ** 2)


def by_quadrature(x, y, f, g):
    """E[f(w·x) g(w·y)] by a product rule on the plane of x and y."""
    s, t = np.linalg.norm(x), np.linalg.norm(y)
    cosine = x @ y / (s * t)
    second = t * (cosine * NODES[:, None] + np.sqrt(max(1 - cosine**2, 0)) * NODES)
    return WEIGHTS @ (f(s * NODES)[:, None] * g(second)) @ WEIGHTS


def exactly(x, y, c, h):
    """Theorem 3.1 with 60 digits, for the floats as they are."""
    with localcontext() as context:
        context.prec = 60
        x, y = [Decimal(float(v)) for v in x], [Decimal(float(v)) for v in y]
        c, h = Decimal(float(c)), Decimal(float(h))
        a, b = h * h + sum(v * v for v in x), h * h + sum(v * v for v in y)
        r = sum(v * w for v, w in zip(x, y, strict=True))
        det = a * b - r * r
        exponent = -c * c / 2 * (a + b - 2 * r) / det
        return float(h * h / det.sqrt() * exponent.exp()), float(-exponent)


@given(
    x=st.tuples(*[st.floats(-1.5, 1.5)] * 3), y=st.tuples(*[st.floats(-1.5, 1.5)] * 3), **MODERATE
)
@settings(max_examples=40, deadline=None)
def test_equals_quadrature(x, y, center, width):
    x, y = np.array(x), np.array(y)
    if min(np.linalg.norm(x), np.linalg.norm(y)) < 1e-6:
        return
    expected = by_quadrature(
        x, y, lambda z: bump(z, center, width), lambda z: bump(z, center, width)
    )
    got = gaussian_kernel([x], [y], center=center, width=width)[0, 0]
    assert abs(got - expected) < 1e-10


@given(centers=st.tuples(*[st.floats(-3, 3)] * 2), widths=st.tuples(*[st.floats(0.4, 3)] * 2))
@settings(max_examples=40, deadline=None)
def test_two_gaussians_equal_quadrature(centers, widths):
    x, y = np.array([0.7, -0.4]), np.array([0.2, 1.3])
    expected = by_quadrature(
        x, y, lambda z: bump(z, centers[0], widths[0]), lambda z: bump(z, centers[1], widths[1])
    )
    got = gaussian_cross_kernel([x], [y], centers=centers, widths=widths)[0, 0]
    assert abs(got - expected) < 1e-10


@pytest.mark.parametrize(("center", "width"), [(0.0, 0.5), (0.8, 0.25), (-1.5, 1.0)])
def test_equals_simulation(center, width):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 3))
    values = bump(rng.standard_normal((1_000_000, 3)) @ X.T, center, width)
    for i in range(4):
        for j in range(4):
            product = values[:, i] * values[:, j]
            error = product.mean() - gaussian_kernel(X, center=center, width=width)[i, j]
            assert abs(error) < 5 * product.std() / np.sqrt(len(product))


@given(
    log_norms=st.tuples(*[st.floats(-3, 6)] * 2),
    angle=st.one_of(st.floats(0, np.pi), st.floats(-14, 0).map(lambda e: 10.0**e)),
    log_width=st.floats(-4, 4),
    center=st.floats(-10, 10),
    opposite=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_right_at_extreme_norms_and_widths(log_norms, angle, log_width, center, opposite):
    s, t = 10.0 ** log_norms[0], 10.0 ** log_norms[1]
    x = s * np.array([0.6, 0.8])
    y = t * np.array(
        [0.6 * np.cos(angle) - 0.8 * np.sin(angle), 0.8 * np.cos(angle) + 0.6 * np.sin(angle)]
    )
    y = -y if opposite else y
    h = 10.0**log_width
    expected, exponent = exactly(x, y, center, h)
    got = gaussian_kernel([x], [y], center=center, width=h)[0, 0]
    # to move the inputs in their last digit moves the kernel by this much
    condition = (1 + exponent) * (1 + min(s, t) / h)
    assert np.isfinite(got)
    assert abs(got - expected) <= 20 * np.finfo(float).eps * condition * expected + 1e-300


@given(
    X=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=6),
    log_width=st.floats(-4, 4),
    center=st.floats(-1e3, 1e3),
)
@settings(max_examples=150, deadline=None)
def test_always_between_zero_and_one_and_symmetric(X, log_width, center):
    K = gaussian_kernel(X, center=center, width=10.0**log_width)
    assert np.isfinite(K).all()
    assert (K >= 0).all()
    assert (K <= 1).all()
    np.testing.assert_array_equal(K, K.T)


def test_long_nearly_parallel_vectors_keep_a_positive_determinant():
    x = np.array([1e6, 1.0])
    y = np.array([1e6, 1.0 + 1e-9])
    naive = (x @ x + 1e-8) * (y @ y + 1e-8) - (x @ y) ** 2
    assert naive <= 0  # what the printed form gives
    right = exactly(x, y, 0.5, 1e-4)[0]
    got = gaussian_kernel([x], [y], center=0.5, width=1e-4)[0, 0]
    assert abs(got / right - 1) < 1e-6


def test_the_origin_and_copies():
    K = gaussian_kernel([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]], center=0.7, width=0.5)
    assert K[0, 0] == pytest.approx(np.exp(-(0.7**2) / 0.25), rel=1e-14)
    assert K[1, 2] == K[1, 1]


@pytest.mark.parametrize("shape", [(70, 300), (64, 256), (1, 1), (200, 3)])
def test_tiles_do_not_show(shape):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((shape[0], 5)), rng.standard_normal((shape[1], 5))
    K = gaussian_kernel(X, Y, center=0.4, width=0.3)
    row = gaussian_kernel(X[-1:], Y[-1:], center=0.4, width=0.3)
    np.testing.assert_allclose(K[-1, -1], row[0, 0], rtol=1e-12)
    whole = gaussian_kernel(Y, center=0.4, width=0.3)
    np.testing.assert_allclose(
        whole, gaussian_kernel(Y, Y.copy(), center=0.4, width=0.3), rtol=1e-12
    )


@given(**MODERATE, d=st.integers(1, 6), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_positive_semidefinite_and_rotation_invariant(center, width, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, d)) * rng.uniform(0, 3, (60, 1))
    K = gaussian_kernel(X, center=center, width=width)
    assert np.linalg.eigvalsh(K)[0] > -1e-13 * 60
    if d > 1:
        rotated = X @ ortho_group.rvs(d, random_state=seed)
        np.testing.assert_allclose(
            gaussian_kernel(rotated, center=center, width=width), K, atol=1e-13
        )


@given(**MODERATE, r=st.floats(-1, 1))
def test_unit_vectors_give_the_function_of_r(center, width, r):
    x, y = [1.0, 0.0], [r, np.sqrt(1 - r * r)]
    got = rotation_invariant_kernel(r, center=center, width=width)
    assert abs(got - gaussian_kernel([x], [y], center=center, width=width)[0, 0]) < 1e-12


def test_bad_input_is_named():
    X = [[1.0, 2.0]]
    with pytest.raises(ValueError, match="'width' parameter of gaussian_kernel"):
        gaussian_kernel(X, center=0.0, width=0.0)
    with pytest.raises(ValueError, match="'width'"):
        gaussian_kernel(X, center=0.0, width=-1.0)
    with pytest.raises(ValueError, match=r"'center'.*\(-inf, inf\)"):
        gaussian_kernel(X, center=np.inf, width=1.0)
    with pytest.raises(ValueError, match="NaN"):
        gaussian_kernel([[np.nan, 1.0]], center=0.0, width=1.0)
    with pytest.raises(ValueError, match="infinity"):
        gaussian_kernel(X, [[np.inf, 1.0]], center=0.0, width=1.0)
    with pytest.raises(ValueError, match=r"as many columns\. Got 2 and 1"):
        gaussian_kernel(X, [[1.0]], center=0.0, width=1.0)
    with pytest.raises(ValueError, match="'widths'"):
        gaussian_cross_kernel(X, centers=(0.0, 0.0), widths=(1.0, -1.0))
    with pytest.raises(ValueError, match="two numbers"):
        gaussian_cross_kernel(X, centers=0.0, widths=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"within \[-1, 1\]"):
        rotation_invariant_kernel(1.1, center=0.0, width=1.0)
