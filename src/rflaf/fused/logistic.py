"""The cross-entropy of output weights and its gradient, in one pass over the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf.fused.blas import addresses
from rflaf.fused.chunks import flat
from rflaf.fused.table import Array, Float64


def class_slopes(phi: Array, v: Array, target: Any, weights: Any) -> tuple[float, Float64]:
    """The weighted sum of the losses of features times output weights, and its gradient, w × C.

    `phi` is n × w and `v` w × C, of one precision; `target` are classes as numbers. One column of
    scores stands for two classes: the first has the score 0.
    """
    from rflaf.fused.jit_logistic import class_slopes as compiled

    outputs = v.shape[1]
    by_v = np.empty((outputs, len(v)))
    rows = flat(np.ascontiguousarray(phi)), flat(np.array(v.T, phi.dtype, order="C"))
    known = np.ascontiguousarray(target, np.int64), np.ascontiguousarray(weights, np.float64)
    loss = compiled(addresses(phi.dtype), *rows, *known, outputs, flat(by_v, True))
    return float(loss), by_v.T
