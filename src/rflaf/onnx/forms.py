"""The forms of the inputs as parts of a graph, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.fused import Bins
from rflaf.inputs.form import InputForm
from rflaf.inputs.scaling import FARTHEST
from rflaf.onnx.graph import Graph

Array = NDArray[Any]


def add_inputs(graph: Graph, form: InputForm, x: str) -> tuple[str, NDArray[np.intp]]:
    """Inputs as a layer takes them, and which of its inputs each column is.

    Ranks stand after all other columns. Rows of W in this order spare the graph a permutation.
    """
    d, ranked = len(form.mean), form.ranked
    if form.name == "bins" and form.bins is not None:
        plain = np.setdiff1d(np.arange(d), form.bins.column)
        cut = _add_bins(graph, form.bins, x)
        if len(plain):
            cut = graph.add("Concat", _add_standardised(graph, form, x, plain), cut, axis=1)
        return cut, np.arange(len(plain) + len(form.bins.column))
    if form.name in ("raw", "bins") or not len(ranked):
        return _add_standardised(graph, form, x, np.arange(d)), np.arange(d)
    if form.name == "both":
        plain, order = np.arange(d), np.arange(d + len(ranked))
    else:
        plain = np.setdiff1d(np.arange(d), ranked)
        order = np.concatenate([plain, ranked])
    ranks = _add_ranks(graph, form, x if len(ranked) == d else graph.columns(x, ranked))
    if not len(plain):
        return ranks, order
    return graph.add("Concat", _add_standardised(graph, form, x, plain), ranks, axis=1), order


def _add_standardised(graph: Graph, form: InputForm, x: str, at: NDArray[np.intp]) -> str:
    """Some of the columns; x is finite."""
    mean, scale = form.mean[at], form.scale[at]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    x = x if len(at) == len(form.mean) else graph.columns(x, at)
    x = graph.add("Mul", graph.add("Sub", x, mean), inverse)
    return graph.add("Clip", x, np.float64(-FARTHEST), np.float64(FARTHEST))


def _add_bins(graph: Graph, bins: Bins, x: str) -> str:
    """How far each value has come through each bin of its column, standardised."""
    x = graph.add("Div", graph.add("Sub", graph.columns(x, bins.column), bins.low), bins.width)
    x = graph.add("Clip", x, np.float64(0), np.float64(1))
    return graph.add("Div", graph.add("Sub", x, bins.mean), bins.scale)


def _add_ranks(graph: Graph, form: InputForm, x: str) -> str:
    """np.interp of each column, all of them at once: the cell by bisection, then its line."""
    cells = max(map(len, form.knots)) - 1
    steps = [1 << k for k in reversed(range((cells - 1).bit_length()))]
    width = 1 << len(steps)  # of a column's part of the tables; no cell is after its last
    ends = np.full((len(form.knots), width), np.inf)  # the lower ones
    levels, slopes = np.zeros(ends.shape), np.zeros(ends.shape)
    for k, (knots, level) in enumerate(zip(form.knots, form.levels, strict=True)):
        used = slice(len(knots) - 1)
        ends[k, used], levels[k, used] = knots[:-1], level[:-1]
        slopes[k, used] = np.diff(level) / np.diff(knots)

    x = graph.add("Max", x, ends[:, 0])
    x = graph.add("Min", x, np.array([knots[-1] for knots in form.knots]))
    at: Any = np.arange(len(ends), dtype=np.int32) * np.int32(width)
    for step in steps:
        next_at = graph.add("Add", at, np.int32(step))
        above = graph.add("GreaterOrEqual", x, graph.add("Gather", ends.ravel(), next_at))
        at = graph.add("Where", above, next_at, at)
    along = graph.add("Sub", x, graph.add("Gather", ends.ravel(), at))
    rise = graph.add("Mul", along, graph.add("Gather", slopes.ravel(), at))
    return graph.add("Add", rise, graph.add("Gather", levels.ravel(), at))
