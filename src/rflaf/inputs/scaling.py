"""Standardising inputs, dense or sparse, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rflaf.arrays import Array
from rflaf.runtime.callers import warn

FINEST = 1e-300  # of a column's largest value; the inverse of a smaller one may overflow
FARTHEST = 1e15  # standard deviations; further out, sums of float32 products would overflow


def column_moments(x: Any, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of each column, in float64.

    The deviation is 0 for columns that are constant up to rounding, or all below 1e-300. Sparse
    columns stay sparse: their mean counts as 0.
    """
    share = weights / weights.sum()
    if sparse.issparse(x):
        largest = _positive(abs(x).max(axis=0).toarray().ravel())
        scaled = x @ sparse.diags_array(1 / np.maximum(largest, FINEST))
        square = np.asarray(scaled.multiply(scaled).T @ share).ravel()
        return np.zeros(x.shape[1]), np.where(largest < FINEST, 0.0, np.sqrt(square) * largest)
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
    std[(std <= 4 * np.finfo(x.dtype).eps) | (unit < FINEST)] = 0
    return (first + shift) * unit, std * unit


def warn_of_tiny(x: Any, names: Callable[[], Sequence[str]]) -> None:
    """Warn of columns that are constant only because all their values are below 1e-300."""
    if sparse.issparse(x):
        likely = np.arange(x.shape[1])
        largest = abs(x).max(axis=0).toarray().ravel()
    else:
        likely = np.flatnonzero((np.abs(x[:100]) < FINEST).all(axis=0))  # few, or none
        largest = np.abs(x[:, likely]).max(axis=0)
    tiny = likely[(largest > 0) & (largest < FINEST)]
    if len(tiny):
        shown = ", ".join(repr(str(names()[k])) for k in tiny.tolist())
        warn(
            f"All values are below {FINEST:g} in column {shown}, which counts as constant. Use "
            "another unit."
        )


def _positive(largest: Array) -> Array:
    return np.where(largest > 0, largest, 1.0).astype(np.float64)


def standardise(x: Any, mean: Array, scale: Array, dtype: Any) -> Any:
    """(x - mean) / scale in `dtype`; 0 where the scale is 0. With means 0, sparse rows stay so."""
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
