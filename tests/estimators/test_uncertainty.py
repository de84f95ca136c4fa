"""Standard deviations and intervals of predictions, against noise that is known."""

import numpy as np
import pytest

from rflaf import RFLAFRegressor
from tests.estimators.conftest import regressor


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_intervals_cover_what_they_say(n, noise):
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (n + 2000, 3))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(len(X))
        model = RFLAFRegressor(n_components=100, max_iter=60, random_state=seed)
        prediction, std = model.fit(X[:n], y[:n]).predict(X[n:], return_std=True)
        assert std.shape == (2000,)
        shares.append(np.mean(np.abs(prediction - y[n:]) < 1.96 * std))
        if n == 1500:
            assert model.noise_ == pytest.approx(noise, rel=0.5 if noise == 0.1 else 0.15)
    assert 0.92 < np.mean(shares) < 0.97


def test_deviations_follow_the_noise_of_the_rows(rng):
    X = rng.uniform(-1, 1, (2800, 2))
    noise = 0.1 * np.exp(X[:, 0])
    y = np.sin(2 * X[:, 1]) + noise * rng.standard_normal(2800)
    model = regressor(n_components=100).fit(X[:800], y[:800])
    prediction, std = model.predict(X[800:], return_std=True)
    assert np.corrcoef(np.log(std), np.log(noise[800:]))[0, 1] > 0.7
    assert np.mean(std**2) == pytest.approx(np.mean(noise**2), rel=0.5)
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(X[800:], coverage)
        assert ((low < prediction) & (prediction < high)).all()
        inside = (low < y[800:]) & (y[800:] < high)
        assert np.mean(inside) == pytest.approx(coverage, abs=0.08)
    with pytest.raises(ValueError, match="'coverage' must lie between 0 and 1"):
        model.predict_interval(X, 1.0)


def test_plain_and_with_deviations_predict_the_same(friedman):
    X, y, new_X, _ = friedman
    for fit_intercept in (True, False):
        model = regressor(fit_intercept=fit_intercept).fit(X, y)
        prediction, std = model.predict(new_X, return_std=True)
        np.testing.assert_array_equal(prediction, model.predict(new_X))
        assert (std > 0).all()


def test_distributions_are_as_skewed_as_the_errors(rng):
    X = rng.uniform(-1, 1, (3000, 2))
    y = X[:, 0] + 0.1 * np.exp(X[:, 1]) * rng.exponential(size=3000)
    model = regressor(n_components=100).fit(X[:1000], y[:1000])
    dist = model.predict_dist(X[1000:])
    np.testing.assert_allclose(dist.mean, model.predict(X[1000:]), rtol=1e-6, atol=1e-9)
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(y[1000:] <= dist.quantile(q)) == pytest.approx(q, abs=0.05)
    normal = -0.5 * np.log(2 * np.pi * dist.std**2) - 0.5 * ((y[1000:] - dist.mean) / dist.std) ** 2
    assert dist.logpdf(y[1000:]).mean() > normal.mean() + 0.1


def test_the_error_of_a_mean_of_members_is_smaller(rng):
    X = rng.uniform(-1, 1, (2300, 4))  # no noise: errors are those of the members alone
    y = np.sin(4 * X[:, 0] * X[:, 1]) + X[:, 2] * X[:, 3]
    model = regressor(n_members=5, n_components=60).fit(X[:300], y[:300])
    error = np.sqrt(np.mean((model.predict(X[300:]) - y[300:]) ** 2))
    size = np.sqrt(np.mean(model.predict_std(X[300:]) ** 2))
    assert size < 0.95 * model.noise_
    assert size == pytest.approx(error, rel=0.35)


@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_distributions_do_not_depend_on_the_unit(friedman, unit):
    X, y, new_X, new_y = friedman
    plain = regressor().fit(X, y).predict_dist(new_X)
    other = regressor().fit(X, unit * y).predict_dist(new_X)
    np.testing.assert_allclose(other.quantile(0.9), unit * plain.quantile(0.9), rtol=1e-3)
    np.testing.assert_allclose(other.cdf(unit * new_y), plain.cdf(new_y), atol=5e-3)


def test_several_targets_have_distributions_of_their_own(friedman):
    X, y, new_X, _ = friedman
    for count in (2, 5):  # five share their scale
        dist = regressor().fit(X, y[:, None] * np.arange(1, count + 1)).predict_dist(new_X)
        assert dist.quantile([0.1, 0.9]).shape == (len(new_X), count, 2)
        np.testing.assert_allclose(dist.std[:, 1], 2 * dist.std[:, 0], rtol=0.05)
