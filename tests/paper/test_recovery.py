"""recover_activation and the error by which it is judged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf.bases import RBF, BSpline
from rflaf.paper.recovery import best_factors, recover_activation, recovery_error

factors = st.floats(0.01, 100) | st.floats(-100, -0.01)


def one_sided(z):
    return np.sin(np.pi * np.clip(z, 0, 1))


def sampled(sigma, d, n, seed, n_samples=20_000):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((n, d)), rng.standard_normal((d, n_samples))
    b = rng.standard_normal((2, d))
    return x, sigma(x @ w) @ np.max(b @ w, axis=0) / n_samples


@pytest.fixture(scope="module")
def found():
    x, y = sampled(one_sided, 2, 1200, 3)
    return x, y, recover_activation(x, y, random_state=0)


def test_sigma_is_found_from_samples(found):
    _, _, recovery = found
    assert recovery_error(recovery.activation, one_sided) < 0.15
    assert recovery.penalty in [record["penalty"] for record in recovery.history]


def test_the_fit_is_the_mean_over_w_of_its_own_v_and_sigma(found):
    x, y, recovery = found
    assert np.mean((recovery.predict(x) - y) ** 2) < 0.002 * np.mean(y**2)
    w = np.random.default_rng(0).standard_normal((200_000, 2))
    for row in x[:3]:
        by_samples = np.mean(recovery.v(w) * recovery.activation(w @ row))
        assert recovery.predict(row[None])[0] == pytest.approx(by_samples, abs=0.02)


def test_both_parts_of_v_have_unit_mean_square(found):
    _, _, recovery = found
    w = np.random.default_rng(1).standard_normal((200_000, 2))
    even, odd = ((recovery.v(w) + sign * recovery.v(-w)) / 2 for sign in (1, -1))
    assert np.mean(even**2) == pytest.approx(1, abs=0.02)
    assert np.mean(odd**2) == pytest.approx(1, abs=0.02)


def test_the_seed_fixes_the_result(found):
    x, y, recovery = found
    again = recover_activation(x, y, random_state=0)
    np.testing.assert_array_equal(again.activation.coefficients, recovery.activation.coefficients)


def test_scaled_targets_give_a_scaled_sigma(found):
    x, y, recovery = found
    twice = recover_activation(x, 2 * y, penalty=recovery.penalty)
    once = recover_activation(x, y, penalty=recovery.penalty)
    assert once.history == []
    np.testing.assert_allclose(
        twice.activation.coefficients, 2 * once.activation.coefficients, atol=1e-5
    )


def test_a_missing_part_has_no_share():
    x, y = sampled(lambda z: np.sin(np.pi * np.clip(z, -1, 1)), 2, 1200, 5)
    recovery = recover_activation(x, y, RBF(41), random_state=0)
    assert recovery.shares[0] < 0.01
    assert recovery.shares[1] > 0.98


def test_three_inputs_and_splines():
    x, y = sampled(one_sided, 3, 1500, 7)
    recovery = recover_activation(x, y, BSpline(33, degree=3), random_state=0)
    assert recovery.directions.shape == (12, 3)
    assert recovery_error(recovery.activation, one_sided) < 0.3


def test_one_input():
    rng = np.random.default_rng(11)
    x, w = rng.standard_normal((800, 1)), rng.standard_normal((1, 30_000))
    y = one_sided(x @ w) @ np.maximum(w[0], 0) / w.shape[1]
    recovery = recover_activation(x, y, RBF(41), penalty=1e-7)
    assert recovery_error(recovery.activation, one_sided) < 0.2
    with pytest.raises(ValueError, match="'penalty' parameter"):
        recover_activation(x, y)


@given(factors, factors)
def test_the_error_knows_no_factor_of_either_part(even, odd):
    def truth(z):
        return np.exp(-((z - 0.4) ** 2)) + 0.3 * np.sin(5 * z)

    def other(z):
        return even * (truth(z) + truth(-z)) + odd * (truth(z) - truth(-z))

    assert recovery_error(other, truth) < 1e-9

    def estimate(z):
        return truth(z) + 0.2 * np.cos(4 * z) + 0.1 * z

    def scaled(z):
        return even * (estimate(z) + estimate(-z)) + odd * (estimate(z) - estimate(-z))

    wanted = recovery_error(estimate, truth)
    assert 0.01 < wanted < 1
    assert recovery_error(scaled, truth) == pytest.approx(wanted, rel=1e-6)


def test_the_error_of_nothing_and_of_the_wrong_part_is_one():
    assert recovery_error(np.zeros_like, np.cos) == 1
    assert recovery_error(np.sin, np.cos) == pytest.approx(1)
    assert recovery_error(np.cos, lambda z: np.cos(z) + np.sin(z)) < 1


def test_best_factors_is_a_projection():
    z = np.linspace(-2, 2, 101)
    scaled = best_factors(np.exp(z), np.cos(z))
    np.testing.assert_allclose(scaled, scaled[::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"basis": "rbf"}, "'basis'"),
        ({"basis": RBF(9, 0.0, 2.0)}, "mirror image"),
        ({"n_directions": 0}, "'n_directions'"),
        ({"penalty": 0.0}, "'penalty'"),
        ({"penalty": "best"}, "'penalty'"),
        ({"random_state": "x"}, "'random_state'"),
    ],
)
def test_bad_settings(settings, message, rng):
    x, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    with pytest.raises(ValueError, match=message):
        recover_activation(x, y, **settings)


def test_bad_arrays(rng):
    x, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        recover_activation(x, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        recover_activation(np.where(x > 1, np.nan, x), y)
    with pytest.raises(ValueError, match="'y' parameter"):
        recover_activation(x, 0 * y)
    with pytest.raises(ValueError, match="'X' parameter"):
        recover_activation(0 * x, y)
    with pytest.raises(ValueError, match="minimum of 10"):
        recover_activation(x[:5], y[:5])


def test_functions_the_error_refuses():
    with pytest.raises(ValueError, match="'truth'"):
        recovery_error(np.sin, np.zeros_like)
    with pytest.raises(ValueError, match="'estimate'"):
        recovery_error(lambda z: z[:3], np.sin)
    with pytest.raises(ValueError, match="'estimate'"):
        recovery_error(lambda z: np.full_like(z, np.nan), np.sin)
