"""What holds for every basis."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf.bases import LEARNABLE_BASES, Fixed, Polynomial, get_basis
from tests.conftest import ALL_BASES

finite = st.floats(-6, 6, allow_nan=False)
every_basis = pytest.mark.parametrize("basis", ALL_BASES, ids=repr)


@every_basis
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (3, 0), (2, 1, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_dtypes(basis, shape, dtype, rng):
    z = rng.standard_normal(shape).astype(dtype)
    for values in (basis(z), basis.derivative(z)):
        assert values.shape == (*shape, basis.n)
        assert values.dtype == dtype


@every_basis
def test_derivative_is_that_of_the_values(basis):
    # away from the points where some of them have kinks
    z = np.linspace(-4.03, 4.07, 301)
    step = 1e-6
    kinks = np.concatenate([getattr(basis, "knots", []), basis.grid, [0.0]])
    z = z[np.abs(z[:, None] - kinks).min(axis=1) > 1e-4]
    numeric = (basis(z + step) - basis(z - step)) / (2 * step)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(basis.derivative(z), numeric, atol=1e-7 * scale)


@every_basis
def test_combine_is_the_sum_over_the_functions(basis, rng):
    a = rng.standard_normal(basis.n)
    z = np.linspace(-5, 5, 201)
    for order, values in ((0, basis(z)), (1, basis.derivative(z))):
        np.testing.assert_allclose(
            basis.combine(a, z, order), values @ a, atol=1e-12 * (1 + np.abs(values).max())
        )


@every_basis
def test_nan_stays_nan_and_infinity_gives_the_limit(basis, rng):
    a = np.abs(rng.standard_normal(basis.n)) + 0.1
    assert np.isnan(basis.combine(a, np.array([np.nan]))).all()
    at_infinity = basis.combine(a, np.array([-np.inf, np.inf]))
    if basis == Fixed("cos"):
        assert np.isnan(at_infinity).all()  # there is no limit
        return
    far = basis.combine(a, np.array([-1e30, 1e30]))
    huge = np.abs(far) > 1e10
    np.testing.assert_array_equal(np.isinf(at_infinity), huge)
    np.testing.assert_array_equal(np.sign(at_infinity[huge]), np.sign(far[huge]))
    np.testing.assert_allclose(at_infinity[~huge], far[~huge], atol=1e-12)


@every_basis
def test_float32_is_close_to_float64(basis):
    z = np.linspace(-3, 3, 101, dtype=np.float32)
    exact = basis(z.astype(np.float64))
    np.testing.assert_allclose(basis(z), exact, atol=2e-5 * np.abs(exact).max())


@every_basis
def test_equality_hash_repr_and_pickle(basis):
    again = pickle.loads(pickle.dumps(basis))
    assert again == basis
    assert hash(again) == hash(basis)
    assert repr(again) == repr(basis)
    assert sum(basis == other for other in ALL_BASES) == 1
    assert basis != "rbf"


@pytest.mark.parametrize("name", LEARNABLE_BASES)
def test_fit_recovers_a_function_of_the_basis(name, rng):
    basis = get_basis(name, 7)
    a = rng.standard_normal(7)
    np.testing.assert_allclose(basis.fit(lambda z: basis(z) @ a), a, atol=1e-8)
    z = rng.uniform(-2, 2, 400)
    np.testing.assert_allclose(basis.fit(basis(z) @ a, z), a, atol=1e-8)


@pytest.mark.parametrize(("name", "order"), [("rbf", 2), ("bspline", 3), ("chebyshev", 6)])
def test_more_functions_fit_better(name, order):
    """The error of the fit to a smooth function falls at least as fast as the basis promises."""
    z = np.linspace(-1.2, 1.2, 777)  # at the edges of the grid Gaussians lack neighbours
    errors = []
    for n in (9, 17):
        basis = get_basis(name, n)
        a = basis.fit(lambda z: np.sin(3 * z), ridge=1e-14)
        errors.append(np.abs(basis(z) @ a - np.sin(3 * z)).max())
    assert np.log2(errors[0] / errors[1]) > order


def test_ridge_shrinks_the_coefficients():
    basis = get_basis("rbf", 17)
    plain, shrunk = basis.fit(np.sign), basis.fit(np.sign, ridge=1e-2)
    assert np.linalg.norm(shrunk) < 0.9 * np.linalg.norm(plain)


@given(st.lists(finite, min_size=1, max_size=20), st.integers(3, 12))
def test_values_do_not_depend_on_the_company(z, n):
    """Each element is evaluated by itself."""
    for name in LEARNABLE_BASES:
        basis = get_basis(name, n)
        together = basis(np.array(z))
        alone = np.array([basis(v) for v in z])
        np.testing.assert_array_equal(together, alone)


def test_fit_says_what_is_wrong():
    basis = get_basis("rbf", 5)
    with pytest.raises(ValueError, match="no 'z'"):
        basis.fit([1.0, 2.0])
    with pytest.raises(ValueError, match="3 values for 2 points"):
        basis.fit([1.0, 2.0, 3.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="must be finite"):
        basis.fit([1.0, np.nan], [0.0, 1.0])


def test_unknown_names_and_wrong_types():
    with pytest.raises(ValueError, match=r"Unknown basis 'rbff'.*rbf, bspline"):
        get_basis("rbff")
    with pytest.raises(TypeError, match="'z' must be an array of real numbers"):
        Polynomial(3)(np.array(["a"]))
    basis = get_basis("bspline", 8)
    assert get_basis(basis) is basis
