import copy
import pickle

import numpy as np
import pytest

from rflaf import Activation
from rflaf.bases import RBF, BSpline, Fixed
from rflaf.fused import Direct, Table


@pytest.fixture
def sigma(rng):
    return Activation(RBF(17), rng.standard_normal(17))


def test_it_is_the_sum_over_its_basis(sigma, rng):
    for dtype in (np.float32, np.float64):
        z = rng.standard_normal((4, 5)).astype(dtype)
        assert sigma(z).dtype == sigma.derivative(z).dtype == dtype
        exact = sigma.basis(z.astype(float)) @ sigma.coefficients
        np.testing.assert_allclose(sigma(z), exact, atol=2e-5)
    assert sigma(0.3).shape == ()
    assert sigma([1, 2]).dtype == np.float64


def test_arithmetic(sigma):
    z = np.linspace(-3, 3, 50)
    other = Activation(sigma.basis, np.ones(17))
    np.testing.assert_allclose((2 * sigma)(z), 2 * sigma(z))
    np.testing.assert_allclose((sigma / 4)(z), sigma(z) / 4)
    np.testing.assert_allclose((-sigma)(z), -sigma(z))
    np.testing.assert_allclose((sigma - 3 * other)(z), sigma(z) - 3 * other(z), atol=1e-12)
    np.testing.assert_allclose((2 * Activation("relu"))(z), 2 * np.maximum(z, 0))
    with pytest.raises(ValueError, match="in the same basis"):
        sigma + Activation(RBF(16), np.ones(16))
    with pytest.raises(TypeError):
        sigma * "2"


def test_equality_hash_and_copies(sigma):
    for same in (pickle.loads(pickle.dumps(sigma)), copy.deepcopy(sigma), 1.0 * sigma):
        assert same == sigma
        assert hash(same) == hash(sigma)
    assert sigma != 2 * sigma
    assert sigma != Activation(BSpline(17), sigma.coefficients)
    assert sigma != 1


def test_it_cannot_be_changed(sigma):
    with pytest.raises(AttributeError, match="'basis' is read-only"):
        sigma.basis = RBF(3)
    with pytest.raises(AttributeError, match="read-only"):
        del sigma._basis
    with pytest.raises(ValueError, match="read-only"):
        sigma.coefficients[0] = 1
    given = np.ones(17)
    kept = Activation(RBF(17), given)
    given[:] = 5
    assert kept.coefficients[0] == 1


def test_names_and_repr():
    assert Activation("relu").basis == Fixed("relu")
    assert Activation("bspline", np.ones(9)).basis.n == 9
    text = repr(Activation(RBF(3), [1, 2, 3]))
    assert text == "Activation(RBF(3 on [-2, 2]), [1., 2., 3.])"


def test_the_compiled_form_follows_the_basis(sigma):
    assert isinstance(sigma.table(), Table)
    assert isinstance(Activation("cos").table(), Direct)


def test_plot(sigma):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    assert sigma.plot(ax, color="k", label="learned") is ax
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_ydata(), sigma(line.get_xdata()))
    assert line.get_xdata()[0] < -2 < 2 < line.get_xdata()[-1]
    assert sigma.plot() is ax  # the current axes
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((RBF(3), [1.0, 2.0]), r"vector of 3 numbers.*Got shape \(2,\)"),
        ((RBF(3), [1.0, np.nan, 2.0]), "'coefficients' parameter of Activation must be finite"),
        ((RBF(3),), "'coefficients' parameter of Activation must be given"),
        (("nothing", [1.0]), "Unknown basis 'nothing'"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Activation(*arguments)


@pytest.mark.parametrize("tol", [0, -1, 1.0, np.nan])
def test_bad_tolerance(sigma, tol):
    with pytest.raises(ValueError, match="'tol' must be between"):
        sigma.table(tol)


@pytest.mark.parametrize("extrapolate", ["linear", "constant"])
def test_simplify_has_the_fewest_knots_within_tol(extrapolate):
    basis = BSpline(40, -3, 3, degree=3, extrapolate=extrapolate)
    sigma = Activation(basis, basis.fit(np.sin))
    simple = sigma.simplify(0.02)
    z = np.linspace(-9, 9, 5001)
    assert np.abs(simple(z) - sigma(z)).max() <= 0.02 + 1e-9
    # the best line over a step h of a curve is off by h² |curve''| / 16
    assert simple.basis.n == pytest.approx(1 + 6 / np.sqrt(16 * 0.02), abs=2)
    fewer = sigma.simplify(0.02, simple.basis.n - 1)
    assert np.abs(fewer(z) - sigma(z)).max() > 0.02


def test_simplify_of_functions_that_fade_and_of_ones_that_are_simple():
    basis = RBF(9)
    sigma = Activation(basis, np.ones(9))
    z = np.linspace(-9, 9, 5001)
    assert np.abs(sigma.simplify(0.05)(z) - sigma(z)).max() <= 0.06
    line = BSpline(17, degree=1, extrapolate="linear")
    relu = Activation(line, line.fit(lambda z: np.maximum(z, 0)))
    assert relu.simplify(1e-6).basis.n == 3
    with pytest.raises(ValueError, match="'tol' must be more than 0"):
        relu.simplify(0.0)
    with pytest.raises(ValueError, match="513 knots"):
        sigma.simplify(1e-9)
