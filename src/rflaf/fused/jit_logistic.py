"""The cross-entropy of output weights and its gradient, in numba, in one pass over the features."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled, inlined
from rflaf.fused.jit_blas import features_times, transposed_times

_BLOCK = 1 << 17  # features at once, which stay in the second-level cache for both products
_FEW = 16  # outputs up to which the loops below beat BLAS, which copies the features first


@inlined
def _row(matrix, r, w):
    return matrix[r * w : (r + 1) * w]


@compiled
def _scores(phi, n, w, v, outputs, out):
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
def _four(slopes, r, n, outputs, c):
    """Slopes of an output for four rows; none for those behind the last."""
    zero = slopes.dtype.type(0)
    a1 = slopes[(r + 1) * outputs + c] if r + 1 < n else zero
    a2 = slopes[(r + 2) * outputs + c] if r + 2 < n else zero
    a3 = slopes[(r + 3) * outputs + c] if r + 3 < n else zero
    return slopes[r * outputs + c], a1, a2, a3


@compiled
def _sum_slopes(phi, n, w, slopes, outputs, out):
    """Phi' times slopes into `out`, C rows of w: four rows of Phi and two outputs at once."""
    out[:] = 0
    for r in range(0, n, 4):
        r1, r2, r3 = min(r + 1, n - 1), min(r + 2, n - 1), min(r + 3, n - 1)
        p0, p1, p2, p3 = _row(phi, r, w), _row(phi, r1, w), _row(phi, r2, w), _row(phi, r3, w)
        for c in range(0, outputs - 1, 2):
            one, other = _row(out, c, w), _row(out, c + 1, w)
            a0, a1, a2, a3 = _four(slopes, r, n, outputs, c)
            b0, b1, b2, b3 = _four(slopes, r, n, outputs, c + 1)
            for k in range(w):
                q0, q1, q2, q3 = p0[k], p1[k], p2[k], p3[k]  # read once: a store might change them
                one[k] += (a0 * q0 + a1 * q1) + (a2 * q2 + a3 * q3)
                other[k] += (b0 * q0 + b1 * q1) + (b2 * q2 + b3 * q3)
        if outputs % 2:
            one = _row(out, outputs - 1, w)
            a0, a1, a2, a3 = _four(slopes, r, n, outputs, outputs - 1)
            for k in range(w):
                one[k] += (a0 * p0[k] + a1 * p1[k]) + (a2 * p2[k] + a3 * p3[k])


@compiled
def _odds(scores, target, weights):
    """The loss of one output, the log-odds of the second class; slopes take the scores' place."""
    loss = 0.0
    for r in range(weights.size):
        odds = scores[r]
        small = np.exp(-abs(odds))
        loss += weights[r] * (max(odds, 0.0) + np.log1p(small) - odds * target[r])
        chance = 1 / (1 + small) if odds >= 0 else small / (1 + small)
        scores[r] = weights[r] * (chance - target[r])
    return loss


@compiled
def _classes(scores, target, weights, outputs):
    """The loss of an output per class; slopes take the scores' place."""
    loss = 0.0
    for r in range(weights.size):
        row = scores[r * outputs : (r + 1) * outputs]
        largest = row[0]
        for c in range(1, outputs):
            largest = max(largest, row[c])
        own = row[target[r]] - largest
        total = 0.0
        for c in range(outputs):
            row[c] = np.exp(row[c] - largest)
            total += row[c]
        loss += weights[r] * (np.log(total) - own)
        for c in range(outputs):
            row[c] *= weights[r] / total
        row[target[r]] -= weights[r]
    return loss


@compiled
def class_slopes(blas, phi, v, target, weights, outputs, by_v):
    """The sum of the losses; the sums of the slopes for V, C rows of w like V, into `by_v`."""
    n, w = weights.size, v.size // outputs
    step = max(1, _BLOCK // w)
    single, slopes = np.empty(step * outputs, phi.dtype), np.empty(step * outputs, np.float64)
    part = np.empty(v.size, phi.dtype)
    loss = 0.0
    by_v[:] = 0
    for start in range(0, n, step):
        count = min(step, n - start)
        some = phi[start * w : (start + count) * w]
        if outputs <= _FEW:
            _scores(some, count, w, v, outputs, single)
        else:
            features_times(blas, some, count, w, v, outputs, single)
        for k in range(count * outputs):
            slopes[k] = single[k]
        known, share = target[start : start + count], weights[start : start + count]
        if outputs == 1:
            loss += _odds(slopes, known, share)
        else:
            loss += _classes(slopes, known, share, outputs)
        for k in range(count * outputs):
            single[k] = slopes[k]
        if outputs <= _FEW:
            _sum_slopes(some, count, w, single, outputs, part)
        else:
            transposed_times(blas, some, count, w, single, outputs, part)
        for k in range(part.size):
            by_v[k] += part[k]
    return loss
