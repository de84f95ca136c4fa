"""The estimators of this package as parts of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import rules
from rflaf.activation import Activation
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.fitting import Member
from rflaf.fitting.outside import FARTHEST, HAND_OVER
from rflaf.inputs.forms import Form, Standardised
from rflaf.onnx.activations import add_activation
from rflaf.onnx.graph import Graph
from rflaf.onnx.table_inputs import add_means

Array = NDArray[Any]
Outputs = Sequence[str | float]


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
        total = graph.add("Add", total, _add_member(graph, member, x, width, member.weight))
    return total


def _add_member(graph: Graph, member: Member, x: str, width: int, weight: float) -> str:
    """A member's Phi V, times a weight."""
    layer = member.layer
    given = x if layer.means is None else add_means(graph, layer.means, x, width)
    phi = add_features(graph, layer.form, layer.components, layer.activation, given)
    return _add_readout(graph, phi, weight * member.coef)


def _add_std(graph: Graph, model: RFLAFRegressor, x: str) -> str:
    """The standard deviation of a new observation, n × C: `RFLAFRegressor.predict_std`."""
    spread, width = model.spread_, _width(model)
    x = _made_finite(graph, x, width)
    near = graph.add("Min", graph.add("Max", x, model.outside_.seen[0]), model.outside_.seen[1])
    unit = np.array([shape.std for shape in spread.shapes])
    scales = [_add_scale(graph, members, near, width) for members in spread.scales]
    scale = graph.add("Concat", *scales, axis=1)
    variance = graph.add("Mul", graph.add("Mul", scale, scale), unit**2)
    doubt = _add_doubt(graph, model, x, near, width)
    return graph.add("Sqrt", graph.add("Add", variance, doubt))


def _add_scale(graph: Graph, members: list[Member], near: str, width: int) -> str:
    """The scale of errors, n × 1."""
    far = np.log(rules.SCALE_RANGE)
    if not members:
        return graph.add("Add", graph.refused(), np.ones(1))
    half = graph.add("Mul", _add_mixed(graph, members, near, width), np.float64(0.5))
    return graph.add("Exp", graph.add("Min", graph.add("Max", half, -far), far))


def _add_doubt(graph: Graph, model: RFLAFRegressor, x: str, near: str, width: int) -> str:
    """The variance that comes on top beyond the rows of the fit, n × C: `Outside.doubt`."""
    outside, members = model.outside_, model.members_
    inner = graph.add("Min", graph.add("Max", x, outside.ends[0]), outside.ends[1])
    each = [
        graph.add("Add", _add_member(graph, member, inner, width, 1.0), member.intercept)
        for member in members
    ]
    mean, square = graph.add("Add", graph.refused(), np.zeros(len(outside.usual))), None
    for member, scores in zip(members, each):
        mean = graph.add("Add", mean, graph.add("Mul", scores, np.float64(member.weight)))
    for member, scores in zip(members, each):
        apart = graph.add("Sub", scores, mean)
        part = graph.add("Mul", graph.add("Mul", apart, apart), np.float64(member.weight))
        square = part if square is None else graph.add("Add", square, part)
    assert square is not None
    more = graph.add("Relu", graph.add("Sub", square, outside.usual**2))
    apart = graph.add("Div", graph.add("Sub", x, near), outside.unit)
    above = graph.add("Min", graph.add("Relu", apart), np.float64(FARTHEST))
    below = graph.add("Min", graph.add("Relu", graph.add("Neg", apart)), np.float64(FARTHEST))
    distance = graph.add("ReduceMax", graph.add("Add", above, below), axes=(1,), keepdims=1)
    share = graph.add("Min", graph.add("Div", distance, np.float64(HAND_OVER)), np.float64(1))
    total = graph.add("Mul", graph.add("Mul", more, share), np.float64(rules.SPREAD_DOUBT))
    for side, doubts in zip((below, above), outside.doubts):
        total = graph.add(
            "Add", total, graph.add("MatMul", graph.add("Mul", side, side), doubts**2)
        )
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


def output_features(graph: Graph, model: RandomFeatures, x: str, outputs: Outputs) -> None:
    """The output "features"."""
    phi = add_random_features(graph, model, x)
    phi = graph.add("Add", phi, graph.cast(graph.refused(), graph.dtype))
    graph.output("features", phi, graph.dtype, "n", model.components_.shape[1])


def output_prediction(graph: Graph, model: RFLAFRegressor, x: str, outputs: Outputs) -> None:
    """The outputs "prediction", "std" and "quantiles", of the shapes that the model gives."""
    scores = add_scores(graph, model, x)
    prediction = model.loss_.export(graph, scores)
    count = model.coef_.shape[1] if model.coef_.ndim == 2 else 1
    levels = [each for each in outputs if not isinstance(each, str)]
    made = {"prediction": prediction}
    if "std" in outputs or levels:
        _check_outputs(model, levels)
        made["std"] = _add_std(graph, model, x)
    for name in made:
        if name in outputs:
            found = graph.cast(made[name], graph.dtype)
            if count == 1:
                found = graph.add("Squeeze", found, np.array([1]))
            graph.output(name, found, graph.dtype, "n", *([count] if count > 1 else []))
    if levels:
        shape = model.spread_.shapes[0]
        errors = shape.quantile(np.array(levels)) / (shape.std if shape.std > 0 else 1.0)
        quantiles = graph.add("Add", prediction, graph.add("MatMul", made["std"], errors[None]))
        graph.output("quantiles", graph.cast(quantiles, graph.dtype), graph.dtype, "n", len(levels))


def _check_outputs(model: RFLAFRegressor, levels: list[Any]) -> None:
    """Whether the model has what is asked for."""
    loss = model.loss_
    if model.spread_ is None or loss.error_scale(np.ones((1, 1))) is not None:
        raise ValueError(
            "The outputs 'std' and quantiles need a loss that learns a distribution of errors. Got "
            f"loss={loss.name!r}, whose graphs have 'prediction' alone."
        )
    if levels and model.coef_.ndim == 2:
        raise ValueError(f"Quantiles in 'outputs' need one target. Got a model of {loss.outputs}.")


def output_classes(graph: Graph, model: RFLAFClassifier, x: str, outputs: Outputs) -> None:
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
