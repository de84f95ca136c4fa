"""The estimators of this package as parts of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.fitting import Member
from rflaf.inputs.forms import Standardised
from rflaf.onnx.activations import add_activation
from rflaf.onnx.graph import Graph

Outputs = Sequence[str | float]


def _add_features(
    graph: Graph, inputs: str, order: Array, components: Array, activation: Activation
) -> str:
    """sigma(X W) from inputs in their form, n × M; rows of W in their order spare a permutation."""
    w = components[order].astype(graph.dtype)
    z = graph.add("MatMul", graph.cast(inputs, graph.dtype), w)
    return add_activation(graph, activation, z)


def add_random_features(graph: Graph, model: RandomFeatures, x: str) -> str:
    """The features that `transform` returns, n × M."""
    form = Standardised(model.mean_, model.scale_)
    inputs, order = form.export(graph, graph.finite(x, len(form.mean)))
    return _add_features(graph, inputs, order, model.components_, model.activation_)


def add_scores(graph: Graph, model: Any, x: str) -> str:
    """The model's scores, n × C, in float64."""
    return str(model.outside_.export(graph, model.members_, x, _width(model), _readout(graph)))


def _readout(graph: Graph) -> Callable[..., str]:
    """A function that adds a member's part of the scores to the graph."""

    def readout(member: Member, inputs: str, order: Array) -> str:
        phi = _add_features(graph, inputs, order, member.layer.components, member.layer.activation)
        scores = _add_readout(graph, phi, member.weight * member.coef)
        for local in member.local:
            columns, layer = local.columns.ravel(), member.layer
            w = member.directions[order][:, columns].astype(graph.dtype)
            z = graph.add("MatMul", graph.cast(inputs, graph.dtype), w)
            own = local.times(np.full(len(local.unit), member.weight))
            more = own.export(graph, z, add_activation(graph, layer.activation, z), graph.dtype)
            scores = graph.add("Add", scores, more)
        return scores

    return readout


def _add_std(graph: Graph, model: RFLAFRegressor, x: str) -> str:
    """The standard deviation of a new observation, n × C: `RFLAFRegressor.predict_std`."""
    outside, readout = model.outside_, _readout(graph)
    x = graph.finite(x, _width(model))
    near = graph.add("Min", graph.add("Max", x, outside.seen[0]), outside.seen[1])
    std = model.spread_.export(graph, near, readout)
    doubt = outside.export_doubt(graph, model.members_, x, near, readout)
    return graph.add("Sqrt", graph.add("Add", graph.add("Mul", std, std), doubt))


def _add_readout(graph: Graph, phi: str, coef: Array) -> str:
    """Phi V, in float64."""
    if graph.dtype == np.float64:  # no factor behind the product: onnxruntime rounds it to float32
        return graph.add("MatMul", phi, coef)
    # weights of at most 1, as in Member.scores: float32 need not hold the target's units
    largest = np.abs(coef).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    scores = graph.add("MatMul", phi, (coef / unit).astype(graph.dtype))
    return graph.add("Mul", graph.cast(scores, np.float64), unit)


def _width(model: Any) -> int:
    """The number of columns that the members take."""
    encoder = model.encoder_
    return int(model.n_features_in_ if encoder is None else len(encoder.origin_))


def output_features(graph: Graph, model: RandomFeatures, x: str, outputs: Outputs) -> None:
    phi = add_random_features(graph, model, x)
    phi = graph.add("Add", phi, graph.cast(graph.refused(), graph.dtype))
    graph.output("features", phi, graph.dtype, "n", model.components_.shape[1])


def output_prediction(graph: Graph, model: RFLAFRegressor, x: str, outputs: Outputs) -> None:
    """The outputs "prediction", "std" and "quantiles", of the shapes that the model gives."""
    scores = add_scores(graph, model, x)
    prediction = model.loss_.export(graph, scores)
    count = model.output_weights_.shape[1] if model.output_weights_.ndim == 2 else 1
    levels = [each for each in outputs if not isinstance(each, str)]
    made = {"prediction": prediction}
    if "std" in outputs or levels:
        _check_outputs(model, levels)
        made["std"] = _add_std(graph, model, x)
    for name in made:
        if name in outputs:
            found = graph.cast(made[name], graph.dtype)
            if model.loss_.single:
                found = graph.add("Squeeze", found, np.array([1]))
            graph.output(name, found, graph.dtype, "n", *([] if model.loss_.single else [count]))
    if levels:
        shape = model.spread_.shapes[0]
        errors = shape.quantile(np.array(levels)) / (shape.std if shape.std > 0 else 1.0)
        quantiles = graph.add("Add", prediction, graph.add("MatMul", made["std"], errors[None]))
        graph.output("quantiles", graph.cast(quantiles, graph.dtype), graph.dtype, "n", len(levels))


def _check_outputs(model: RFLAFRegressor, levels: list[Any]) -> None:
    loss = model.loss_
    if model.spread_ is None or loss.error_scale(np.ones((1, 1))) is not None:
        raise ValueError(
            "The outputs 'std' and quantiles need a loss that learns a distribution of errors. Got "
            f"loss={loss.name!r}, whose graphs only have 'prediction'."
        )
    if levels and model.output_weights_.ndim == 2 and model.output_weights_.shape[1] > 1:
        raise ValueError(f"Quantiles in 'outputs' need one target. The model has {loss.outputs}.")


def output_classes(graph: Graph, model: RFLAFClassifier, x: str, outputs: Outputs) -> None:
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
