"""ActivationKernel: quadrature, simulation, the limit of random features, and scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from rflaf import Activation
from rflaf.bases import RBF, BSpline, Chebyshev, Polynomial
from rflaf.kernels import ActivationKernel
from rflaf.theory.infinite_width import GaussianMixture
from rflaf.theory.quadrature import HermiteSeries


def learned(basis, seed=0):
    return Activation(basis, np.random.default_rng(seed).standard_normal(basis.n))


UNEVEN = RBF(centers=[-1.5, -0.2, 0.4, 1.9], width=[0.6, 0.5, 0.4, 1.0])
ACTIVATIONS = {
    "rbf": learned(RBF(9)),
    "uneven rbf": learned(UNEVEN),
    "many rbf": learned(RBF(70)),
    "bspline": learned(BSpline(9)),
    "linear bspline": learned(BSpline(9, degree=1, extrapolate="linear")),
    "polynomial": learned(Polynomial(4)),
    "chebyshev": learned(Chebyshev(6)),
    **{name: Activation(name) * 1.3 for name in ("relu", "cos", "tanh", "sigmoid", "gaussian")},
}
EVERY = pytest.mark.parametrize("name", ACTIVATIONS)
NODES, WEIGHTS = roots_hermitenorm(700)
NODES, WEIGHTS = NODES[WEIGHTS > 1e-30], WEIGHTS[WEIGHTS > 1e-30]
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def points(n=30, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * 0.7


def by_quadrature(activation, x, y):
    s, t = np.linalg.norm(x), np.linalg.norm(y)
    cosine = np.clip(x @ y / (s * t), -1, 1)
    second = t * (cosine * NODES[:, None] + np.sqrt(1 - cosine**2) * NODES)
    return WEIGHTS @ (activation(s * NODES)[:, None] * activation(second)) @ WEIGHTS


@pytest.mark.parametrize("name", ["rbf", "uneven rbf", "cos", "gaussian", "tanh", "polynomial"])
def test_equals_quadrature(name):
    X = points(6)
    K = ActivationKernel(ACTIVATIONS[name])(X)
    for i in range(6):
        for j in range(i + 1):
            expected = by_quadrature(ACTIVATIONS[name], X[i], X[j])
            assert abs(K[i, j] - expected) < 1e-10 * max(1, K.max())


@EVERY
def test_equals_simulation(name):
    X = points(4)
    W = np.random.default_rng(1).standard_normal((300_000, 3))
    values = ACTIVATIONS[name](W @ X.T)
    K = ActivationKernel(ACTIVATIONS[name])(X)
    for i in range(4):
        for j in range(4):
            product = values[:, i] * values[:, j]
            standard_error = product.std() / np.sqrt(len(product))
            assert abs(product.mean() - K[i, j]) < 5 * standard_error


@EVERY
def test_symmetric_semidefinite_and_consistent(name):
    kernel = ActivationKernel(ACTIVATIONS[name], input_scale=0.8)
    X = points(90)
    X[1], X[2] = X[0], -X[0]
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-11)
    np.testing.assert_allclose(kernel(X, X[:40]), K[:, :40], rtol=1e-10, atol=1e-12 * K.max())
    scaled = ActivationKernel(ACTIVATIONS[name])(0.8 * X)
    np.testing.assert_allclose(K, scaled, rtol=1e-12)


@EVERY
def test_random_features_converge_with_slope_one_half(name):
    X = points(12)
    K = ActivationKernel(ACTIVATIONS[name])(X)
    rng = np.random.default_rng(2)
    sizes, errors = np.array([100, 400, 1600, 6400]), []
    for M in sizes:
        trials = []
        for _ in range(12):
            Phi = ACTIVATIONS[name](X @ rng.standard_normal((3, M)))
            trials.append(np.abs(Phi @ Phi.T / M - K).mean())
        errors.append(np.mean(trials))
    rate = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert abs(rate + 0.5) < 0.12


@EVERY
def test_gradient_by_finite_differences(name):
    kernel = ActivationKernel(ACTIVATIONS[name], input_scale=0.9)
    X = points(5)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    assert gradient.shape == (5, 5, kernel.n_dims)
    for i in {0, kernel.n_dims // 2, kernel.n_dims - 1}:
        step = np.zeros(kernel.n_dims)
        step[i] = 1e-5
        up, down = (kernel.clone_with_theta(kernel.theta + s)(X) for s in (step, -step))
        difference = (up - down) / 2e-5
        assert np.abs(difference - gradient[:, :, i]).max() < 2e-7 * max(1, np.abs(K).max())


@given(
    n=st.integers(3, 40),
    ratio=st.floats(0.1, 6),
    seed=st.integers(0, 1000),
    scale=st.floats(-3, 4),
)
@settings(max_examples=40, deadline=None)
def test_multiplied_terms_equal_the_plain_double_sum(n, ratio, seed, scale):
    """Equally spaced centres by multiplication against one exponential for every pair of them."""
    basis = RBF(n, width=4.0 / (n - 1) / ratio)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 3)) * 10.0 ** rng.uniform(-3, scale, (6, 1))
    X[1], X[2] = 2 * X[0], -X[0]
    widths = np.broadcast_to(basis.width, n)
    fast = GaussianMixture(basis.centers, widths, rng.standard_normal(n))
    assert fast.groups
    slow = GaussianMixture(basis.centers, widths, fast.coefficients)
    slow.spacing = 0.0
    size = GaussianMixture(basis.centers, widths, np.abs(fast.coefficients)).matrix(X, X)
    np.testing.assert_array_less(
        np.abs(fast.matrix(X, X) - slow.matrix(X, X)), 1e-12 * size + 1e-300
    )


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_many_narrow_gaussians(scale):
    """Centres at hundreds of widths: most groups are far from every input."""
    basis = RBF(201)
    widths = np.broadcast_to(basis.width, 201)
    fast = GaussianMixture(basis.centers, widths, np.cos(3 * basis.centers))
    slow = GaussianMixture(basis.centers, widths, fast.coefficients)
    slow.spacing = 0.0
    X = points(3) * scale
    expected = slow.matrix(X, X)
    np.testing.assert_allclose(fast.matrix(X, X), expected, atol=1e-11 * expected.max())


@pytest.mark.filterwarnings("ignore:n_hermite")
@pytest.mark.parametrize("name", ["rbf", "relu", "cos"])
def test_series_agrees_with_the_closed_form(name):
    X = points(20)
    closed = ActivationKernel(ACTIVATIONS[name])(X)
    series = HermiteSeries(ACTIVATIONS[name], 256)
    np.testing.assert_allclose(series.matrix(X, X), closed, atol=2e-4 * closed.max())
    off = ~np.eye(20, dtype=bool)
    errors = [
        np.abs(HermiteSeries(ACTIVATIONS[name], n).matrix(X, X) - closed)[off].max()
        for n in (16, 256)
    ]
    assert errors[1] < errors[0]


@pytest.mark.filterwarnings("ignore:n_hermite")
@pytest.mark.parametrize("basis", [RBF(17), RBF(65), BSpline(17)])
def test_memory_does_not_grow_with_the_number_of_functions(basis):
    X = points(600)
    kernel = ActivationKernel(learned(basis))
    kernel(X[:2])
    tracemalloc.start()
    kernel(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = 600 * 600 * 8
    assert peak < result + 16e6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gaussian_process_learns_the_coefficients():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    y = np.tanh(2 * X[:, 0]) + 0.01 * rng.standard_normal(40)
    start = Activation(RBF(5), [-0.6, -0.3, 0.1, 0.3, 0.5])
    kernel = ActivationKernel(start) + WhiteKernel(1e-2, (1e-6, 1e1))
    before = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    after = GaussianProcessRegressor(kernel, n_restarts_optimizer=0).fit(X, y)
    assert after.log_marginal_likelihood_value_ > before.log_marginal_likelihood(kernel.theta) + 1
    learned_kernel = after.kernel_.k1
    assert not np.allclose(learned_kernel.coefficients, start.coefficients)
    assert learned_kernel.input_scale != 1.0
    assert after.score(X, y) > 0.99


def test_kernel_ridge_and_svc():
    X = points(120, 2)
    kernel = ActivationKernel(Activation(RBF(9), RBF(9).fit(np.sin)))
    ridge = KernelRidge(kernel="precomputed", alpha=1e-4).fit(kernel(X), X[:, 0])
    new = points(20, 2, seed=5)
    assert np.abs(ridge.predict(kernel(new, X)) - new[:, 0]).max() < 0.2
    labels = X[:, 0] > X[:, 1]
    assert SVC(kernel=kernel, C=100).fit(X, labels).score(X, labels) > 0.95
    assert SVC(kernel="precomputed", C=100).fit(kernel(X), labels).score(kernel(X), labels) > 0.95


def test_theta_bounds_and_clones():
    kernel = ActivationKernel(learned(RBF(4)), input_scale=2.0)
    assert [h.name for h in kernel.hyperparameters] == ["coefficients", "input_scale"]
    np.testing.assert_allclose(kernel.theta[:4], kernel.coefficients)
    assert kernel.theta[4] == pytest.approx(np.log(2.0))
    assert kernel.bounds.shape == (5, 2)
    moved = kernel.clone_with_theta([1.0, -2.0, 3.0, -4.0, 0.0])
    np.testing.assert_array_equal(moved.coefficients, [1, -2, 3, -4])
    assert moved.input_scale == 1.0
    assert kernel.input_scale == 2.0
    assert clone(kernel) == kernel
    assert moved != kernel
    assert not kernel.is_stationary()
    assert "RBF" in repr(kernel)
    assert kernel.requires_vector_input


def test_fixed_hyperparameters_leave_theta():
    X = points(4)
    kernel = ActivationKernel("relu", coefficients_bounds="fixed")
    assert kernel.n_dims == 1
    assert kernel(X, eval_gradient=True)[1].shape == (4, 4, 1)
    both = ActivationKernel("relu", coefficients_bounds="fixed", input_scale_bounds="fixed")
    assert both.n_dims == 0
    assert both(X, eval_gradient=True)[1].shape == (4, 4, 0)
    moved = both.clone_with_theta([])
    np.testing.assert_array_equal(moved(X), both(X))
    product = ConstantKernel(2.0, "fixed") * both
    np.testing.assert_allclose(product(X), 2 * both(X))


def test_too_few_terms_are_reported():
    X = points(5) * 20
    with pytest.warns(ConvergenceWarning, match=r"n_hermite=32 terms leave \d+%"):
        ActivationKernel(ACTIVATIONS["bspline"], n_hermite=32)(X)


@pytest.mark.filterwarnings("ignore:n_hermite")
def test_large_and_tiny_inputs_stay_finite():
    X = points(20) * 10.0 ** np.linspace(-8, 6, 20)[:, None]
    for name in ("rbf", "uneven rbf", "many rbf", "bspline", "relu", "cos", "tanh"):
        K = ActivationKernel(ACTIVATIONS[name])(X)
        assert np.isfinite(K).all()
        assert np.linalg.eigvalsh(K)[0] > -1e-9 * np.trace(K)


def test_bad_input_is_named():
    kernel = ActivationKernel(learned(RBF(4)))
    X = points(3)
    with pytest.raises(ValueError, match="NaN"):
        kernel([[np.nan, 1.0, 2.0]])
    with pytest.raises(ValueError, match="infinity"):
        kernel.diag([[np.inf, 1.0, 2.0]])
    with pytest.raises(ValueError, match="as many columns"):
        kernel(X, X[:, :2])
    with pytest.raises(ValueError, match="gradient"):
        kernel(X, X, eval_gradient=True)
    with pytest.raises(ValueError, match="'input_scale' parameter of ActivationKernel"):
        ActivationKernel("relu", input_scale=0.0)(X)
    with pytest.raises(ValueError, match="'n_hermite'"):
        ActivationKernel("tanh", n_hermite=0)(X)
    with pytest.raises(ValueError, match="'activation'"):
        ActivationKernel(np.tanh)(X)
    with pytest.raises(ValueError, match="theta"):
        kernel.clone_with_theta([1.0])
    with pytest.raises(ValueError, match="overflows"):
        ActivationKernel(learned(Polynomial(30)))(X * 1e20)
