"""The compiled cross-entropy against NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.fused import logistic
from rflaf.fused.logistic import class_slopes
from rflaf.solvers.softmax import cross_entropy


def plain(phi, v, target, weights):
    loss, slopes = cross_entropy(phi.astype(float) @ v.astype(float), target, weights)
    total = weights.sum()
    return loss * total, total * (phi.astype(float).T @ slopes)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 70),
    w=st.integers(1, 40),
    outputs=st.sampled_from([1, 2, 3, 7, 16, 17, 20]),
    single=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_against_numpy(n, w, outputs, single, seed):
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    phi = rng.standard_normal((n, w)).astype(dtype)
    v = rng.standard_normal((w, outputs)).astype(dtype)
    target, weights = rng.integers(0, max(outputs, 2), n), rng.uniform(0.1, 3, n)
    found, expected = class_slopes(phi, v, target, weights), plain(phi, v, target, weights)
    tol = 1e-4 if single else 1e-12
    assert found[0] == pytest.approx(expected[0], rel=tol)
    np.testing.assert_allclose(
        found[1], expected[1], atol=tol * np.abs(phi).max() * weights.sum(), rtol=0
    )


@pytest.mark.parametrize("elements", [1, 5000, 1 << 20])
@pytest.mark.parametrize("outputs", [1, 3])
def test_more_rows_than_a_block(outputs, elements, rng, monkeypatch):
    monkeypatch.setattr(logistic, "_RANGE", elements)
    phi, v = rng.standard_normal((1201, 300)), 0.1 * rng.standard_normal((300, outputs))
    target, weights = rng.integers(0, max(outputs, 2), 1201), rng.uniform(0.1, 3, 1201)
    found, expected = class_slopes(phi, v, target, weights), plain(phi, v, target, weights)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-10)
    for threads in ("1", "2"):
        monkeypatch.setenv("RFLAF_NUM_THREADS", threads)
        again = class_slopes(phi, v, target, weights)
        assert again[0] == found[0]
        np.testing.assert_array_equal(again[1], found[1])


@pytest.mark.parametrize("outputs", [1, 3])
def test_large_scores(outputs):
    phi, v = np.array([[1.0], [-1.0]]), np.full((1, outputs), 800.0)
    v[0, 0] = -800.0 if outputs > 1 else 800.0
    loss, slopes = class_slopes(phi, v, np.array([0, 1]), np.ones(2))
    assert np.isfinite(loss)
    assert np.isfinite(slopes).all()
    assert loss == pytest.approx(plain(phi, v, np.array([0, 1]), np.ones(2))[0])


@pytest.mark.parametrize("outputs", [1, 3])
def test_nothing_to_sum(outputs, rng):
    phi, v = rng.standard_normal((5, 4)), rng.standard_normal((4, outputs))
    for rows in (slice(0, 0), slice(0, 5)):
        weights = np.zeros(len(phi[rows]))
        loss, slopes = class_slopes(phi[rows], v, np.zeros(len(weights), int), weights)
        assert loss == 0
        assert not slopes.any()
        assert slopes.shape == v.shape


def test_rows_that_are_not_contiguous(rng):
    phi, v = rng.standard_normal((40, 12))[::2, ::3], rng.standard_normal((4, 3))
    target, weights = rng.integers(0, 3, 20), np.ones(20)
    found = class_slopes(phi, v, target, weights)
    expected = class_slopes(np.ascontiguousarray(phi), v, target, weights)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])
