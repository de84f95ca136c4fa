"""Losses as users give them: by name, as objects, and of their own."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_poisson_deviance

from rflaf import RFLAFRegressor
from rflaf.losses import Loss, SquaredError
from tests.estimators.conftest import regressor


@dataclass(frozen=True)
class Counts(Loss):
    """Poisson's, for counts; scores are logarithms of means."""

    name = "counts"
    score_name = "share of the deviance"

    def check(self, y):
        return np.asarray(y, np.float64)

    def opened(self, sample, fit_intercept):
        return self

    @property
    def outputs(self):
        return 1

    def encode(self, y, weights):
        return y, weights

    def slopes(self, scores, target):
        mean = np.exp(scores[:, 0])
        return mean - target * scores[:, 0], (mean - target)[:, None]

    def curvature(self, scores, target):
        return np.exp(scores)

    def constant(self, target, weights):
        return np.log(np.average(target, weights=weights))[None]

    def in_units(self, coef, intercept):
        return coef, intercept

    def predict(self, scores):
        return np.exp(scores[:, 0])

    def score(self, scores, target, weights):
        mean = np.full(len(target), np.average(target, weights=weights))
        mine, plain = (
            mean_poisson_deviance(target, each, sample_weight=weights)
            for each in (self.predict(scores), mean)
        )
        return 1 - mine / plain


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2600, 3))
    y = rng.poisson(np.exp(1 + np.sin(3 * X[:, 0]) + X[:, 1])).astype(float)
    return X[:600], y[:600], X[600:], y[600:]


def deviance(model, X, y):
    return mean_poisson_deviance(y, np.maximum(model.predict(X), 1e-3))


@pytest.mark.parametrize("form", ["raw", "bins"])
@pytest.mark.parametrize("n_members", [1, 3])
def test_a_loss_of_ones_own(counts, n_members, form):
    X, y, new_X, new_y = counts
    options = {"n_components": 80, "n_members": n_members, "input_form": form}
    model = regressor(loss=Counts(), **options).fit(X, y)
    assert (model.predict(new_X) > 0).all()
    plain = deviance(regressor(**options).fit(X, y), new_X, new_y)
    assert deviance(model, new_X, new_y) < (1.0 if form == "raw" else 1.05) * plain
    constant = mean_poisson_deviance(new_y, np.full(len(new_y), new_y.mean()))
    fresh = 1 - deviance(model, new_X, new_y) / constant
    assert model.oof_score_ == pytest.approx(fresh, abs=0.1)
    assert "oof share of the deviance 0." in model.summary()
    low, high = model.predict_interval(new_X, 0.8)
    assert np.mean((low <= new_y) & (new_y <= high)) == pytest.approx(0.8, abs=0.1)


def test_more_rows_for_it(counts):
    X, y, new_X, new_y = counts
    model = regressor(loss=Counts(), n_components=80).partial_fit(X[:200], y[:200])
    first = deviance(model, new_X, new_y)
    whole = deviance(regressor(loss=Counts(), n_components=80).fit(X, y), new_X, new_y)
    for start in (200, 400):
        model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert deviance(model, new_X, new_y) < first
    assert deviance(model, new_X, new_y) < 1.1 * whole


@pytest.mark.parametrize("n", [5, 15])
def test_few_rows_of_it(counts, n):
    X, y, new_X, _ = counts
    found = regressor(loss=Counts()).fit(X[:n], y[:n]).predict(new_X)
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_a_name_and_an_object_are_the_same(friedman):
    X, y, _, _ = friedman
    named, given = (regressor(loss=loss).fit(X, y) for loss in ("squared_error", SquaredError()))
    assert named.output_weights_.tobytes() == given.output_weights_.tobytes()
    assert given.loss == SquaredError()  # the parameter is as it was
    assert clone(given).get_params()["loss"] == SquaredError()
    with pytest.raises(ValueError, match="'loss' parameter of RFLAFRegressor"):
        RFLAFRegressor(loss="log_loss").fit(X, y)
