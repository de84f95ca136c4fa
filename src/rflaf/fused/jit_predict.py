"""Predictions from inputs, in numba: products by BLAS, a tile of Z at a time."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import TILE, _apply_run, _dot_run, _scratch, _unpack, compiled
from rflaf.fused.jit_blas import tile_of_product

_ROWS = 64  # at most, whose tile of Z stays in the second-level cache
_ALONE = 1 << 18  # products up to which OpenBLAS wakes no threads of its own


@compiled
def predict_inputs_rows(blas, x, stride, d, w, width, cells, frame, right, out, n):
    """sigma(X W) V for rows of X that are `stride` apart; V is `right`, C × M."""
    f = _unpack(frame)
    outputs = out.shape[1]
    most = max(1, min(_ROWS, n, _ALONE // (TILE * max(d, 1))))
    z, scratch = np.empty(most * TILE, x.dtype), np.empty(TILE, x.dtype)
    rows, t = _scratch(TILE, x.dtype)
    total = np.empty((most, outputs), np.float64)
    for start in range(0, n, most):
        some = min(most, n - start)
        total[:] = 0
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            tile_of_product(
                blas, x[start * stride :], stride, some, d, w[j:], width, count, z, TILE
            )
            for r in range(some):
                _apply_run(z, r * TILE, count, cells, f, rows, t, scratch, 0)
                _dot_run(scratch, count, right, width, j, total[r])
        for r in range(some):
            for c in range(outputs):
                out[start + r, c] = total[r, c]
