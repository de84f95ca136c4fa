"""Inputs of any kind, drawn at random, give finite predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from tests.estimators.inputs.conftest import assert_finite, regressor

pytestmark = pytest.mark.filterwarnings("ignore:partial_fit started with:UserWarning")


@st.composite
def anything(draw, classes=False):
    """Inputs of any shape, precision and scale, with degenerate columns, and targets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 3, 20, 99, 100, 120, 260]))
    d = draw(st.integers(1, 6))
    X = rng.standard_normal((n, d))
    for k in range(d):
        kind = draw(
            st.sampled_from(["plain", "plain", "constant", "copy", "spike", "binary", "tails"])
        )
        if kind == "constant":
            X[:, k] = draw(st.sampled_from([0.0, 1.0, 0.1]))
        elif kind == "copy":
            X[:, k] = X[:, 0]
        elif kind == "spike":
            X[:, k] = np.arange(n) == 0
        elif kind == "binary":
            X[:, k] = rng.random(n) < 0.5
        elif kind == "tails":
            X[:, k] = X[:, k] ** 5
    y = X[:, 0] + X[:, -1] ** 2 + 0.1 * rng.standard_normal(n)
    X = X * 10.0 ** draw(st.integers(-12, 12)) * 10.0 ** rng.integers(-3, 4, d)
    X = X + draw(st.sampled_from([0.0, 0.0, 1.0, -1e5]))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X = sparse.csr_array(X)
    weights = draw(st.sampled_from([None, "uniform", "zeros"]))
    if weights is not None:
        weights = rng.uniform(0.1, 2, n) * 10.0 ** draw(st.integers(-3, 3))
        if n > 20:
            weights[2 : n // 3] = 0
    if classes:
        y = np.arange(n) % draw(st.integers(2, min(4, n)))
    else:
        y = y * 10.0 ** draw(st.integers(-12, 12)) + draw(st.sampled_from([0.0, 1.0, -1e6]))
        if draw(st.booleans()):
            y = np.column_stack([y, rng.standard_normal(n), np.ones(n)])
    return X, y, weights


parameters = st.fixed_dictionaries(
    {
        "n_components": st.sampled_from([1, 7, 40, 150]),
        "activation": st.sampled_from(["rbf", "bspline", "relu", "cos", "chebyshev"]),
        "metric": st.sampled_from(["auto", "full", "diagonal", "none"]),
        "alpha": st.sampled_from(["auto", 1e-8, 1.0]),
        "fit_intercept": st.booleans(),
        "projection": st.sampled_from(["gaussian", "orthogonal"]),
        "max_iter": st.sampled_from([0, 2, 5]),
    }
)
ignore_coverage = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")


@ignore_coverage
@given(data=anything(), options=parameters)
@settings(max_examples=120)
def test_regression_is_finite_whatever_comes(data, options):
    X, y, weights = data
    model = RFLAFRegressor(**options, random_state=0).fit(X, y, sample_weight=weights)
    assert_finite(model, X)
    assert model.predict(X).shape == y.shape
    assert model.predict(X).dtype == (np.float32 if y.dtype == np.float32 else np.float64)
    assert np.isfinite(model.alpha_)
    if weights is None and options["fit_intercept"] and X.shape[0] >= 100:
        # never far worse than the mean of y
        error = np.mean((model.predict(X).astype(float) - y) ** 2, axis=0)
        rounding = (1e-6 * np.abs(y).max(axis=0)) ** 2
        assert np.all(error <= 1.05 * np.var(y, axis=0) + rounding)


@ignore_coverage
@given(data=anything(classes=True), options=parameters)
@settings(max_examples=80)
def test_classification_is_finite_whatever_comes(data, options):
    X, y, weights = data
    if weights is not None and len(np.unique(y[weights > 0])) < len(np.unique(y)):
        weights = None
    model = RFLAFClassifier(**options, random_state=0).fit(X, y, sample_weight=weights)
    assert_finite(model, X)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    assert set(model.predict(X)) <= set(y)


@given(data=anything(), scale=st.sampled_from([1e-3, 1.0, 100.0]), standardise=st.booleans())
def test_features_are_finite_whatever_comes(data, scale, standardise):
    X, _, _ = data
    for activation in ("relu", "cos", "gaussian"):
        model = RandomFeatures(
            9, activation=activation, scale=scale, standardise=standardise, random_state=0
        )
        out = model.fit_transform(X)
        assert out.shape == (X.shape[0], 9)
        assert out.dtype == X.dtype
        assert np.isfinite(out).all()


@ignore_coverage
@given(data=anything())
@settings(max_examples=30)
def test_adding_rows_is_finite_whatever_comes(data):
    X, y, weights = data
    model = regressor().partial_fit(X, y, sample_weight=weights)
    model.partial_fit(X, y, sample_weight=weights)
    assert_finite(model, X)
