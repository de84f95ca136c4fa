"""Bad, odd and extreme inputs: an error that says so, or a finite answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LinearRegression

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor

pytestmark = pytest.mark.filterwarnings("ignore:Only .* of the projected inputs:UserWarning")

SMALL = {"n_components": 20, "max_iter": 3, "random_state": 0}


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


def features(**parameters):
    return RandomFeatures(**{"n_components": 20, "random_state": 0, **parameters})


MAKERS = pytest.mark.parametrize("make", [regressor, classifier, features])
PREDICTORS = pytest.mark.parametrize("make", [regressor, classifier])


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((150, 3))
    return X, (X[:, 0] > 0).astype(float)


def outputs(model, X):
    """Everything a model says about X."""
    names = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
    found = [np.asarray(getattr(model, name)(X)) for name in names if hasattr(model, name)]
    if isinstance(model, RFLAFRegressor):
        found.append(model.predict(X, return_std=True)[1])
    return found


def assert_finite(model, *inputs):
    for X in inputs:
        for values in outputs(model, X):
            assert values.shape[0] == X.shape[0]
            assert np.isfinite(values.astype(float)).all()


# ---- errors


@MAKERS
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity(make, value, rows):
    X, y = rows
    spoilt = X.copy()
    spoilt[7, 1] = value
    word = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        make().fit(spoilt, y)
    model = make().fit(X, y)
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            with pytest.raises(ValueError, match=f"Input X contains {word}"):
                getattr(model, name)(spoilt)


@PREDICTORS
def test_nan_in_y_and_weights(make, rows):
    X, y = rows
    spoilt = y.copy()
    spoilt[3] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        make().fit(X, spoilt)
    for weights, message in (
        (spoilt, "NaN"),
        (-np.ones(150), "[Nn]egative"),
        (np.zeros(150), "[Ss]ample.weight"),
        (np.ones(149), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X, y, sample_weight=weights)


@PREDICTORS
def test_y_of_wrong_length(make, rows):
    X, y = rows
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y|None"):
        make().fit(X, None)


@MAKERS
def test_wrong_shapes_and_kinds(make, rows):
    X, y = rows
    with pytest.raises(ValueError, match="2D array"):
        make().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="0 feature"):
        make().fit(X[:, :0], y)
    with pytest.raises(ValueError, match="0 sample"):
        make().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="could not convert string"):
        make().fit(np.array([["a", "b"]] * 150), y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        make().fit(X + 1j, y)
    model = make().fit(X, y)
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3"):
        (model.transform if make is features else model.predict)(X[:, :2])


def test_one_class(rows):
    X, _ = rows
    for y in (np.zeros(150), np.array(["a"] * 150)):
        with pytest.raises(ValueError, match="class"):
            classifier().fit(X, y)


def test_one_class_after_weights_of_zero(rows):
    X, y = rows
    with pytest.raises(ValueError, match="class"):
        classifier().fit(X, y, sample_weight=y)


def test_a_class_whose_rows_all_weigh_nothing(rng):
    """Two of three classes are left to learn from; the third is never predicted."""
    X = rng.standard_normal((300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = classifier().fit(X, y, sample_weight=(y != 1).astype(float))
    assert_finite(model, X)
    assert list(model.classes_) == [0, 1, 2]
    kept = y != 1
    assert model.score(X[kept], y[kept]) > 0.9


def test_targets_that_are_no_classes(rows):
    X, _ = rows
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(X, X[:, 0])


def test_more_features_than_memory(rows):
    X, y = rows
    for model in (regressor(solver="ridge"), classifier()):
        model.set_params(n_components=10**7)
        with pytest.raises(MemoryError, match="n_components=10000000"):
            model.fit(X, y)


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


def test_a_basis_of_high_powers(rows):
    X, y = rows
    try:
        assert_finite(regressor(activation="polynomial", n_basis=32).fit(X, y), X)
    except ValueError as error:
        assert "polynomial" in str(error).lower()  # noqa: PT017


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
        np.testing.assert_allclose(one.astype(float), two.astype(float), atol=1e-4)
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


# ---- anything


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
    assert model.predict(X).dtype == X.dtype
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


def test_a_straight_line_in_one_input_at_every_size():
    """The simplest of tasks, from a handful of rows on."""
    for n in (8, 30, 99, 100, 300):
        X = np.random.default_rng(n).uniform(-1, 1, (n, 1))
        y = 3 * X[:, 0] - 2
        new = np.linspace(X.min(), X.max(), 50)[:, None]
        model = regressor(n_components=60, max_iter=20).fit(X, y)
        expected = LinearRegression().fit(X, y).predict(new)
        assert np.abs(model.predict(new) - expected).max() < 0.3


@pytest.mark.parametrize("scale", [1e-160, 1e155])
def test_columns_whose_squares_overflow(scale, rng):
    X = rng.standard_normal((150, 3))
    y = X[:, 0]
    plain, scaled = (
        RFLAFRegressor(40, max_iter=4, random_state=0).fit(each, y) for each in (X, X * scale)
    )
    np.testing.assert_allclose(scaled.predict(X * scale), plain.predict(X), atol=1e-3)


@pytest.mark.parametrize("scale", [1e40, 1e-42])
def test_targets_that_float32_cannot_hold(scale, rng):
    X = rng.standard_normal((150, 3))
    y = np.sin(X[:, 0])
    plain, scaled = (
        RFLAFRegressor(40, max_iter=4, random_state=0).fit(X, each) for each in (y, y * scale)
    )
    np.testing.assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-3)


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


def test_one_class_left_by_its_weight(rng):
    X = rng.standard_normal((120, 2))
    model = RFLAFClassifier(30, class_weight={False: 0, True: 1}, max_iter=4)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="'class_weight' must not be negative"):
        model.set_params(class_weight={False: -1, True: 1}).fit(X, X[:, 0] > 0)


def test_something_is_always_held_out(rng):
    X = rng.standard_normal((3200, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(3200)
    model = RFLAFRegressor(20, max_iter=2, validation_fraction=1e-5, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_sums_of_another_model_are_not_gone_on_with(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0])
    model = RFLAFRegressor(40, max_iter=4, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="more than 'degree'"):
        model.set_params(activation="bspline", n_basis=2).fit(5 * X, 100 * y)
    model.set_params(activation="rbf", n_basis=32)
    with pytest.warns(UserWarning, match="begins a new model"):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="'n_components' was 40"):
        model.set_params(n_components=30).partial_fit(X, y)
