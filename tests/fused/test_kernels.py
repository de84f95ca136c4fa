"""Each kernel against its specification in NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from rflaf import Activation, fused
from rflaf.bases import RBF
from rflaf.fused import reference
from tests.conftest import KERNEL_BASES

SHAPES = [(0, 0), (0, 5), (4, 0), (1, 1), (1, 9), (7, 1), (5, 8), (33, 517), (300, 1031)]
DTYPES = [np.float32, np.float64]
each_basis = pytest.mark.parametrize("basis", KERNEL_BASES, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)


def make(basis, rng, shape, dtype, tol=1e-9):
    sigma = Activation(basis, rng.standard_normal(basis.n)).table(tol)
    z = (1.5 * rng.standard_normal(shape)).astype(dtype)
    return sigma, z


def check(got, expected, dtype, terms=1):
    """Equal up to the table's error (1e-9; None: that of slopes) and rounding of the summands."""
    assert got.shape == expected.shape
    scale = np.abs(expected).max(initial=0.1)
    unit = {np.float32: 2e-6, np.float64: 2e-8, None: 5e-6}[dtype]
    np.testing.assert_allclose(got, expected, atol=unit * np.sqrt(terms) * scale, rtol=0)


@each_basis
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_the_specification(basis, dtype, shape, rng):
    sigma, z = make(basis, rng, shape, dtype)
    n, m = shape
    dense = rng.standard_normal(shape).astype(dtype)
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    v = right.astype(dtype)
    check(fused.apply(sigma, z), reference.apply(sigma, z), dtype)
    assert fused.apply(sigma, z).dtype == fused.predict(sigma, z, v).dtype == dtype
    for upstream in (dense, (left.astype(dtype), v), (left[:, 0].astype(dtype), v[:, 0])):
        check(fused.slope(sigma, z, upstream), reference.slope(sigma, z, upstream), None)
        check(
            fused.adjoint(sigma, z, upstream), reference.adjoint(sigma, z, upstream), dtype, n * m
        )
    check(fused.predict(sigma, z, v), reference.predict(sigma, z, v), dtype, m)
    check(fused.predict(sigma, z, v[:, 0]), reference.predict(sigma, z, v[:, 0]), dtype, m)


@each_basis
@each_dtype
@pytest.mark.parametrize("d", [0, 1, 9, 40], ids=lambda d: f"d={d}")
@pytest.mark.parametrize("n_outputs", [1, 20])
def test_predict_from_inputs(basis, dtype, d, n_outputs, rng):
    """Fused for few inputs and outputs, through matrix products for many, and sparse."""
    sigma, _ = make(basis, rng, (1, 1), dtype)
    x = rng.standard_normal((70, d)).astype(dtype)
    w = (rng.standard_normal((d, 600)) / np.sqrt(max(d, 1))).astype(dtype)
    v = rng.standard_normal((600, n_outputs)).astype(dtype)
    expected = reference.predict_inputs(sigma, x.astype(float), w.astype(float), v)
    check(fused.predict_inputs(sigma, x, w, v), expected, dtype, 600)
    if d:
        got = fused.predict_inputs(sigma, sparse.csr_array(x), w, v)
        assert got.dtype == dtype
        check(got, expected, dtype, 600)


@each_basis
@each_dtype
def test_any_layout_in_memory(basis, dtype, rng):
    """Strided rows are read in place; other layouts are copied; the numbers are the same."""
    sigma, wide = make(basis, rng, (60, 90), dtype)
    plain = np.ascontiguousarray(wide[5:45:2, 3:80])
    read_only = plain.copy()
    read_only.flags.writeable = False
    views = {
        "strided rows": wide[5:45:2, 3:80],
        "fortran": np.asfortranarray(plain),
        "reversed": plain[::-1][::-1],
        "every other column": np.repeat(plain, 2, axis=1)[:, ::2],
        "read-only": read_only,
        "big-endian": plain.astype(plain.dtype.newbyteorder(">")),
    }
    upstream = rng.standard_normal(plain.shape).astype(dtype)
    v = rng.standard_normal((77, 2)).astype(dtype)
    for name, z in views.items():
        for f, rest in (
            (fused.apply, ()),
            (fused.slope, (upstream,)),
            (fused.adjoint, (np.asfortranarray(upstream),)),
            (fused.predict, (v,)),
        ):
            expected = f(sigma, plain, *rest)
            tolerance = 0 if f in (fused.apply, fused.slope) else 1e-5 * np.abs(expected).max()
            got = f(sigma, z, *rest)
            np.testing.assert_allclose(got, expected, atol=tolerance, rtol=0, err_msg=name)


@each_basis
def test_any_shape_and_in_place(basis, rng):
    sigma, z = make(basis, rng, (3, 50, 211), np.float32)
    expected = fused.apply(sigma, z)
    check(expected, reference.apply(sigma, z), np.float32)
    for shape in ((3 * 50 * 211,), (150, 211)):
        np.testing.assert_array_equal(
            fused.apply(sigma, z.reshape(shape)).ravel(), expected.ravel()
        )
    for out in (np.empty_like(z), np.empty((3, 50, 422), np.float32)[:, :, ::2]):
        assert fused.apply(sigma, z, out) is out
        np.testing.assert_array_equal(out, expected)
    into = np.empty((150, 300), np.float32)
    fused.apply(sigma, z.reshape(150, 211), out=into[:, :211])
    np.testing.assert_array_equal(into[:, :211], expected.reshape(150, 211))
    one = np.ones((150, 211), np.float32)
    slopes = fused.slope(sigma, z.reshape(150, 211), one)
    fused.slope(sigma, z.reshape(150, 211), one, out=into[:, 300:88:-1])
    np.testing.assert_array_equal(into[:, 300:88:-1], slopes)
    fused.apply(sigma, z, out=z)
    np.testing.assert_array_equal(z, expected)


@each_basis
@each_dtype
def test_not_a_number_and_infinity(basis, dtype, rng):
    sigma, z = make(basis, rng, (9, 21), dtype)
    z[2, 3], z[4, 16], z[5, 20] = np.nan, np.inf, -np.inf
    got, expected = fused.apply(sigma, z), reference.apply(sigma, z)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
    ones = np.ones_like(z)
    assert np.isnan(got[2, 3])
    assert np.isnan(fused.slope(sigma, z, ones)[2, 3])
    v = np.ones(21, dtype)
    assert np.isnan(fused.predict(sigma, z, v)[2])
    assert np.isnan(fused.adjoint(sigma, z, ones)[-1])
    if sigma.basis.tail in ("zero", "constant"):
        assert np.isfinite(fused.adjoint(sigma, z[3:], ones[3:])).all()


@each_basis
@each_dtype
def test_the_adjoint_is_the_transpose(basis, dtype, rng):
    """<sigma_a(Z), G> = <a, adjoint(G)> for any a and G, to rounding."""
    a = rng.standard_normal(basis.n)
    sigma = Activation(basis, a).table()
    z = (1.5 * rng.standard_normal((200, 777))).astype(dtype)
    g = rng.standard_normal(z.shape).astype(dtype)
    values = fused.apply(sigma, z).astype(np.float64)
    forward = np.sum(values * g)
    backward = a @ fused.adjoint(sigma, z, g)
    scale = np.linalg.norm(values) * np.linalg.norm(g)
    assert abs(forward - backward) <= (1e-7 if dtype == np.float32 else 1e-14) * scale


@each_basis
def test_the_slope_is_the_derivative_of_what_apply_computes(basis, rng):
    sigma, z = make(basis, rng, (20, 333), np.float64, tol=2e-6)
    if basis.tail != "direct":
        low, cell = sigma.layout.low, sigma.layout.cell
        place = (z - low) / cell % 1
        z += cell * (np.clip(place, 0.01, 0.99) - place)  # not across the end of a cell
    elif basis.parameters().get("name") == "relu":
        z[np.abs(z) < 1e-3] = 1
    step = 1e-6
    numeric = (fused.apply(sigma, z + step) - fused.apply(sigma, z - step)) / (2 * step)
    got = fused.slope(sigma, z, np.ones_like(z))
    np.testing.assert_allclose(got, numeric, atol=1e-6 * np.abs(numeric).max())


@each_basis
def test_two_runs_are_the_same_bits_whatever_the_threads(basis, rng, monkeypatch):
    sigma, z = make(basis, rng, (400, 1000), np.float32)
    g, v = rng.standard_normal(z.shape).astype(np.float32), np.ones((1000, 2), np.float32)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((900, 32), (32, 1000)))
    results = []
    for threads in ("1", "2", "2"):
        monkeypatch.setenv("RFLAF_NUM_THREADS", threads)
        results.append(
            [
                fused.apply(sigma, z),
                fused.slope(sigma, z, g),
                fused.adjoint(sigma, z, g),
                fused.predict(sigma, z, v),
                fused.predict_inputs(sigma, x, 0.1 * w, v),
                fused.predict_inputs(sigma, x[:, :10], 0.1 * w[:10, :60], v[:60]),
            ]
        )
    for other in results[1:]:
        for first, second in zip(results[0], other):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 7, 20, 31, 32])
def test_a_row_is_predicted_alike_whatever_is_beside_it(d, dtype, rng):
    """Also where BLAS rounds by the size of a product."""
    sigma, _ = make(RBF(17), rng, (1, 1), dtype)
    x, w = rng.standard_normal((75, d)).astype(dtype), rng.standard_normal((d, 549)).astype(dtype)
    v = rng.standard_normal((549, 2)).astype(dtype)
    together = fused.predict_inputs(sigma, x, 0.3 * w, v)
    for rows in (slice(0, 1), slice(74, 75), slice(3, 5), slice(1, 70), slice(17, 50)):
        alone = fused.predict_inputs(sigma, x[rows], 0.3 * w, v)
        np.testing.assert_array_equal(alone, together[rows])


@pytest.mark.parametrize("kernels", ["Haswell", "Nehalem"])
def test_the_same_with_other_kernels_of_openblas(kernels):
    """Which they are depends on the processor; where there is no OpenBLAS they stay as they are."""
    test = f"{__file__}::{test_a_row_is_predicted_alike_whatever_is_beside_it.__name__}"
    given = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test]
    env = {**os.environ, "OPENBLAS_CORETYPE": kernels}
    done = subprocess.run(given, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_wrong_shapes_are_named(rng):
    sigma, z = make(KERNEL_BASES[0], rng, (4, 6), np.float32)
    v = np.ones(6)
    bad = [
        (lambda: fused.predict(sigma, z, np.ones(5)), r"'v' must have 6 rows.*Got shape \(5,\)"),
        (lambda: fused.predict(sigma, z[0], np.ones(6)), r"'z' must be a matrix. Got shape \(6,\)"),
        (lambda: fused.adjoint(sigma, z, np.ones((4, 5))), "'upstream' must have the shape of 'z'"),
        (lambda: fused.slope(sigma, z, (np.ones((4, 2)), np.ones((6, 3)))), "as factors"),
        (lambda: fused.predict_inputs(sigma, z, np.ones((5, 3)), v[:3]), "'w' must have 6 rows"),
        (lambda: fused.apply(sigma, z, np.empty((4, 6))), "'out' must be a writeable array"),
        (lambda: fused.apply(sigma, z, np.empty((4, 5), np.float32)), "'out' must be a writeable"),
    ]  # fmt: skip
    for call, message in bad:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="'z' must be an array of real numbers"):
        fused.apply(sigma, np.array(["a"]))
