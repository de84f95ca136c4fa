"""Odd and extreme inputs give finite predictions."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from rflaf import RFLAFClassifier, RFLAFRegressor
from tests.estimators.inputs.conftest import (
    MAKERS,
    PREDICTORS,
    assert_finite,
    classifier,
    features,
    outputs,
    regressor,
)

# ---- what simply works


@PREDICTORS
@pytest.mark.parametrize("n", [2, 3, 10, 99, 100, 101, 130])
def test_fewer_rows_than_features(make, n, rng):
    X = rng.standard_normal((n, 4))
    y = np.arange(n) % 2
    assert_finite(make(n_components=300).fit(X, y), X, 3 * X)


def test_one_sample():
    X = np.array([[1.0, 2.0, 3.0]])
    model = regressor().fit(X, [5.0])
    np.testing.assert_allclose(model.predict(X), [5.0])
    assert_finite(model, X, -X, 1e6 * X)
    assert_finite(features().fit(X), X)
    with pytest.raises(ValueError, match="class"):
        classifier().fit(X, [1])


@PREDICTORS
def test_one_feature_and_one_component(make, rng):
    X = rng.standard_normal((150, 1))
    model = make(n_components=1).fit(X, X[:, 0] > 0)
    assert_finite(model, X)


@pytest.mark.parametrize("n", [5, 150, 1500, 20000])
@pytest.mark.parametrize("value", [0.0, 3.3, -1e6 - 0.1, 1e-9, 1e30])
def test_constant_y(n, value, rng):
    X = rng.standard_normal((n, 3))
    model = regressor().fit(X, np.full(n, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9)
    assert_finite(model, X)
    assert model.noise_ <= 1e-6 * abs(value)


@pytest.mark.parametrize("n", [5, 150, 1500, 20000])
@pytest.mark.parametrize("value", [0.0, 3.0, 7.7, 1e6 + 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_do_no_harm(n, value, dtype, rng):
    X = rng.standard_normal((n, 3)).astype(dtype)
    X[:, 1] = value
    y = X[:, 0] ** 2 + X[:, 2]
    model = regressor(metric="diagonal").fit(X, y)
    assert model.scale_[1] == 0
    assert model.feature_importances_[1] == 0
    other = X.copy()
    other[:, 1] += dtype(5)  # another constant later changes nothing
    np.testing.assert_array_equal(model.predict(other), model.predict(X))
    transformer = features().fit(X)
    np.testing.assert_array_equal(transformer.transform(other), transformer.transform(X))


@MAKERS
def test_all_columns_constant(make, rng):
    X = np.full((150, 3), 2.5)
    y = np.arange(150) % 3 == 0
    model = make().fit(X, y)
    assert_finite(model, X, X + 1)
    if make is regressor:
        np.testing.assert_allclose(model.predict(X), 1 / 3, atol=1e-6)
    if make is classifier:
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / 3, atol=0.05)


@MAKERS
def test_repeated_columns_and_rows(make, rng):
    X = np.repeat(rng.standard_normal((10, 1)), 20, axis=0) * np.ones((1, 4))
    model = make(n_components=50).fit(X, X[:, 0] > 0)
    assert_finite(model, X)


@MAKERS
def test_far_away_inputs(make, rows):
    X, y = rows
    model = make().fit(X, y)
    assert_finite(model, 1e3 * X, 1e8 * X, 1e15 * X)
    single = make().fit(X.astype(np.float32), y)
    assert_finite(single, (1e15 * X).astype(np.float32))


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "relu", "polynomial"])
@pytest.mark.parametrize("scale", [1e8, 1e45, 1e300])
def test_never_a_nan_however_far(activation, scale, rows):
    """Finite inputs give finite predictions, or an error that says why not."""
    X, y = rows
    for make in (regressor, classifier):
        model = make(activation=activation, n_basis=6).fit(X, y)
        try:
            prediction = model.predict(scale * X)
        except ValueError as error:
            assert any(word in str(error) for word in ("large", "overflow", "range"))  # noqa: PT017
        else:
            assert np.isfinite(prediction).all()


def test_a_basis_of_high_powers_says_what_to_do():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4))
    y = np.sin(X @ rng.standard_normal(4))
    model = regressor(activation="polynomial", n_basis=32, max_iter=60, n_members=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            assert_finite(model.fit(X, y), X)
        except ValueError as error:
            assert "Use activation='chebyshev'" in str(error)  # noqa: PT017
    (warning,) = caught
    assert "the same polynomials on the grid, or fewer powers" in str(warning.message)
    assert warning.filename == __file__
    few = regressor(activation="polynomial", n_basis=6, max_iter=60, n_members=2).fit(X, y)
    assert few.oof_score_ > 0.3


@MAKERS
def test_heavy_tails(make, rng):
    X = rng.standard_cauchy((400, 3))
    model = make().fit(X, np.abs(X[:, 0]) > 1)
    assert_finite(model, X)


@MAKERS
def test_sparse_with_empty_columns(make, rng):
    X = sparse.random_array((200, 30), density=0.02, rng=rng, format="csr")
    y = np.arange(200) % 2
    model = make().fit(X, y)
    assert_finite(model, X)
    empty = sparse.csr_array((200, 5))
    assert_finite(make().fit(empty, y), empty)


@MAKERS
def test_inputs_are_not_changed(make, rows):
    X, y = rows
    X_before, y_before, weights = X.copy(), y.copy(), np.ones(150)
    model = make()
    model.fit(X, y) if make is features else model.fit(X, y, sample_weight=weights)
    outputs(model, X)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    np.testing.assert_array_equal(weights, 1)


@MAKERS
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layouts_and_byte_orders(make, order, rows):
    X, y = rows
    plain = make().fit(X, y)
    other = make().fit(np.array(X, order=order)[::1], y)
    for one, two in zip(outputs(plain, X), outputs(other, np.array(X, order=order)), strict=True):
        # moments differ by a bit, and the steps of learning amplify it
        np.testing.assert_allclose(one.astype(float), two.astype(float), rtol=5e-3, atol=1e-3)
    swapped = X.astype(X.dtype.newbyteorder())
    assert_finite(make().fit(swapped, y), swapped)


def test_weights_of_any_size(rows):
    """Only their ratios matter for the solution."""
    X, y = rows
    weights = np.linspace(0.5, 1.5, 150)
    expected = regressor(alpha=1e-3).fit(X, y, sample_weight=weights).predict(X)
    for factor in (1e-9, 1e9):
        model = regressor(alpha=1e-3).fit(X, y, sample_weight=factor * weights)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-3)
        assert_finite(model, X)
        labels = classifier().fit(X, y, sample_weight=factor * weights)
        assert labels.score(X, y) > 0.8


def test_a_class_whose_rows_all_weigh_nothing(rng):
    """Two of three classes are left to learn from; the third is never predicted."""
    X = rng.standard_normal((300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = classifier().fit(X, y, sample_weight=(y != 1).astype(float))
    assert_finite(model, X)
    assert list(model.classes_) == [0, 1, 2]
    kept = y != 1
    assert model.score(X[kept], y[kept]) > 0.9


@pytest.mark.parametrize("n", [80, 400])
def test_a_class_without_weight_keeps_its_column(n, rng):
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] > 0.5, "b", np.where(X[:, 0] < -0.5, "a", "unseen"))
    model = RFLAFClassifier(30, max_iter=4, random_state=0)
    model.fit(X, y, sample_weight=(y != "unseen").astype(float))
    p = model.predict_proba(X)
    assert p.shape == (n, 3)
    seen = y != "unseen"
    assert np.mean(model.predict(X[seen]) == y[seen]) > 0.95
    assert p[:, 2].max() < 0.1


def test_a_straight_line_in_one_input_at_every_size():
    """The simplest of tasks, from a handful of rows on."""
    for n in (8, 30, 99, 100, 300):
        X = np.random.default_rng(n).uniform(-1, 1, (n, 1))
        y = 3 * X[:, 0] - 2
        new = np.linspace(X.min(), X.max(), 50)[:, None]
        model = regressor(n_components=60, max_iter=20).fit(X, y)
        expected = LinearRegression().fit(X, y).predict(new)
        assert np.abs(model.predict(new) - expected).max() < 0.3


def test_something_is_always_held_out(rng):
    X = rng.standard_normal((3200, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(3200)
    model = RFLAFRegressor(20, max_iter=2, validation_fraction=1e-5, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


# ---- units do not matter


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_units_of_x_and_y(scale, rng):
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + np.sin(2 * X[:, 1])
    expected = regressor(max_iter=0).fit(X, y).predict(X)
    stretched = regressor(max_iter=0).fit(scale * X, y).predict(scale * X)
    np.testing.assert_allclose(stretched, expected, atol=1e-2)
    model = regressor(max_iter=0).fit(X, scale * y)
    np.testing.assert_allclose(model.predict(X) / scale, expected, atol=1e-2)
    _, std = model.predict(X, return_std=True)
    _, plain = regressor(max_iter=0).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(std / scale, plain, rtol=1e-2)


@pytest.mark.parametrize("offset", [1e3, -1e6])
def test_offsets_of_x_and_y(offset, rng):
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + np.sin(2 * X[:, 1])
    expected = regressor(max_iter=0).fit(X, y).predict(X)
    moved = regressor(max_iter=0).fit(X + offset, y + offset).predict(X + offset) - offset
    np.testing.assert_allclose(moved, expected, atol=1e-2)


@pytest.mark.parametrize("scale", [2.0**-531, 2.0**515])  # powers of two round nothing
def test_columns_whose_squares_overflow(scale, rng):
    X = rng.standard_normal((150, 3))
    y = X[:, 0]
    plain, scaled = (
        RFLAFRegressor(40, max_iter=4, random_state=0).fit(each, y) for each in (X, X * scale)
    )
    np.testing.assert_allclose(scaled.predict(X * scale), plain.predict(X), atol=1e-6)


@pytest.mark.parametrize("scale", [1e40, 1e-42])
def test_targets_that_float32_cannot_hold(scale, rng):
    X = rng.standard_normal((150, 3))
    y = np.sin(X[:, 0])
    plain, scaled = (
        RFLAFRegressor(40, max_iter=4, random_state=0).fit(X, each) for each in (y, y * scale)
    )
    np.testing.assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-3)
