"""From raw columns to training and test rows, as published or corrected."""

from __future__ import annotations

import numpy as np

from rflaf.datasets.stream import Stream
from rflaf.datasets.types import Array, Protocol, Raw

_BLOCK = 1 << 22  # numbers in a block of rows: float64 temporaries stay small


def split(raw: Raw) -> tuple[Array, Array]:
    """The set's own split, or the random one: 80/20 with PyTorch's permutation of seed 0."""
    if len(raw.is_test):
        return np.flatnonzero(~raw.is_test), np.flatnonzero(raw.is_test)
    n = len(raw.inputs)
    order = Stream(0).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


def statistics(raw: Raw, rows: Array | slice) -> tuple[Array, Array]:
    """Mean and population deviation of the columns of numbers; 0 and 1 for the others."""
    d = raw.inputs.shape[1]
    mean, deviation = np.zeros(d), np.ones(d)
    if raw.is_number.any():
        numbers = raw.inputs[rows][:, raw.is_number].astype(np.float64, copy=False)
        mean[raw.is_number] = numbers.mean(axis=0)
        spread = numbers.std(axis=0)
        deviation[raw.is_number] = np.where(spread > 0, spread, 1.0)
    return mean, deviation


def scaled(inputs: Array, rows: Array, mean: Array, divisor: Array) -> Array:
    """(inputs[rows] - mean) / divisor in float32, computed in float64 a block at a time."""
    out = np.empty((len(rows), inputs.shape[1]), np.float32)
    step = max(1, _BLOCK // max(1, inputs.shape[1]))
    for start in range(0, len(rows), step):
        block = inputs[rows[start : start + step]].astype(np.float64)
        block -= mean
        block /= divisor
        out[start : start + step] = block
    return out


def standardise(
    raw: Raw, protocol: Protocol, train: Array, test: Array, scale: float, shift: float
) -> tuple[Array, Array]:
    """Inputs of both parts: statistics of all rows as published, else of the training rows."""
    mean, deviation = statistics(raw, slice(None) if protocol == "published" else train)
    mean, divisor = mean + shift, deviation * scale
    return scaled(raw.inputs, train, mean, divisor), scaled(raw.inputs, test, mean, divisor)
