"""L-BFGS against known minima."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rflaf.solvers.lbfgs import minimise


def quadratic(matrix, centre, least):
    def value(x):
        d = x - centre
        return least + 0.5 * float(np.sum(d * (matrix @ d))), matrix @ d

    return value


def test_unit_curvature_takes_one_step(rng):
    centre = rng.standard_normal((5, 2))
    found, steps = minimise(quadratic(np.eye(5), centre, 1.0), np.zeros((5, 2)), 1e-12, 50)
    assert steps == 1
    np.testing.assert_allclose(found, centre)


@pytest.mark.parametrize("spread", [2.0, 30.0])
def test_a_quadratic_function(rng, spread):
    q, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    matrix = q @ np.diag(np.geomspace(1 / spread, spread, 8)) @ q.T
    centre = rng.standard_normal((8, 3))
    found, steps = minimise(quadratic(matrix, centre, 2.0), np.zeros((8, 3)), 1e-16, 500)
    np.testing.assert_allclose(found, centre, atol=1e-5)
    assert steps < 100


def test_the_end_is_told_by_what_is_to_gain(rng):
    """With curvatures of one, the value is within `tol` of the least, relatively."""
    centre = rng.standard_normal(6)
    matrix = np.diag(np.linspace(1.0, 4.0, 6))
    value = quadratic(matrix, centre, 3.0)
    for tol in (1e-1, 1e-3, 1e-6):
        found, _ = minimise(value, np.zeros(6), tol, 100)
        assert value(found)[0] <= 3 * (1 + 1.01 * tol)


def test_a_logistic_loss_against_scipy(rng):
    x, y = rng.standard_normal((200, 4)), np.sign(rng.standard_normal(200))

    def value(v):
        margin = -y * (x @ v)
        loss = float(np.mean(np.logaddexp(0, margin)) + 0.01 * v @ v)
        return loss, -(x.T @ (y / (1 + np.exp(-margin)))) / 200 + 0.02 * v

    found, _ = minimise(value, np.zeros(4), 1e-14, 200)
    expected = minimize(value, np.zeros(4), jac=True, tol=1e-12).x
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_first_step_that_is_far_too_long():
    """Curvature of a million: the whole step overshoots, and is shortened."""
    value = quadratic(1e6 * np.eye(3), np.ones(3), 1.0)
    found, _ = minimise(value, np.zeros(3), 1e-12, 100)
    np.testing.assert_allclose(found, 1, atol=1e-6)


def test_infinity_along_the_way_is_stepped_back_from():
    """The function is infinite beyond 1, where the first step ends."""

    def value(x):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            loss = float(-np.log(1 - x[0])) - 50 * x[0] if x[0] < 1 else np.inf
            return loss, np.array([1 / (1 - x[0]) - 50])

    found, _ = minimise(value, np.zeros(1), 1e-12, 200)
    assert found[0] == pytest.approx(1 - 1 / 50, rel=1e-3)


def test_at_the_least_nothing_is_done(rng):
    centre = rng.standard_normal(3)
    found, steps = minimise(quadratic(np.eye(3), centre, 1.0), centre, 1e-6, 10)
    assert steps == 0
    np.testing.assert_array_equal(found, centre)
    _, steps = minimise(quadratic(np.diag([1.0, 9.0, 20.0]), centre, 0.0), centre + 1, 0.0, 4)
    assert steps <= 4


def test_steps_that_are_asked_for_are_taken(rng):
    value = quadratic(np.diag([1.0, 3.0]), np.ones(2), 5.0)
    near = np.ones(2) + 1e-4
    assert minimise(value, near, 1e-3, 10)[1] == 0
    found, steps = minimise(value, near, 1e-3, 10, least=1)
    assert steps == 1
    assert value(found)[0] < value(near)[0]


def test_a_function_near_zero_need_not_be_exact():
    """What is left to gain is compared with `smallest` where the function is smaller."""
    value = quadratic(np.diag([1.0, 30.0, 200.0]), np.zeros(3), 0.0)
    exact, rough = (minimise(value, np.ones(3), 1e-6, 100, 0, small) for small in (0.0, 1.0))
    assert rough[1] < exact[1]
    assert value(exact[0])[0] < value(rough[0])[0] < 1e-4


def test_the_start_is_left_alone(rng):
    start = rng.standard_normal(3)
    before = start.copy()
    minimise(quadratic(np.diag([1.0, 2.0, 3.0]), np.zeros(3), 1.0), start, 1e-9, 10)
    np.testing.assert_array_equal(start, before)
