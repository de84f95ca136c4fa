"""The file that is written; none where a model cannot be exported, which is refused by name."""

import json
import os
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from rflaf import RFLAFRegressor, __version__
from rflaf.bases import Basis
from rflaf.onnx import export
from rflaf.onnx.activations import FORMULAS
from tests.onnx.conftest import SMALL, classifier, data, regressor, with_activation

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
    assert about["activation"].startswith("Activation(RBF(32 on [-2, 2])")


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


def test_failure_leaves_the_old_file(tmp_path, full_disk):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=r"No space left on device: '.*/model\.onnx'$"):
        export(regressor(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_check_finds_a_wrong_graph(tmp_path, monkeypatch, rng):
    X, _ = data()
    monkeypatch.setitem(FORMULAS, "tanh", lambda graph, z: graph.add("Sigmoid", z))
    for model in (regressor("tanh"), with_activation(classifier(), "tanh", rng)):
        with pytest.raises(ValueError, match="The graph differs by"):
            export(model, tmp_path / "model.onnx", check=X, dtype="float64")
    assert os.listdir(tmp_path) == []


def test_check_finds_predictions_that_are_rounded(tmp_path):
    """Seconds since 1970: a float32 is off by up to a minute."""
    X, y = data()
    y = y.astype(np.float64)
    model = RFLAFRegressor(20, max_iter=2, random_state=0).fit(X, 1.7e9 + y)
    path = tmp_path / "model.onnx"
    with pytest.raises(ValueError, match="Targets far from zero"):
        export(model, path, check=X)
    assert os.listdir(tmp_path) == []
    export(model, path, check=X, dtype="float64")
    two = RFLAFRegressor(20, max_iter=2, random_state=0).fit(X, np.column_stack([y, 1.7e9 + y]))
    with pytest.raises(ValueError, match="Targets far from zero"):
        export(two, path, check=X)


def test_check_without_onnxruntime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"'check'.*rflaf\[onnx\]"):
        export(regressor(), tmp_path / "model.onnx", check=data()[0])
    export(regressor(), tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == ["model.onnx"]


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
    refuse(model, "cannot distinguish its values", tmp_path)
    export(model, tmp_path / "model.onnx", dtype="float64", check=close)
    os.remove(tmp_path / "model.onnx")
    model = make_pipeline(OneHotEncoder(min_frequency=2), last).fit(close, y)
    refuse(model, "groups categories", tmp_path)


def test_parameters(tmp_path):
    refuse(regressor(), "'dtype'.*Got 'float16' instead", tmp_path, dtype="float16")
    refuse(regressor(), "columns of numbers only", tmp_path, check=[["a", "b", "c", "d"]])
