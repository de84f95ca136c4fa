"""Columns cut into bins of about as many rows, each with its own scale: a learned warp."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rflaf import rules
from rflaf.fused import Bins
from rflaf.inputs.forms.base import Array, Form, Places, export_standardised, scale_slopes
from rflaf.inputs.forms.ranked import rank_curves, spread_values
from rflaf.inputs.scaling import column_moments, standardise

_MOST_STANDARDISED = 4096  # rows that bins are standardised by
_LEAST_SCALE = 1e-3  # of a bin with a rare value in it, or float32 could not hold its sums


@dataclass(frozen=True)
class Binned(Form):
    """Bins of the columns with several values; before them the others, standardised.

    Functions of bins may change fast in many places, as trees do.
    """

    mean: Array
    scale: Array
    bins: Bins

    name = "bins"
    text = "binned columns"
    smooth = False

    @classmethod
    def learn(cls, x: Any, weights: Array) -> Binned | None:
        mean, scale = column_moments(x, weights)
        curves = rank_curves(x, scale)
        bins = None if curves is None else _measure(x, curves.columns)
        return None if bins is None else cls(mean, scale, bins)

    @property
    def origin(self) -> Places:
        return np.concatenate([self._plain, self.bins.column])

    @property
    def scales(self) -> Array:
        return np.concatenate([self.scale[self._plain], self.bins.scale])

    @property
    def along(self) -> Array:
        bins = self.bins  # together they count the edges below a value
        count = np.bincount(bins.column)[bins.column]
        return np.concatenate([np.ones(len(self._plain)), np.sqrt(12) * bins.scale / count])

    @property
    def _plain(self) -> Places:
        """The columns that are not cut into bins."""
        return np.setdiff1d(np.arange(len(self.mean)), self.bins.columns)

    def dense(self, x: Array, dtype: Any) -> Any:
        at = self._plain
        return self.bins(x, standardise(x[:, at], self.mean[at], self.scale[at], dtype))

    def derivative(self, x: Array) -> Array:
        at, bins = self._plain, self.bins
        plain = scale_slopes(x[:, at], self.mean[at], self.scale[at])
        value = x[:, bins.column]
        inside = (value >= bins.low) & (value < bins.low + bins.width)
        return np.hstack([plain, np.where(inside, 1 / (bins.width * bins.scale), 0.0)])

    def export(self, graph: Any, x: str) -> tuple[str, Places]:
        bins, plain = self.bins, self._plain
        cut = graph.add("Sub", graph.columns(x, bins.column), bins.low)
        cut = graph.add("Clip", graph.add("Div", cut, bins.width), np.float64(0), np.float64(1))
        cut = graph.add("Div", graph.add("Sub", cut, bins.mean), bins.scale)
        if len(plain):
            cut = graph.add("Concat", export_standardised(graph, self, x, plain), cut, axis=1)
        return cut, np.arange(len(self.origin))

    def warp(self, metric: Array, column: int) -> tuple[Array, Array]:
        """The edges of a column's bins, and how far a metric moves a value that passes them.

        `metric` has a scale for each result, or one for all.
        """
        bins = self.bins
        at = np.flatnonzero(bins.column == column)
        scales = np.broadcast_to(metric, len(self.origin))[-len(bins.column) :]
        heights = np.cumsum(np.abs(scales[at]) / bins.scale[at])
        edges = np.append(bins.low[at], bins.low[at[-1]] + bins.width[at[-1]])
        return edges, np.concatenate([[0.0], heights])


def _measure(x: Array, columns: Places) -> Bins | None:
    """Bins of columns; None where there are too many columns for that."""
    room = rules.MOST_BINS - x.shape[1] + len(columns)
    most = min(rules.BINS, room // len(columns))
    if most < rules.FEWEST_BINS:
        return None
    x = x[:: -(-x.shape[0] // rules.QUANTILE_ROWS)]
    edges = [spread_values(np.sort(x[:, j]).astype(np.float64), most + 1) for j in columns]
    starts = np.cumsum([0] + [len(each) for each in edges])
    together = np.concatenate(edges)
    count = len(together) - len(edges)
    bins = Bins(columns.astype(np.int64), starts, together, np.zeros(count), np.ones(count))
    some = x[:: -(-len(x) // _MOST_STANDARDISED)]
    places = bins(some, np.zeros((len(some), 0))).toarray()
    scale = places.std(axis=0)
    scale = np.where(scale > 0, np.maximum(scale, _LEAST_SCALE), 1.0)
    return replace(bins, mean=places.mean(axis=0), scale=scale)
