"""Matrices as the kernels read them: flat memory, cut into ranges of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rflaf.fused.table import Array
from rflaf.runtime.threads import nobody_helps, parallel

Upstream = Any  # an n × M array, or its factors (R, V): R is n × C, V is M × C
_AT_ONCE = 1 << 22  # elements of one range at most: rows that are not contiguous are copied


class Chunks:
    """`chunks[a:b]` gives flat memory that starts at row a, and the distance of rows in it.

    Contiguous chunks are not copied, whatever their distance; others are, one range at a time.
    Views are read-only, so that the kernels are compiled for one kind of array.
    """

    def __init__(self, matrix: Array, writeable: bool = False) -> None:
        self._matrix = matrix
        self._flat: Array | None = None
        self._stride = matrix.shape[1]
        if matrix.flags.c_contiguous:
            self._flat = flat(matrix, writeable)
        elif has_flat_rows(matrix):
            n, m = matrix.shape
            self._stride = matrix.strides[0] // matrix.itemsize
            extent = ((n - 1) * self._stride + m,)
            self._flat = as_strided(matrix, extent, (matrix.itemsize,), writeable=writeable)
        elif writeable:
            raise ValueError("A result must have its rows whole in memory.")

    def __getitem__(self, rows: slice) -> tuple[Array, int]:
        if self._flat is None:
            return flat(np.ascontiguousarray(self._matrix[rows])), self._stride
        return self._flat[rows.start * self._stride :], self._stride


class UpstreamChunks:
    """The upstream matrix G, dense or as factors (R, V) with G = R V'."""

    def __init__(self, upstream: Upstream, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        nothing = np.empty(0, dtype)
        self._dense: Chunks | None = None
        if isinstance(upstream, tuple):
            left, right = (as_columns(np.asarray(part, dtype)) for part in upstream)
            left, right = np.ascontiguousarray(left), np.ascontiguousarray(right.T)
            if (left.shape[0], right.shape[1]) != shape or left.shape[1] != right.shape[0]:
                raise ValueError(
                    f"'upstream' as factors (R, V) must have the shapes ({shape[0]}, C) and "
                    f"({shape[1]}, C). Got {left.shape} and {right.shape[::-1]}."
                )
            if left.shape[1] == 0:
                left, right = np.zeros((shape[0], 1), dtype), np.zeros((1, shape[1]), dtype)
            self._left, self._right = left, right
            self._factors = Chunks(left), flat(right)
        else:
            dense = np.asarray(upstream, dtype)
            if dense.shape != shape:
                raise ValueError(
                    f"'upstream' must have the shape of 'z', {shape}, or be a tuple of factors. "
                    f"Got {dense.shape}."
                )
            self._matrix, self._dense = dense, Chunks(dense)
        self._nothing = flat(nothing)

    def __getitem__(self, rows: slice) -> tuple[Array, int, Array, Array]:
        if self._dense is not None:
            return *self._dense[rows], self._nothing, self._nothing
        left, right = self._factors
        return self._nothing, 0, left[rows][0], right

    def block(self, rows: slice) -> Array:
        if self._dense is not None:
            return self._matrix[rows]
        return np.asarray(self._left[rows] @ self._right)


def as_columns(array: Array) -> Array:
    """A vector as a matrix of one column; a matrix as it is."""
    return array[:, None] if array.ndim == 1 else array


def flat(array: Array, writeable: bool = False) -> Array:
    """A view of a contiguous array as a vector."""
    view = array.reshape(-1)
    view.flags.writeable = writeable
    return view


def has_flat_rows(matrix: Array) -> bool:
    """Whether every row is contiguous in memory, and the rows are in order."""
    if matrix.flags.c_contiguous:
        return True
    if matrix.ndim != 2 or 0 in matrix.shape:
        return False
    down, across = matrix.strides
    whole = across == matrix.itemsize or matrix.shape[1] == 1
    return whole and down % matrix.itemsize == 0 and down >= matrix.shape[1] * matrix.itemsize


def split_rows(shape: tuple[int, int], elements: int, most: int | None = None) -> list[slice]:
    """Ranges of rows of about `elements` elements each, at most `most`, by the shape alone."""
    n, m = shape
    if n == 0:
        return []
    step = max(1, elements // max(m, 1))
    if most is not None:
        step = max(step, -(-n // most))
    return [slice(k, min(k + step, n)) for k in range(0, n, step)]


def for_each(task: Callable[[slice], None], ranges: list[slice]) -> None:
    """Run `task` on each of the `ranges` of rows, on the threads that are free."""
    parallel(lambda k: task(ranges[k]), len(ranges))


def for_all_rows(task: Callable[[slice], None], shape: tuple[int, int], elements: int) -> None:
    """Run `task` on ranges of rows that do not depend on one another, nor on how they are cut.

    The ranges are large if no thread is free to help: each kernel call takes the GIL, and parallel
    fits would wait for each other.
    """
    if nobody_helps():
        elements = max(elements, _AT_ONCE)
    for_each(task, split_rows(shape, elements))
