"""The public functions: names, info, fetch, load."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from rflaf.datasets import protocols, synthetic
from rflaf.datasets.registry import ENTRIES, Entry
from rflaf.datasets.types import Array, DataNotAvailable, Dataset, File, Info, Protocol, Raw


def names(available: bool | None = None) -> tuple[str, ...]:
    """Names of the data sets."""
    return (*ENTRIES, *synthetic.TARGETS)


def info(name: str) -> Info:
    """What is known of a data set."""
    return ENTRIES[name].info


def _find(file: File) -> Path:
    for folder in os.environ.get("RFLAF_DATA", "").split(os.pathsep):
        for each in (file, *file.variants):
            if folder and (Path(folder) / each.path).is_file():
                return Path(folder) / each.path
    raise DataNotAvailable(file.path)


def fetch(name: str, progress: bool = True) -> list[Path]:
    """Paths of the files."""
    return [_find(file) for file in info(name).files]


def load(name: str, protocol: Protocol = "corrected", *, progress: bool = False) -> Dataset:
    """Read a data set."""
    if name in synthetic.TARGETS:
        target = synthetic.TARGETS[name]
        x, w = synthetic.points()
        y = synthetic.sampled(target, x, w) if protocol == "published" else synthetic.exact(target, x)
        raw = Raw(x, y, ("x1", "x2"))
        train, test = protocols.split(raw)
        y = y.astype(np.float32)
        return Dataset(name, protocol, "regression", x[train], y[train], x[test], y[test],
                       raw.feature_names, None, target.sigma)
    entry = ENTRIES[name]
    raw = entry.read(tuple(fetch(name, progress)))
    train, test = protocols.split(raw)
    X = protocols.standardise(raw, protocol, train, test, entry.scale, entry.shift)
    y = _target(entry, raw.target)
    classes = entry.info.n_outputs if entry.info.task == "classification" else None
    return Dataset(name, protocol, entry.info.task, X[0], y[train], X[1], y[test],
                   raw.feature_names, classes)


def _target(entry: Entry, target: Array) -> Array:
    if entry.info.task == "classification":
        return target.astype(np.int64)
    return ((target - entry.target_shift) / entry.target_scale).astype(np.float32)
