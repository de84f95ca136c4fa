"""The estimators of this package as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.activation import Activation
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.fitting import Member
from rflaf.fitting.outside import FARTHEST
from rflaf.inputs.forms import Form, Standardised
from rflaf.onnx.activations import add_activation
from rflaf.onnx.graph import Graph
from rflaf.onnx.table_inputs import add_means

Array = NDArray[Any]


def add_features(
    graph: Graph, form: Form, components: Array, activation: Activation, x: str
) -> str:
    """sigma(X W) from float64 inputs that are finite, n × M."""
    inputs, order = form.export(graph, x)  # rows of W in this order spare a permutation
    w = components[order].astype(graph.dtype)
    z = graph.add("MatMul", graph.cast(inputs, graph.dtype), w)
    return add_activation(graph, activation, z)


def add_random_features(graph: Graph, model: RandomFeatures, x: str) -> str:
    """What `transform` gives, n × M."""
    form = Standardised(model.mean_, model.scale_)
    x = _made_finite(graph, x, len(form.mean))
    return add_features(graph, form, model.components_, model.activation_, x)


def add_scores(graph: Graph, model: Any, x: str) -> str:
    """The model's scores, n × C, in float64: those of members, taken on beyond their ends."""
    outside, width = model.outside_, _width(model)
    x = _made_finite(graph, x, width)
    low, high = outside.ends
    inner = graph.add("Min", graph.add("Max", x, low), high)
    scores = _add_mixed(graph, model.members_, inner, width)
    above, below = (graph.add("Sub", *pair) for pair in ((x, inner), (inner, x)))
    beyond = [
        graph.add(
            "Min", graph.add("Relu", graph.add("Div", each, outside.unit)), np.float64(FARTHEST)
        )
        for each in (below, above)
    ]
    lines = [graph.add("MatMul", each, slopes) for each, slopes in zip(beyond, outside.slopes)]
    taken_on = graph.add("Add", scores, graph.add("Add", *lines))
    taken_on = graph.add("Min", graph.add("Max", taken_on, outside.bounds[0]), outside.bounds[1])
    far = graph.add("ReduceSum", graph.add("Add", *beyond), np.array([1]), keepdims=1)
    return graph.add("Where", graph.add("Greater", far, np.float64(0)), taken_on, scores)


def _add_mixed(graph: Graph, members: list[Member], x: str, width: int) -> str:
    """The weighted mean of the members' Phi V + intercept, n × C, in float64; x is n × width."""
    intercept = np.sum([member.weight * member.intercept for member in members], axis=0)
    total = graph.add("Add", graph.refused(), intercept)
    for member in members:
        layer = member.layer
        given = x if layer.means is None else add_means(graph, layer.means, x, width)
        phi = add_features(graph, layer.form, layer.components, layer.activation, given)
        scores = _add_readout(graph, phi, member.weight * member.coef)
        total = graph.add("Add", total, scores)
    return total


def _add_readout(graph: Graph, phi: str, coef: Array) -> str:
    """Phi V, in float64."""
    if graph.dtype == np.float64:  # no factor behind the product: onnxruntime rounds it to float32
        return graph.add("MatMul", phi, coef)
    # weights of at most 1, as in Member.scores: float32 need not hold the target's units
    largest = np.abs(coef).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    scores = graph.add("MatMul", phi, (coef / unit).astype(graph.dtype))
    return graph.add("Mul", graph.cast(scores, np.float64), unit)


def _made_finite(graph: Graph, x: str, width: int) -> str:
    """Inputs with zeros in place of what is not finite; such rows are refused.

    They go on, because no cell of a table could be found for NaN.
    """
    zero = graph.add("Mul", x, np.float64(0))
    graph.refuse(graph.add("ReduceSum", zero, np.array([1]), keepdims=1))
    return graph.add("Where", graph.add("IsNaN", zero), np.zeros(width), x)


def _width(model: Any) -> int:
    """The number of columns that the members take."""
    encoder = model.encoder_
    return int(model.n_features_in_ if encoder is None else len(encoder.origin_))


def output_features(graph: Graph, model: RandomFeatures, x: str) -> None:
    """The output "features"."""
    phi = add_random_features(graph, model, x)
    phi = graph.add("Add", phi, graph.cast(graph.refused(), graph.dtype))
    graph.output("features", phi, graph.dtype, "n", model.components_.shape[1])


def output_prediction(graph: Graph, model: RFLAFRegressor, x: str) -> None:
    """The output "prediction", of `predict`'s shape."""
    scores = add_scores(graph, model, x)
    scores = graph.cast(model.loss_.export(graph, scores), graph.dtype)
    if model.output_weights_.ndim == 1:
        scores = graph.add("Squeeze", scores, np.array([1]))
        graph.output("prediction", scores, graph.dtype, "n")
    else:
        graph.output("prediction", scores, graph.dtype, "n", model.output_weights_.shape[1])


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
