"""The loops of `powers`, in numba."""

from __future__ import annotations

from rflaf.fused.jit import compiled
from rflaf.fused.jit_memory import zeros

TILE = 256  # elements, which stay in the first-level cache


@compiled
def evaluate(z, a, out):
    at, total = zeros(TILE, z.dtype), zeros(TILE, z.dtype)
    for start in range(0, z.size, TILE):
        count = min(TILE, z.size - start)
        for j in range(count):
            at[j] = z[start + j]
            total[j] = a[a.size - 1]
        for i in range(a.size - 2, -1, -1):
            c = a[i]
            for j in range(TILE):
                total[j] = total[j] * at[j] + c
        for j in range(count):
            out[start + j] = total[j]


@compiled
def adjoint(z, weights, sums, tiny):
    at, term = zeros(TILE, z.dtype), zeros(TILE, z.dtype)
    zero = z.dtype.type(0)
    for start in range(0, z.size, TILE):
        count = min(TILE, z.size - start)
        for j in range(count):
            at[j] = z[start + j]
            term[j] = weights[start + j]
        for j in range(count, TILE):
            term[j] = zero
        for i in range(sums.size):
            total = zero
            for j in range(TILE):
                total += term[j]
                product = term[j] * at[j]
                # numbers below the normal ones take a hundred times as long, and add nothing
                term[j] = zero if abs(product) < tiny else product
            sums[i] += total
