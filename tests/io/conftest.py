"""Small models, and a file of one; tests of files are skipped without skops."""

import importlib.util
import io
import json
import zipfile

import numpy as np
import pytest

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf import io as model_io
from rflaf.io import save

if importlib.util.find_spec("skops") is None:
    collect_ignore_glob = ["test_*.py"]

SMALL = {"n_components": 30, "max_iter": 6, "random_state": 0}
N = 160


def data(dtype=np.float64):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 4)).astype(dtype)
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


def labels():
    _, y = data()
    return np.array(["low", "mid", "high"])[np.digitize(y, [0.3, 1.0])]


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "model.skops"
    save(RandomFeatures(5, random_state=0).fit(data()[0]), path)
    return path.read_bytes()


def outputs(model, X):
    """Everything a model predicts, as arrays."""
    names = ("predict", "predict_proba", "decision_function", "transform")
    found = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    if isinstance(model, RFLAFRegressor):
        found["std"] = model.predict(X, return_std=True)[1]
    assert found
    return found


def assert_identical(one, other, X):
    expected, got = outputs(one, X), outputs(other, X)
    assert expected.keys() == got.keys()
    for name, value in expected.items():
        assert value.dtype == got[name].dtype
        assert value.tobytes() == got[name].tobytes(), name


def rewritten(archive, change):
    """The archive with another description of its objects, and a digest that fits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return model_io._signed(buffer.getvalue())


def call(module, function, *arguments):
    """What skops would construct by calling `function`."""
    strings = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": text}
        for text in map(json.dumps, arguments)
    ]
    content = {
        "__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode",
        "content": strings,
    }  # fmt: skip
    return {
        "__class__": function, "__module__": module, "__loader__": "ConstructorFromReduceNode",
        "content": content,
    }  # fmt: skip
