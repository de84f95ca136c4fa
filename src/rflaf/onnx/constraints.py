"""Monotone constraints as part of a graph: see `rflaf.fitting.monotone`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fitting.monotone import Axis, Monotone
from rflaf.inputs.forms.ranked import RankCurves
from rflaf.onnx.graph import Graph

Array = NDArray[Any]


def add_monotone(
    graph: Graph, monotone: Monotone, scored: Callable[[str], str], x: str, width: int, outputs: int
) -> str:
    """Monotone scores, n × C, of inputs n × width; `scored` adds the members' scores of inputs."""
    axes, shape = monotone.axes, monotone.shape
    columns, points = [axis.column for axis in axes], monotone.lattice()
    kept, knots = np.ones(width), np.zeros((len(points), width))
    kept[columns], knots[:, columns] = 0, points
    each = graph.add("Mul", graph.add("Unsqueeze", x, np.array([1])), kept)
    scores = scored(graph.add("Reshape", graph.add("Add", each, knots), np.array([-1, width])))
    rest = [prod(shape[number + 1 :]) * outputs for number in range(len(axes))]
    for axis, after in zip(axes, rest):
        lines = graph.add("Reshape", scores, np.array([-1, len(axis.knots), after]))
        scores = _add_isotonic(graph, lines, axis)
    values, heights = ([getattr(axis, name) for axis in axes] for name in ("places", "heights"))
    ends = np.cumsum([len(each) for each in values])
    curves = RankCurves(np.array(columns), np.concatenate(values), np.concatenate(heights), ends)
    at = curves.export(graph, x, width)
    for k, (axis, after) in enumerate(zip(axes, rest)):
        lines = graph.add("Reshape", scores, np.array([-1, len(axis.knots), after]))
        parts = _add_parts(graph, graph.columns(at, [k]), axis)
        near = graph.add("Mul", lines, graph.add("Unsqueeze", parts, np.array([2])))
        scores = graph.add("ReduceSum", near, np.array([1]), keepdims=0)
    return scores


def _add_isotonic(graph: Graph, lines: str, axis: Axis) -> str:
    """`isotonic` along the second axis of three."""
    count, sign = len(axis.knots), np.float64(axis.sign)
    lines = graph.add("Mul", lines, sign)
    best: list[Any] = [None] * count
    for a in range(count):
        mean = np.tril(np.tile(axis.weights, (count, 1)) * (np.arange(count) >= a))[a:]
        means = graph.add("MatMul", mean / mean.sum(axis=1, keepdims=True), lines)
        least = None
        for i in reversed(range(a, count)):
            one = graph.columns(means, [i - a])
            least = one if least is None else graph.add("Min", least, one)
            best[i] = least if best[i] is None else graph.add("Max", best[i], least)
    return graph.add("Mul", graph.add("Concat", *best, axis=1), sign)


def _add_parts(graph: Graph, height: str, axis: Axis) -> str:
    """The part of each knot in a row's score, n × G, by the height of the row's value, n × 1."""
    at = np.interp(axis.knots, axis.places, axis.heights)
    way = graph.add("Div", graph.add("Sub", height, at[:-1]), np.diff(at))
    way = graph.add("Min", graph.add("Max", way, np.float64(0)), np.float64(1))
    zero = graph.add("Mul", height, np.float64(0))
    reached = graph.add("Concat", graph.add("Add", zero, np.float64(1)), way, axis=1)
    return graph.add("Sub", reached, graph.add("Concat", way, zero, axis=1))
