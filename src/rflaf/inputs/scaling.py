"""Standardising inputs, dense or sparse, in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]

FARTHEST = 1e15  # standard deviations; further out, sums of float32 products would overflow


def column_moments(x: Any, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of each column, in float64.

    A column that does not vary, up to rounding, has the standard deviation 0. Sparse columns keep
    the mean 0, so that they stay sparse, and are measured from there.
    """
    share = weights / weights.sum()
    if sparse.issparse(x):
        largest = _positive(abs(x).max(axis=0).toarray().ravel())
        scaled = x @ sparse.diags_array(1 / largest)
        square = np.asarray(scaled.multiply(scaled).T @ share).ravel()
        return np.zeros(x.shape[1]), np.sqrt(square) * largest
    largest = np.zeros(x.shape[1])
    for rows in _blocks(x.shape):
        largest = np.maximum(largest, np.abs(x[rows]).max(axis=0))
    unit = _positive(largest)  # squares of very large or small numbers would be lost
    first = x[0] / unit  # measured from here, a column that does not vary is exactly 0
    shift, variance = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for rows in _blocks(x.shape):
        shift += share[rows] @ (x[rows] / unit - first)
    for rows in _blocks(x.shape):
        variance += share[rows] @ (x[rows] / unit - first - shift) ** 2
    std = np.sqrt(variance)
    std[std <= 4 * np.finfo(x.dtype).eps] = 0
    return (first + shift) * unit, std * unit


def _positive(largest: Array) -> Array:
    return np.where(largest > 0, largest, 1.0).astype(np.float64)


def standardise(x: Any, mean: Array, scale: Array, dtype: Any) -> Any:
    """(x - mean) / scale in `dtype`; columns with the scale 0 become 0.

    Sparse rows stay sparse where the means are zero, as those of sparse rows are.
    """
    if sparse.issparse(x) and mean.any():
        x = x.toarray()
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    if sparse.issparse(x):
        scaled = x.tocsr() @ sparse.diags_array(inverse)
        scaled.data = np.clip(scaled.data, -FARTHEST, FARTHEST)
        return scaled.astype(dtype)
    blocks = _blocks(x.shape)
    out = np.empty(x.shape, dtype)
    with np.errstate(over="ignore"):
        for rows in blocks:
            scaled = (x[rows] - mean) * inverse
            np.minimum(np.maximum(scaled, -FARTHEST, out=scaled), FARTHEST, out=scaled)
            out[rows] = scaled
    return out


def _blocks(shape: tuple[int, ...]) -> list[slice]:
    step = max(1, (1 << 21) // max(shape[1], 1))
    return [slice(k, k + step) for k in range(0, shape[0], step)]
