"""Counts by Poisson's loss, from end to end."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_poisson_deviance

from rflaf import RFLAFRegressor, rules
from rflaf.losses import Poisson
from rflaf.rows import Blocks


def counts(n, seed=0):
    """Counts whose mean varies from nearly none to many."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    mean = np.exp(1.5 * np.sin(3 * X[:, 0]) + X[:, 1] ** 2 - 0.5)
    return X, rng.poisson(mean).astype(float)


X, Y = counts(1300)
NEW_X, NEW_Y = counts(4000, seed=1)


def model(loss=None, **options):
    given = {"n_components": 100, "random_state": 0, "max_iter": 60, **options}
    return RFLAFRegressor(loss=loss or Poisson(), **given)


def deviance(prediction):
    """The mean deviance of new rows; squared error may predict less than none."""
    return mean_poisson_deviance(NEW_Y, np.maximum(prediction, 1e-3))


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def rivals():
    """The deviance of squared error, and of the constant."""
    squared = model("squared_error").fit(X, Y)
    return deviance(squared.predict(NEW_X)), deviance(np.full(4000, Y.mean()))


def test_it_beats_squared_error_and_the_constant(rivals):
    """In the mean over three seeds: a single one may be lucky."""
    found, squared = (
        np.mean([deviance(model(loss, random_state=k).fit(X, Y).predict(NEW_X)) for k in range(3)])
        for loss in (Poisson(), "squared_error")
    )
    assert found < squared < 0.6 * rivals[1]
    noise = mean_poisson_deviance(
        NEW_Y, np.exp(1.5 * np.sin(3 * NEW_X[:, 0]) + NEW_X[:, 1] ** 2 - 0.5)
    )
    assert found < 1.1 * noise


def test_what_is_said_of_the_fit(fitted):
    prediction, std = fitted.predict(NEW_X, return_std=True)
    assert prediction.shape == std.shape == (4000,)
    assert (prediction > 0).all()
    assert (std > 0).all()
    assert fitted.loss_.unit == pytest.approx(Y.mean())
    least = deviance(np.full(4000, NEW_Y.mean()))
    assert fitted.oof_score_ == pytest.approx(1 - deviance(prediction) / least, abs=0.05)
    assert fitted.oof_prediction_.shape == (1300,)
    assert (fitted.oof_prediction_ > 0).all()
    assert fitted.feature_importances_.argmax() == 0
    assert fitted.feature_importances_.argmin() == 2  # nothing depends on it
    low, high = fitted.predict_interval(NEW_X, 0.9)
    dist = fitted.predict_dist(NEW_X)
    expected = np.mean(dist.cdf(high) - dist.cdf(low - 1))  # more than 90 %: counts are whole
    assert expected >= 0.9
    assert np.mean((low <= NEW_Y) & (high >= NEW_Y)) == pytest.approx(expected, abs=0.03)


def test_counts_in_another_unit_give_the_same_model(fitted):
    other = model().fit(X, 1024 * Y)
    np.testing.assert_allclose(other.predict(NEW_X), 1024 * fitted.predict(NEW_X), rtol=1e-9)


def test_weights():
    """Rows of weight zero do not count, whatever their targets, and weights have no unit."""
    weights = np.random.default_rng(0).integers(0, 3, 500).astype(float)
    spoilt = np.where(weights > 0, Y[:500], 1e6)
    options = {"n_members": 1, "max_iter": 10}
    one = model(**options).fit(X[:500], Y[:500], sample_weight=weights).predict(NEW_X)
    for y, w in ((spoilt, weights), (Y[:500], 8 * weights)):
        other = model(**options).fit(X[:500], y, sample_weight=w).predict(NEW_X)
        np.testing.assert_allclose(other, one, rtol=1e-4)
    doubled = model(**options).fit(X[:500], Y[:500], sample_weight=1.0 + (Y[:500] == 0))
    assert doubled.predict(NEW_X).mean() < one.mean()  # more rows without a count


def blocks():
    return Blocks([(X[k : k + 200], Y[k : k + 200]) for k in range(0, 1300, 200)])


def test_a_source_of_blocks(fitted):
    found = model().fit(blocks())
    np.testing.assert_allclose(found.predict(NEW_X), fitted.predict(NEW_X), rtol=1e-6)


@pytest.mark.parametrize("n_members", [1, 3])
def test_more_rows_than_layers_are_learned_on(rivals, monkeypatch, n_members):
    monkeypatch.setattr(rules, "SAMPLE_ROWS", 1000)
    found = model(n_members=n_members, max_bytes=1 << 22).fit(blocks())
    assert found.n_samples_fit_ == 1300
    # fewer members, learned on fewer rows, than those of squared error here
    assert deviance(found.predict(NEW_X)) < 1.06 * rivals[0] < 0.65 * rivals[1]


def test_few_rows():
    found = model().fit(X[:12], Y[:12])
    assert deviance(found.predict(NEW_X)) < deviance(np.full(4000, Y[:12].mean()))


def test_groups():
    """Rows of a group are nearly the same: rows of a known group tell all, of others none."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    inputs, mean = rng.standard_normal((60, 3))[group], np.exp(rng.standard_normal(60))[group]
    inputs += 1e-3 * rng.standard_normal(inputs.shape)  # copies would share a fold anyway
    y = rng.poisson(mean).astype(float)
    options = {"n_members": 3, "max_iter": 20}
    assert model(**options).fit(inputs, y).oof_score_ > 0.3
    assert model(**options).fit(inputs, y, groups=group).oof_score_ < 0.1


def test_two_groups_are_too_few_for_honest_halves():
    """Layers are learned without a look at honest scores then."""
    groups = np.r_[np.zeros(100), np.ones(1200)]
    found = model(n_members=1).fit(X, Y, groups=groups)
    assert deviance(found.predict(NEW_X)) < 0.7 * deviance(np.full(4000, Y.mean()))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_partial_fit_in_chunks(fit_intercept):
    whole = model(n_members=1, fit_intercept=fit_intercept).fit(X, Y)
    found, losses = model(n_members=1, fit_intercept=fit_intercept), []
    for k in range(0, 1300, 260):
        found.partial_fit(X[k : k + 260], Y[k : k + 260])
        losses.append(deviance(found.predict(NEW_X)))
    assert found.n_samples_fit_ == 1300
    assert losses[-1] < 0.95 * losses[0]
    assert losses[-1] < 1.05 * deviance(whole.predict(NEW_X))
    if not fit_intercept:
        assert all(member.intercept == 0 for member in found.members_)


def test_it_is_a_parameter_like_others(fitted):
    assert clone(fitted).get_params()["loss"] == Poisson()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict(NEW_X), fitted.predict(NEW_X)
    )
    for y, message in ((-Y, "not negative. Got -"), (np.c_[Y, Y], "one target per row")):
        with pytest.raises(ValueError, match=message):
            model().fit(X, y)
    with pytest.raises(ValueError, match="solver='cg' takes a quadratic loss"):
        model(solver="cg").fit(X, Y)
    with pytest.raises(ValueError, match="'loss' parameter of RFLAFRegressor must be"):
        model("counts").fit(X, Y)
