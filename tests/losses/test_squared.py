"""Squared error: what is its own besides the contract."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from tests.losses.conftest import ALL_LOSSES

ONE, TWO = ALL_LOSSES[:2]


@pytest.mark.parametrize("unit", [1e-300, 1e-5, 1.0, 1e290])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_targets_have_no_unit(unit, shift, rng):
    y = unit * (rng.standard_normal(200) + shift)
    weights = rng.uniform(0.1, 2, 200)
    loss = ONE.opened(y, weights)
    target, of_rows = loss.encode(y, weights)
    assert np.average(target[:, 0], weights=weights) == pytest.approx(0, abs=1e-9)
    assert np.average(target[:, 0] ** 2, weights=weights) == pytest.approx(1)
    np.testing.assert_array_equal(of_rows, weights)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e-310, -1e300])
def test_targets_that_are_all_the_same(value):
    """They are 0 to the bit, and predicted to the bit, whatever the weights' rounding."""
    y = np.full(7, value)
    loss = ONE.opened(y, np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1.3, 1.7]))
    target, weights = loss.encode(y, np.ones(7))
    np.testing.assert_array_equal(target, 0)
    np.testing.assert_array_equal(loss.predict(loss.in_units(np.zeros(1), target)[1]), y)
    assert loss.score(target, target, weights) == 1
    assert loss.score(target + 1, target, weights) == 0


def test_without_an_intercept_targets_keep_their_mean(rng):
    y = 5 + rng.standard_normal(200)
    loss = ONE.opened(y, fit_intercept=False)
    target, _ = loss.encode(y, np.ones(200))
    np.testing.assert_allclose(target[:, 0] / y, target[0, 0] / y[0])
    assert target.std() == pytest.approx(1)


def test_the_score_is_that_of_scikit_learn(rng):
    loss, target, weights = TWO.example(60)
    scores = target + 0.5 * rng.standard_normal(target.shape)
    expected = r2_score(target, scores, sample_weight=weights)
    assert loss.score(scores, target, weights) == pytest.approx(expected)


def test_another_number_of_targets_is_named(rng):
    loss, *_ = TWO.example(30)
    with pytest.raises(ValueError, match="'y' must have 2 targets, as in the first call"):
        loss.encode(rng.standard_normal((5, 3)), np.ones(5))
