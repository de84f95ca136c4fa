"""Local models: output weights for small parts of the rows, on top of those for all of them.

A partition cuts the rows in two at the median of a random feature's z, both halves again, and so on
down to parts of some dozens of rows. Near a cut both sides have a share, so that scores are smooth.
Each part has output weights of its own for a few of the layer's features, fitted to what the
member's scores leave. Several partitions are averaged. Rows that the member has not seen choose the
penalty and the part that this has in the scores, which may be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.fitting.layers import FittedLayer
from rflaf.solvers.features import Projector

Array = NDArray[Any]

_STEPS = 32  # along a line
_NARROWEST = 1e-3  # hand-over, of the range of the values in a node
_ROUNDING = 1e-5  # of the values' usual size: closer ones may be the same but for rounding


class Shares(NamedTuple):
    """Which parts rows belong to: numbers of rows and of parts, and the shares."""

    rows: Array
    parts: Array
    share: Array


@dataclass(frozen=True)
class Local:
    """Some partitions of one depth D, with output weights for their parts.

    Directions are numbers of features, and behind these of single columns, whose activation is a
    feature here alone. The first D are cut along: all rows first, then their two parts, and so on.
    Up to a width on either side of a cut, both parts have a share.
    """

    columns: NDArray[np.intp]  # the directions of each of the T partitions, T × m
    cuts: Array  # T × 2^D - 1
    widths: Array  # T × 2^D - 1
    coef: Array  # T × 2^D × C × m + 1, intercepts last, in units of `unit`
    unit: Array  # C

    @property
    def depth(self) -> int:
        """The number of cuts between a row and its part, D."""
        return self.coef.shape[1].bit_length() - 1

    def scores(self, layer: FittedLayer, z: Array) -> Array:
        """The mean over partitions, n × C, for the z of its own columns."""
        scores = fused.part_scores(self._models, layer.sigma, z)
        return scores * (self.unit / len(self.columns))

    def slopes(
        self, layer: FittedLayer, project: Projector, inputs: Any, start: Any = None
    ) -> Array:
        """The derivative of the scores in the layer's inputs, n × C × d'.

        `project` gives the z of its own columns. With a `start`, one row, it is the mean along the
        straight lines from there.
        """
        z, models = project(inputs), self._models
        if start is None:
            slopes = fused.part_slopes(models, layer.sigma, z)
        else:
            line = np.broadcast_to(project(start), z.shape), z
            slopes = fused.part_slopes(models, layer.sigma, *line, _STEPS)
        return (slopes @ project.w.T) * (self.unit / len(self.columns))[:, None]

    @property
    def _models(self) -> fused.PartModels:
        return fused.PartModels(self.cuts, self.widths, self.coef)

    def export(self, graph: Any, z: str, phi: str, dtype: Any) -> str:
        """The scores, n × C, as part of a graph, for the z and the features of its own columns."""
        trees, m = self.columns.shape
        z, phi = (
            graph.add(
                "Transpose", graph.add("Reshape", x, np.array([-1, trees, m])), perm=(1, 0, 2)
            )
            for x in (z, phi)
        )
        half, three = np.asarray(0.5, dtype)[()], np.asarray(3, dtype)[()]
        share: Any = None
        order = np.zeros(1, np.intp)  # of the nodes of a level: those of all lower sides first
        for level in range(self.depth):
            nodes = 2**level - 1 + order
            cuts, widths = (x[:, None, nodes].astype(dtype) for x in (self.cuts, self.widths))
            at = graph.add("Gather", z, np.array([level]), axis=2)
            at = graph.add("Div", graph.add("Sub", at, cuts), widths)
            at = graph.add("Min", graph.add("Max", at, -2 * half), 2 * half)
            at = graph.add("Add", graph.add("Mul", at, half), half)
            steep = graph.add("Sub", three, graph.add("Add", at, at))
            upper = graph.add("Mul", graph.add("Mul", at, at), steep)
            sides = [graph.add("Sub", 2 * half, upper), upper]
            if share is not None:
                sides = [graph.add("Mul", share, side) for side in sides]
            share = graph.add("Concat", *sides, axis=2)
            order = np.concatenate([2 * order, 2 * order + 1])
        found = []
        for c in range(len(self.unit)):
            v = np.moveaxis(self.coef[:, order, c], 1, 2).astype(dtype)
            parts = graph.add("Add", graph.add("MatMul", phi, v[:, :-1]), v[:, -1:])
            each = graph.add(
                "ReduceSum", graph.add("Mul", parts, share), np.array([0, 2]), keepdims=0
            )
            found.append(graph.add("Unsqueeze", each, np.array([1])))
        scores = graph.cast(graph.joined(found), np.float64)
        return str(graph.add("Mul", scores, self.unit / trees))

    def times(self, factor: Any) -> Local:
        """The same with scores times `factor`, a number or C of them."""
        return replace(self, unit=self.unit * factor)


def joined(models: Sequence[Local]) -> tuple[Local, ...]:
    """The same scores with one model for each depth."""
    found = []
    for depth in sorted({model.depth for model in models}):
        same = [model for model in models if model.depth == depth]
        count = sum(len(model.columns) for model in same)
        sizes = np.stack([model.unit * (count / len(model.columns)) for model in same])
        unit = sizes.max(axis=0)
        coef = [
            (model.coef * (size / unit)[:, None]).astype(model.coef.dtype)
            for model, size in zip(same, sizes)
        ]
        columns, cuts, widths = (
            np.concatenate([getattr(model, name) for model in same])
            for name in ("columns", "cuts", "widths")
        )
        found.append(Local(columns, cuts, widths, np.concatenate(coef), unit))
    return tuple(found)


def shares(cuts: Array, widths: Array, z: Array) -> Shares:
    """The parts of one partition that rows belong to, by their z, n × at least D."""
    depth = (len(cuts) + 1).bit_length() - 1
    rows, node, share = np.arange(len(z)), np.zeros(len(z), np.intp), np.ones(len(z))
    for level in range(depth):
        upper = _hand_over((z[rows, level] - cuts[node]) / widths[node])
        low, high = np.flatnonzero(upper < 1), np.flatnonzero(upper > 0)
        share = np.concatenate([share[low] * (1 - upper[low]), share[high] * upper[high]])
        node = np.concatenate([2 * node[low] + 1, 2 * node[high] + 2])
        rows = rows[np.concatenate([low, high])]
    return Shares(rows, node - len(cuts), share)


def by_part(at: Shares, weights: Array, count: int) -> fused.PartRows:
    """The rows of each of the `count` parts, weighted by their shares, for `fused.fit_parts`."""
    order = np.argsort(at.parts, kind="stable")
    ends = np.searchsorted(at.parts[order], np.arange(count), "right")
    rows = at.rows[order]
    return fused.PartRows(rows, np.sqrt(weights[rows] * at.share[order]), ends)


def _hand_over(place: Array) -> Array:
    """The share of the upper side: 0 up to -1, 1 from 1 on, smooth between."""
    at = np.clip(np.nan_to_num(place, nan=0.0), -1, 1) / 2 + 0.5
    return at * at * (3 - 2 * at)


def cut_rows(z: Array, weights: Array, depth: int) -> tuple[Array, Array]:
    """Where to cut rows along their z, n × D, and the widths of the hand-over, 2^D - 1 each."""
    cuts, widths = np.full(2**depth - 1, np.inf), np.ones(2**depth - 1)
    node = np.zeros(len(z), np.intp)
    for level in range(depth):
        values = z[:, level]
        order = np.argsort(values, kind="stable")
        small = node[order].astype(np.min_scalar_type(len(cuts)))  # these are sorted by counting
        order = order[np.argsort(small, kind="stable")]
        in_order = _without_rounding(values[order].astype(np.float64), node[order])
        found, cut, width = _middles(in_order, weights[order], node[order])
        cuts[found], widths[found] = cut, width
        node = 2 * node + 1 + (values > cuts[node])
    return cuts, widths


def _without_rounding(values: Array, node: Array) -> Array:
    """Values in order, those that may differ by rounding alone as one value.

    A cut between these would part rows elsewhere than where their weights were learned. Many rows
    are close together anyway, and are not to become one value in long chains.
    """
    usual = np.abs(values[np.isfinite(values)]).sum() / len(values)
    near = min(_ROUNDING, 0.2 / len(values)) * usual
    new = np.append(True, (np.diff(values) > near) | (np.diff(node) != 0))
    return np.asarray(values[np.flatnonzero(new)[np.cumsum(new) - 1]])


def _middles(values: Array, weights: Array, node: Array) -> tuple[Array, Array, Array]:
    """For each node the middle one of its values, which are in order, and a width about it.

    The width is half of the range that few values lie in around the middle one. Where many do,
    because they are equal, the cut is between two values. Where all are equal it is beyond them.
    """
    n = len(values)
    found, start = np.unique(node, return_index=True)
    end = np.append(start[1:], n)
    total = np.append(0.0, np.cumsum(weights, dtype=np.float64))
    base, whole = total[start], total[end] - total[start]

    def place(share: float) -> Array:
        return np.clip(np.searchsorted(total, base + share * whole, "left") - 1, start, end - 1)

    low, middle, high = (place(0.5 + k * rules.LOCAL_OVERLAP / 2) for k in (-1, 0, 1))
    cut, width = values[middle], (values[high] - values[low]) / 2
    # where a value would be among those of its node: all of them in one order
    least, range_ = values[start], np.maximum(values[end - 1] - values[start], 1e-300)
    own = np.searchsorted(found, node)
    keys = 2 * own + (values - least[own]) / range_[own]

    def among(value: Array, side: Any) -> Array:
        at = 2 * np.arange(len(found)) + np.clip((value - least) / range_, -0.5, 1.5)
        return np.searchsorted(keys, at, side)

    inside = among(cut + width, "left") - among(cut - width, "right")
    tied = (width <= 0) | (inside > 2 * rules.LOCAL_OVERLAP * (end - start) + 1)
    sides = np.stack([among(cut, "left"), among(cut, "right")])
    apart = np.abs((total[sides] - base) / whole - 0.5)
    apart = np.where((start < sides) & (sides < end), apart, 1.0)
    k = np.clip(np.take_along_axis(sides, apart.argmin(axis=0)[None], 0)[0], 1, n - 1)
    cut = np.where(tied, (values[k - 1] + values[k]) / 2, cut)
    width = np.where(tied, (values[k] - values[k - 1]) / 2, width)
    # hardly wider than rounding, the cut would be another one in float32: a little more, if that
    # takes in no more rows
    wider = np.maximum(width, _NARROWEST * range_)
    inside = among(cut + wider, "left") - among(cut - wider, "right")
    width = np.where(inside <= 2 * rules.LOCAL_OVERLAP * (end - start) + 1, wider, width)
    equal = values[start] == values[end - 1]
    return found, np.where(equal, np.inf, cut), np.where(equal, 1.0, width)
