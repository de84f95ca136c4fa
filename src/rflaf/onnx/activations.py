"""sigma(z) in standard operators, without an n × M × N tensor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rflaf.activation import Activation
from rflaf.arrays import Array
from rflaf.bases import Fixed, Polynomial
from rflaf.fused import Table
from rflaf.onnx.graph import Graph


def add_activation(graph: Graph, activation: Activation, z: str) -> str:
    """sigma(z) as the compiled activation gives it; z is finite, or the formula allows infinity."""
    basis, sigma = activation.basis, activation.table()
    if isinstance(sigma, Table):
        return _add_table(graph, sigma, z)
    if isinstance(basis, Polynomial):
        return _add_polynomial(graph, activation.coefficients, z)
    if isinstance(basis, Fixed) and basis.name in FORMULAS:
        moved = graph.add("Add", z, graph.dtype.type(basis.phase)) if basis.phase else z
        value = FORMULAS[basis.name](graph, moved)
        factor = graph.dtype.type(activation.coefficients[0])
        return value if factor == 1 else graph.add("Mul", value, factor)
    raise ValueError(
        f"An activation in {basis!r} cannot be exported: it has no table (its tail is 'direct'), "
        "and its formula is not known here. Fit a basis such as 'rbf' to it."
    )


def _add_table(graph: Graph, table: Table, z: str) -> str:
    """The cubic of the cell that z lies in.

    Its place there is z minus the cell's lower end, as rounded to the graph's precision. This
    difference of two close numbers is exact; that of two positions would not be. The cubics are
    shifted by the rounding errors of the ends.
    """
    real, layout = graph.dtype.type, table.layout
    exact = layout.low + layout.cell * np.arange(layout.n_cells + 1)
    ends = exact.astype(graph.dtype)
    cubics = _shifted(table.cells, (ends.astype(np.float64) - exact) / layout.cell)
    inverse = real(1 / layout.cell)

    inside = graph.add("Clip", z, ends[0], ends[-1])
    position = graph.add("Mul", graph.add("Sub", inside, ends[0]), inverse)
    cell = graph.cast(position, np.int32)
    t = graph.add("Mul", graph.add("Sub", inside, graph.add("Gather", ends, cell)), inverse)
    value = ""
    for k in (3, 2, 1, 0):
        coefficient = graph.add("Gather", cubics[:, k].astype(graph.dtype), cell)
        value = graph.add("Add", graph.add("Mul", value, t), coefficient) if value else coefficient
    slopes = table.frame[6:8]
    if not slopes.any():
        return value
    beyond = graph.add("Sub", z, inside)
    for side, slope in zip(("Min", "Max"), slopes, strict=True):
        distance = graph.add(side, beyond, real(0))
        value = graph.add("Add", value, graph.add("Mul", distance, real(slope)))
    return value


def _shifted(cells: Array, by: Array) -> Array:
    """The cubics in s, where t = s + by."""
    c0, c1, c2, c3 = cells.T
    value, slope = c0 + by * (c1 + by * (c2 + by * c3)), c1 + by * (2 * c2 + 3 * by * c3)
    return np.stack([value, slope, c2 + 3 * by * c3, c3], axis=1)


def _add_polynomial(graph: Graph, coefficients: Array, z: str) -> str:
    a = np.trim_zeros(coefficients, "b").astype(graph.dtype)
    a = np.pad(a, (0, max(0, 2 - a.size)))  # a constant, too, needs the shape of z
    value = graph.add("Mul", z, a[-1])
    for c in a[-2:0:-1]:
        value = graph.add("Mul", graph.add("Add", value, c), z)
    return graph.add("Add", value, a[0])


def _silu(graph: Graph, z: str) -> str:
    # not z times Sigmoid, which stays above 0 in some runtimes: a large -z would magnify that
    one = graph.dtype.type(1)
    return graph.add("Div", z, graph.add("Add", graph.add("Exp", graph.add("Neg", z)), one))


def _gelu(graph: Graph, z: str) -> str:
    real = graph.dtype.type
    scaled = graph.add("Mul", z, real(np.sqrt(0.5)))
    # onnxruntime has Erf in float32 only
    error = graph.cast(graph.add("Erf", graph.cast(scaled, np.float32)), graph.dtype)
    return graph.add("Mul", graph.add("Mul", z, real(0.5)), graph.add("Add", error, real(1)))


def _softplus(graph: Graph, z: str) -> str:
    if graph.dtype == np.float32:
        return graph.add("Softplus", z)  # onnxruntime has it, and Elu, in float32 only
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    rest = graph.add("Log", graph.add("Add", small, graph.dtype.type(1)))
    return graph.add("Add", graph.add("Relu", z), rest)


def _elu(graph: Graph, z: str) -> str:
    if graph.dtype == np.float32:
        return graph.add("Elu", z)
    negative = graph.add("Exp", graph.add("Min", z, graph.dtype.type(0)))
    return graph.add("Add", graph.add("Relu", z), graph.add("Sub", negative, graph.dtype.type(1)))


def _gaussian(graph: Graph, z: str) -> str:
    half = graph.add("Mul", z, graph.dtype.type(-0.5))
    return graph.add("Exp", graph.add("Mul", half, z))


# one for each of rflaf.bases.FIXED_ACTIVATIONS
FORMULAS: dict[str, Callable[[Graph, str], str]] = {
    "relu": lambda graph, z: graph.add("Relu", z),
    "cos": lambda graph, z: graph.add("Cos", z),
    "tanh": lambda graph, z: graph.add("Tanh", z),
    "sigmoid": lambda graph, z: graph.add("Sigmoid", z),
    "silu": _silu,
    "gelu": _gelu,
    "softplus": _softplus,
    "elu": _elu,
    "gaussian": _gaussian,
}
