"""The compiled way from a sketch to its held-out error, against NumPy's."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import fused
from rflaf.bases import RBF, BSpline, get_basis
from rflaf.fused import held_out as compiled_rows
from rflaf.rows import Block
from rflaf.runtime.threads import at_most
from rflaf.solvers.features import FeatureOverflow, Workspace
from rflaf.solvers.sketches import PlainHeldOut, Sketch, held_out_loss, sketch_ridge

BASES = [
    RBF(9),
    BSpline(8),
    BSpline(8, extrapolate="linear"),
    BSpline(8, extrapolate="constant"),
]


def make_sketch(rng, *, d=4, m=23, fit=90, held=61, outputs=1, weighted=False):
    def rows(n):
        x = rng.standard_normal((n, d)).astype(np.float32)
        y = np.column_stack([np.sin(2 * x[:, k % d]) + x[:, 1] for k in range(outputs)])
        weights = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
        return Block(0, x, y.astype(np.float32), weights)

    return Sketch(rows(fit), rows(held), rng.standard_normal((d, m)).astype(np.float32))


def in_double(sketch):
    """The same rows for NumPy's way."""
    sides = (side._replace(x=side.x.astype(np.float64)) for side in sketch[:2])
    return Sketch(*sides, sketch.projection.astype(np.float64))


def make_sigma(basis, rng):
    return fused.basis_layout(basis).table(rng.standard_normal(basis.n))


def agree(found, expected, tol=2e-4):
    for got, wanted in zip(found, expected, strict=True):
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, atol=tol * np.abs(wanted).max() + 1e-12, rtol=0)


@pytest.mark.parametrize("learn_metric", [True, False], ids=["metric", "no metric"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_loss_and_gradients(basis, outputs, weighted, fit_intercept, learn_metric, rng):
    sketch = make_sketch(rng, outputs=outputs, weighted=weighted)
    sigma, metric = make_sigma(basis, rng), rng.uniform(0.3, 1.5, 4)  # some of Z is outside
    found, expected = (
        held_out_loss(sigma, metric, 0.02, each, fit_intercept, learn_metric)
        for each in (sketch, in_double(sketch))
    )
    agree(found, expected)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_work_in_parts_has_the_same_result(weighted, rng, monkeypatch):
    sketch, sigma = make_sketch(rng, outputs=2, weighted=weighted), make_sigma(RBF(9), rng)
    given = sigma, 0.3 * np.eye(4), 0.02, sketch
    whole = held_out_loss(*given)
    monkeypatch.setattr(compiled_rows, "_SHARED", 1.0)
    monkeypatch.setenv("RFLAF_NUM_THREADS", "2")
    parts = held_out_loss(*given)
    agree(parts, whole, 1e-3)
    with at_most(1):
        alone = held_out_loss(*given)
    for one, other in zip(parts, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_memory_that_served_larger_sketches_does_not_matter(rng):
    sigma, space = make_sigma(RBF(9), rng), Workspace()
    for size in ({"m": 40, "fit": 120, "outputs": 3}, {"m": 12, "weighted": True}, {"m": 23}):
        sketch = make_sketch(rng, **size)
        given = sigma, np.full(4, 0.5), 0.1, sketch
        again = held_out_loss(*given, space=space)
        for one, other in zip(again, held_out_loss(*given), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_losses_of_penalties(weighted, sparse_rows, rng):
    sketch, sigma = make_sketch(rng, outputs=2, weighted=weighted), make_sigma(RBF(9), rng)
    if sparse_rows:
        sides = (side._replace(x=sparse.csr_array(side.x)) for side in sketch[:2])
        sketch = Sketch(*sides, sketch.projection)
    metric = np.full(4, 0.5)
    for fit_intercept in (True, False):
        ridge, plain = (
            sketch_ridge(sigma, metric, each, fit_intercept)[0]
            for each in (sketch, in_double(sketch))
        )
        for alpha in (1e-3, 1e-1, 10.0):
            assert ridge.loss(alpha) == pytest.approx(plain.loss(alpha), rel=1e-3)


def test_equal_features_without_a_penalty(rng):
    sketch = make_sketch(rng, m=20)
    w = np.repeat(sketch.projection[:, :5], 4, axis=1)  # of rank 5, but for rounding
    sketch, sigma = sketch._replace(projection=np.ascontiguousarray(w)), make_sigma(RBF(9), rng)
    found = held_out_loss(sigma, np.full(4, 0.5), 1e-30, sketch)
    assert all(np.isfinite(part).all() for part in found)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_features_that_overflow(value, rng):
    basis = BSpline(8, extrapolate="linear")
    a = rng.standard_normal(basis.n)
    a[0] = value
    with np.errstate(invalid="ignore"):
        sketch, sigma = make_sketch(rng), fused.basis_layout(basis).table(a)
    with pytest.raises(FeatureOverflow):
        held_out_loss(sigma, np.full(4, 0.5), 0.1, sketch)
    assert sketch_ridge(sigma, np.full(4, 0.5), sketch, True)[0].loss(0.1) == np.inf


@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("far", [1e25, 3e38])
def test_rows_held_out_that_overflow(far, weight, rng):
    """A loss that is no number would win over none, and none over it."""
    basis = BSpline(8, extrapolate="linear")
    sketch, sigma = make_sketch(rng), make_sigma(basis, rng)
    held_out = sketch.held_out
    held_out.x[0], held_out.weights[0] = [far, -far, far, -far], weight
    loss = sketch_ridge(sigma, np.full(4, 0.5), sketch, True)[0].loss(0.1)
    assert loss == np.inf or loss > 0


def test_what_is_compiled_and_what_is_not(rng):
    sketch, table, powers = make_sketch(rng), make_sigma(RBF(9), rng), get_basis("chebyshev", 5)
    direct = fused.Direct(powers, np.ones(powers.n))
    for sigma, rows, kind in (
        (table, sketch, fused.HeldOut),
        (table, in_double(sketch), PlainHeldOut),
        (direct, sketch, PlainHeldOut),
    ):
        assert isinstance(sketch_ridge(sigma, np.full(4, 0.5), rows, True)[0], kind)
