"""From raw columns to training and test rows, as published or corrected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rflaf.datasets.catalogue import Entry
from rflaf.datasets.stream import Stream
from rflaf.datasets.types import Array, Dataset, Protocol, Raw

_BLOCK = 1 << 18  # numbers in a block of rows: float64 temporaries stay in the cache


def split(raw: Raw) -> tuple[Array, Array]:
    """The set's own split, or the random one: 80/20 with PyTorch's permutation of seed 0."""
    if len(raw.is_test):
        return np.flatnonzero(~raw.is_test), np.flatnonzero(raw.is_test)
    n = len(raw.inputs)
    order = Stream(0).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


def statistics(raw: Raw, rows: Array) -> tuple[Array, Array]:
    """Mean and population deviation of the columns of numbers; 0 and 1 for the others."""
    d = raw.inputs.shape[1]
    mean, deviation = np.zeros(d), np.ones(d)
    if not raw.is_number.any():
        return mean, deviation
    total, squares = np.zeros(d), np.zeros(d)
    for _, block in blocks(raw.inputs, rows):
        total += block.sum(axis=0, dtype=np.float64)
    mean = np.where(raw.is_number, total / len(rows), 0.0)
    for _, block in blocks(raw.inputs, rows):
        squares += np.square(block - mean).sum(axis=0)
    spread = np.sqrt(squares / len(rows))
    return mean, np.where(raw.is_number & (spread > 1e-12 * np.abs(mean)), spread, 1.0)


def blocks(inputs: Array, rows: Array) -> Iterator[tuple[slice, Array]]:
    """The rows a block at a time, with their place; neighbours are not copied."""
    together = bool((np.diff(rows) == 1).all())
    step = max(1, _BLOCK // inputs.shape[1])
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        block = inputs[some[0] : some[-1] + 1] if together else inputs[some]
        yield slice(start, start + step), block


def scaled(inputs: Array, rows: Array, mean: Array, divisor: Array) -> Array:
    """(inputs[rows] - mean) / divisor in float32, computed in float64 a block at a time.

    Pixels and what they are shifted and divided by are exact in float32, which is then enough.
    """
    out = np.empty((len(rows), inputs.shape[1]), np.float32)
    single = inputs.dtype == np.uint8
    mean, divisor = (each.astype(np.float32) if single else each for each in (mean, divisor))
    for place, block in blocks(inputs, rows):
        part = out[place]
        shifted = np.subtract(block, mean, out=part if single else None)
        np.divide(shifted, divisor, out=part, casting="same_kind")
    return out


def apply(entry: Entry, raw: Raw, protocol: Protocol) -> Dataset:
    """Training and test rows: statistics of all rows as published, else of the training rows."""
    raw = entry.view(raw, protocol)
    train, test = split(raw)
    fitting = np.arange(len(raw.inputs)) if protocol == "published" else train
    mean, deviation = statistics(raw, fitting)
    mean, divisor = mean + entry.shift, deviation * entry.info.scale
    y = target(entry, raw, fitting)
    is_classes = entry.info.task == "classification"
    return Dataset(
        name=entry.info.name,
        protocol=protocol,
        task=entry.info.task,
        X_train=scaled(raw.inputs, train, mean, divisor),
        y_train=y[train],
        X_test=scaled(raw.inputs, test, mean, divisor),
        y_test=y[test],
        feature_names=raw.feature_names,
        n_classes=entry.info.n_outputs if is_classes else None,
        sigma=entry.sigma,
    )


def target(entry: Entry, raw: Raw, fitting: Array) -> Array:
    if entry.info.task == "classification":
        return np.asarray(raw.target, dtype=np.int64)
    y = np.asarray(raw.target, dtype=np.float64)
    if entry.standard_target:
        y = (y - y[fitting].mean()) / (y[fitting].std() or 1.0)
    return (y / entry.target_scale).astype(np.float32)
