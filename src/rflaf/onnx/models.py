"""The estimators of this package as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.activation import Activation
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.fitting import Member
from rflaf.inputs.forms import Standardised
from rflaf.onnx.activations import add_activation
from rflaf.onnx.graph import Graph

Array = NDArray[Any]


def _add_features(
    graph: Graph, inputs: str, order: Array, components: Array, activation: Activation
) -> str:
    """sigma(X W) from inputs in their form, n × M; rows of W in their order spare a permutation."""
    w = components[order].astype(graph.dtype)
    z = graph.add("MatMul", graph.cast(inputs, graph.dtype), w)
    return add_activation(graph, activation, z)


def add_random_features(graph: Graph, model: RandomFeatures, x: str) -> str:
    """What `transform` gives, n × M."""
    form = Standardised(model.mean_, model.scale_)
    inputs, order = form.export(graph, graph.finite(x, len(form.mean)))
    return _add_features(graph, inputs, order, model.components_, model.activation_)


def add_scores(graph: Graph, model: Any, x: str) -> str:
    """The model's scores, n × C, in float64."""

    def readout(member: Member, inputs: str, order: Array) -> str:
        phi = _add_features(graph, inputs, order, member.layer.components, member.layer.activation)
        return _add_readout(graph, phi, member.weight * member.coef)

    encoder = model.encoder_
    width = model.n_features_in_ if encoder is None else len(encoder.origin_)
    return str(model.outside_.export(graph, model.members_, x, width, readout))


def _add_readout(graph: Graph, phi: str, coef: Array) -> str:
    """Phi V, in float64."""
    if graph.dtype == np.float64:  # no factor behind the product: onnxruntime rounds it to float32
        return graph.add("MatMul", phi, coef)
    # weights of at most 1, as in Member.scores: float32 need not hold the target's units
    largest = np.abs(coef).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    scores = graph.add("MatMul", phi, (coef / unit).astype(graph.dtype))
    return graph.add("Mul", graph.cast(scores, np.float64), unit)


def output_features(graph: Graph, model: RandomFeatures, x: str) -> None:
    """The output "features"."""
    phi = add_random_features(graph, model, x)
    phi = graph.add("Add", phi, graph.cast(graph.refused(), graph.dtype))
    graph.output("features", phi, graph.dtype, "n", model.components_.shape[1])


def output_prediction(graph: Graph, model: RFLAFRegressor, x: str) -> None:
    """The output "prediction", of `predict`'s shape."""
    scores = add_scores(graph, model, x)
    scores = graph.cast(model.loss_.export(graph, scores), graph.dtype)
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
    else:
        chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
    classes = _class_values(model.classes_)
    graph.output("label", graph.add("Gather", classes, chosen), classes.dtype, "n")
    least = np.float64(np.finfo(graph.dtype).tiny)  # as in predict_proba
    p = graph.cast(graph.add("Max", model.loss_.export(graph, scores), least), graph.dtype)
    graph.output("probabilities", p, graph.dtype, "n", len(classes))


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
