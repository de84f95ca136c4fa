"""Standard deviations and quantiles as outputs of graphs."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import RFLAFClassifier, RFLAFRegressor

onnx = pytest.importorskip("rflaf.onnx")
runtime = pytest.importorskip("onnxruntime")
FEW = {"n_components": 40, "n_members": 3, "max_iter": 10, "random_state": 0}
LEVELS = [0.05, 0.5, 0.95]


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) + np.exp(X[:, 1]) * rng.exponential(size=n)


def run(model, path, X, outputs):
    onnx.export(model, path, dtype="float64", outputs=outputs)
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X})))


@pytest.mark.filterwarnings("ignore:.*rows lie more than a standard deviation outside")
@pytest.mark.parametrize("n", [60, 400])  # one scale everywhere, and a scale per row
def test_they_are_those_of_the_model_inside_and_outside(n, tmp_path):
    model = RFLAFRegressor(**FEW).fit(*rows(n, 0))
    X = np.vstack([rows(50, 1)[0], [[3.0, 0, 0], [0, -5.0, 2.0]]])
    found = run(model, tmp_path / "model.onnx", X, ["prediction", "std", *LEVELS])
    assert list(found) == ["prediction", "std", "quantiles"]
    np.testing.assert_allclose(found["std"], model.predict_std(X), rtol=1e-4)
    np.testing.assert_allclose(found["quantiles"], model.predict_quantiles(X, LEVELS), atol=1e-3)
    only = run(model, tmp_path / "model.onnx", X, ["std"])
    np.testing.assert_array_equal(only["std"], found["std"])
    onnx.export(model, tmp_path / "model.onnx", outputs=["std", 0.5], check=X)


def test_what_cannot_be_had(tmp_path):
    X, y = rows(80, 0)
    path = tmp_path / "model.onnx"
    few = {**FEW, "n_members": 1}
    counts = RFLAFRegressor(loss="gamma", **few).fit(X, np.abs(y) + 1)
    with pytest.raises(ValueError, match="Got loss='gamma'"):
        onnx.export(counts, path, outputs=["std"])
    with pytest.raises(ValueError, match="Got 'deviation' instead"):
        onnx.export(counts, path, outputs=["deviation"])
    two = RFLAFRegressor(**few).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="need one target"):
        onnx.export(two, path, outputs=[0.5])
    classes = RFLAFClassifier(**few).fit(X, y > 1)
    with pytest.raises(ValueError, match="are for RFLAFRegressor"):
        onnx.export(classes, path, outputs=["std"])
    assert not path.exists()


def test_a_pipeline_is_checked_by_its_last_step(tmp_path):
    X, y = rows(120, 0)
    model = make_pipeline(StandardScaler(), RFLAFRegressor(**FEW)).fit(X, y)
    onnx.export(model, tmp_path / "p.onnx", outputs=["prediction", "std", 0.9], check=X)
    with pytest.raises(ValueError, match="'outputs' parameter of export must not be empty"):
        onnx.export(model, tmp_path / "p.onnx", outputs=[])


def test_targets_in_one_column_keep_their_shape(tmp_path):
    X, y = rows(120, 0)
    column = RFLAFRegressor(**FEW).fit(X, y[:, None])
    level = RFLAFRegressor(**FEW, loss="quantile", quantile=[0.5]).fit(X, y)
    for model in (column, level):
        onnx.export(model, tmp_path / "model.onnx", check=X)
        found = run(model, tmp_path / "model.onnx", X, ["prediction"])["prediction"]
        assert found.shape == model.predict(X).shape == (120, 1)
    found = run(column, tmp_path / "model.onnx", X, LEVELS)["quantiles"]
    np.testing.assert_allclose(found, column.predict_quantiles(X, LEVELS)[:, 0], atol=1e-3)
