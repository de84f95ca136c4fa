"""Bad inputs: an error that says so."""

import numpy as np
import pytest
from scipy import sparse

from rflaf import RFLAFClassifier, RFLAFRegressor
from tests.estimators.inputs.conftest import MAKERS, PREDICTORS, classifier, features, regressor


@MAKERS
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity(make, value, rows):
    X, y = rows
    if np.isnan(value) and make is not features:
        pytest.skip("NaN is a missing value: see tests/inputs")
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
def test_nan_in_sparse_rows(make, rows):
    X, y = rows
    spoilt = X.copy()
    spoilt[7, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make().fit(sparse.csr_array(spoilt), y)
    model = make().fit(sparse.csr_array(X), y)
    for rows_ in (spoilt, sparse.csr_array(spoilt)):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            model.predict(rows_)


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
    with pytest.raises(ValueError, match="pass the frame"):
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


def test_one_class_left_by_its_weight(rng):
    X = rng.standard_normal((120, 2))
    model = RFLAFClassifier(30, class_weight={False: 0, True: 1}, max_iter=4)
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="'class_weight' must not be negative"):
        model.set_params(class_weight={False: -1, True: 1}).fit(X, X[:, 0] > 0)


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


def test_a_fit_that_fails_does_not_touch_the_sums(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0])
    model, other = (RFLAFRegressor(40, max_iter=4, random_state=0) for _ in range(2))
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="more than 'degree'"):
        model.set_params(activation="bspline", n_basis=2).fit(5 * X, 100 * y)
    model.set_params(activation="rbf", n_basis=32).partial_fit(X, 2 * y)
    other.partial_fit(X, y).partial_fit(X, 2 * y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_sums_of_another_model_are_not_gone_on_with(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0])
    model = RFLAFRegressor(40, max_iter=4, random_state=0).partial_fit(X, y)
    model.fit(5 * X, 100 * y)
    with pytest.warns(UserWarning, match="starts a new model"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="'n_components' was 40"):
        model.set_params(n_components=30).partial_fit(X, y)
    fresh = RFLAFRegressor(40, max_iter=4, random_state=0).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
