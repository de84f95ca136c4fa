"""Exported graphs give what the models give, and what cannot be exported is refused by name."""

import builtins
import copy
import json
import os
from contextlib import nullcontext
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from rflaf import Activation, RandomFeatures, RFLAFClassifier, RFLAFRegressor, __version__
from rflaf.bases import FIXED_ACTIVATIONS, RBF, Basis, Fixed, Polynomial, get_basis
from tests.conftest import ALL_BASES

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from rflaf.onnx import export  # noqa: E402
from rflaf.onnx.activations import FORMULAS, add_activation  # noqa: E402
from rflaf.onnx.graph import Graph  # noqa: E402

# with a penalty as small as these rows without noise want, float32 would show in the model itself
SMALL = {"n_components": 40, "max_iter": 2, "alpha": 1e-3, "random_state": 0}
DTYPES = ["float32", "float64"]
TOLERANCE = 1e-5


def session(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(path, X, dtype="float32"):
    """The outputs by name, for rows in the graph's precision."""
    graph = session(path.read_bytes())
    names = [output.name for output in graph.get_outputs()]
    return dict(zip(names, graph.run(names, {"X": np.asarray(X, dtype)}), strict=True))


def assert_close(got, expected):
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= TOLERANCE * np.abs(expected).max()


@cache
def data():
    """Rows that float32 holds exactly, and targets; some columns have offsets."""
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((160, 4)) * [1, 1, 0.01, 50] + [0, 3, 1, -200]).astype(np.float32)
    x = (X - X.mean(axis=0)) / X.std(axis=0)
    return X.astype(np.float64), np.sin(x[:, 0]) + x[:, 1] * x[:, 2]


@cache
def regressor(activation="rbf", targets=1):
    X, y = data()
    y = y if targets == 1 else np.column_stack([y, 100 * y**2, X[:, 0]])
    return RFLAFRegressor(activation=activation, n_basis=9, **SMALL).fit(X, y)


def with_activation(model, name, rng):
    """The model with another activation, as if it had been learned, and scores of order one."""
    basis = get_basis(name, 9)
    model = copy.copy(model)
    model.activation_ = Activation(basis, rng.standard_normal(9) if basis.learnable else None)
    model._table = None
    model.intercept_ = np.zeros_like(model.intercept_)
    model.coef_ = model.coef_ / np.abs(model.decision_function(data()[0])).max() * 3
    return model


@cache
def classifier(kind="integers"):
    X, y = data()
    classes = {
        "integers": np.array([7, -3, 20]),
        "two integers": np.array([0, 5]),
        "strings": np.array(["low", "mïddle", "high"]),
        "two objects": np.array(["no", "yes"], dtype=object),
        "booleans": np.array([False, True]),
        "floats": np.array([1.0, 2.0]),
        "unsigned": np.array([1, 2], dtype=np.uint8),
    }[kind]
    level = np.searchsorted(np.quantile(y, np.arange(1, len(classes)) / len(classes)), y)
    return RFLAFClassifier(n_basis=9, **SMALL).fit(X, classes[level])


def assert_same_classes(path, model, X, dtype):
    outputs = run(path, X, dtype)
    p = model.predict_proba(X)
    assert_close(outputs["probabilities"], p)
    assert p.std(axis=0).max() > 0.01  # a graph that gave the same for all rows would be found
    sure = np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2] > TOLERANCE
    assert sure.any()
    assert (outputs["label"] == model.predict(X))[sure].all()


# ---- the activation alone -----------------------------------------------------------------------


def evaluate(activation, z):
    """sigma(z) by a graph of nothing else."""
    graph = Graph(z.dtype)
    graph.output("value", add_activation(graph, activation, "X"), z.dtype, "n", 1)
    model = graph.model(1, "test", "0")
    onnx.checker.check_model(model, full_check=True)
    return session(model.SerializeToString()).run(["value"], {"X": z[:, None]})[0][:, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("basis", ALL_BASES, ids=repr)
def test_every_activation_inside_and_outside_its_grid(basis, dtype, rng):
    activation = Activation(basis, rng.standard_normal(basis.n))
    z = np.concatenate([np.linspace(-9, 9, 4001), basis.grid, np.add(basis.grid, 1e-6)])
    z = z.astype(dtype)
    expected = activation.table()(z.astype(np.float64))
    assert_close(evaluate(activation, z), expected)
    if isinstance(basis, Polynomial) or basis == Fixed("cos"):
        return  # the one overflows, the other turns more often than float32 can tell
    far = np.array([-1e15, -1e6, -300, 300, 1e6, 1e15], dtype)
    expected = activation.table()(far.astype(np.float64))
    np.testing.assert_allclose(evaluate(activation, far), expected, rtol=1e-5, atol=1e-6)


def test_many_narrow_functions_far_from_zero(rng):
    """257 of them: positions in the table have few digits left in float32, places in a cell do."""
    activation = Activation(RBF(257, 6.0, 10.0), rng.standard_normal(257))
    z = np.linspace(5.9, 10.1, 20001, dtype=np.float32)
    assert_close(evaluate(activation, z), activation.table()(z.astype(np.float64)))


@given(st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=6))
def test_polynomials_of_any_coefficients(coefficients):
    activation = Activation(Polynomial(len(coefficients)), coefficients)
    z = np.linspace(-2, 2, 21)
    assert np.abs(evaluate(activation, z) - activation(z)).max() <= 1e-9


def test_every_fixed_activation_has_a_formula():
    assert set(FORMULAS) == set(FIXED_ACTIVATIONS)


# ---- the estimators -----------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "polynomial", *FORMULAS])
def test_regressor_with_every_activation(activation, tmp_path):
    X, _ = data()
    model, path = regressor(activation), tmp_path / "model.onnx"
    for dtype in DTYPES:
        export(model, path, dtype=dtype, check=X)
        for rows in (X, X[:1], X[:7]):
            assert_close(run(path, rows, dtype)["prediction"], model.predict(rows))
        assert run(path, X[:0], dtype)["prediction"].shape == (0,)


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "polynomial", *FORMULAS])
def test_classifier_with_every_activation(activation, tmp_path, rng):
    X, _ = data()
    model, path = with_activation(classifier(), activation, rng), tmp_path / "model.onnx"
    for dtype in DTYPES:
        export(model, path, dtype=dtype, check=X)
        assert_same_classes(path, model, X, dtype)


def test_several_targets_of_different_units(tmp_path):
    X, _ = data()
    model, path = regressor(targets=3), tmp_path / "model.onnx"
    export(model, path, check=X)
    got, expected = run(path, X)["prediction"], model.predict(X)
    for k in range(3):
        assert_close(got[:, k], expected[:, k])
    assert run(path, X[:0])["prediction"].shape == (0, 3)


def test_activation_that_is_given(tmp_path, rng):
    X, y = data()
    sigma = Activation(RBF(17), rng.standard_normal(17))
    model = RFLAFRegressor(activation=sigma, fit_intercept=False, **SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], model.predict(X))


@pytest.mark.parametrize("dtype", DTYPES)
def test_model_of_few_rows_which_is_float64(dtype, tmp_path):
    X, y = data()
    model = RFLAFRegressor(**SMALL).fit(X[:60], y[:60])
    assert model.components_.dtype == np.float64
    export(model, tmp_path / "model.onnx", dtype=dtype, check=X)
    assert_close(run(tmp_path / "model.onnx", X, dtype)["prediction"], model.predict(X))


@pytest.mark.parametrize(
    ("kind", "label_type"),
    [
        ("two integers", np.int64),
        ("unsigned", np.int64),
        ("strings", object),
        ("two objects", object),
        ("booleans", np.bool_),
        ("floats", np.float64),
    ],
)
def test_classes_of_every_kind(kind, label_type, tmp_path):
    X, _ = data()
    model, path = classifier(kind), tmp_path / "model.onnx"
    export(model, path, check=X)
    assert run(path, X)["label"].dtype == label_type
    assert_same_classes(path, model, X, "float32")
    assert run(path, X[:0])["probabilities"].shape == (0, len(model.classes_))


@pytest.mark.parametrize("kind", ["integers", "two integers"])
def test_probabilities_are_never_zero_and_small_ones_are_right(kind, tmp_path):
    X, _ = data()
    model = classifier(kind)
    sharp = RFLAFClassifier(n_basis=9, **SMALL)
    sharp.__dict__.update({**model.__dict__, "coef_": model.coef_ * 400})
    export(sharp, tmp_path / "model.onnx", dtype="float64")
    p = run(tmp_path / "model.onnx", X, "float64")["probabilities"]
    expected = sharp.predict_log_proba(X)
    assert expected.min() < -100
    np.testing.assert_allclose(np.log(p), expected, rtol=1e-3, atol=0.05)
    sharp.coef_ = model.coef_ * 1e6
    export(sharp, tmp_path / "model.onnx")
    p = run(tmp_path / "model.onnx", X)["probabilities"]
    assert p.min() == np.finfo(np.float32).tiny


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("standardise", [True, False])
def test_random_features(activation, standardise, tmp_path):
    X, _ = data()
    model = RandomFeatures(30, activation=activation, standardise=standardise, random_state=0)
    model.fit(X)
    export(model, tmp_path / "model.onnx", check=X)
    assert_close(run(tmp_path / "model.onnx", X)["features"], model.transform(X))


@pytest.mark.parametrize("activation", ["rbf", "bspline", "chebyshev", "relu", "gelu", "silu"])
@pytest.mark.parametrize("size", [1e3, 1e8, 1e30, 1e300])
def test_rows_far_from_those_of_the_fit(activation, size, tmp_path):
    """Further out than the standardised inputs are cut off, too."""
    X, _ = data()
    model, path = regressor(activation), tmp_path / "model.onnx"
    export(model, path, dtype="float64")
    rows = X[:20] * size
    assert_close(run(path, rows, "float64")["prediction"], model.predict(rows))


def test_large_offsets(tmp_path):
    """float64 inputs lose nothing; float32 ones cannot hold them, and the check says so."""
    X, y = data()
    X = X + 1e9
    model = RFLAFRegressor(**SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", dtype="float64", check=X)
    assert_close(run(tmp_path / "model.onnx", X, "float64")["prediction"], model.predict(X))
    with pytest.raises(ValueError, match=r"need dtype='float64'.*Nothing was written"):
        export(model, tmp_path / "other.onnx", check=X)
    assert os.listdir(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("activation", ["rbf", "polynomial", "relu"])
def test_rows_that_are_not_finite_give_nan_and_leave_others_alone(bad, activation, tmp_path):
    X, _ = data()
    model, path = regressor(activation), tmp_path / "model.onnx"
    export(model, path)
    rows = X[:5].copy()
    rows[2, 1] = bad
    got = run(path, rows)["prediction"]
    assert np.isnan(got[2])
    good = [0, 1, 3, 4]
    assert_close(got[good], model.predict(X[good]))
    export(classifier("strings"), path)
    assert np.isnan(run(path, rows)["probabilities"]).any(axis=1).tolist() == [0, 0, 1, 0, 0]


def test_column_that_does_not_vary(tmp_path):
    X, y = data()
    X = np.column_stack([X, np.full(len(X), 3.0)])
    model = RFLAFRegressor(**SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    X[:, -1] = 1e30
    assert_close(run(tmp_path / "model.onnx", X)["prediction"], model.predict(X))


# ---- the file -----------------------------------------------------------------------------------


def test_only_standard_operators_and_what_the_file_says_of_itself(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "größe"])
    model = RFLAFRegressor(**SMALL).fit(frame, y)
    export(model, tmp_path / "model.onnx", check=frame)
    proto = onnx.load(tmp_path / "model.onnx")
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert {node.domain for node in proto.graph.node} == {""}
    assert (proto.producer_name, proto.producer_version) == ("rflaf", __version__)
    about = {entry.key: entry.value for entry in proto.metadata_props}
    assert about["task"] == "regression"
    assert json.loads(about["feature_names"]) == list(frame.columns)
    assert about["activation"].startswith("Activation(RBF(n=32")


def test_same_model_same_bytes(tmp_path):
    export(regressor(), tmp_path / "a.onnx")
    export(regressor(), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_no_tensor_is_larger_than_rows_times_features(tmp_path):
    """Whatever the number of basis functions is."""
    export(regressor(), tmp_path / "model.onnx")
    inferred = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "model.onnx"))
    for value in inferred.graph.value_info:
        assert len(value.type.tensor_type.shape.dim) <= 2, value.name


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*missing"):
        export(regressor(), tmp_path / "missing" / "model.onnx")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        export(regressor(), tmp_path)
    assert os.listdir(tmp_path) == []


def test_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        export(regressor(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_check_finds_a_wrong_graph(tmp_path, monkeypatch, rng):
    X, _ = data()
    monkeypatch.setitem(FORMULAS, "tanh", lambda graph, z: graph.add("Sigmoid", z))
    for model in (regressor("tanh"), with_activation(classifier(), "tanh", rng)):
        with pytest.raises(ValueError, match="The graph is off by"):
            export(model, tmp_path / "model.onnx", check=X, dtype="float64")
    assert os.listdir(tmp_path) == []


def test_check_without_onnxruntime(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "onnxruntime":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"'check'.*rflaf\[onnx\]"):
        export(regressor(), tmp_path / "model.onnx", check=data()[0])
    export(regressor(), tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == ["model.onnx"]


# ---- pipelines ----------------------------------------------------------------------------------


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


def test_random_features_in_the_middle(tmp_path):
    X, y = data()
    inner = RandomFeatures(20, activation="tanh", random_state=0)
    model = make_pipeline(inner, RFLAFRegressor(**SMALL)).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X, dtype="float64")
    assert_close(run(tmp_path / "model.onnx", X, "float64")["prediction"], model.predict(X))


# ---- refusals -----------------------------------------------------------------------------------


class Wobble(Basis):
    """A basis with neither a table nor a known formula."""

    tail, n, low, high = "direct", 2, -2.0, 2.0

    def functions(self, z, order=0):
        yield np.cos(z) if order else np.sin(z)
        yield -np.sin(z) if order else np.cos(z)

    def parameters(self):
        return {}


class Bumps(Wobble):
    """A basis of one's own that has a table."""

    tail = "constant"


class Doubled(StandardScaler):
    def transform(self, X, copy=None):
        return 2 * super().transform(X)


class Mystery(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


def refuse(model, match, tmp_path, error=ValueError, **options):
    with pytest.raises(error, match=match):
        export(model, tmp_path / "model.onnx", **options)
    assert os.listdir(tmp_path) == []


def test_custom_bases(tmp_path):
    X, y = data()
    model = RFLAFRegressor(activation=Bumps(), **SMALL).fit(X, y)
    export(model, tmp_path / "model.onnx", check=X)
    os.remove(tmp_path / "model.onnx")
    model = RFLAFRegressor(activation=Wobble(), **SMALL).fit(X, y)
    refuse(model, "activation in Wobble.* has no table", tmp_path)


def test_unfitted_models(tmp_path):
    refuse(RFLAFRegressor(), "RFLAFRegressor instance is not fitted", tmp_path, NotFittedError)
    model = Pipeline([("scaler", StandardScaler()), ("model", regressor())])
    refuse(model, "StandardScaler instance is not fitted", tmp_path, NotFittedError)


@pytest.mark.parametrize("step", [PCA(2), Doubled(), Mystery(), FunctionTransformer(np.abs)])
def test_unknown_steps_are_named(step, tmp_path):
    X, y = data()
    last = RFLAFRegressor(**SMALL)
    name = type(step).__name__
    model = Pipeline([("odd", step), ("model", last)]).fit(X, y)
    refuse(model, f"step 'odd', a {name}, cannot", tmp_path)
    columns = ColumnTransformer([("inner", make_pipeline(step), [0, 1, 2])])
    model = Pipeline([("outer", columns), ("model", last)]).fit(X, y)
    refuse(model, f"step 'outer.inner.{name.lower()}', a {name}, cannot", tmp_path)


def test_other_models(tmp_path):
    X, y = data()
    refuse(Ridge().fit(X, y), "A Ridge cannot be exported. Expected one of RFLAF", tmp_path)
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    refuse(model, "last step is 'ridge'", tmp_path)


def test_categories_that_are_no_numbers_or_too_close(tmp_path):
    X, y = data()
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 3, "x", "y")})
    last = RFLAFRegressor(**SMALL)
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["b"])), last).fit(frame, y)
    refuse(model, r"onehotencoder', a OneHotEncoder.* not numbers: \['x', 'y'\]", tmp_path)
    close = np.where(X[:, :1] > 0, 1.0, 1.0 + 1e-12)
    model = make_pipeline(OneHotEncoder(), last).fit(close, y)
    refuse(model, "cannot tell its values apart", tmp_path)
    export(model, tmp_path / "model.onnx", dtype="float64", check=close)
    os.remove(tmp_path / "model.onnx")
    model = make_pipeline(OneHotEncoder(min_frequency=2), last).fit(close, y)
    refuse(model, "groups categories", tmp_path)


def test_parameters(tmp_path):
    refuse(regressor(), "'dtype'.*Got 'float16' instead", tmp_path, dtype="float16")
    refuse(regressor(), "columns of numbers only", tmp_path, check=[["a", "b", "c", "d"]])
