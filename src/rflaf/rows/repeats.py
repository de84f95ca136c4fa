"""Rows that are there more than once: copies must not be on both sides of a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SEVERAL = 20  # values of a column that may tell rows apart


def repeated_rows(x: Array, y: Array) -> NDArray[np.intp] | None:
    """For each row the number of the first that it repeats; None where no row repeats another.

    Rows with the same inputs and targets are copies. Rows with the same inputs and other targets
    repeat one another where a column of measurements tells most rows apart: then nobody will ask
    for these inputs again. Inputs that are combinations of a few levels are meant to come again.
    """
    x = np.asarray(x, np.float64)
    if not len(x):
        return None
    inputs = _codes(x)
    count = int(inputs.max()) + 1
    if count == len(x):
        return None
    if _has_measurements(x, count):
        codes = inputs
    else:
        targets = np.unique(y.reshape(len(y), -1), axis=0, return_inverse=True)[1].ravel()
        codes = _codes(np.column_stack([inputs, targets]).astype(np.float64))
    first = np.unique(codes, return_index=True)[1]
    return None if len(first) in (1, len(x)) else first[codes]


def _codes(x: Array) -> NDArray[np.intp]:
    """A number for each different row.

    Rows are compared by sums of 64-bit products with random odd numbers. Two different rows have
    the same sum with a probability of 2^-64.
    """
    bits = np.ascontiguousarray(x + 0.0).view(np.uint64)  # -0.0 is 0.0
    rng = np.random.default_rng(0)
    bits = bits ^ (bits >> np.uint64(32))  # whole numbers differ in their upper bits alone
    factors = 2 * np.asarray(rng.integers(0, 2**63, x.shape[1], dtype=np.uint64)) + np.uint64(1)
    sums = np.zeros(len(x), np.uint64)
    with np.errstate(over="ignore"):
        for k in range(x.shape[1]):
            mixed = bits[:, k] * factors[k]
            sums += mixed ^ (mixed >> np.uint64(29))
    return np.unique(sums, return_inverse=True)[1].ravel()


def _has_measurements(x: Array, count: int) -> bool:
    """Whether some column of non-integers has at least half as many values as there are rows."""
    least = max(_SEVERAL, count / 2)
    for column in x.T:
        if (column != np.round(column)).any() and len(np.unique(column)) >= least:
            return True
    return False
