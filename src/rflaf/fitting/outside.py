"""Beyond the rows of a fit: where members are still asked, and how the model goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from rflaf import rules
from rflaf.arrays import Array
from rflaf.fitting.members import Member, all_scores, export_mixed, mixed_scores
from rflaf.fitting.monotone import Monotone
from rflaf.inputs.scaling import column_moments
from rflaf.losses import Loss
from rflaf.rows.sample import some_of
from rflaf.solvers.features import as_array

_FARTHEST = 1e6  # standard deviations that doubts grow over
_HAND_OVER = 0.1  # standard deviations over which doubts set in


@dataclass(frozen=True)
class Outside:
    """How a model goes on where no rows of the fit were.

    Members are asked at the nearest row between the `ends`. Beyond them each column adds a straight
    line, which may be flat. Pairs are those of the lower and the upper side of each column.
    """

    seen: Array  # the range of each column in the fit, 2 × d; infinite for codes of levels
    ends: Array  # where members are asked last, near what was seen, 2 × d
    scale: Array  # standard deviations of the columns, the unit of distances, d
    reach: Array  # distance beyond the ends over which a line is followed, then flat; 2 × d
    slopes: Array  # change of the scores per unit of distance beyond the ends, 2 × d × C
    doubts: Array  # standard deviation per unit of distance beyond what was seen, 2 × d × C
    bounds: Array  # scores of rows beyond the ends stay between these, 2 × C
    usual: Array  # median over rows of the scores' standard deviation between members, C
    monotone: Monotone | None = None  # constraints, which scores between the ends obey

    def scores(self, members: list[Member], x: Any) -> Array:
        """The scores of the model, n × C."""
        x = self._comparable(x)
        inner = held_between(x, self.ends)
        scores = self.inner_scores(members, inner)
        return scores if inner is x else self.continued(scores, x, inner)

    def inner_scores(self, members: list[Member], inner: Any) -> Array:
        """The same for rows between the ends."""
        asked = mixed_scores if self.monotone is None else self.monotone.scores
        return asked(members, inner)

    def continued(self, scores: Array, x: Any, inner: Any) -> Array:
        """Scores of rows, … × n × C, from those of the nearest rows between the ends."""
        below, above = self.beyond(x, inner)
        outside = np.flatnonzero(as_array(x != inner).any(axis=1))
        shift = below[outside] @ self.slopes[0] + above[outside] @ self.slopes[1]
        inside = scores[..., outside, :]
        scores = scores.copy()
        low, high = self.bounds
        if self.monotone is not None:  # or a row beyond the ends would be below one inside
            low, high = np.minimum(low, inside), np.maximum(high, inside)
        scores[..., outside, :] = np.clip(inside + shift, low, high)
        return scores

    def export(
        self, graph: Any, members: list[Member], x: str, width: int, readout: Callable[..., str]
    ) -> str:
        """What `scores` gives, as part of a graph; x is n × width, `readout` as `export_mixed`."""
        x = graph.finite(x, width)
        inner = graph.add("Min", graph.add("Max", x, self.ends[0]), self.ends[1])

        def mixed(given: str) -> str:
            return export_mixed(graph, members, given, readout)

        if self.monotone is None:
            scores = mixed(inner)
        else:
            scores = self.monotone.export(graph, mixed, inner, width, len(self.usual))
        scores = graph.add("Add", scores, graph.refused())
        pairs = (inner, x), (x, inner)
        apart = [graph.add("Div", graph.add("Sub", *pair), self.unit) for pair in pairs]
        apart = [graph.add("Relu", each) for each in apart]
        beyond = [graph.add("Min", *pair) for pair in zip(apart, self.reach)]
        lines = [graph.add("MatMul", each, slopes) for each, slopes in zip(beyond, self.slopes)]
        taken_on = graph.add("Add", scores, graph.add("Add", *lines))
        low, high = self.bounds
        if self.monotone is not None:
            low, high = graph.add("Min", scores, low), graph.add("Max", scores, high)
        taken_on = graph.add("Min", graph.add("Max", taken_on, low), high)
        far = graph.add("ReduceSum", graph.add("Add", *apart), np.array([1]), keepdims=1)
        return str(graph.add("Where", graph.add("Greater", far, np.float64(0)), taken_on, scores))

    def lines(self, x: Any, inner: Any) -> Array:
        """What the straight line of each column adds, n × d × C; bounds are left out."""
        below, above = self.beyond(x, inner)
        return below[:, :, None] * self.slopes[0] + above[:, :, None] * self.slopes[1]

    def nearest(self, x: Any) -> Any:
        """The rows, each value held between those that were seen."""
        return held_between(self._comparable(x), self.seen)

    def doubt(self, members: list[Member], x: Any) -> Array | None:
        """Standard deviation that comes on top for rows beyond what was seen, n × C; None: no row.

        It grows with the distance, and with how much the members disagree.
        """
        x = self._comparable(x)
        near = held_between(x, self.seen)
        if near is x:
            return None
        below, above = self._distances(x, near)
        spread = score_spread(members, held_between(x, self.ends))
        unit = np.maximum(np.abs(spread).max(axis=0), self.doubts.max(axis=(0, 1)))
        unit = np.where(unit > 0, unit, 1.0)  # squares of very large or small numbers are lost
        doubts, spread, usual = self.doubts / unit, spread / unit, self.usual / unit
        distance = (below + above).max(axis=1, keepdims=True)
        more = rules.SPREAD_DOUBT * np.maximum(spread**2 - usual**2, 0)
        variance = np.minimum(distance / _HAND_OVER, 1.0) * more
        variance += below**2 @ doubts[0] ** 2 + above**2 @ doubts[1] ** 2
        return np.sqrt(variance) * unit

    def export_doubt(
        self, graph: Any, members: list[Member], x: str, near: str, readout: Callable[..., str]
    ) -> str:
        """The square of what `doubt` gives, as part of a graph; `near` is held between `seen`."""
        inner = graph.add("Min", graph.add("Max", x, self.ends[0]), self.ends[1])
        mean = export_mixed(graph, members, inner, readout)
        more = np.negative(self.usual**2)
        for member in members:
            weight = np.float64(member.weight)
            alone = graph.add("Div", export_mixed(graph, [member], inner, readout), weight)
            apart = graph.add("Sub", alone, mean)
            part = graph.add("Mul", graph.add("Mul", apart, apart), weight)
            more = graph.add("Add", part, more)
        pairs = (near, x), (x, near)
        apart = [graph.add("Div", graph.add("Sub", *pair), self.unit) for pair in pairs]
        most = np.float64(_FARTHEST)
        sides = [graph.add("Min", graph.add("Relu", each), most) for each in apart]
        distance = graph.add("ReduceMax", graph.add("Add", *sides), axes=(1,), keepdims=1)
        share = graph.add("Min", graph.add("Div", distance, np.float64(_HAND_OVER)), np.float64(1))
        share = graph.add("Mul", share, np.float64(rules.SPREAD_DOUBT))
        total = graph.add("Mul", graph.add("Relu", more), share)
        for side, doubts in zip(sides, self.doubts):
            squares = graph.add("MatMul", graph.add("Mul", side, side), doubts**2)
            total = graph.add("Add", total, squares)
        return str(total)

    def far(self, x: Any) -> Array:
        """How many rows lie more than a standard deviation beyond what was seen, by column, d + 1.

        The last number is that of rows which do so in any column.
        """
        x = self._comparable(x)
        near = held_between(x, self.seen + np.array([[-1.0], [1.0]]) * self.scale)
        if near is x:
            return np.zeros(x.shape[1] + 1, np.intp)
        moved = as_array(x != near)
        return np.append(moved.sum(axis=0), moved.any(axis=1).sum())

    def grown(self, ranges: Array) -> Outside:
        """The same for a model that more rows have joined, with these ranges of values, 2 × d."""
        least, greatest = ranges
        seen = np.array([np.minimum(self.seen[0], least), np.maximum(self.seen[1], greatest)])
        known = np.isfinite(self.seen)
        if self.monotone is not None:  # their lattice stays, so that rows beyond it are far
            known[:, [axis.column for axis in self.monotone.axes]] = False
        moved = np.where(known, seen - np.where(known, self.seen, 0.0), 0.0)
        return replace(self, seen=np.where(known, seen, self.seen), ends=self.ends + moved)

    def constrained(self, monotone: Monotone | None) -> Outside:
        """The same with constraints: no end before the last rows, no line the wrong way."""
        if monotone is None:
            return self
        ends, slopes = self.ends.copy(), self.slopes.copy()
        for axis in monotone.axes:
            j = axis.column
            ends[:, j] = self.seen[:, j]
            outward = axis.sign * np.array([[-1], [1]])
            slopes[:, j] = np.maximum(slopes[:, j] * outward, 0) * outward
        return replace(self, ends=ends, slopes=slopes, monotone=monotone)

    def in_units(self, loss: Loss, temperature: float) -> Outside:
        """The same for scores in the model's units, from scores as they were fitted."""
        shape = self.slopes.shape

        def weights(given: Array) -> Array:
            flat = given.reshape(-1, shape[2]) / temperature
            return loss.in_units(flat, np.zeros(shape[2]))[0].reshape(shape)

        none = np.zeros((1, shape[2]))
        bounds = [loss.in_units(none, each / temperature)[1] for each in self.bounds]
        return replace(
            self,
            slopes=weights(self.slopes),
            doubts=np.abs(weights(self.doubts)),
            bounds=np.sort(bounds, axis=0),
        )

    @property
    def unit(self) -> Array:
        """That of distances in each column."""
        return np.where(self.scale > 0, self.scale, 1.0)

    def _comparable(self, x: Any) -> Any:
        """Rows as they are; sparse ones are made dense where 0 is outside of a column's range."""
        return x.toarray() if sparse.issparse(x) and (self.seen * [[1], [-1]] > 0).any() else x

    def beyond(self, x: Any, inner: Any) -> tuple[Array, Array]:
        """Distances below and above the nearest rows, n × d, as far as lines are followed."""
        below, above = self._distances(x, inner)
        return np.minimum(below, self.reach[0]), np.minimum(above, self.reach[1])

    def _distances(self, x: Any, inner: Any) -> tuple[Array, Array]:
        apart = (x - inner).toarray() if sparse.issparse(x) else np.asarray(x, np.float64) - inner
        with np.errstate(over="ignore"):
            apart = np.clip(apart / self.unit, -_FARTHEST, _FARTHEST)
        return np.maximum(-apart, 0), np.maximum(apart, 0)


def plain_outside(x: Any, weights: Array, coded: Any, outputs: int) -> Outside:
    """Members are asked a little beyond what was seen, and the model stays as it is there."""
    seen = value_range(x)
    d = x.shape[1]
    scale = column_moments(x, weights)[1]
    if coded is not None:
        seen[0, coded.replaced], seen[1, coded.replaced] = -np.inf, np.inf
    free = rules.USUAL_FREE * scale
    everywhere = np.array([[-np.inf], [np.inf]]) * np.ones(outputs)
    ends = np.array([seen[0] - free, seen[1] + free])
    slopes, doubts = np.zeros((2, 2, d, outputs))
    none = np.zeros((2, d))
    return Outside(seen, ends, scale, none, slopes, doubts, everywhere, np.zeros(outputs))


def score_spread(members: list[Member], x: Any) -> Array:
    """The standard deviation of the scores between members, n × C."""
    scores = all_scores(members, x)
    weights = np.array([member.weight for member in members])
    apart = scores - np.tensordot(weights, scores, axes=1)
    unit = np.abs(apart).max(axis=(0, 1))
    unit = np.where(unit > 0, unit, 1.0)
    return np.sqrt(np.tensordot(weights, (apart / unit) ** 2, axes=1)) * unit


def usual_spread(members: list[Member], x: Any, rng: np.random.Generator) -> Array:
    """The standard deviation of scores between members, for the middle one of some rows."""
    rows = x[some_of(x.shape[0], rules.IMPORTANCE_ROWS, rng)]
    return np.asarray(np.median(score_spread(members, rows), axis=0))


def held_between(x: Any, ends: Array) -> Any:
    """Rows with each value held between two; the rows themselves where nothing changes."""
    low, high = ends.astype(x.dtype)
    if sparse.issparse(x):
        x = x.tocsr()
        low, high = np.minimum(low, 0)[x.indices], np.maximum(high, 0)[x.indices]
        held = np.clip(x.data, low, high)
        if np.array_equal(held, x.data):
            return x
        return sparse.csr_array((held, x.indices, x.indptr), x.shape)
    if not ((x < low).any() or (x > high).any()):
        return x
    return np.clip(x, low, high)


def value_range(x: Any) -> Array:
    """The least and the greatest value of each column, 2 × d."""
    if sparse.issparse(x):
        return np.array([x.min(axis=0).toarray().ravel(), x.max(axis=0).toarray().ravel()])
    return np.array([x.min(axis=0), x.max(axis=0)], np.float64)
