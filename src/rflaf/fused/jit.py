"""The compiled loops, in numba. Nothing here checks its arguments: `cpu` does.

A tile of elements goes through two loops. The first locates them and writes the numbers of their
rows and their places t; the second reads each one's row of four numbers whole and transposes in
registers (`jit_vectors`). In one loop the numbers of the rows would have to be taken out of vectors
one by one, which takes longer than reading them from memory.

The kernels release the GIL; `rflaf.runtime.threads` runs them on one range of rows after another.

Arguments: matrices are flat, with the distance of their rows beside them, and start at the first of
`n` rows to do. `frame` and `cells` are those of `Table`. The upstream matrix is `dense`, or, where
that is empty, the product of `left` (n × C) and `right` (C × M).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rflaf.fused.jit_cache import ForgivingCache, NoCache, uninterrupted
from rflaf.fused.jit_memory import clear, dot_run, upstream_run, zeros
from rflaf.fused.jit_vectors import (
    both_run,
    continue_tails,
    evaluate_run,
    locate_run,
    slope_run,
    spread_run,
    tail_sums,
    unpacked,
)

TILE = 512  # elements of scratch, which stay in the first-level cache
_OPTIONS = {
    "nogil": True,
    "fastmath": {"contract", "nsz", "reassoc"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # who calls a kernel from machine code needs none
}
internal = njit(**_OPTIONS, no_cpython_wrapper=True)  # parts of kernels, which alone call them
inlined = njit(**_OPTIONS, no_cpython_wrapper=True, forceinline=True)  # and whose calls cost time


def compiled(function):
    """njit, safe from Ctrl-C, and kept on disk where some folder can be written."""
    dispatcher = njit(**_OPTIONS)(function)
    dispatcher.compile = uninterrupted(dispatcher.compile)
    # as njit's `cache` does with its own; there is no public way to give it another
    try:
        dispatcher._cache = ForgivingCache(function)
    except RuntimeError:  # "no locator available": read-only install, no cache folder
        dispatcher._cache = NoCache()
    return dispatcher


# ---- runs of consecutive elements ---------------------------------------------------------------


@inlined
def _gradient_run(rows, t, count, cells, frame, g, gi, moments, out, o):
    """Moments and, unless `out` is empty, slopes."""
    if out.size:
        both_run(rows, t, count, cells, frame, g, gi, moments, out, o)
    else:
        spread_run(rows, t, count, g, gi, moments)


# Loops go over slices from index 0: an index that numba cannot prove positive is checked for being
# negative, element by element, and the loop is not vectorised.


@inlined
def _dot_run(scratch, count, right, width, j, total):
    for c in range(total.size):
        total[c] += dot_run(scratch, 0, right, c * width + j, count)


# ---- kernels ------------------------------------------------------------------------------------


@compiled
def apply_rows(z, stride, width, cells, frame, out, out_stride, n):
    f = unpacked(frame)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    for r in range(n):
        for j in range(0, width, TILE):
            count, i, o = min(TILE, width - j), r * stride + j, r * out_stride + j
            locate_run(z, i, count, f, None, 0, rows, t)
            evaluate_run(rows, t, count, cells, out, o, None, 0)
            continue_tails(z, i, count, f, out, o)


@compiled
def backward_rows(
    z, stride, width, cells, frame, dense, dense_stride, left, right, moments, tails, out,
    out_stride, n,
):  # fmt: skip
    """Add the sums of g, gt, gt², gt³ over the cells to `moments`, and those of tails to `tails`.

    g sigma'(z) goes to `out`, which may be z. There is a kernel without the sums, for moments of
    None, and one without the slopes, for an `out` of None.
    """
    f = unpacked(frame)
    g = zeros(TILE, z.dtype)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    for r in range(n):
        for j in range(0, width, TILE):
            count, i = min(TILE, width - j), r * stride + j
            upstream_run(dense, r * dense_stride + j, left, r, right, width, j, count, g)
            locate_run(z, i, count, f, None, 0, rows, t)
            if moments is not None:
                spread_run(rows, t, count, g, 0, moments)
                tail_sums(z, i, count, f, g, tails)
            if out is not None:
                slope_run(z, i, rows, t, count, cells, f, g, out, r * out_stride + j)


@compiled
def predict_rows(z, stride, width, cells, frame, right, out, n):
    f = unpacked(frame)
    scratch = zeros(TILE, z.dtype)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    total = zeros(out.shape[1], np.float64)
    for r in range(n):
        clear(total)
        for j in range(0, width, TILE):
            count, i = min(TILE, width - j), r * stride + j
            locate_run(z, i, count, f, None, 0, rows, t)
            evaluate_run(rows, t, count, cells, scratch, 0, None, 0)
            continue_tails(z, i, count, f, scratch, 0)
            _dot_run(scratch, count, right, width, j, total)
        for c in range(total.size):
            out[r, c] = total[c]


# The kernels below take tables with a row for either tail (`Tables`), and do the columns
# from `first` to `stop`, of `width`. `together` columns go through all rows before the next do.
# With a table per channel, starts[k] is the first row of that of column `first` + k; else it is
# None, and numba compiles kernels without it.


@compiled
def own_apply_rows(z, width, first, stop, together, starts, cells, frame, out, n):
    f = unpacked(frame)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    for b in range(first, stop, together):
        end = min(b + together, stop)
        for r in range(n):
            for j in range(b, end, TILE):
                i, count = r * width + j, min(TILE, end - j)
                locate_run(z, i, count, f, starts, j - first, rows, t)
                evaluate_run(rows, t, count, cells, out, i, None, 0)


@compiled
def gradient_rows(z, width, first, stop, together, starts, cells, frame, dense, moments, out, n):
    """Sums over cells into `moments` and, unless it is empty, g sigma'(z) into `out`.

    The sums are in z's precision: few elements go into each.
    """
    f = unpacked(frame)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    for b in range(first, stop, together):
        end = min(b + together, stop)
        for r in range(n):
            for j in range(b, end, TILE):
                i, count = r * width + j, min(TILE, end - j)
                locate_run(z, i, count, f, starts, j - first, rows, t)
                _gradient_run(rows, t, count, cells, f, dense, i, moments, out, i)


@compiled
def add_copies(sums, total):
    """The sums of each row, which has `COPIES` of them, into `total`."""
    for row in range(total.shape[0]):
        for c in range(4):
            total[row, c] = (sums[row, 0, c] + sums[row, 1, c]) + (
                sums[row, 2, c] + sums[row, 3, c]
            )


# For one activation and the rows of Z that `order` names, of which the rest are in order.


@compiled
def readout_rows(z, order, width, cells, frame, right, phi, out):
    """sigma(Z) into `phi`, and its product with `right` (C × M) into `out`.

    False, and nothing, if `order` names a row that is not there.
    """
    for r in range(order.size):
        if not 0 <= order[r] < z.size // width:
            return False
    f = unpacked(frame)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    total = zeros(out.shape[1], np.float64)
    for r in range(order.size):
        clear(total)
        for j in range(0, width, TILE):
            count, o = min(TILE, width - j), r * width + j
            locate_run(z, order[r] * width + j, count, f, None, 0, rows, t)
            coming = order[min(r + 1, order.size - 1)] * width + j
            evaluate_run(rows, t, count, cells, phi, o, z, coming)
            _dot_run(phi[o:], count, right, width, j, total)
        for c in range(total.size):
            out[r, c] = total[c]
    return True


@compiled
def readout_gradient_rows(z, order, width, cells, frame, left, right, moments, out):
    """As `gradient_rows`, for the upstream matrix `left` (n × C) times `right` (C × M)."""
    f = unpacked(frame)
    g = zeros(TILE, z.dtype)
    rows, t = zeros(TILE, np.int32), zeros(TILE, z.dtype)
    for r in range(order.size):
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            upstream_run(None, 0, left, r, right, width, j, count, g)
            locate_run(z, order[r] * width + j, count, f, None, 0, rows, t)
            _gradient_run(rows, t, count, cells, f, g, 0, moments, out, r * width + j)
