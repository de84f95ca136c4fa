"""Rows that are there more than once: copies must not be on both sides of a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.arrays import Array

_SEVERAL = 20  # values of a column that may tell rows apart


def repeated_rows(x: Any, y: Array) -> NDArray[np.intp] | None:
    """For each row the number of the first that it repeats; None where no row repeats another.

    Where a column of measurements tells most rows apart, rows with the same inputs are copies.
    Inputs that are combinations of a few levels are meant to come again: there only rows whose
    measured target is the same, too, are copies. Rows of one class are not: all in one fold, they
    would leave the other classes to the other folds.
    """
    x = x.tocsc().astype(np.float64) if sparse.issparse(x) else np.asarray(x, np.float64)
    if not len(y):
        return None
    inputs = _codes(_hashes(x))
    count = int(inputs.max()) + 1
    if count == len(y):
        return None
    if _has_measurements(x, count):
        codes = inputs
    elif y.dtype.kind == "f" and _has_measurements(y.reshape(len(y), -1), count):
        codes = _codes(_hashes(x) ^ _hashes(y.reshape(len(y), -1) + 1.0))
    else:
        return None
    first = np.unique(codes, return_index=True)[1]
    return None if len(first) in (1, len(y)) else first[codes]


def _codes(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    """A number for each different hash."""
    return np.unique(hashes, return_inverse=True)[1].ravel()


def _hashes(x: Any) -> NDArray[np.uint64]:
    """A 64-bit number for each row; those of different rows are equal once in 2^64 pairs.

    They are sums of products with random odd numbers. Zeros add nothing, so that sparse rows have
    those of dense ones.
    """
    factors = 2 * np.asarray(np.random.default_rng(0).integers(0, 2**63, x.shape[1], np.uint64)) + 1
    hashes = np.zeros(x.shape[0], np.uint64)
    with np.errstate(over="ignore"):
        for j in range(x.shape[1]):
            rows, values = _column(x, j)
            bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # -0.0 is 0.0
            bits = bits ^ (bits >> np.uint64(32))  # whole numbers differ in their upper bits alone
            mixed = bits * factors[j]
            hashes[rows] += mixed ^ (mixed >> np.uint64(29))
    return hashes


def _column(x: Any, j: int) -> tuple[Any, Array]:
    """The rows of a column that are not zero, and their values; all rows of a dense one."""
    if not sparse.issparse(x):
        return slice(None), x[:, j]
    at = slice(x.indptr[j], x.indptr[j + 1])
    return x.indices[at], x.data[at]


def _has_measurements(x: Any, count: int) -> bool:
    """Whether some column of non-integers has at least half as many values as there are rows."""
    least = max(_SEVERAL, count / 2)
    for j in range(x.shape[1]):
        values = _column(x, j)[1]
        if len(values) < least or (values == np.round(values)).all():
            continue
        if len(np.unique(values)) >= least:
            return True
    return False
