"""The loop of `fit_parts`, in numba: a small ridge regression for each part, without the GIL."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled
from rflaf.fused.jit_blas import (
    GEMM,
    LOWER,
    ONE,
    PLAIN,
    SYRK,
    TRANSPOSED,
    ZERO,
    call,
    factorise,
    gram_of,
    solve_factored,
    transposed_times,
)
from rflaf.fused.jit_memory import zeros


@compiled
def fit_parts(blas, phi, w, target, outputs, rows, root, ends, penalties, out):
    """Solutions for each part, penalty and output into `out`; zeros where there is none."""
    most, start = 0, 0
    for end in ends:
        most, start = max(most, end - start), end
    side = min(most, w)
    shared, y = zeros(most * w, np.float64), zeros(most * outputs, np.float64)
    gram, matrix = zeros(side * side, np.float64), zeros(side * side, np.float64)
    right, solution = zeros(side * outputs, np.float64), zeros(side * outputs, np.float64)
    no, a, b = blas[PLAIN], blas[ONE], blas[ZERO]
    start = 0
    for part in range(ends.size):
        first, n = start, ends[part] - start
        start = ends[part]
        if n == 0:
            continue
        for i in range(n):
            scale, row = root[first + i], rows[first + i]
            source, found = phi[row * w : (row + 1) * w], shared[i * w : (i + 1) * w]
            for k in range(found.size):
                found[k] = scale * source[k]
            for c in range(outputs):
                y[i * outputs + c] = scale * target[row * outputs + c]
        few = n < w  # then a solution is a combination of the rows
        size = n if few else w
        if few:
            by_rows = (blas[LOWER], blas[TRANSPOSED], n, w, a, shared, w, b, gram, n)
            call(blas[SYRK], by_rows)
            for c in range(outputs):
                for i in range(n):
                    right[c * n + i] = y[i * outputs + c]
        else:
            gram_of(blas, shared, n, w, gram)
            transposed_times(blas, shared, n, w, y, outputs, right)
        for place in range(penalties.size):
            for j in range(size):
                row, copy = gram[j * size : (j + 1) * size], matrix[j * size : (j + 1) * size]
                for k in range(copy.size):
                    copy[k] = row[k]
                copy[j] += penalties[place]
            if not factorise(blas, matrix, size):
                continue
            for k in range(size * outputs):
                solution[k] = right[k]
            solve_factored(blas, matrix, size, solution, outputs)
            at = (part * penalties.size + place) * outputs * w
            found = out[at : at + outputs * w]
            if few:
                call(blas[GEMM], (no, no, w, outputs, n, a, shared, w, solution, n, b, found, w))
            else:
                for k in range(found.size):
                    found[k] = solution[k]
            total = 0.0
            for k in range(found.size):
                total += 0 * found[k]
            if total != 0:
                for k in range(found.size):
                    found[k] = 0
