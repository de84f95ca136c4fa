"""The form in which inputs enter a model: standardised, as ranks, or both side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.fitting.scaling import column_moments, standardise

Array = NDArray[Any]

FORMS = ("raw", "both", "ranks")
_KNOTS = 65  # quantiles that a column's ranks are read from
_FEWEST = 5  # different values that a column needs for its ranks to be another thing
_MOST_MEASURED = 100_000  # rows that quantiles are taken of
_EDGE = np.sqrt(3.0)  # ranks lie in [-sqrt(3), sqrt(3)], where they have unit variance


@dataclass(frozen=True)
class InputForm:
    """What becomes of the columns.

    Attributes
    ----------
    name : {"raw", "both", "ranks"}
        Standardised columns; these and their ranks; ranks where a column has many values.
    mean, scale : array of d
    ranked : array of int
        The columns of which ranks are taken.
    knots, levels : list of array
        For each of these, increasing values and their ranks. Between them ranks are linear, and
        constant beyond the last.
    """

    name: str
    mean: Array
    scale: Array
    ranked: NDArray[np.intp]
    knots: list[Array]
    levels: list[Array]

    @property
    def scales(self) -> Array:
        """What each column of the result was divided by; 1 for ranks."""
        if self.name == "raw":
            return self.scale
        if self.name == "both":
            return np.concatenate([self.scale, np.ones(len(self.ranked))])
        scales = self.scale.copy()
        scales[self.ranked] = 1.0
        return scales

    @property
    def origin(self) -> NDArray[np.intp]:
        """The input that each column of the result comes from."""
        columns = np.arange(len(self.mean))
        return np.concatenate([columns, self.ranked]) if self.name == "both" else columns

    @property
    def stays_sparse(self) -> bool:
        """Whether sparse inputs stay so: there is nothing to subtract, and no rank to read."""
        return not self.mean.any() and (self.name == "raw" or not len(self.ranked))

    def __call__(self, x: Any, dtype: Any) -> Any:
        """Inputs as the layer takes them."""
        if sparse.issparse(x) and not self.stays_sparse:
            x = x.toarray()
        plain = standardise(x, self.mean, self.scale, dtype)
        if self.name == "raw" or not len(self.ranked):
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
    ranked, knots, levels = [], [], []
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
    return InputForm("raw", mean, scale, np.array(ranked, np.intp), knots, levels)
