"""Tests of rflaf.onnx need onnx and onnxruntime; without them they are skipped."""

import copy
import importlib.util
from dataclasses import replace
from functools import cache

import numpy as np

from rflaf import Activation, RFLAFClassifier, RFLAFRegressor
from rflaf.bases import get_basis

if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
    collect_ignore_glob = ["test_*.py"]
else:
    import onnxruntime

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
def regressor(activation="rbf", targets=1, **parameters):
    X, y = data()
    y = y if targets == 1 else np.column_stack([y, 100 * y**2, X[:, 0]])
    return RFLAFRegressor(activation=activation, n_basis=8, **SMALL, **parameters).fit(X, y)


def with_members(model, change):
    """The model with other members, each as `change` makes it."""
    model = copy.copy(model)
    model.members_ = [change(member) for member in model.members_]
    return model


def with_activation(model, name, rng):
    """The model with another activation, as if it had been learned, and scores of order one."""
    basis = get_basis(name, 9)

    def other(member):
        sigma = Activation(basis, rng.standard_normal(9) if basis.learnable else None)
        layer = replace(member.layer, activation=sigma)
        return replace(member, layer=layer, intercept=np.zeros_like(member.intercept))

    model = with_members(model, other)
    size = np.abs(model.decision_function(data()[0])).max() / 3
    return with_members(model, lambda member: replace(member, coef=member.coef / size))


@cache
def classifier(kind="integers", **parameters):
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
    return RFLAFClassifier(n_basis=8, **SMALL, **parameters).fit(X, classes[level])
