"""The held-out error of a ridge solution and its gradients, against their specification."""

import numpy as np
import pytest

from rflaf import Activation, fused
from rflaf.bases import RBF, BSpline
from rflaf.fused import held_out, reference

BASES = [RBF(9), BSpline(8), BSpline(8, extrapolate="linear"), BSpline(8, extrapolate="constant")]


def room(name, shape, dtype):
    return np.full(shape, np.nan, dtype)


def make(rng, basis, outputs=1, weighted=False, m=23):
    """A table of small error, since slopes are of a lower order; some of Z is outside the grid."""
    sigma = Activation(basis, rng.standard_normal(basis.n)).table(1e-9)

    def rows(n):
        z = (1.5 * rng.standard_normal((n, m))).astype(np.float32)
        y = np.column_stack([np.sin(z[:, k]) + z[:, 1] for k in range(outputs)])
        share = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
        return fused.HeldOutRows(z, y.astype(np.float32), share / share.sum())

    return sigma, rows(90), rows(61)


def compiled(sigma, fit, held, alpha, constant):
    """All results; the gradients for Z take the place of Z."""
    fit, held = (rows._replace(z=rows.z.copy()) for rows in (fit, held))
    ridge = fused.HeldOut(sigma, fit, held, constant, room)
    loss = ridge.loss(alpha)
    return loss, (*ridge.gradients(alpha), fit.z, held.z)


def agree(found, expected, tol):
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, atol=tol * np.abs(other).max() + 1e-12, rtol=0)


@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_against_the_specification(basis, outputs, weighted, constant, rng):
    sigma, fit, held = make(rng, basis, outputs, weighted)
    for alpha in (1e-3, 0.1):
        loss, found = compiled(sigma, fit, held, alpha, constant)
        expected = reference.held_out(sigma, *fit, *held, alpha, constant)
        assert loss == pytest.approx(expected.loss, rel=1e-3)
        agree(found, expected, 5e-4)


def test_the_specification_has_the_gradients_of_its_loss(rng):
    sigma, fit, held = make(rng, RBF(9), outputs=2, weighted=True, m=5)
    fit, held = (rows._replace(z=rows.z.astype(float)) for rows in (fit, held))
    found = reference.held_out(sigma, *fit, *held, 0.1, 1.0)
    step = 1e-5

    def difference(change):
        high, low = (reference.held_out(*change(h), 1.0).loss for h in (step, -step))
        return (high - low) / (2 * step)

    a = sigma.coefficients
    turn = rng.standard_normal(a.shape)
    by_a = difference(lambda h: (fused.Direct(sigma.basis, a + h * turn), *fit, *held, 0.1))
    assert by_a == pytest.approx(found.coefficients @ turn, rel=1e-5)
    by_alpha = difference(lambda h: (sigma, *fit, *held, 0.1 * np.exp(h)))
    assert by_alpha == pytest.approx(found.log_alpha, rel=1e-5)
    turn = rng.standard_normal(fit.z.shape)
    by_fit = difference(lambda h: (sigma, fit.z + h * turn, *fit[1:], *held, 0.1))
    assert by_fit == pytest.approx(np.sum(found.z_fit * turn), rel=1e-5)
    turn = rng.standard_normal(held.z.shape)
    by_held = difference(lambda h: (sigma, *fit, held.z + h * turn, *held[1:], 0.1))
    assert by_held == pytest.approx(np.sum(found.z_held * turn), rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_work_in_parts_has_the_same_result(weighted, rng, monkeypatch):
    given = *make(rng, RBF(9), 2, weighted), 0.02, 1.0
    _, whole = compiled(*given)
    monkeypatch.setattr(held_out, "_SHARED", 1.0)
    agree(compiled(*given)[1], whole, 1e-3)


def test_features_that_overflow(rng):
    sigma, fit, held = make(rng, RBF(9))
    fit.z[3, 4] = np.nan
    ridge = fused.HeldOut(sigma, fit, held, 1.0, room)
    assert not np.isfinite(ridge.trace)
    assert ridge.loss(0.1) == np.inf
    assert ridge.gradients(0.1) is None
