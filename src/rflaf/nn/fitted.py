"""From a fitted estimator to a module: the graph that `rflaf.onnx` would write, for PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from rflaf.arrays import Array
from rflaf.bases import Fixed
from rflaf.graphs import Operators
from rflaf.nn.learnable import LearnableActivation
from rflaf.nn.networks import FixedActivation, TwoLayerNetwork, seeded


class FittedModule(nn.Module):
    """A fitted estimator as a module: see `RFLAFRegressor.to_torch`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.steps = _steps_of(model)
        self.n_inputs = _width_of(model)

    def forward(self, x: Tensor) -> Tensor:
        """Predictions as by `predict`; for classifiers as by `predict_proba`."""
        return self._run(x)[1].to(x.dtype)

    def scores(self, x: Tensor) -> Tensor:
        """Scores, n × C: log-odds for two classes, logits for more.

        For regressors with a log link, the logarithm of the prediction; else the prediction.
        """
        return self._run(x)[0].to(x.dtype)

    def _run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.ndim != 2 or x.shape[1] != self.n_inputs:  # one column would be broadcast to all
            raise ValueError(f"'x' must be n × {self.n_inputs}. Got shape {tuple(x.shape)}.")
        scores, result = self.steps(x)
        return scores, result

    def _apply(self, fn: Any, recurse: bool = True) -> FittedModule:
        """`to`, `float`, `cuda` …: what can be trained changes its precision, constants do not.

        In float32 values could change sides at an edge of bins, or at a cut of local models.
        """
        before = {name: tensor.data for name, tensor in self._constants()}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # PyTorch gives none
        for name, tensor in self._constants():
            if tensor.dtype != before[name].dtype:
                tensor.data = before[name].to(tensor.device)
        return self

    def _constants(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in itertools.chain(
            self.steps.named_buffers(), self.steps.named_parameters()
        ):
            if not name.startswith("member_") or name.endswith(".unit"):
                yield name, tensor


class MemberNetwork(TwoLayerNetwork):
    """A member's sigma(X W) V, in float64, for inputs in its form.

    V and `bias`, which starts at 0, are in units of the largest output weight, so that one learning
    rate suits targets of any unit. W asks for no gradient until `requires_grad_` says so.
    """

    frozen = False

    def __init__(self, member: Any, order: Array) -> None:
        layer = member.layer
        W = torch.from_numpy(layer.components[order])
        sigma, factor = layer.activation, 1.0  # features are this times the module's
        if isinstance(sigma.basis, Fixed):
            factor = float(sigma.coefficients[0])
            activation: nn.Module = FixedActivation(sigma.basis.name, sigma.basis.phase)
        else:
            activation = LearnableActivation.from_activation(sigma, dtype=W.dtype)
        coef = member.weight * factor * member.coef
        d, m = W.shape
        super().__init__(d, m, coef.shape[1], activation, seeded(0), W.dtype)
        largest = np.abs(coef).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        self.W = nn.Parameter(W, requires_grad=False)
        self.V = nn.Parameter(torch.from_numpy(coef / unit).to(W.dtype))
        self.bias = nn.Parameter(torch.zeros(len(unit), dtype=W.dtype))
        self.factor = factor
        self.register_buffer("unit", torch.from_numpy(unit))
        self.unit: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Scores without the intercept, n × C."""
        return (super().forward(x.to(self.W.dtype)) + self.bias) * self.unit


class _Tape(Operators):
    """Operators of ONNX as a graph of `torch.fx`."""

    def __init__(self) -> None:
        super().__init__()
        self.root = nn.Module()
        self.graph = fx.Graph()
        self.nodes: dict[str, fx.Node] = {}
        self._constants: dict[str, Array] = {}

    def named(self, node: fx.Node) -> str:
        self.nodes[node.name] = node
        return node.name

    def call(self, name: str, module: nn.Module, x: str) -> str:
        self.root.add_module(name, module)
        return self.named(self.graph.call_module(name, (self.nodes[x],)))

    def cast(self, x: str, dtype: Any) -> str:
        return self.add("Cast", x, to=torch.from_numpy(np.empty(0, dtype)).dtype)

    def _node(self, operator: str, names: list[str], attributes: dict[str, Any]) -> str:
        if operator not in _OPERATORS:
            raise ValueError(
                f"to_torch does not know the operator {operator!r}. Expected one of: "
                f"{', '.join(_OPERATORS)}. A custom form or loss uses it in 'export'."
            )
        given = [
            # axes and shapes are plain numbers in PyTorch
            self._constants[name].tolist() if k and operator in _BY_AXES else self.nodes[name]
            for k, name in enumerate(names)
        ]
        return self.named(self.graph.call_function(_OPERATORS[operator], (*given,), attributes))

    def _constant(self, values: Array | np.generic) -> str:
        array = np.asarray(values)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            name = f"constant_{len(self._constants)}"
            self.root.register_buffer(name, torch.from_numpy(array.copy()))
            self._known[key] = self.named(self.graph.get_attr(name))
            self._constants[self._known[key]] = array
        return self._known[key]


def _width_of(model: Any) -> int:
    """Columns of the module's input: the model's, or those that its encoder makes of a frame."""
    encoder = model.encoder_
    if encoder is None or encoder.is_numeric:
        return int(model.n_features_in_)
    return len(encoder.origin_)


def _steps_of(model: Any) -> fx.GraphModule:
    """From rows to scores and predictions."""
    tape, encoder = _Tape(), model.encoder_
    x = tape.cast(tape.named(tape.graph.placeholder("x")), np.float64)
    width = model.n_features_in_ if encoder is None else len(encoder.origin_)
    if encoder is not None and encoder.is_numeric:
        x = encoder.export(tape, x)
    count = itertools.count()

    def readout(member: Any, inputs: str, order: Array) -> str:
        number = next(count)
        network = MemberNetwork(member, order)
        scores = tape.call(f"member_{number}", network, inputs)
        for k, local in enumerate(member.local):
            w = member.directions[order][:, local.columns.ravel()]
            z = tape.add("MatMul", tape.cast(inputs, w.dtype), w)
            frozen = deepcopy(network.activation).requires_grad_(False)
            phi = tape.call(f"features_{number}_{k}", frozen, z)
            if network.factor != 1:
                phi = tape.add("Mul", phi, np.asarray(network.factor, w.dtype))
            factor = np.full(len(local.unit), member.weight)
            scores = tape.add("Add", scores, local.times(factor).export(tape, z, phi, w.dtype))
        return scores

    scores = model.outside_.export(tape, model.members_, x, width, readout)
    result = model.loss_.export(tape, scores)
    if model.output_weights_.ndim == 1:
        result = tape.add("Squeeze", result, np.array([1]))
    tape.graph.output((tape.nodes[scores], tape.nodes[result]))
    return fx.GraphModule(tape.root, tape.graph, "Steps")


def _max(x: Tensor, y: Tensor) -> Tensor:
    return torch.clamp(x, min=y)  # where both are equal the slope is x's, not half of it


def _min(x: Tensor, y: Tensor) -> Tensor:
    return torch.clamp(x, max=y)


def _clip(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    # its slope ends at `high`: of two bins, the one that begins at a value has that value's slope
    return torch.where(x < high, torch.clamp(x, min=low), high)


def _cast(x: Tensor, to: torch.dtype) -> Tensor:
    return x.to(to)


def _concat(*parts: Tensor, axis: int) -> Tensor:
    return torch.cat(parts, axis)


def _gather(x: Tensor, at: Tensor, axis: int = 0) -> Tensor:
    return x[at] if axis == 0 else x.index_select(axis, at)


def _sum(x: Tensor, axes: list[int], keepdims: int) -> Tensor:
    return x.sum(axes, keepdim=bool(keepdims))


def _transpose(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    return x.permute(perm)


def _unsqueeze(x: Tensor, axes: list[int]) -> Tensor:
    return x.unsqueeze(axes[0])


_BY_AXES = ("ReduceSum", "Reshape", "Squeeze", "Unsqueeze")  # or by shapes
_OPERATORS: dict[str, Any] = {
    "Abs": torch.abs,
    "Add": torch.add,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "Div": torch.div,
    "Exp": torch.exp,
    "Gather": _gather,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "IsInf": torch.isinf,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "MatMul": torch.matmul,
    "Max": _max,
    "Min": _min,
    "Mul": torch.mul,
    "ReduceSum": _sum,
    "Relu": torch.relu,
    "Reshape": torch.reshape,
    "Sign": torch.sign,
    "Softmax": torch.softmax,
    "Squeeze": torch.squeeze,
    "Sub": torch.sub,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": torch.where,
}
