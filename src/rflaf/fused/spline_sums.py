"""Sums of splines over the edges of a layer, degree + 1 of each edge's N: the rest are zero.

    y_rj = sum over i, k of B_k(x_ri) c_ikj

A dense product would multiply all N of them. All arrays are contiguous and of one dtype, float32 or
float64.
"""

from __future__ import annotations

import numpy as np

from rflaf.fused.chunks import for_each, split_rows
from rflaf.fused.table import Array, Float64
from rflaf.runtime.threads import parallel

_CHUNK = 1 << 16  # products at a time
_COPIES = 4  # at most, of the gradient for c


def combine_splines(x: Array, low: float, spacing: float, pieces: Float64, c: Array) -> Array:
    """y, n × out, for x of n × in and c of in × N × out.

    The last cell of the first spline begins at `low`. `pieces` has the splines on one cell, powers
    × splines.
    """
    from rflaf.fused.jit_splines import spline_rows

    out = np.empty((x.shape[0], c.shape[2]), x.dtype)
    ranges = split_rows((x.shape[0], _products(x, pieces, c)), _CHUNK)
    for_each(lambda r: spline_rows(x[r], low, 1 / spacing, pieces, c, out[r]), ranges)
    return out


def spline_gradients(
    x: Array, low: float, spacing: float, pieces: Float64, c: Array, g: Array
) -> tuple[Array, Array]:
    """The gradients for x and c, from that for y, `g`.

    `low` and `pieces` are those of `combine_splines`.
    """
    from rflaf.fused.jit_splines import spline_gradient_rows

    ranges = split_rows((x.shape[0], _products(x, pieces, c)), 4 * _CHUNK, _COPIES)
    dx, dc = np.empty_like(x), np.zeros((len(ranges), *c.shape), c.dtype)

    def task(k: int) -> None:
        r = ranges[k]
        spline_gradient_rows(x[r], low, 1 / spacing, pieces, c, g[r], dx[r], dc[k])

    parallel(task, len(ranges))
    return dx, dc[0] if len(ranges) == 1 else dc.sum(axis=0)


def _products(x: Array, pieces: Float64, c: Array) -> int:
    """Products per row."""
    return int(x.shape[1] * pieces.shape[0] * c.shape[2])
