"""The cross-entropy of output weights and its gradient, in one pass over the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf.fused.blas import addresses
from rflaf.fused.chunks import flat, split_rows
from rflaf.fused.table import Array, Float64
from rflaf.runtime.threads import parallel

_RANGE = 1 << 20  # features of a range of rows, which has sums of its own


def class_slopes(phi: Array, v: Array, target: Any, weights: Any) -> tuple[float, Float64]:
    """The weighted sum of the losses of features times output weights, and its gradient, w × C.

    `phi` is n × w and `v` w × C, of one precision; `target` are classes as numbers. One column of
    scores stands for two classes: the first has the score 0.
    """
    from rflaf.fused.jit_logistic import class_slopes as compiled

    outputs, width = v.shape[1], len(v)
    rows, weights_of = flat(np.ascontiguousarray(phi)), flat(np.array(v.T, phi.dtype, order="C"))
    known = [
        flat(np.ascontiguousarray(each, kind))
        for each, kind in ((target, np.int64), (weights, np.float64))
    ]
    ranges = split_rows(phi.shape, _RANGE)
    losses, by_v = np.zeros(len(ranges)), np.zeros((len(ranges), outputs, width))

    def task(k: int) -> None:
        at = ranges[k]
        some = rows[at.start * width : at.stop * width], weights_of, *(each[at] for each in known)
        losses[k] = compiled(addresses(phi.dtype), *some, outputs, flat(by_v[k], True))

    parallel(task, len(ranges))
    return float(losses.sum()), by_v.sum(axis=0).T
