"""Sums of powers, which have no table: Horner's rule and its transpose, tile by tile.

The cost grows with the number of powers, but nothing larger than a tile is ever made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.runtime.threads import parallel

_CHUNK = 1 << 16  # elements of a task


def evaluate_powers(z: NDArray[Any], coefficients: NDArray[Any], out: NDArray[Any]) -> None:
    """out = sum_i coefficients_i z^i, for flat arrays of one float type."""
    from rflaf.fused.jit_powers import evaluate as kernel

    a = coefficients.astype(z.dtype)

    def task(k: int) -> None:
        part = slice(k * _CHUNK, (k + 1) * _CHUNK)
        kernel(z[part], a, out[part])

    parallel(task, -(-z.size // _CHUNK))


def adjoint_powers(z: NDArray[Any], weights: NDArray[Any], n: int) -> NDArray[np.float64]:
    """sum over z of weights z^i, for i = 0, …, n - 1; in float64 except within a tile."""
    from rflaf.fused.jit_powers import adjoint as kernel

    n_chunks = -(-z.size // _CHUNK)
    tiny = z.dtype.type(np.finfo(z.dtype).tiny)
    sums = np.zeros((n_chunks, n))

    def task(k: int) -> None:
        part = slice(k * _CHUNK, (k + 1) * _CHUNK)
        kernel(z[part], weights[part], sums[k], tiny)

    parallel(task, n_chunks)
    with np.errstate(invalid="ignore", over="ignore"):  # as in any sum of powers that overflow
        return np.asarray(sums.sum(axis=0))
