"""The loops of `products`, in numba. Matrices are flat, row after row; nothing is checked here.

V and the sums have C rows of w numbers, the transpose of what callers see: loops then run over
consecutive numbers.
"""

from __future__ import annotations

from rflaf.fused.jit import compiled, inlined, internal
from rflaf.fused.jit_blas import features_times, transposed_times
from rflaf.fused.jit_memory import clear, zeros

FEW = 16  # outputs up to which the loops below beat BLAS, which copies the features first
_BLOCK, _ROWS = 1 << 17, 1 << 12  # features and rows at most whose sums are in their precision


@inlined
def _row(matrix, r, w):
    return matrix[r * w : (r + 1) * w]


@internal
def few_times(phi, n, w, v, outputs, out):
    """Phi V into `out`, n × C, for V in C rows of w: four rows and two outputs at once."""
    zero = phi.dtype.type(0)
    for r in range(0, n, 4):
        # the last ones again where there are fewer than four
        r1, r2, r3 = min(r + 1, n - 1), min(r + 2, n - 1), min(r + 3, n - 1)
        p0, p1, p2, p3 = _row(phi, r, w), _row(phi, r1, w), _row(phi, r2, w), _row(phi, r3, w)
        for c in range(0, outputs, 2):
            d = min(c + 1, outputs - 1)
            v0, v1 = _row(v, c, w), _row(v, d, w)
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
            for k in range(w):
                a0 += p0[k] * v0[k]
                a1 += p1[k] * v0[k]
                a2 += p2[k] * v0[k]
                a3 += p3[k] * v0[k]
                b0 += p0[k] * v1[k]
                b1 += p1[k] * v1[k]
                b2 += p2[k] * v1[k]
                b3 += p3[k] * v1[k]
            out[r * outputs + c], out[r * outputs + d] = a0, b0
            out[r1 * outputs + c], out[r1 * outputs + d] = a1, b1
            out[r2 * outputs + c], out[r2 * outputs + d] = a2, b2
            out[r3 * outputs + c], out[r3 * outputs + d] = a3, b3


@inlined
def _four(g, r, n, outputs, c):
    """Numbers of an output for four rows; zero for those behind the last."""
    zero = g.dtype.type(0)
    a1 = g[(r + 1) * outputs + c] if r + 1 < n else zero
    a2 = g[(r + 2) * outputs + c] if r + 2 < n else zero
    a3 = g[(r + 3) * outputs + c] if r + 3 < n else zero
    return g[r * outputs + c], a1, a2, a3


@internal
def few_transposed(phi, n, w, g, outputs, out):
    """Phi' g into `out`, C rows of w: four rows of Phi and two outputs at once."""
    clear(out)
    for r in range(0, n, 4):
        r1, r2, r3 = min(r + 1, n - 1), min(r + 2, n - 1), min(r + 3, n - 1)
        p0, p1, p2, p3 = _row(phi, r, w), _row(phi, r1, w), _row(phi, r2, w), _row(phi, r3, w)
        for c in range(0, outputs - 1, 2):
            one, other = _row(out, c, w), _row(out, c + 1, w)
            a0, a1, a2, a3 = _four(g, r, n, outputs, c)
            b0, b1, b2, b3 = _four(g, r, n, outputs, c + 1)
            for k in range(w):
                q0, q1, q2, q3 = p0[k], p1[k], p2[k], p3[k]  # read once: a store might change them
                one[k] += (a0 * q0 + a1 * q1) + (a2 * q2 + a3 * q3)
                other[k] += (b0 * q0 + b1 * q1) + (b2 * q2 + b3 * q3)
        if outputs % 2:
            one = _row(out, outputs - 1, w)
            a0, a1, a2, a3 = _four(g, r, n, outputs, outputs - 1)
            for k in range(w):
                one[k] += (a0 * p0[k] + a1 * p1[k]) + (a2 * p2[k] + a3 * p3[k])


@inlined
def _step(w):
    return max(1, min(_BLOCK // w, _ROWS))


@compiled
def times_rows(blas, phi, w, v, outputs, out):
    """Phi V into `out`, n × C in float64."""
    n, step = out.size // outputs, _step(w)
    part = zeros(min(step, n) * outputs, phi.dtype)
    for start in range(0, n, step):
        count = min(step, n - start)
        some = phi[start * w : (start + count) * w]
        if outputs <= FEW:
            few_times(some, count, w, v, outputs, part)
        else:
            features_times(blas, some, count, w, v, outputs, part)
        target = out[start * outputs : (start + count) * outputs]
        for k in range(target.size):
            target[k] = part[k]


@compiled
def add_transposed(blas, phi, w, g, outputs, sums):
    """Add Phi' g, for g of n × C in float64, to `sums`, C rows of w in float64."""
    n, step = g.size // outputs, _step(w)
    some_g = zeros(min(step, n) * outputs, phi.dtype)
    part = zeros(w * outputs, phi.dtype)
    for start in range(0, n, step):
        count = min(step, n - start)
        some, given = phi[start * w : (start + count) * w], g[start * outputs :]
        for k in range(count * outputs):
            some_g[k] = given[k]
        if outputs <= FEW:
            few_transposed(some, count, w, some_g, outputs, part)
        else:
            transposed_times(blas, some, count, w, some_g, outputs, part)
        for k in range(part.size):
            sums[k] += part[k]


@compiled
def fill_quotients(z, values, slopes, nodes, z_b, values_b, slopes_b, count, near, out):
    """`products.quotients`, for features with `nodes` numbers each, and `count` others."""
    for i in range(z.size):
        others = i // nodes * count
        at, value, slope = z[i], values[i], slopes[i]
        start, end, steep = z_b[others:], values_b[others:], slopes_b[others:]
        target = _row(out, i, count)
        for k in range(count):
            apart, mean = at - start[k], z.dtype.type(0.5) * (slope + steep[k])
            ratio = (value - end[k]) / apart
            target[k] = mean if abs(apart) < near else ratio


@compiled
def add_interpolated(tables, nodes, width, place, n, first, stop, v, outputs, last, out):
    """`products.interpolated` for the rows from `first` to `stop` of `n`, added to `out`."""
    found = zeros(width, tables.dtype)
    for m in range(v.size // outputs):
        table = tables[m * nodes * width :]
        for r in range(first, stop):
            at = place[m * n + r]
            node = min(max(int(at), 1), nodes - 3)
            t = at - tables.dtype.type(node)
            below, above, beyond = t + 1, t - 1, t - 2
            f0, f1 = -t * above * beyond / 6, below * above * beyond / 2
            f2, f3 = -below * t * beyond / 2, below * t * above / 6
            t0, t1 = _row(table, node - 1, width), _row(table, node, width)
            t2, t3 = _row(table, node + 1, width), _row(table, node + 2, width)
            for k in range(width):
                found[k] = (f0 * t0[k] + f1 * t1[k]) + (f2 * t2[k] + f3 * t3[k])
            last[m * n + r] = found[width - 1]
            for c in range(outputs):
                target, factor = _row(out, r * outputs + c, width), v[m * outputs + c]
                for k in range(width):
                    target[k] += factor * found[k]
