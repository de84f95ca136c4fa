"""Rows for the benchmarks of the estimators, with the splits that their figures were made with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rflaf.datasets import load
from rflaf.paper.splits import SCALINGS, load_split

Split = tuple[Any, Any, Any, Any]


def protein() -> Split:
    """CASP, RMSD/10 from nine features as they are."""
    table = load("protein")
    return _fifth(np.array(table.X), table.y / 10)


def adult() -> Split:
    """Numbers, standardised, then levels; the first level of each column is dropped."""
    table = load("adult")
    numbers, levels = (table.X[:, mask] for mask in (table.is_number, ~table.is_number))
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    return _fifth(np.hstack([numbers, levels]), np.array(table.y))


def kin40k_or_bike(name: str) -> Split:
    """The first mask's test part; inputs and target standardised on the rest."""
    return _unscaled(name, 1.0)


def mnist() -> Split:
    """Pixels / 255, as published."""
    return _unscaled("mnist", 255.0)


def suite_table(kind: str, name: str) -> Split:
    """The first split of a table of many kinds of columns, as numbers; classes as strings."""
    from tables import numbers, tables

    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    train, test = next(rows[1:] for rows in tables(folder, kind) if rows[0] == name)
    encode = numbers().fit(train.drop(columns="target"))
    y = [part["target"].to_numpy() for part in (train, test)]
    y = [part.astype(str) for part in y] if kind == "clf" else y
    x = [np.asarray(encode.transform(part.drop(columns="target"))) for part in (train, test)]
    return x[0], y[0], x[1], y[1]


def _unscaled(name: str, divisor: float) -> Split:
    data, factor = load_split(name), SCALINGS[name].scale / divisor
    return data.X_train * factor, data.y_train, data.X_test * factor, data.y_test


def _fifth(x: Any, y: Any) -> Split:
    """The first fifth of a permutation is the test part."""
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[: len(x) // 5], order[len(x) // 5 :]
    return x[train], y[train], x[test], y[test]
