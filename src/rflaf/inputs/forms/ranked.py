"""Ranks of columns: where a value stands among those of the fit, beside the columns or instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rflaf import rules
from rflaf.inputs.forms.base import Array, Form, Places, export_standardised, scale_slopes
from rflaf.inputs.scaling import column_moments, standardise

_EDGE = np.sqrt(3.0)  # ranks lie in [-sqrt(3), sqrt(3)], where they have unit variance


@dataclass(frozen=True)
class RankCurves:
    """For some columns increasing values, and their ranks: linear between, constant beyond.

    The values of all columns stand one after the other, and so do their ranks: a model file of
    20,000 columns has no array for each.
    """

    columns: Places
    values: Array
    ranks: Array
    ends: Places  # where the values of each of the columns end

    @property
    def knots(self) -> list[Array]:
        """The values of each of the columns."""
        return self._cut(self.values)

    @property
    def levels(self) -> list[Array]:
        """The ranks of these values."""
        return self._cut(self.ranks)

    def _cut(self, joined: Array) -> list[Array]:
        ends = self.ends.tolist()
        return [joined[start:end] for start, end in zip([0, *ends], ends)]

    def __call__(self, x: Array) -> Array:
        """Ranks, n × columns."""
        curves = zip(self.columns.tolist(), self.knots, self.levels)
        return np.column_stack([np.interp(x[:, j], knots, levels) for j, knots, levels in curves])

    def derivative(self, x: Array) -> Array:
        """Slopes of the curves at the values, n × columns."""
        parts = []
        for j, knots, levels in zip(self.columns.tolist(), self.knots, self.levels):
            slopes = np.concatenate([[0.0], np.diff(levels) / np.diff(knots), [0.0]])
            parts.append(slopes[np.searchsorted(knots, x[:, j], side="right")])
        return np.column_stack(parts)

    def export(self, graph: Any, x: str, d: int) -> str:
        """np.interp of each column, all of them at once: the cell by bisection, then its line."""
        x = x if len(self.columns) == d else graph.columns(x, self.columns)
        cells = int(np.diff(self.ends, prepend=0).max()) - 1
        steps = [1 << k for k in reversed(range((cells - 1).bit_length()))]
        width = 1 << len(steps)  # of a column's part of the tables; no cell is after its last
        ends = np.full((len(self.ends), width), np.inf)  # lower ends of the cells
        levels, slopes = np.zeros(ends.shape), np.zeros(ends.shape)
        for k, (knots, level) in enumerate(zip(self.knots, self.levels)):
            used = slice(len(knots) - 1)
            ends[k, used], levels[k, used] = knots[:-1], level[:-1]
            slopes[k, used] = np.diff(level) / np.diff(knots)
        x = graph.add("Max", x, ends[:, 0])
        x = graph.add("Min", x, self.values[self.ends - 1])
        at: Any = np.arange(len(ends), dtype=np.int32) * np.int32(width)
        for step in steps:
            next_at = graph.add("Add", at, np.int32(step))
            above = graph.add("GreaterOrEqual", x, graph.add("Gather", ends.ravel(), next_at))
            at = graph.add("Where", above, next_at, at)
        along = graph.add("Sub", x, graph.add("Gather", ends.ravel(), at))
        rise = graph.add("Mul", along, graph.add("Gather", slopes.ravel(), at))
        return str(graph.add("Add", rise, graph.add("Gather", levels.ravel(), at)))


def spread_values(column: Array, most: int) -> Array:
    """Up to `most` values of a sorted column, increasing, with about as many rows between any two.

    A value that more rows share is one of them, and the others are quantiles of the other rows:
    those of all rows would be nearly all zero for a column that is mostly zero.
    """
    values, rows = np.unique(column, return_counts=True)
    if len(values) <= most:
        return values
    frequent = np.zeros(len(values), bool)
    while True:
        room = most - 1 - np.count_nonzero(frequent)
        more = ~frequent & (rows * room > rows[~frequent].sum())
        if not more.any() or np.count_nonzero(more) >= room:
            break
        frequent |= more
    others = column[~np.repeat(frequent, rows)]
    quantiles = np.quantile(others, np.linspace(0, 1, room + 1))
    return np.unique(np.concatenate([values[frequent], quantiles]))


def rank_curves(x: Any, scale: Array) -> RankCurves | None:
    """Curves of the columns with several values; None where there is no such column."""
    if sparse.issparse(x):
        return None
    columns, knots, levels = [], [], []
    step = -(-x.shape[0] // rules.QUANTILE_ROWS)
    for j in np.flatnonzero(scale > 0).tolist():
        column = np.sort(x[::step, j]).astype(np.float64)
        values = spread_values(column, rules.RANK_KNOTS)
        if len(values) < rules.SEVERAL_VALUES:
            continue
        # where many rows share a value, the middle of their ranks
        sides = [np.searchsorted(column, values, side) for side in ("left", "right")]
        columns.append(j)
        knots.append(values)
        levels.append((np.add(*sides) / len(column) - 1) * _EDGE)
    if not columns:
        return None
    ends = np.cumsum([len(values) for values in knots])
    return RankCurves(np.array(columns), np.concatenate(knots), np.concatenate(levels), ends)


@dataclass(frozen=True)
class WithRanks(Form):
    """Standardised columns, and behind them the ranks of those with several values."""

    mean: Array
    scale: Array
    curves: RankCurves

    name = "both"
    text = "standardised columns and their ranks"

    @classmethod
    def learn(cls, x: Any, weights: Array) -> WithRanks | None:
        mean, scale = column_moments(x, weights)
        curves = rank_curves(x, scale)
        return None if curves is None else cls(mean, scale, curves)

    @property
    def origin(self) -> Places:
        return np.concatenate([np.arange(len(self.mean)), self.curves.columns])

    @property
    def along(self) -> Array:
        ranked = np.isin(np.arange(len(self.mean)), self.curves.columns)
        return np.concatenate([~ranked, np.ones(len(self.curves.columns))])

    def names(self, columns: list[str]) -> list[str]:
        return [*columns, *(f"rank of {columns[j]}" for j in self.curves.columns)]

    def dense(self, x: Array, dtype: Any) -> Any:
        plain = standardise(x, self.mean, self.scale, dtype)
        return np.hstack([plain, self.curves(x).astype(dtype)])

    def derivative(self, x: Array) -> Array:
        return np.hstack([scale_slopes(x, self.mean, self.scale), self.curves.derivative(x)])

    def export(self, graph: Any, x: str) -> tuple[str, Places]:
        d = len(self.mean)
        plain = export_standardised(graph, self, x, np.arange(d))
        ranks = self.curves.export(graph, x, d)
        return graph.add("Concat", plain, ranks, axis=1), np.arange(len(self.origin))


@dataclass(frozen=True)
class Ranks(Form):
    """Ranks of the columns with several values; the others are standardised."""

    mean: Array
    scale: Array
    curves: RankCurves

    name = "ranks"
    text = "ranks of columns"

    @classmethod
    def learn(cls, x: Any, weights: Array) -> Ranks:
        mean, scale = column_moments(x, weights)
        curves = rank_curves(x, scale)
        none = np.zeros(0, np.intp)
        return cls(mean, scale, curves or RankCurves(none, np.zeros(0), np.zeros(0), none))

    @property
    def origin(self) -> Places:
        return np.arange(len(self.mean))

    def names(self, columns: list[str]) -> list[str]:
        ranked = set(self.curves.columns.tolist())
        return [f"rank of {name}" if j in ranked else name for j, name in enumerate(columns)]

    @property
    def stays_sparse(self) -> bool:
        return not len(self.curves.columns) and not self.mean.any()

    def dense(self, x: Array, dtype: Any) -> Any:
        plain = standardise(x, self.mean, self.scale, dtype)
        if len(self.curves.columns):
            plain[:, self.curves.columns] = self.curves(x)
        return plain

    def derivative(self, x: Array) -> Array:
        slopes = scale_slopes(x, self.mean, self.scale)
        if len(self.curves.columns):
            slopes[:, self.curves.columns] = self.curves.derivative(x)
        return slopes

    def export(self, graph: Any, x: str) -> tuple[str, Places]:
        ranked, d = self.curves.columns, len(self.mean)
        plain = np.setdiff1d(np.arange(d), ranked)
        if not len(ranked):
            return export_standardised(graph, self, x, plain), plain
        ranks = self.curves.export(graph, x, d)
        if not len(plain):
            return ranks, ranked
        both = graph.add("Concat", export_standardised(graph, self, x, plain), ranks, axis=1)
        return both, np.concatenate([plain, ranked])
