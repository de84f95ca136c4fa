"""f1, f2, f3: the activation, the exact integral, the sampled one, and the authors' arrays."""

import os
from pathlib import Path

import numpy as np
import pytest

from rflaf.datasets import load, synthetic
from rflaf.datasets.synthetic import B1, B2, TARGETS

NAMES = list(TARGETS)


def formula(name, z):
    """sigma as the paper prints it."""
    if name == "f1":
        return np.sin(np.pi * z) * (abs(z) <= 1)
    if name == "f2":
        return np.sin(np.pi * z) * ((z >= 0) & (z <= 1))
    left = -np.sin(np.pi * (z + 0.5)) * ((z >= -1.5) & (z <= -0.5))
    return left + np.sin(np.pi * (z - 0.5)) * ((z >= 0.5) & (z <= 1.5))


@pytest.mark.parametrize("name", NAMES)
def test_sigma_is_the_formula(name):
    z = np.linspace(-3, 3, 1001)
    sigma = TARGETS[name].sigma
    np.testing.assert_allclose(sigma(z), formula(name, z), atol=1e-14)
    assert sigma(z.astype(np.float32)).dtype == np.float32
    assert float(sigma(0.75)) == pytest.approx(formula(name, 0.75))


@pytest.mark.parametrize("name", NAMES)
def test_exact_is_the_integral(name):
    """Sums over a fine square of w, which know nothing of how the integral was reduced."""
    target = TARGETS[name]
    side = np.linspace(-7, 7, 1401)
    w = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    density = np.exp(-(w**2).sum(axis=1) / 2) / (2 * np.pi) * (side[1] - side[0]) ** 2
    weights = density * target.c * np.maximum(w @ B1, w @ B2)
    for x in np.array([(0.3, -1.2), (1.7, 0.4)]):
        expected = formula(name, w @ x) @ weights
        assert synthetic.exact(target, x[None])[0] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_quadrature_has_converged(name):
    # along b1 - b2, and across it, the folded normal degenerates
    difference = B1 - B2
    x = np.array([difference, [-difference[1], difference[0]], [1e-3, 0], [4.0, 1.0], [0.5, 0.5]])
    target = TARGETS[name]
    fine = synthetic.exact(target, x, nodes=400)
    assert np.isfinite(fine).all()
    np.testing.assert_allclose(synthetic.exact(target, x), fine, atol=1e-4)
    np.testing.assert_allclose(synthetic.exact(target, x)[2:], fine[2:], atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_samples_come_close_as_one_over_root_m(name):
    x, w = synthetic.points()
    x = x[:50]
    target = TARGETS[name]
    exact = synthetic.exact(target, x)
    few = synthetic.sampled(target, x, w[:1000]) - exact
    many = synthetic.sampled(target, x, w) - exact
    assert np.sqrt(np.mean(many**2)) < 1.5e-3 * target.c
    assert np.sqrt(np.mean(many**2)) < 0.5 * np.sqrt(np.mean(few**2))


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_the_authors(name):
    """Their arrays come back to rounding: b1, b2, the points and the samples are theirs."""
    folder = Path(os.environ.get("RFLAF_DATA", "").split(os.pathsep)[0])
    if not (folder / "synthetic" / "X_sin.npy").is_file():
        pytest.skip("RFLAF_DATA has no synthetic/X_sin.npy")
    theirs = load(f"{name}-authors")
    ours = load(name)
    np.testing.assert_allclose(ours.X, theirs.X, atol=1e-6)
    _, w = synthetic.points()
    sampled = synthetic.sampled(TARGETS[name], ours.X[:40], w)
    np.testing.assert_allclose(sampled, theirs.y[:40], atol=1e-4)
    np.testing.assert_allclose(ours.y, theirs.y, atol=4e-3 * TARGETS[name].c)
