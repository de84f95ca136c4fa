"""The loops of `binned`, in numba. Matrices are flat, row after row; nothing is checked here.

Sums up to edges have rows of `padded` numbers, a multiple of BLOCK: loops over that many have no
rest, which takes as long as the rest of the loop otherwise. Indices that cannot be negative are
unsigned, or numba looks at each of them.
"""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled, inlined
from rflaf.fused.jit_memory import clear, zeros

BLOCK = 32
TILE, ROWS = 256, 64  # columns of W and rows at once, which stay in the second-level cache
U = np.uint64


@compiled
def locate(x, d, columns, starts, edges, place, part, n):
    """The edge below each value, and how far the value has come to the next one."""
    for r in range(n):
        for c in range(columns.size):
            value = x[r * d + columns[c]]
            low, high = starts[c], starts[c + 1] - 1
            while high - low > 1:
                middle = (low + high) // 2
                if value >= edges[middle]:
                    low = middle
                else:
                    high = middle
            share = (value - edges[low]) / (edges[low + 1] - edges[low])
            share = 0.0 if share < 0 else share  # NaN stays
            place[r * columns.size + c] = low
            part[r * columns.size + c] = 1.0 if share > 1 else share


@compiled
def add_up(w, width, padded, starts, mean, scale, table):
    """W summed from the first edge of each column to all its edges, with the means taken off."""
    for c in range(starts.size - 1):
        first, last = starts[c] - c, starts[c + 1] - 1 - c  # each column has a bin less than edges
        zero = table[starts[c] * padded : (starts[c] + 1) * padded]
        for b in range(first, last):
            row, taken = w[b * width : (b + 1) * width], mean[b] / scale[b]
            for k in range(width):
                zero[k] -= taken * row[k]
        for b in range(first, last):
            at = (b + c) * padded
            row, factor = w[b * width : (b + 1) * width], 1 / scale[b]
            below, now = table[at : at + padded], table[at + padded : at + 2 * padded]
            for k in range(width):
                now[k] = below[k] + factor * row[k]


@inlined
def _add_between(table, at, padded, share, count, z):
    """Add what lies between two edges, of which the lower one has its sums at `at`."""
    low, high = U(at), U(at) + U(padded)
    for start in range(0, count, BLOCK):
        for k in range(BLOCK):
            i = U(start) + U(k)
            z[i] += table[low + i] + share * (table[high + i] - table[low + i])


@inlined
def _add_two(table, at, other, padded, share, other_share, count, z):
    """The same for two columns at once, so that z is loaded and stored half as often."""
    low, high = U(at), U(at) + U(padded)
    low2, high2 = U(other), U(other) + U(padded)
    for start in range(0, count, BLOCK):
        for k in range(BLOCK):
            i = U(start) + U(k)
            one = table[low + i] + share * (table[high + i] - table[low + i])
            two = table[low2 + i] + other_share * (table[high2 + i] - table[low2 + i])
            z[i] += one + two


@inlined
def _add_plain(values, at, columns, w, padded, j, count, z):
    """Add the columns that are not cut, times their rows of W; two at once, too."""
    for c in range(0, columns // 2 * 2, 2):
        x, y = values[at + c], values[at + c + 1]
        row, next_row = U(c * padded + j), U((c + 1) * padded + j)
        for start in range(0, count, BLOCK):
            for k in range(BLOCK):
                i = U(start) + U(k)
                z[i] += x * w[row + i] + y * w[next_row + i]
    if columns % 2:
        x, row = values[at + columns - 1], U((columns - 1) * padded + j)
        for start in range(0, count, BLOCK):
            for k in range(BLOCK):
                i = U(start) + U(k)
                z[i] += x * w[row + i]


@compiled
def project(values, plain, place, part, columns, w, table, width, padded, out, stride, n):
    """X W for rows with `plain` columns that are not cut and `columns` that are."""
    z = zeros(TILE, out.dtype)
    for start in range(0, n, ROWS):
        for j in range(0, padded, TILE):
            count = min(TILE, padded - j)
            for r in range(start, min(start + ROWS, n)):
                clear(z)
                _add_plain(values, r * plain, plain, w, padded, j, count, z)
                at = r * columns
                for c in range(at, at + columns // 2 * 2, 2):
                    a, b = place[c] * padded + j, place[c + 1] * padded + j
                    _add_two(table, a, b, padded, part[c], part[c + 1], count, z)
                if columns % 2:
                    last = at + columns - 1
                    _add_between(table, place[last] * padded + j, padded, part[last], count, z)
                row = out[r * stride + j : r * stride + min(j + count, width)]
                for k in range(row.size):
                    row[k] = z[k]


@inlined
def _share_out(z, share, at, padded, count, sums):
    low, high = U(at), U(at) + U(padded)
    for start in range(0, count, BLOCK):
        for k in range(BLOCK):
            i = U(start) + U(k)
            upper = share * z[i]
            sums[high + i] += upper
            sums[low + i] += z[i] - upper


@compiled
def gather(place, part, columns, slopes, stride, width, padded, sums, n):
    """What `project` does, transposed: the slopes of each row go to the edges around its values."""
    z = zeros(TILE, slopes.dtype)
    for start in range(0, n, ROWS):
        for j in range(0, padded, TILE):
            count = min(TILE, padded - j)
            for r in range(start, min(start + ROWS, n)):
                row = slopes[r * stride + j : r * stride + min(j + count, width)]
                for k in range(row.size):
                    z[k] = row[k]
                for k in range(row.size, count):
                    z[k] = 0
                for c in range(r * columns, (r + 1) * columns):
                    _share_out(z, part[c], place[c] * padded + j, padded, count, sums)


@compiled
def take_apart(sums, width, padded, starts, mean, scale, out):
    """What `add_up` does, transposed; the sums are overwritten."""
    for c in range(starts.size - 1):
        first, last = starts[c], starts[c + 1] - 1
        for edge in range(last, first, -1):  # each then holds what lies at it and above
            below, now = sums[(edge - 1) * padded : edge * padded], sums[edge * padded :]
            for k in range(width):
                below[k] += now[k]
        total = sums[first * padded : (first + 1) * padded]
        for b in range(first - c, last - c):
            above = sums[(b + c + 1) * padded : (b + c + 2) * padded]
            row, factor = out[b * width : (b + 1) * width], 1 / scale[b]
            for k in range(width):
                row[k] = factor * (above[k] - mean[b] * total[k])
