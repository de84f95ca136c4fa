"""The bounds hold on simulated targets of their class, with the constants of the paper."""

from math import log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm

from rflaf.theory import (
    ConstraintSet,
    Target,
    approximation_bound,
    constraint_set,
    excess_risk_bound,
    feature_bound,
    grid_coefficients,
    grid_error,
    grid_for,
    largest_spacing,
    largest_width,
    output_bound,
    rademacher_bound,
    sup_error_bound,
    theorem_5_1_constant,
    weight_radius,
)

BOTH = pytest.mark.parametrize("constants", ["paper", "sharp"])
DIMENSION, V_ZERO, V_SLOPE = 3, 0.5, np.array([0.3, -0.4, 0.0])
RADIUS = weight_radius(0.5, V_ZERO, dimension=DIMENSION)
NODES, WEIGHTS = roots_hermitenorm(2000)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def tent(z):
    return np.maximum(1 - np.abs(z) / 2, 0.0)


def two_peaks(z):
    """Rises from -2 to 1, falls to -1, rises to 0: the steepest Lipschitz function there is."""
    return np.interp(z, [-2, -1, 1, 2], [0, 1, -1, 0])


TARGETS = {
    "tent": (tent, Target(1.0, 0.5, 4.0, RADIUS)),
    "two peaks": (two_peaks, Target(1.0, 1.0, 4.0, RADIUS)),
}


def v(w):
    return V_ZERO + w @ V_SLOPE


def linear_expectation(sigma, X):
    """E[sigma(w·x) v(w)] for the linear v above: v(0) E[sigma(s z)] + slope·x/s E[sigma(s z) z]."""
    s = np.linalg.norm(X, axis=1)
    values = sigma(s[:, None] * NODES)
    return V_ZERO * values @ WEIGHTS + (X @ V_SLOPE) / s * (values @ (WEIGHTS * NODES))


def errors_of_features(sigma, expected, X, sizes, repeats, seed=0):
    """The L1 error over X of the mean over M features, for every M and repeat."""
    rng = np.random.default_rng(seed)
    out = np.empty((len(sizes), repeats))
    norms = np.empty((len(sizes), repeats))
    for i, M in enumerate(sizes):
        for j in range(repeats):
            W = rng.standard_normal((M, DIMENSION))
            out[i, j] = np.abs(sigma(X @ W.T) @ v(W) / M - expected).mean()
            norms[i, j] = np.sum(v(W) ** 2)
    return out, norms


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors.mean(axis=1)), 1)[0]


@BOTH
def test_theorem_3_4(constants):
    c, h = 0.4, 0.5
    X = np.random.default_rng(1).standard_normal((200, DIMENSION))
    spread = h * h + np.sum(X**2, axis=1)
    mean = h / np.sqrt(spread) * np.exp(-0.5 * c * c / spread)
    expected = mean * (V_ZERO + X @ V_SLOPE * c / spread)
    sizes = np.array([50, 200, 800, 3200])
    errors, norms = errors_of_features(
        lambda z: np.exp(-0.5 * ((z - c) / h) ** 2), expected, X, sizes, 20
    )
    bound = feature_bound(sizes, 0.1, radius=RADIUS, constants=constants)
    assert (errors <= bound.error[:, None]).all()
    assert (norms <= bound.squared_norm[:, None]).all()
    assert abs(slope(sizes, errors) + 0.5) < 0.08
    assert np.polyfit(np.log(sizes), np.log(bound.error), 1)[0] == pytest.approx(-0.5)


def test_constants_of_theorems_3_4_and_4_4_and_the_constraint_set():
    bound = feature_bound(400, 0.08, radius=2.0)
    assert bound.error == pytest.approx(18 * 2 * sqrt(log(50)) / 20)
    assert bound.squared_norm == pytest.approx(49 * 400 * 4 * log(25))
    target = Target(0.5, 1.0, 3.0, 2.0)
    assert approximation_bound(400, 0.3, 0.08, target) == pytest.approx(
        18 * (0.5 * 2 + 0.3) * sqrt(log(50)) / 20 + 0.3
    )
    allowed = constraint_set(400, 9, 0.1, 0.08, target)
    assert allowed.a_radius == pytest.approx(0.5 * 3 / (0.1 * sqrt(2 * pi * 9)))
    assert allowed.v_radius == pytest.approx(7 * 2 * sqrt(400 * log(25)))
    assert output_bound(0.1, 0.08, target) == pytest.approx(
        7 * 0.5 * 3 * 2 * sqrt(log(25)) / (0.1 * sqrt(2 * pi))
    )
    assert weight_radius(0.5, -2.0, dimension=3) == pytest.approx(sqrt(2 * 0.25 * 3 + 2 * 4))


@BOTH
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("relative", [0.4, 0.15])
def test_proposition_4_3(name, relative, constants):
    sigma, target = TARGETS[name]
    epsilon = relative * target.sup_norm * target.radius
    N, h = grid_for(epsilon, target, constants=constants)
    learned = grid_coefficients(sigma, N, h, (-2.0, 2.0))
    z = np.concatenate([np.linspace(-2.5, 2.5, 41), [-1.0, 1.0]])
    assert np.abs(learned(z) - sigma(z)).max() <= epsilon / target.radius
    squares = np.sum(learned.coefficients**2)
    assert squares <= target.sup_norm**2 * target.support**2 / (2 * pi * h * h * N)
    assert grid_error(N, h, target, constants=constants) <= epsilon * (1 + 1e-9)


@given(
    h=st.floats(0.02, 1.0),
    n=st.integers(2, 400),
    name=st.sampled_from(sorted(TARGETS)),
    shift=st.floats(-1, 1),
)
@settings(max_examples=60, deadline=None)
def test_sup_error_of_any_grid(h, n, name, shift):
    sigma, target = TARGETS[name]
    learned = grid_coefficients(sigma, n, h, (-2.0, 2.0))
    z = np.linspace(-4, 4, 200) + 0.01 * shift
    assert np.abs(learned(z) - sigma(z)).max() <= sup_error_bound(h, 4.0 / n, target)


@given(epsilon=st.floats(1e-3, 0.9), scale=st.floats(-6, 6))
@settings(max_examples=60, deadline=None)
def test_printed_grid_implies_the_sharp_one_at_any_scale(epsilon, scale):
    """The printed logarithm has a unit; for wide supports it has to be kept from vanishing."""
    unit = 10.0**scale
    target = Target(1.0, 1.0 / unit, 4.0 * unit, 1.0)
    h = largest_width(epsilon, target)
    spacing = largest_spacing(epsilon, h, target)
    assert 0 < h <= largest_width(epsilon, target, constants="sharp")
    assert 0 < spacing <= largest_spacing(epsilon, h, target, constants="sharp")
    assert sup_error_bound(h, spacing, target) <= epsilon
    sharp = largest_width(epsilon, target, constants="sharp")
    assert sharp == pytest.approx(
        unit * largest_width(epsilon, Target(1, 1, 4, 1), constants="sharp")
    )


def test_constants_of_proposition_4_3():
    target = Target(sup_norm=0.8, lipschitz=1.3, support=4.0, radius=2.0)
    h = 0.1 / (4 * sqrt(2) * 1.3 * 2 * sqrt(log(16 * 0.8 * 2 / 0.1)))
    assert largest_width(0.1, target) == pytest.approx(h)
    logarithm = log(8 * 0.8 * 4 * 2 / (sqrt(2 * pi) * 0.1 * h * h))
    spacing = 0.1 * h * sqrt(pi * np.e) / (16 * sqrt(2) * 0.8 * 2 * logarithm)
    assert largest_spacing(0.1, h, target) == pytest.approx(spacing)
    assert largest_spacing(0.1, 1e3, target) == pytest.approx(0.1 / (4 * 1.3 * 2))


@BOTH
def test_theorem_4_4(constants):
    sigma, target = TARGETS["two peaks"]
    X = np.random.default_rng(2).standard_normal((150, DIMENSION))
    expected = linear_expectation(sigma, X)
    epsilon = 0.3 * target.radius
    N, h = grid_for(epsilon, target, constants="sharp")
    learned = grid_coefficients(sigma, N, h, (-2.0, 2.0)).table()
    sizes = np.array([50, 200, 800])
    errors, _ = errors_of_features(learned, expected, X, sizes, 12)
    bound = approximation_bound(sizes, epsilon, 0.1, target, constants=constants)
    assert (errors <= bound[:, None]).all()
    assert np.diff(bound).max() < 0
    assert bound[0] > epsilon
    # against the model's own limit, and not the target, the rate is that of the features
    limit, _ = errors_of_features(learned, linear_expectation(learned, X), X, sizes, 12)
    assert abs(slope(sizes, limit) + 0.5) < 0.1


def test_rademacher_complexity_of_the_constraint_set():
    """sup over both balls is the spectral norm of sum_i xi_i B_i, here without any inequality."""
    rng = np.random.default_rng(3)
    n, M, N, h, delta = 60, 20, 16, 0.25, 0.1
    target = TARGETS["tent"][1]
    allowed = constraint_set(M, N, h, delta, target)
    Z = rng.standard_normal((n, DIMENSION)) @ rng.standard_normal((DIMENSION, M))
    B = np.exp(-0.5 * ((Z[:, None, :] - np.linspace(-2, 2, N)[:, None]) / h) ** 2)
    signs = rng.choice([-1.0, 1.0], (200, n))
    norms = np.linalg.norm(np.einsum("ri,ikm->rkm", signs, B), ord=2, axis=(1, 2))
    complexity = allowed.a_radius * allowed.v_radius / M * norms.mean() / n
    assert complexity <= rademacher_bound(n, h, delta, target)
    largest = allowed.a_radius * allowed.v_radius / M * np.linalg.norm(B, ord=2, axis=(1, 2)).max()
    assert largest <= output_bound(h, delta, target)


def test_theorem_5_1_on_a_fitted_model():
    """Least absolute error of a model that was fitted and projected, against the best target's."""
    rng = np.random.default_rng(4)
    sigma, target = TARGETS["tent"]
    n, M, N, h, delta = 400, 60, 65, 0.12, 0.1
    W = rng.standard_normal((M, DIMENSION))
    learned = grid_coefficients(sigma, N, h, (-2.0, 2.0))
    X, X_new = rng.standard_normal((n, DIMENSION)), rng.standard_normal((2000, DIMENSION))
    y, y_new = (linear_expectation(sigma, A) for A in (X, X_new))
    Phi = learned(X @ W.T) / M
    weights = np.linalg.solve(Phi.T @ Phi + 1e-6 * np.eye(M), Phi.T @ y)
    allowed = constraint_set(M, N, h, delta / 2, target)
    a, weights = allowed.project(learned.coefficients, weights)
    assert allowed.contains(a, weights)
    np.testing.assert_allclose(a, learned.coefficients)  # the construction is inside already
    risk = np.abs(learned(X_new @ W.T) @ weights / M - y_new).mean()
    for constants in ("paper", "sharp"):
        epsilon = min(grid_error(N, h, target, constants=constants), 0.99 * target.radius)
        bound = excess_risk_bound(n, M, h, epsilon, delta, target, constants=constants)
        assert risk <= bound.total


def test_constants_of_theorem_5_1():
    target = Target(1.0, 1.0, 4.0, 1.5)
    assert theorem_5_1_constant(0.1, target) == pytest.approx(14 * (1 + 7 * 4 * 1.5))
    assert theorem_5_1_constant(0.1, Target(1.0, 200.0, 0.01, 1.5)) == pytest.approx(18 * 1.6)
    bound = excess_risk_bound(100, 50, 0.2, 0.1, 0.05, target, loss_lipschitz=2.0)
    C = 14 * (1 + 7 * 4 * 1.5)
    assert bound.samples == pytest.approx(2 * C * log(320) / (0.2 * 10))
    assert bound.features == pytest.approx(2 * C * sqrt(log(160) / 50))
    assert bound.grid == pytest.approx(0.2)
    assert bound.total == pytest.approx(bound.samples + bound.features + bound.grid)


@given(
    n=st.integers(1, 10**9),
    M=st.integers(1, 10**9),
    h=st.floats(1e-3, 1.0),
    epsilon=st.floats(1e-3, 0.9),
    delta=st.floats(1e-6, 0.49),
)
def test_sharp_constants_are_never_larger(n, M, h, epsilon, delta):
    target = Target(1.0, 1.0, 4.0, 1.0)
    paper = excess_risk_bound(n, M, h, epsilon, delta, target)
    sharp = excess_risk_bound(n, M, h, epsilon, delta, target, constants="sharp")
    assert 0 < sharp.samples <= paper.samples
    assert 0 < sharp.features <= paper.features
    assert (
        feature_bound(M, delta, radius=1.0, constants="sharp").error
        <= feature_bound(M, delta, radius=1.0).error
    )


@given(
    a=st.lists(st.floats(-100, 100), min_size=1, max_size=5),
    radius=st.floats(0.1, 50),
    seed=st.integers(0, 99),
)
def test_projection_is_the_nearest_point(a, radius, seed):
    allowed = ConstraintSet(radius, 2.0)
    v = [1.0, -2.0, 0.5]
    near_a, near_v = allowed.project(a, v)
    assert allowed.contains(near_a, near_v)
    again = allowed.project(near_a, near_v)
    np.testing.assert_allclose(again[0], near_a, rtol=1e-12)
    other = np.random.default_rng(seed).standard_normal(len(a))
    other *= radius * np.random.default_rng(seed).random() / np.linalg.norm(other)
    distance = np.linalg.norm(np.array(a) - near_a)
    assert distance <= np.linalg.norm(np.array(a) - other) + 1e-9


TARGET = Target(1.0, 1.0, 4.0, 1.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: feature_bound(10, 0.5, radius=1.0), "delta"),
        (lambda: feature_bound(10, 0.0, radius=1.0), "delta"),
        (lambda: feature_bound(0, 0.1, radius=1.0), "n_features"),
        (lambda: feature_bound(10, 0.1, radius=0.0), "radius"),
        (lambda: feature_bound(10, 0.1, radius=1.0, constants="best"), "constants"),
        (lambda: largest_width(-0.1, TARGET), "epsilon"),
        (lambda: largest_width(np.nan, TARGET), "epsilon"),
        (lambda: largest_width(1.0, TARGET), "epsilon"),
        (lambda: largest_spacing(0.1, 0.0, TARGET), "width"),
        (lambda: approximation_bound(10, 0.1, 0.6, TARGET), "delta"),
        (lambda: excess_risk_bound(10, 10, 2.0, 0.1, 0.1, TARGET), "width"),
        (lambda: excess_risk_bound(-1, 10, 0.1, 0.1, 0.1, TARGET), "n_samples"),
        (lambda: constraint_set(10, 10, 0.1, 0.7, TARGET), "delta"),
        (lambda: ConstraintSet(1.0, 1.0).project([np.nan], [1.0]), "a"),
        (lambda: rademacher_bound(10, 0.1, 0.1, TARGET, loss_lipschitz=0.0), "loss_lipschitz"),
        (lambda: weight_radius(-1.0, 0.0, dimension=2), "lipschitz"),
        (lambda: grid_coefficients(tent, 5, -0.1, (-2.0, 2.0)), "width"),
        (lambda: Target(3.0, 1.0, 4.0, 1.0), "sup_norm"),
        (lambda: Target(1.0, 1.0, np.inf, 1.0), "support"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
