"""Distributions and fits where data is awkward: orders of rows, units, far rows, large groups."""

import numpy as np
import pytest
from scipy import integrate, stats

from rflaf import RFLAFRegressor
from rflaf.distributions import ErrorShape, GammaDistribution, SumDistribution

SMALL = {"n_components": 50, "max_iter": 5, "n_members": 3, "random_state": 0}


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_a_constant_target(rng, loss):
    model = RFLAFRegressor(30, random_state=0, loss=loss).fit(
        rng.normal(size=(100, 2)), [2.0] * 100
    )
    np.testing.assert_allclose(model.predict([[0.0, 0.0], [5.0, -5.0]]), 2.0, rtol=1e-6)


def test_the_scale_does_not_depend_on_the_order_of_rows(rng):
    """Rows that alternate between quiet and noisy: every second row would be of one sort."""
    sort = np.arange(4200) % 2
    X = np.column_stack([sort, rng.uniform(-1, 1, len(sort))]).astype(float)
    y = X[:, 1] + np.where(sort == 1, 2.0, 0.1) * rng.normal(size=len(sort))
    quiet, noisy = RFLAFRegressor(**SMALL).fit(X, y).predict_std([[0, 0.0], [1, 0.0]])
    assert quiet < 0.3
    assert 1.5 < noisy < 2.5


@pytest.mark.parametrize("loss", ["gamma", "poisson", "tweedie"])
def test_the_upper_end_does_not_fall_with_the_distance(rng, loss):
    X = rng.normal(size=(300, 1))
    y = np.exp(X[:, 0]) * rng.gamma(5, 0.2, 300)
    model = RFLAFRegressor(50, loss=loss, random_state=0).fit(X, y)
    far = X.max() + np.array([[0.0], [1.0], [3.0], [10.0], [1e4]])
    low, high = model.predict_interval(far)
    prediction = model.predict(far)
    assert np.isfinite(high).all()
    assert (high / prediction >= 0.999 * high[0] / prediction[0]).all()
    assert (low <= high).all()


def test_sums_of_very_many_parts_are_gamma_variables():
    narrow = SumDistribution(np.array([100.0, 1.0]), np.array([0.1, 2.0]))
    gamma = GammaDistribution(np.array([100.0]), np.array([0.1]))
    levels = [0.05, 0.5, 0.95]
    np.testing.assert_allclose(narrow.quantile(levels)[0], gamma.quantile(levels)[0])
    sample = narrow.sample(4000, 0)
    np.testing.assert_allclose(sample.mean(axis=0), [100, 1], rtol=0.1)
    np.testing.assert_allclose(sample.std(axis=0), [0.1, 2.0], rtol=0.1)


@pytest.mark.parametrize("std", [30.0, 3.0, 0.1])
def test_crps_of_narrow_distributions(std):
    found = GammaDistribution(np.array([1000.0]), np.array([std]))
    y, shape = 1000 + 2 * std, (1000 / std) ** 2
    known = stats.gamma(shape, scale=1000 / shape)
    at = np.linspace(1000 - 12 * std, 1000 + 12 * std, 20001)
    expected = integrate.trapezoid((known.cdf(at) - (at >= y)) ** 2, at)
    np.testing.assert_allclose(found.crps(np.array([y])), expected, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-180, 1e-100, 1e120, 1e200])
def test_units_of_errors(rng, unit):
    errors = rng.exponential(size=500)
    one, other = ErrorShape.of_errors(errors), ErrorShape.of_errors(errors).scaled(unit)
    assert other.std == pytest.approx(one.std * unit)
    at = np.quantile(errors, [0.05, 0.3, 0.8])
    np.testing.assert_allclose(other.cdf(unit * at), one.cdf(at), rtol=1e-9)
    np.testing.assert_allclose(
        other.quantile(np.array([0.2, 0.9])), unit * one.quantile(np.array([0.2, 0.9]))
    )


def test_ample_time_gives_the_fit_that_was_asked_for(rng):
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + 2 * rng.normal(size=120)
    options = {"n_components": 40, "max_iter": 5, "random_state": 3}
    plain = RFLAFRegressor(**options).fit(X, y)
    timed = RFLAFRegressor(time_limit=1000, **options).fit(X, y)
    assert timed.effort_ == "default"
    assert timed.left_out_ == []
    np.testing.assert_array_equal(plain.predict(X), timed.predict(X))


def test_constrained_models_are_unsure_of_later_rows_beyond_their_lattice(rng):
    options = {**SMALL, "monotonic_cst": [1]}
    X, later = rng.uniform(-1, 1, (300, 1)), rng.uniform(-4, 4, (900, 1))
    model = RFLAFRegressor(**options).partial_fit(X, X[:, 0] + 0.1 * rng.normal(size=300))
    model.partial_fit(later, later[:, 0] + 0.1 * rng.normal(size=900))
    low, high = model.predict_interval([[0.0], [3.0]])
    assert (high - low)[1] > 3 * (high - low)[0]


def test_order_at_the_edge_of_a_constrained_column(rng):
    X = rng.uniform(-1, 1, (400, 2))
    y = np.clip(2 * X[:, 0] + 0.3 * rng.normal(size=400), -1, 1)
    model = RFLAFRegressor(**SMALL, monotonic_cst=[1, 0]).fit(X, y)
    near = X[:, 0].max() + np.array([-1e-9, 0, 1e-9, 0.1, 1.0])
    assert (np.diff(model.predict(np.column_stack([near, np.zeros(5)]))) >= -1e-9).all()


def test_bytes_and_large_groups(rng):
    """The fit of the scale keeps to the size of the model; groups need no matrix of their rows."""
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    options = {**SMALL, "n_components": 30}
    RFLAFRegressor(**options, max_bytes=10**5).fit(X, y)
    model = RFLAFRegressor(**options).fit(X, y, groups=np.arange(3000) // 1500)
    assert np.isfinite(model.predict_std(X[:3])).all()
