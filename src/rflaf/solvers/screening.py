"""Which inputs matter, alone or in pairs, before anything is learned.

Where few of many inputs matter, and only together, the features of an isotropic start are nearly
constant in each of them, and their gradients are noise. Means of the targets over cells of one and
of two inputs see both cases, at the cost of one product of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf import rules
from rflaf.arrays import Array, Float64
from rflaf.solvers.features import as_array


def screened(x: Any, y: Array, weights: Array) -> Float64 | None:
    """The share of the targets' variance that each input explains, alone or with another one.

    None where no input stands out from chance.
    """
    n, d = x.shape
    if n < rules.SCREENED_LEAST or not 1 < d <= rules.SCREENED_INPUTS:
        return None
    step = -(-n // rules.SCREENED_ROWS)
    x, y, weights = as_array(x[::step]), y[::step], weights[::step]
    share = weights / weights.sum()
    if not (np.ptp(y, axis=0) > 0).any():
        return None
    y = np.asarray(y - share @ y, np.float64)
    size = np.abs(y) - share @ np.abs(y)  # a product of three inputs moves no mean of two
    size *= np.sqrt(share @ y**2 / np.maximum(share @ size**2, 1e-300))
    y = np.hstack([y, size])
    variance = float(share @ np.sum(y**2, axis=1))
    cells, of_input = _cells(x)
    heavy = cells * (share * len(share))[:, None].astype(cells.dtype)
    counts = np.asarray(cells.T @ heavy, np.float64)
    between = np.zeros_like(counts)
    for target in y.T:
        sums = np.asarray(cells.T @ (heavy * target[:, None].astype(cells.dtype)), np.float64)
        between += np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
    first = np.flatnonzero(np.diff(of_input, prepend=-1))
    pairs = np.add.reduceat(np.add.reduceat(between, first, axis=0), first, axis=1)
    return _shares(pairs / (len(x) * variance), np.diff(np.append(first, len(of_input))), len(x))


def _cells(x: Array) -> tuple[Array, Array]:
    """Whether each row is in each cell of each input, n × cells, and the input of each cell."""
    grid = np.linspace(0, 1, rules.SCREENED_CELLS + 1)[1:-1]
    columns, of_input = [], []
    for j, column in enumerate(x.T):
        place = np.searchsorted(np.unique(np.quantile(column, grid)), column, side="left")
        for cell in np.unique(place):
            columns.append(place == cell)
            of_input.append(j)
    return np.column_stack(columns).astype(np.float32), np.array(of_input)


def _shares(pairs: Float64, sizes: Array, n: int) -> Float64 | None:
    """Shares of inputs from those of all pairs; what chance may explain does not count."""
    alone = pairs.diagonal().copy()
    main = np.maximum(alone - _chance(sizes - 1.0, len(sizes)) / n, 0)
    together = pairs - alone[:, None] - alone
    chance = _chance(np.outer(sizes - 1.0, sizes - 1.0), len(sizes) ** 2) / n
    together = np.maximum(together - chance, 0)
    np.fill_diagonal(together, 0)
    found = main + together.sum(axis=1)
    return found if found.max() > 0 else None


def _chance(freedom: Any, count: int) -> Any:
    """About the largest of `count` sums of that many squares of normal numbers."""
    deviation = np.sqrt(2 * np.log(max(count, 2)))
    return freedom + deviation * np.sqrt(2 * freedom) + deviation**2
