"""The features of a layer, and what is kept of them."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from rflaf import fused
from rflaf.bases import RBF
from rflaf.solvers import features as module
from rflaf.solvers.features import (
    FeatureOverflow,
    KeptBlocks,
    Projected,
    Workspace,
    apply_metric,
    check_finite,
    features,
    project,
    pull_back,
    row_rotation,
)


def test_metrics_of_every_kind(rng):
    w = rng.standard_normal((3, 5))
    scale = np.array([1.0, 2.0, 0.0])
    np.testing.assert_allclose(apply_metric(np.diag(scale), w), apply_metric(scale, w))
    np.testing.assert_allclose(apply_metric(np.array(2.0), w), 2 * w)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_products_in_halves(n, kind, rng, monkeypatch):
    monkeypatch.setattr(module, "_SHARED", 1)
    x, w, slopes = (rng.standard_normal(shape) for shape in ((n, 3), (3, 5), (n, 5)))
    out = np.empty((n, 5))
    for found in (project(kind(x), w), project(kind(x), w, out)):
        np.testing.assert_allclose(found, x @ w, atol=1e-12)
    np.testing.assert_allclose(pull_back(kind(x), slopes), x.T @ slopes, atol=1e-12)


def test_a_known_z_is_copied(rng):
    known = Projected(rng.standard_normal((6, 5)))
    before = known.z.copy()
    some = known.at(np.array([4, 1]), np.array([0, 3]))
    np.testing.assert_array_equal(some.z, before[[4, 1]][:, [0, 3]])
    np.testing.assert_array_equal(known.at(np.array([2]), None).z, before[[2]])
    out = np.empty((6, 5))
    for found in (project(known, np.ones((2, 5))), project(known, np.ones((2, 5)), out)):
        np.testing.assert_array_equal(found, before)
        found[:] = 0  # as gradients for Z do
    np.testing.assert_array_equal(known.z, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_and_their_constant(rng, dtype):
    sigma = fused.basis_layout(RBF(9)).table(rng.standard_normal(9))
    x, w = rng.standard_normal((7, 3)).astype(dtype), rng.standard_normal((3, 5)).astype(dtype)
    z = project(x, w)
    before = z.copy()
    for constant in (1.0, 0.0):
        phi = features(sigma, z, constant)
        assert phi.dtype == dtype
        np.testing.assert_array_equal(phi[:, -1], constant)
        np.testing.assert_array_equal(phi[:, :-1], fused.apply(sigma, z))
    np.testing.assert_array_equal(z, before)
    np.testing.assert_allclose(project(sparse.csr_array(x), w), z, rtol=1e-5, atol=1e-6)


def test_overflow_is_named():
    check_finite(1e300)
    for number in (np.inf, -np.inf, np.nan):
        with pytest.raises(FeatureOverflow, match="The features overflow"):
            check_finite(number)


def test_blocks_are_kept_while_there_is_room():
    kept, made = KeptBlocks(100), []

    def make(number):
        made.append(number)
        return number

    for _ in range(2):
        assert kept.get("a", 60, lambda: make("a")) == "a"
        assert kept.get("b", 50, lambda: make("b")) is None
        assert kept.get("c", 40, lambda: make("c")) == "c"
    assert made == ["a", "c"]
    assert KeptBlocks(-5).get(0, 1, lambda: 1) is None
    elsewhere = pickle.loads(pickle.dumps(kept))
    assert elsewhere.get("a", 60, lambda: make("a")) is None  # nothing is kept there


def test_what_could_not_be_made_takes_no_room():
    kept = KeptBlocks(100)

    def fail():
        raise MemoryError

    for _ in range(3):
        with pytest.raises(MemoryError):
            kept.get(0, 60, fail)
    assert kept.get(0, 60, lambda: "made") == "made"


def test_memory_that_is_used_again():
    space = Workspace()
    one = space.array("a", (4, 5), np.float32)
    assert one.shape == (4, 5)
    assert one.dtype == np.float32
    assert one.flags.c_contiguous
    smaller, other = space.array("a", (3, 2), np.float32), space.array("b", (4, 5), np.float32)
    assert np.shares_memory(one, smaller)
    assert not np.shares_memory(one, other)
    for shape, dtype in (((5, 5), np.float32), ((4, 5), np.float64)):
        fresh = space.array("a", shape, dtype)
        assert not np.shares_memory(one, fresh)
        assert (fresh.shape, fresh.dtype) == (shape, dtype)
    assert space.array("a", (0, 7), np.float64).shape == (0, 7)


def test_features_into_memory_that_is_there(rng):
    sigma = fused.basis_layout(RBF(9)).table(rng.standard_normal(9))
    x, w = rng.standard_normal((7, 3)), rng.standard_normal((3, 5))
    space = Workspace()
    for _ in range(2):
        z = project(x, w, space.array("z", (7, 5), np.float64))
        phi = features(sigma, z, out=space.array("phi", (7, 6), np.float64))
        np.testing.assert_array_equal(z, x @ w)
        np.testing.assert_array_equal(phi, features(sigma, x @ w))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_span_of_few_rows(rng, dtype):
    """Orthonormal, and rows lose nothing in it; rows that repeat do no harm."""
    phi = rng.standard_normal((30, 90)).astype(dtype)
    tol = 1e-3 if dtype == np.float32 else 1e-6
    turned = row_rotation(phi)
    assert turned.shape == (90, 30)
    assert turned.dtype == dtype
    np.testing.assert_allclose(turned.T @ turned, np.eye(30), atol=tol)
    np.testing.assert_allclose((phi @ turned) @ turned.T, phi, atol=tol)
    twice = np.vstack([phi, phi])
    back = (twice @ row_rotation(twice)) @ row_rotation(twice).T
    np.testing.assert_allclose(back, twice, atol=10 * tol)
