"""Predictions from inputs, in numba: products by BLAS, a tile of Z at a time."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import TILE, _dot_run, compiled
from rflaf.fused.jit_blas import tile_of_product
from rflaf.fused.jit_memory import clear, zeros
from rflaf.fused.jit_vectors import continue_tails, evaluate_run, locate_run, unpacked

# Rows of every product, the last one's filled up with zeros: BLAS may round by the number of rows,
# and a prediction must not depend on the rows beside it, nor on where it is among them: OpenBLAS
# for Haswell and Zen takes 12 of 16 rows at once and rounds the others differently. Of 8 it takes
# all alike, as for Nehalem, Sandy Bridge and Skylake. With up to 32 inputs it wakes no threads of
# its own for so few.
_ROWS = 8


@compiled
def predict_inputs_rows(blas, x, stride, d, w, width, cells, frame, right, out, n):
    """sigma(X W) V for rows of X that are `stride` apart; V is `right`, C × M."""
    f = unpacked(frame)
    outputs = out.shape[1]
    block, z = zeros(_ROWS * d, x.dtype), zeros(_ROWS * TILE, x.dtype)
    scratch, rows, t = zeros(TILE, x.dtype), zeros(TILE, np.int32), zeros(TILE, x.dtype)
    total = zeros(_ROWS * outputs, np.float64)
    for start in range(0, n, _ROWS):
        some = min(_ROWS, n - start)
        clear(block)
        for r in range(some):
            for c in range(d):
                block[r * d + c] = x[(start + r) * stride + c]
        clear(total)
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            tile_of_product(blas, block, d, _ROWS, d, w[j:], width, count, z, TILE)
            for r in range(some):
                locate_run(z, r * TILE, count, f, None, 0, rows, t)
                evaluate_run(rows, t, count, cells, scratch, 0, None, 0)
                continue_tails(z, r * TILE, count, f, scratch, 0)
                _dot_run(scratch, count, right, width, j, total[r * outputs : (r + 1) * outputs])
        for r in range(some):
            for c in range(outputs):
                out[start + r, c] = total[r * outputs + c]
