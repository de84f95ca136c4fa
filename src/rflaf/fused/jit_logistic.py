"""The cross-entropy of output weights and its gradient, in numba, in one pass over the features."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled
from rflaf.fused.jit_blas import features_times, transposed_times
from rflaf.fused.jit_products import FEW, few_times, few_transposed

_BLOCK = 1 << 17  # features at once, which stay in the second-level cache for both products


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
        if outputs <= FEW:
            few_times(some, count, w, v, outputs, single)
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
        if outputs <= FEW:
            few_transposed(some, count, w, single, outputs, part)
        else:
            transposed_times(blas, some, count, w, single, outputs, part)
        for k in range(part.size):
            by_v[k] += part[k]
    return loss
