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
    assert 0.93 < np.mean(shares) < 0.97


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
