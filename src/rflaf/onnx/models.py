"""The estimators of this package as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.fitting.scaling import FARTHEST
from rflaf.onnx.activations import add_activation
from rflaf.onnx.graph import Graph

Array = NDArray[Any]


def add_features(graph: Graph, model: Any, x: str) -> tuple[str, str]:
    """sigma(X W) from float64 inputs, n × M, and a column that is 0, or NaN for a row that is not
    finite.

    The inputs are standardised in float64, as the estimators do it. A row with NaN or infinity
    goes on as zeros, because no cell of a table could be found for it, and its result becomes NaN
    by the column.
    """
    scale = model.scale_
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    zero = graph.add("Mul", x, np.float64(0))
    bad = graph.add("ReduceSum", zero, np.array([1]), keepdims=1)
    x = graph.add("Mul", graph.add("Sub", x, model.mean_), inverse)
    x = graph.add("Clip", x, np.float64(-FARTHEST), np.float64(FARTHEST))
    x = graph.add("Where", graph.add("IsNaN", zero), np.float64(0), x)
    components = model.components_.astype(graph.dtype)
    z = graph.add("MatMul", graph.cast(x, graph.dtype), components)
    return add_activation(graph, model.activation_, z), bad


def add_random_features(graph: Graph, model: RandomFeatures, x: str) -> str:
    """What `transform` gives, n × M."""
    phi, bad = add_features(graph, model, x)
    return graph.add("Add", phi, graph.cast(bad, graph.dtype))


def add_scores(graph: Graph, model: Any, x: str) -> str:
    """Phi V + intercept, n × C, in float64."""
    phi, bad = add_features(graph, model, x)
    v, unit = model.scaled_coef()
    scores = graph.cast(graph.add("MatMul", phi, v.astype(graph.dtype)), np.float64)
    intercept = np.asarray(model.intercept_, np.float64)
    return graph.add("Add", graph.add("Add", graph.add("Mul", scores, unit), intercept), bad)


def output_features(graph: Graph, model: RandomFeatures, x: str) -> None:
    """The output "features"."""
    phi = add_random_features(graph, model, x)
    graph.output("features", phi, graph.dtype, "n", model.components_.shape[1])


def output_prediction(graph: Graph, model: RFLAFRegressor, x: str) -> None:
    """The output "prediction", of `predict`'s shape."""
    scores = graph.cast(add_scores(graph, model, x), graph.dtype)
    if model.coef_.ndim == 1:
        scores = graph.add("Squeeze", scores, np.array([1]))
        graph.output("prediction", scores, graph.dtype, "n")
    else:
        graph.output("prediction", scores, graph.dtype, "n", model.coef_.shape[1])


def output_classes(graph: Graph, model: RFLAFClassifier, x: str) -> None:
    """The outputs "label" and "probabilities"."""
    scores = add_scores(graph, model, x)
    if len(model.classes_) == 2:
        positive = graph.add("Greater", scores, np.float64(0))
        chosen = graph.add("Squeeze", graph.cast(positive, np.int64), np.array([1]))
        both = [_logistic(graph, graph.add("Neg", scores)), _logistic(graph, scores)]
        p = graph.add("Concat", *both, axis=1)
    else:
        chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
        p = graph.add("Softmax", scores, axis=1)
    p = graph.add("Max", p, np.float64(np.finfo(graph.dtype).tiny))  # as in predict_proba
    classes = _class_values(model.classes_)
    graph.output("label", graph.add("Gather", classes, chosen), classes.dtype, "n")
    p = graph.cast(p, graph.dtype)
    graph.output("probabilities", p, graph.dtype, "n", len(classes))


def _logistic(graph: Graph, x: str) -> str:
    """1 / (1 + exp(-x)), to the last digit also where it is small, unlike some Sigmoids."""
    one = np.float64(1)
    return graph.add("Div", one, graph.add("Add", graph.add("Exp", graph.add("Neg", x)), one))


def _class_values(classes: Array) -> Array:
    """The classes in a type that graphs have: bool, int64, float64 or strings."""
    if classes.dtype.kind in "iu" and np.array_equal(classes.astype(np.int64), classes):
        return classes.astype(np.int64)
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if all(isinstance(c, str) for c in classes.tolist()):
        return classes.astype(object)
    raise ValueError(
        "The classes of an exported classifier must be integers, floats, booleans or strings. "
        f"Got {classes!r}."
    )
