"""Training: values, and then the sums for the coefficients and the gradient for z in one pass.

There is one activation for all of z, or one per channel. Either way z is outer × C × inner, with a
table for each of the C channels. A table has a row for either tail, so that straight lines outside
the grid cost nothing; the sums over cells have the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rflaf.fused.chunks import as_columns, split_rows
from rflaf.fused.table import Array, table_frame
from rflaf.runtime.threads import parallel

_CHUNK = 1 << 15  # elements at a time, as in `cpu`
_ONE_CHUNK = 6 << 15  # with one channel: larger, because each range has sums of its own
_ACROSS = 512  # columns that go through all rows together, where each channel has its table
_TOGETHER = 64  # channels of them at most, whose tables stay in the second-level cache
_FARTHEST = {"f": 1e30, "d": 1e290}  # where straight tails end, so that nothing overflows


class Tables(NamedTuple):
    """The cubics of C channels on one layout, in the precision of z.

    `cells`, C × (n_cells + 2) × 4, begins and ends with the tails. `frame` says where they lie, as
    that of `rflaf.fused.Table` does.
    """

    cells: Array
    frame: Array


def tables_frame(low: float, cell: float, n_cells: int, straight: bool, dtype: Any) -> Array:
    """The frame of `Tables` of `n_cells` cells, `cell` wide, from `low` on.

    Without `straight` tails z is held in the rows of the tails.
    """
    frame = table_frame(low - cell, cell, n_cells + 1, np.zeros(2))  # the first row is a tail's
    far = _FARTHEST[np.dtype(dtype).char]
    frame[:2] = (-far, far) if straight else (low - cell / 2, low + (n_cells + 0.5) * cell)
    return frame.astype(dtype)


def apply_tables(tables: Tables, z: Array, out: Array) -> None:
    """sigma_c(z) of every channel c by its table in `tables`, into `out`.

    z and out are contiguous, outer × C × inner.
    """
    from rflaf.fused.jit import own_apply_rows

    source, target = z.reshape(-1), out.reshape(-1)
    tasks = _tasks(z.shape, tables.cells.shape[1])

    def task(k: int) -> None:
        part, channels, place, n = tasks[k]
        own_apply_rows(source[part], *place, tables.cells[channels], tables.frame, target[part], n)

    parallel(task, len(tasks))


def cell_sums(
    tables: Tables, z: Array, upstream: Array, dz: Array | None = None, sums: Array | None = None
) -> Array:
    """The sums of g, gt, gt², gt³ over the cells, shaped as `tables.cells`; g is `upstream`.

    With several channels they may go to `sums`; g times sigma'(z) goes to `dz` where it is given.
    All arrays are contiguous and of one dtype.
    """
    from rflaf.fused.jit import gradient_rows

    source, dense = z.reshape(-1), upstream.reshape(-1)
    target = np.empty(0, z.dtype) if dz is None else dz.reshape(-1)
    tasks = _tasks(z.shape, tables.cells.shape[1])
    one = z.shape[1] == 1
    moments = None
    if not one:  # these have their own sums in any case
        moments = np.empty(tables.cells.shape, z.dtype) if sums is None else sums
        moments.fill(0)

    def add(k: int, own_sums: Array) -> None:
        part, channels, place, n = tasks[k]
        own = tables.cells[channels], tables.frame
        gradient_rows(source[part], *place, *own, dense[part], own_sums, target[part], n)

    if moments is None:
        return _sums_of_tasks(add, len(tasks), tables)
    parallel(lambda k: add(k, moments[tasks[k][1]].reshape(-1, 4)), len(tasks))
    return moments


def readout_tables(tables: Tables, z: Array, order: Array, v: Array, phi: Array) -> Array:
    """sigma(Z) V, n × C, of one activation, and sigma(Z) into `phi`; V is M or M × C.

    Z is the n rows of `z` that `order` names, and `tables` has the activation. Arrays are
    contiguous and of one dtype; order, int64.
    """
    from rflaf.fused.jit import readout_rows

    n, width = len(order), z.shape[1]
    right = np.ascontiguousarray(as_columns(v).T)
    out = np.empty((n, len(right)), z.dtype)
    source, target, right = z.reshape(-1), phi.reshape(-1), right.reshape(-1)
    ranges = split_rows((n, width), _ONE_CHUNK)
    right_order = [False] * len(ranges)

    def task(k: int) -> None:
        rows = ranges[k]
        values = target[rows.start * width : rows.stop * width]
        given = right, values, out[rows]
        right_order[k] = readout_rows(source, order[rows], width, *tables, *given)

    parallel(task, len(ranges))
    if not all(right_order):
        raise IndexError(
            f"The rows to read must be numbers from 0 to {len(z) - 1}. "
            f"Got {order.min()} to {order.max()} instead."
        )
    return out


def readout_sums(
    tables: Tables, z: Array, order: Array, v: Array, upstream: Array, dz: Array | None = None
) -> Array:
    """`cell_sums` for what `readout_tables` was given, and the gradient for its result.

    `tables`, `z`, `order` and `v` are as there. The gradient for sigma(Z) is the product upstream
    V', which is never formed; that for Z goes to `dz` where it is given.
    """
    from rflaf.fused.jit import readout_gradient_rows

    n, width = len(order), z.shape[1]
    left, right = as_columns(upstream), np.ascontiguousarray(as_columns(v).T)
    rank = len(right)
    source, left, right = z.reshape(-1), left.reshape(-1), right.reshape(-1)
    target = np.empty(0, z.dtype) if dz is None else dz.reshape(-1)
    ranges = split_rows((n, width), _ONE_CHUNK)

    def add(k: int, own_sums: Array) -> None:
        rows = ranges[k]
        factors = left[rows.start * rank : rows.stop * rank], right
        slopes = target[rows.start * width : rows.stop * width]
        place = source, order[rows], width
        readout_gradient_rows(*place, *tables, *factors, own_sums, slopes)

    return _sums_of_tasks(add, len(ranges), tables)


def _sums_of_tasks(add: Callable[[int, Array], None], n_tasks: int, tables: Tables) -> Array:
    """The total of what every task adds to sums of its own, for one activation."""
    from rflaf.fused.jit import add_copies
    from rflaf.fused.jit_vectors import COPIES

    _, n_rows, _ = tables.cells.shape
    totals = np.empty((n_tasks, n_rows, 4))

    def task(k: int) -> None:
        own_sums = np.zeros((n_rows, COPIES, 4), tables.cells.dtype)
        add(k, own_sums)
        add_copies(own_sums, totals[k])

    parallel(task, n_tasks)
    return totals if n_tasks == 1 else totals.sum(axis=0, keepdims=True)


Place = tuple[int, int, int, int, Any]  # width, first, stop, together, starts


@lru_cache(maxsize=64)  # every step of training asks twice
def _tasks(shape: Any, n_rows: int) -> list[tuple[slice, slice, Place, int]]:
    """Parts of z, flat, by its shape alone, and the channels of each.

    One channel is cut into ranges of elements, several into ranges of channels, with tables of
    `n_rows` each. Then there are the arguments of the kernels that tell where in the part to work,
    and how many rows it has.
    """
    outer, channels, inner = shape
    size = outer * channels * inner
    if channels == 1:
        parts = [slice(k, min(k + _ONE_CHUNK, size)) for k in range(0, size, _ONE_CHUNK)]
        lengths = [part.stop - part.start for part in parts]
        return [
            (part, slice(0, 1), (length, 0, length, length, None), 1)
            for part, length in zip(parts, lengths)
        ]
    step = max(1, _CHUNK // max(outer * inner, 1))
    if step > _TOGETHER:
        step = step // _TOGETHER * _TOGETHER
    # for the columns of so many channels, the first rows of their tables
    starts = np.repeat(np.arange(min(step, channels), dtype=np.int32) * n_rows, inner)
    together = min(_ACROSS, _TOGETHER * inner)
    tasks = []
    for c in range(0, channels if size else 0, step):
        own = slice(c, min(c + step, channels))
        place = channels * inner, own.start * inner, own.stop * inner, together, starts
        tasks.append((slice(0, size), own, place, outer))
    return tasks
