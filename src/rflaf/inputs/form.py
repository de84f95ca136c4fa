"""The form in which inputs enter a model: standardised, as ranks, both side by side, or in bins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.fused.binned import Bins
from rflaf.inputs.scaling import column_moments, standardise

Array = NDArray[Any]

FORMS = ("raw", "both", "ranks", "bins")
_BINS = 24  # of a column, at most,
_MOST_BINS = 512  # and of all columns together
_FEWEST_BINS = 4  # of a column with many values; with fewer, bins tell too little
_MOST_STANDARDISED = 4096  # rows that bins are standardised by
_LEAST_SCALE = 1e-3  # of a bin with a rare value in it, or float32 could not hold its sums
_KNOTS = 65  # quantiles that a column's ranks are read from
_FEWEST = 5  # different values that a column needs for its ranks to be another thing
_MOST_MEASURED = 100_000  # rows that quantiles are taken of
_EDGE = np.sqrt(3.0)  # ranks lie in [-sqrt(3), sqrt(3)], where they have unit variance


def measure_bins(x: Array, ranked: NDArray[np.intp]) -> Bins | None:
    """Bins with about as many rows each; None where there are too many columns, or none."""
    most = min(_BINS, (_MOST_BINS - x.shape[1] + len(ranked)) // max(len(ranked), 1))
    if not len(ranked) or most < _FEWEST_BINS:
        return None
    x = x[:: -(-x.shape[0] // _MOST_MEASURED)]
    edges = [np.unique(np.quantile(x[:, j], np.linspace(0, 1, most + 1))) for j in ranked]
    starts = np.cumsum([0] + [len(each) for each in edges])
    together = np.concatenate(edges).astype(np.float64)
    count = len(together) - len(edges)
    bins = Bins(ranked.astype(np.int64), starts, together, np.zeros(count), np.ones(count))
    some = x[:: -(-len(x) // _MOST_STANDARDISED)]
    places = bins(some, np.zeros((len(some), 0))).toarray()
    scale = places.std(axis=0)
    scale = np.where(scale > 0, np.maximum(scale, _LEAST_SCALE), 1.0)
    return replace(bins, mean=places.mean(axis=0), scale=scale)


@dataclass(frozen=True)
class InputForm:
    """What becomes of the columns.

    Attributes
    ----------
    name : {"raw", "both", "ranks", "bins"}
        Standardised columns; these and their ranks; ranks where a column has many values; or bins
        of such columns, and the others standardised.
    mean, scale : array of d
    ranked : array of int
        The columns of which ranks are taken.
    knots, levels : list of array
        For each of these, increasing values and their ranks. Between them ranks are linear, and
        constant beyond the last.
    bins : Bins, optional
        None where there are too many columns for that, or none with enough values: they are
        standardised then.
    """

    name: str
    mean: Array
    scale: Array
    ranked: NDArray[np.intp]
    knots: list[Array]
    levels: list[Array]
    bins: Bins | None = None

    @property
    def scales(self) -> Array:
        """What each column of the result was divided by; of ranks, what their column was."""
        cut = self._cut
        if cut is not None:
            return np.concatenate([self.scale[self._plain], cut.scale])
        if self.name == "both":
            return np.concatenate([self.scale, self.scale[self.ranked]])
        return self.scale

    @property
    def origin(self) -> NDArray[np.intp]:
        """The input that each column of the result comes from."""
        columns = np.arange(len(self.mean))
        cut = self._cut
        if cut is not None:
            return np.concatenate([self._plain, cut.column])
        return np.concatenate([columns, self.ranked]) if self.name == "both" else columns

    @property
    def _plain(self) -> NDArray[np.intp]:
        """The columns that are not cut into bins."""
        cut = self._cut
        return np.setdiff1d(np.arange(len(self.mean)), cut.column if cut is not None else [])

    @property
    def _cut(self) -> Bins | None:
        """The bins, where this form has any."""
        return self.bins if self.name == "bins" else None

    @property
    def stays_sparse(self) -> bool:
        """Whether sparse inputs stay so: there is nothing to subtract, and no rank to read."""
        return not self.mean.any() and (self.name == "raw" or not len(self.ranked))

    def __call__(self, x: Any, dtype: Any) -> Any:
        """Inputs as the layer takes them: an array, a sparse matrix or a `BinnedMatrix`."""
        if sparse.issparse(x) and not self.stays_sparse:
            x = x.toarray()
        cut = self._cut
        if cut is not None:
            at = self._plain
            plain = standardise(x[:, at], self.mean[at], self.scale[at], dtype)
            return cut(x, plain)
        plain = standardise(x, self.mean, self.scale, dtype)
        if self.name in ("raw", "bins") or not len(self.ranked):
            return plain
        found = [np.interp(x[:, j], k, at) for j, k, at in self._columns()]
        ranks = np.column_stack(found).astype(dtype)
        if self.name == "both":
            return np.hstack([plain, ranks])
        plain[:, self.ranked] = ranks
        return plain

    def _columns(self) -> list[tuple[int, Array, Array]]:
        if self.name == "raw":
            return []
        return list(zip(self.ranked.tolist(), self.knots, self.levels))


def measure_inputs(x: Any, weights: Array) -> InputForm:
    """Moments and ranks of the columns, for use in any form; the name is "raw"."""
    mean, scale = column_moments(x, weights)
    ranked, knots, levels, bins = [], [], [], None
    if not sparse.issparse(x):
        step = -(-x.shape[0] // _MOST_MEASURED)
        grid = np.linspace(0, 1, _KNOTS)
        for j in range(x.shape[1]):
            column = np.sort(x[::step, j]).astype(np.float64)
            if np.count_nonzero(np.diff(column)) + 1 < _FEWEST or scale[j] == 0:
                continue
            values, place = np.unique(np.quantile(column, grid), return_inverse=True)
            if len(values) < _FEWEST:
                continue
            # where many rows share a value, the middle of their ranks
            level = np.bincount(place, grid) / np.bincount(place)
            ranked.append(j)
            knots.append(values)
            levels.append((2 * level - 1) * _EDGE)
        bins = measure_bins(x, np.array(ranked, np.intp))
    return InputForm("raw", mean, scale, np.array(ranked, np.intp), knots, levels, bins)
