"""Training: values, and then the sums for the coefficients and the gradient for z in one pass.

There is one activation for all of z, or one per channel. Either way z is outer × C × inner, with a
table for each of the C channels. A table has a row for either tail, so that straight lines outside
the grid cost nothing; the sums over cells have the same rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rflaf.fused.chunks import as_columns, split_rows
from rflaf.fused.table import Array
from rflaf.fused.threads import parallel

_CHUNK = 1 << 15  # elements at a time, as in `cpu`
_SUMS_CHUNK = 3 << 15  # larger, because each range has sums of its own
_TILE = 512  # columns at a time, of which scratch stays in the first-level cache
_TOGETHER = 64  # channels at a time, whose tables stay in the second-level cache
_FARTHEST = {"f": 1e30, "d": 1e290}  # where straight tails end, so that nothing overflows


class Tables(NamedTuple):
    """The cubics of C channels on one layout, in the precision of z.

    `cells`, C × (n_cells + 2) × 4, begins and ends with the tails. `frame` says where they lie, as
    that of `rflaf.fused.Table` does.
    """

    cells: Array
    frame: Array


def tables_frame(low: float, cell: float, n_cells: int, straight: bool, dtype: Any) -> Array:
    """The frame of `Tables`. Without `straight` tails z is held in the rows of the tails."""
    inverse, shift = 1 / cell, 1 - low / cell
    coarse, whole = float(np.float32(inverse)), float(np.round(shift))
    far = _FARTHEST[np.dtype(dtype).char]
    bounds = (-far, far) if straight else (low - cell / 2, low + (n_cells + 0.5) * cell)
    place = (*bounds, coarse, inverse - coarse, whole, shift - whole, 0.0, 0.0, n_cells + 1)
    return np.array(place, dtype)


def apply_tables(tables: Tables, z: Array, out: Array) -> None:
    """sigma_c(z) of every channel c by its table in `tables`, into `out`.

    z and out are contiguous, outer × C × inner.
    """
    from rflaf.fused.jit import own_apply_rows

    source, target = z.reshape(-1), out.reshape(-1)
    tasks = _tasks(z.shape, _CHUNK)

    def task(k: int) -> None:
        part, place, n = tasks[k]
        own_apply_rows(source[part], *place, *tables, target[part], n)

    parallel(task, len(tasks))


def cell_sums(
    tables: Tables, z: Array, upstream: Any, dz: Array | None = None, sums: Array | None = None
) -> Array:
    """The sums of g, gt, gt², gt³ over the cells, shaped as `tables.cells`.

    With several channels they may go to `sums`; g times sigma'(z) goes to `dz` where it is given.
    `upstream` is g itself, or, with one channel, factors (R, V) with g = R V' of outer × inner. All
    arrays are contiguous and of one dtype.
    """
    from rflaf.fused.jit import gradient_rows

    _, channels, inner = z.shape
    nothing = np.empty(0, z.dtype)
    dense, left, right, rank, width = nothing, nothing, nothing, 0, 0
    if isinstance(upstream, tuple):
        rows, columns = (as_columns(part) for part in upstream)
        rank, width = len(columns.T), inner
        left, right = rows.reshape(-1), np.ascontiguousarray(columns.T).reshape(-1)
    else:
        dense = upstream.reshape(-1)
    source = z.reshape(-1)
    target = nothing if dz is None else dz.reshape(-1)
    tasks = _tasks(z.shape, _SUMS_CHUNK if channels == 1 else _CHUNK, width)
    copies = len(tasks) if channels == 1 else 1  # channels have their own sums in any case
    shape = copies, *tables.cells.shape
    moments = np.empty(shape, z.dtype) if sums is None or copies > 1 else sums[None]
    moments.fill(0)

    def task(k: int) -> None:
        part, place, n = tasks[k]
        rows = slice(part.start // place[0] * rank, part.stop // place[0] * rank)
        factors = left[rows], right
        own = moments[k if copies > 1 else 0]
        given = dense[part], *factors, own, target[part], n
        gradient_rows(source[part], *place, *tables, *given)

    parallel(task, len(tasks))
    return moments[0] if copies == 1 else moments.sum(axis=0, dtype=np.float64)


Place = tuple[int, int, int, int, int]  # width, first, stop, inner, tile


def _tasks(shape: Any, elements: int, width: int = 0) -> list[tuple[slice, Place, int]]:
    """Parts of about `elements` elements by the shape alone: where they lie, and how many rows.

    One channel is cut into ranges of rows of `width`, if given, and else of any length. Several are
    cut into ranges of channels.
    """
    outer, channels, inner = shape
    size = outer * channels * inner
    if channels == 1:
        width = width or min(_TILE, max(size, 1))
        ranges = split_rows((size // width, width), elements)
        pieces = [(rows.start * width, rows.stop * width, width) for rows in ranges]
        if size % width:
            pieces.append((size // width * width, size, size % width))
        return [
            (slice(start, stop), (across, 0, across, across, min(_TILE, across)), n)
            for start, stop, across in pieces
            for n in [(stop - start) // across]
        ]
    step = max(1, elements // max(outer * inner, 1))
    if step > _TOGETHER:
        step = step // _TOGETHER * _TOGETHER
    tile = min(_TILE, _TOGETHER * inner)
    starts = range(0, channels if size else 0, step)
    stops = [min(c + step, channels) for c in starts]
    return [
        (slice(0, size), (channels * inner, c * inner, stop * inner, inner, tile), outer)
        for c, stop in zip(starts, stops)
    ]
