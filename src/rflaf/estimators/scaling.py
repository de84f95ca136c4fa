"""Standardising inputs, dense or sparse, in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]

_FARTHEST = 1e15  # standard deviations; further out, sums of float32 products would overflow


def column_moments(x: Any, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of each column, in float64.

    A column that does not vary, up to rounding, has the standard deviation 0. Sparse columns keep
    the mean 0, so that they stay sparse, and are measured from there.
    """
    share = weights / weights.sum()
    if sparse.issparse(x):
        square = np.asarray(x.multiply(x).T @ share).ravel()
        return np.zeros(x.shape[1]), np.sqrt(square)
    first = x[0].astype(np.float64)  # measured from here, a column that does not vary is exactly 0
    shift = np.zeros(x.shape[1])
    for rows in _blocks(x.shape):
        shift += share[rows] @ (x[rows].astype(np.float64) - first)
    mean = first + shift
    variance, largest = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for rows in _blocks(x.shape):
        centred = x[rows].astype(np.float64) - mean
        variance += share[rows] @ centred**2
        largest = np.maximum(largest, np.abs(x[rows]).max(axis=0))
    std = np.sqrt(variance)
    std[(std <= 4 * np.finfo(x.dtype).eps * largest) | (shift == 0) & (std <= 1e-9 * largest)] = 0
    return mean, std


def standardise(x: Any, mean: Array, scale: Array, dtype: Any) -> Any:
    """(x - mean) / scale in `dtype`; columns with the scale 0 become 0."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    if sparse.issparse(x):
        return (x.tocsr() @ sparse.diags_array(inverse)).astype(dtype)
    out = np.empty(x.shape, dtype)
    for rows in _blocks(x.shape):
        with np.errstate(over="ignore"):
            scaled = (x[rows] - mean) * inverse
        out[rows] = np.clip(scaled, -_FARTHEST, _FARTHEST)
    return out


def _blocks(shape: tuple[int, ...]) -> list[slice]:
    step = max(1, (1 << 21) // max(shape[1], 1))
    return [slice(k, k + step) for k in range(0, shape[0], step)]
