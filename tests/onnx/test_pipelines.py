"""Exported graphs of pipelines give what the pipelines give."""

from contextlib import nullcontext
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.onnx import export
from tests.onnx.conftest import DTYPES, SMALL, assert_close, data, run


@cache
def holes():
    """Rows with missing values; the last column has whole numbers."""
    X, y = data()
    X = X.copy()
    X[:, 3] = np.arange(len(X)) % 3
    X[::7, 0] = np.nan
    X[3::11, 2] = np.nan
    return X, y


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1, 2)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    FunctionTransformer(),
    "passthrough",
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalers(scaler, dtype, tmp_path):
    X, y = data()
    model = Pipeline([("first", scaler), ("model", RFLAFRegressor(**SMALL))]).fit(X[:100], y[:100])
    export(model, tmp_path / "model.onnx", dtype=dtype, check=X)
    assert_close(run(tmp_path / "model.onnx", X, dtype)["prediction"], model.predict(X))


@pytest.mark.parametrize("scaler", SCALERS[:-2], ids=repr)
def test_infinity_that_a_scaler_refuses(scaler, tmp_path):
    """A clipping one would bring it back among the numbers."""
    X, y = data()
    model = make_pipeline(scaler, RFLAFRegressor(**SMALL)).fit(X, y)
    export(model, tmp_path / "model.onnx")
    rows = X[:4].copy()
    rows[1, 0], rows[2, 3], rows[3, 1] = np.inf, -np.inf, np.nan
    with pytest.raises(ValueError, match="infinity"):
        model.predict(rows)
    got = run(tmp_path / "model.onnx", rows)["prediction"]
    assert np.isnan(got).tolist() == [False, True, True, False]
    assert_close(got[[0, 3]], model.predict(rows[[0, 3]]))


IMPUTERS = [
    SimpleImputer(),
    SimpleImputer(strategy="median", add_indicator=True),
    SimpleImputer(strategy="most_frequent"),
    SimpleImputer(strategy="constant", fill_value=-5.0, add_indicator=True),
]


@pytest.mark.parametrize("imputer", IMPUTERS, ids=repr)
def test_imputers(imputer, tmp_path):
    X, y = holes()
    model = make_pipeline(imputer, StandardScaler(), RFLAFRegressor(**SMALL)).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], model.predict(X))


@pytest.mark.parametrize("keep", [True, False])
def test_imputer_of_a_column_without_values(keep, tmp_path):
    X, y = holes()
    X = X.copy()
    X[:, 1] = np.nan
    imputer = SimpleImputer(keep_empty_features=keep, add_indicator=True)
    model = make_pipeline(imputer, RFLAFRegressor(**SMALL))
    with pytest.warns(UserWarning, match="Skipping features") if not keep else nullcontext():
        model.fit(X, y)
        export(model, tmp_path / "model.onnx", check=X)
        expected = model.predict(X)
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], expected)


def test_imputer_of_another_missing_value(tmp_path):
    X, y = data()
    X = X.copy()
    X[::5, 0] = 0.1  # which float32 does not have
    model = make_pipeline(SimpleImputer(missing_values=0.1), RFLAFRegressor(**SMALL)).fit(X, y)
    for dtype in DTYPES:
        export(model, tmp_path / "model.onnx", dtype=dtype, check=X)
        assert_close(run(tmp_path / "model.onnx", X, dtype)["prediction"], model.predict(X))


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
def test_column_transformer_of_a_frame(drop, tmp_path):
    X, y = holes()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["d"] = frame["d"].astype(int)
    frame["e"] = np.where(np.arange(len(X)) % 2, 0.1, 0.7)
    frame["f"] = frame["a"]  # NaN is a category, too
    frame["f"] = np.where(frame["f"].isna(), np.nan, 1.0)
    frame["idle"] = 1.0
    numeric = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numeric, ["c", "a"]),
            ("kinds", OneHotEncoder(drop=drop), ["e", "d", "f"]),
            ("nothing", "drop", ["idle"]),
            ("none", StandardScaler(), []),
        ],
        remainder="passthrough",
        transformer_weights={"kinds": 0.5},
    )
    y = y + frame["d"] * (frame["e"] > 0.5)
    model = Pipeline([("columns", columns), ("model", RFLAFClassifier(**SMALL))])
    model.fit(frame, y > y.median())
    for dtype in DTYPES:
        export(model, tmp_path / "model.onnx", dtype=dtype, check=frame)
        got = run(tmp_path / "model.onnx", frame, dtype)["probabilities"]
        assert_close(got, model.predict_proba(frame))


@pytest.mark.parametrize("handling", ["ignore", "error"])
def test_unknown_categories(handling, tmp_path):
    X, y = holes()
    X = X[:, [1, 3]]
    encoder = OneHotEncoder(handle_unknown=handling)
    columns = make_column_transformer((encoder, [1]), remainder="passthrough")
    model = make_pipeline(columns, RFLAFRegressor(**SMALL)).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    rows = X[:3].copy()
    rows[1, 1] = 77
    got = run(tmp_path / "model.onnx", rows)["prediction"]
    assert np.isfinite(got[[0, 2]]).all()
    if handling == "ignore":
        assert_close(got, model.predict(rows))
    else:
        assert np.isnan(got[1])


@pytest.mark.parametrize("form", ["both", "ranks"])
def test_members_and_forms_after_other_steps(form, tmp_path):
    X, y = holes()
    numeric = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = make_column_transformer((numeric, [0, 1, 2]), (OneHotEncoder(), [3]))
    last = RFLAFClassifier(**SMALL, input_form=form, n_members=2)
    model = make_pipeline(columns, last).fit(X, np.digitize(y, [-0.5, 0.5]))
    for dtype in DTYPES:
        export(model, tmp_path / "model.onnx", dtype=dtype, check=X)
        got = run(tmp_path / "model.onnx", X, dtype)["probabilities"]
        assert_close(got, model.predict_proba(X))


def test_random_features_in_the_middle(tmp_path):
    X, y = data()
    inner = RandomFeatures(20, activation="tanh", random_state=0)
    model = make_pipeline(inner, RFLAFRegressor(**SMALL)).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X, dtype="float64")
    assert_close(run(tmp_path / "model.onnx", X, "float64")["prediction"], model.predict(X))
