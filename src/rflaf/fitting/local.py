"""Local models: output weights for small parts of the rows, on top of those for all of them.

A partition cuts the rows in two at the median of a random feature's z, both halves again, and so on
down to parts of some dozens of rows. Near a cut both sides have a share, so that scores are smooth.
Each part has output weights of its own for a few of the layer's features, fitted to what the
member's scores leave. Several partitions are averaged. Rows that the member has not seen choose the
penalty and the part that this has in the scores, which may be none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.fitting.layers import FittedLayer
from rflaf.solvers.features import project

Array = NDArray[Any]

_BLOCK = 1 << 22  # features at once


class Shares(NamedTuple):
    """Which parts rows belong to: numbers of rows, of partitions and of parts, and the shares."""

    rows: Array
    trees: Array
    parts: Array
    share: Array


@dataclass(frozen=True)
class Local:
    """Some partitions of one depth D, with output weights for their parts.

    Attributes
    ----------
    columns : array of int, T × m
        The features that each of the T partitions takes. Cuts are made along the z of the first D.
    cuts, widths : array, T × 2^D - 1
        Where a cut is made, and how far on either side both parts have a share: the first cut of
        all rows, then those of its two parts, and so on.
    coef : array, T × 2^D × m + 1 × C
        Output weights of each part, its intercept last, in units of `unit`.
    unit : array of C
    """

    columns: NDArray[np.intp]
    cuts: Array
    widths: Array
    coef: Array
    unit: Array

    @property
    def depth(self) -> int:
        """The number of cuts between a row and its part, D."""
        return self.coef.shape[1].bit_length() - 1

    def scores(self, layer: FittedLayer, inputs: Any) -> Array:
        """The mean over partitions, n × C, for inputs in the layer's form."""
        return self.scores_of(layer, project(inputs, layer.components[:, self.columns.ravel()]))

    def scores_of(self, layer: FittedLayer, z: Array) -> Array:
        """The same for the z of its own columns, n × T m."""
        size = max(1, _BLOCK // max(z.shape[1], 1))
        parts = [self._block(layer, z[at : at + size]) for at in range(0, len(z), size)]
        return np.concatenate(parts) * (self.unit / len(self.columns))

    def _block(self, layer: FittedLayer, z: Array) -> Array:
        phi = with_ones(fused.apply(layer.sigma, np.ascontiguousarray(z)), len(self.columns))
        scores = np.zeros((len(z), self.coef.shape[3]))
        for tree, part, rows, share in by_part(self.shares(z)):
            scores[rows] += share[:, None] * (phi[rows, tree] @ self.coef[tree, part])
        return scores

    def slopes(self, layer: FittedLayer, z: Array) -> Array:
        """The derivative of the scores in the z of its own columns, n × T m × C."""
        z = np.ascontiguousarray(z)
        ones = np.ones((len(z), 1), z.dtype), np.ones((z.shape[1], 1), z.dtype)
        steep = fused.slope(layer.sigma, z, ones).reshape(len(z), *self.columns.shape)
        phi = with_ones(fused.apply(layer.sigma, z), len(self.columns))
        at, inward = self.shares(z), _inward(self.cuts, self.widths, self._apart(z))
        found = np.zeros((len(z), *self.columns.shape, self.coef.shape[3]))
        for tree, part, rows, share in by_part(at):
            v = self.coef[tree, part].astype(np.float64)
            found[rows, tree] += (share[:, None] * steep[rows, tree])[:, :, None] * v[:-1]
            turned = inward(rows, tree, part)[:, :, None] * (phi[rows, tree] @ v)[:, None]
            found[rows, tree, : self.depth] += turned
        return found.reshape(*z.shape, -1) * (self.unit / len(self.columns))

    def _apart(self, z: Array) -> Array:
        return z.reshape(len(z), *self.columns.shape)

    def shares(self, z: Array) -> Shares:
        """The parts of each row, for the z of the columns."""
        return shares(self.cuts, self.widths, self._apart(z))

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
            v = np.moveaxis(self.coef[..., c][:, order], 1, 2).astype(dtype)
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


def with_ones(phi: Array, trees: int) -> Array:
    """Features n × T m as n × T × m + 1, the last of them 1."""
    apart = phi.reshape(len(phi), trees, -1)
    return np.concatenate([apart, np.ones_like(apart[:, :, :1])], axis=2)


def shares(cuts: Array, widths: Array, z: Array) -> Shares:
    """The parts of rows by their z, n × T × at least D."""
    n, trees = z.shape[:2]
    depth = (cuts.shape[1] + 1).bit_length() - 1
    rows, tree = (each.ravel() for each in np.indices((n, trees)))
    node, share = np.zeros(len(rows), np.intp), np.ones(len(rows))
    for level in range(depth):
        upper = _hand_over((z[rows, tree, level] - cuts[tree, node]) / widths[tree, node])
        low, high = np.flatnonzero(upper < 1), np.flatnonzero(upper > 0)
        both = np.concatenate([low, high])
        share = np.concatenate([share[low] * (1 - upper[low]), share[high] * upper[high]])
        node = np.concatenate([2 * node[low] + 1, 2 * node[high] + 2])
        rows, tree = rows[both], tree[both]
    return Shares(rows, tree, node - cuts.shape[1], share)


def by_part(at: Shares) -> Iterator[tuple[int, int, Array, Array]]:
    """Partition and part, the rows that belong to it, and their shares."""
    order = np.lexsort((at.parts, at.trees))
    trees, parts = at.trees[order], at.parts[order]
    ends = np.flatnonzero(np.append((np.diff(trees) != 0) | (np.diff(parts) != 0), True)) + 1
    for start, end in zip(np.append(0, ends[:-1]), ends):
        some = order[start:end]
        yield int(trees[start]), int(parts[start]), at.rows[some], at.share[some]


def _inward(cuts: Array, widths: Array, z: Array) -> Callable[..., Array]:
    """The derivative of shares in the z of the cuts: of some rows, for a partition and a part."""
    depth = (cuts.shape[1] + 1).bit_length() - 1

    def found(rows: Array, tree: int, part: int) -> Array:
        sides, slopes = np.ones((2, len(rows), depth))
        node = 0
        for level in range(depth):
            upper = part >> (depth - 1 - level) & 1
            place = (z[rows, tree, level] - cuts[tree, node]) / widths[tree, node]
            share, at = _hand_over(place), np.clip(place, -1, 1)
            sides[:, level] = share if upper else 1 - share
            slopes[:, level] = (2 * upper - 1) * 0.75 * (1 - at * at) / widths[tree, node]
            node = 2 * node + 1 + upper
        others = [np.delete(sides, level, 1).prod(axis=1) for level in range(depth)]
        return slopes * np.stack(others, axis=1)

    return found


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
        in_order = values[order].astype(np.float64)
        found, cut, width = _middles(in_order, weights[order], node[order])
        cuts[found], widths[found] = cut, width
        node = 2 * node + 1 + (values > cuts[node])
    return cuts, widths


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
    equal = values[start] == values[end - 1]
    return found, np.where(equal, np.inf, cut), np.where(equal, 1.0, width)
