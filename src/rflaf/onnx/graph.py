"""A graph under construction."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from rflaf.arrays import Array
from rflaf.graphs import Operators

Dimension = str | int

# Old enough for every runtime of recent years; nothing below needs a later one.
OPSET = 17
IR_VERSION = 8
ML_DOMAIN = "ai.onnx.ml"  # has the operator that reads strings
ML_OPSET = 3


class Graph(Operators):
    """Nodes and constants.

    The input, the outputs, and the work on the n × M features are in `dtype`, float32 or float64.
    Arrays of n × d or n × C cost little, and are always float64.
    """

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []

    def _node(self, operator: str, names: list[str], attributes: dict[str, Any]) -> str:
        output = f"/{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def cast(self, x: str, dtype: Any) -> str:
        return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def input(self, name: str, dtype: Any, *shape: Dimension) -> str:
        """An input: numbers, or strings if the type is that of objects."""
        self._inputs.append(_describe(name, dtype, shape))
        return name

    def output(self, name: str, x: str, dtype: Any, *shape: Dimension) -> None:
        """Give `x` out under a name of its own."""
        self._nodes.append(helper.make_node("Identity", [x], [name]))
        self._outputs.append(_describe(name, dtype, shape))

    def model(self, producer: str, version: str) -> ModelProto:
        self._check_names()
        ends = self._inputs, self._outputs
        graph = helper.make_graph(self._nodes, producer, *ends, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        if any(node.domain == ML_DOMAIN for node in self._nodes):
            opsets.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))
        return helper.make_model(
            graph,
            producer_name=producer,
            producer_version=version,
            opset_imports=opsets,
            ir_version=IR_VERSION,
        )

    def _check_names(self) -> None:
        """Inputs are called as columns are; graphs are more particular about names."""
        taken = {output.name for output in self._outputs}
        for given in self._inputs:
            if given.name == "" or given.name in taken:
                raise ValueError(
                    f"The column name {given.name!r} cannot be an input of a graph. Expected names "
                    "that are not empty, all different, and other than those of the outputs."
                )
            taken.add(given.name)

    def _constant(self, values: Array | np.generic) -> str:
        tensor = numpy_helper.from_array(np.asarray(values))
        key = hashlib.sha256(tensor.SerializeToString(deterministic=True)).digest()
        if key not in self._known:
            self._known[key] = tensor.name = f"/constant_{len(self._constants)}"
            self._constants.append(tensor)
        return self._known[key]


def _describe(name: str, dtype: Any, shape: tuple[Dimension, ...]) -> ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))  # of objects: strings
    return helper.make_tensor_value_info(name, kind, shape)
