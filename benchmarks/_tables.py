"""Readers of the data that the benchmarks use, from the folder that RFLAF_DATA names."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Split = tuple[Any, Any, Any, Any]


def folder() -> Path:
    return Path(os.environ["RFLAF_DATA"])


def protein() -> Split:
    """CASP, RMSD/10 from nine features; the first fifth of a permutation is the test part."""
    table = pd.read_csv(folder() / "protein" / "CASP.csv.gz").to_numpy(float)
    x, y = table[:, 1:], table[:, 0] / 10
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[: len(x) // 5], order[len(x) // 5 :]
    return x[train], y[train], x[test], y[test]


def kin40k_or_bike(name: str) -> Split:
    """The first mask's test part; inputs and target standardised on the rest."""
    table = pd.read_csv(folder() / "uci" / f"{name}.csv.gz", header=None).to_numpy(float)
    mask = pd.read_csv(folder() / "uci" / f"{name}.mask.csv.gz", header=None).to_numpy()[:, 0]
    test = mask.astype(bool)
    table = table[:, [*np.flatnonzero(table[~test, :-1].std(axis=0) > 0), -1]]
    table = (table - table[~test].mean(axis=0)) / table[~test].std(axis=0)
    return table[~test, :-1], table[~test, -1], table[test, :-1], table[test, -1]


def mnist() -> Split:
    """Pixels / 255, as published."""

    def read(name: str, header: int) -> Any:
        with gzip.open(folder() / "mnist" / f"{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    x, x_test = (
        read(f"{part}-images-idx3", 16).reshape(-1, 784).astype(np.float32) / 255
        for part in ("train", "t10k")
    )
    return x, read("train-labels-idx1", 8), x_test, read("t10k-labels-idx1", 8)


def adult() -> Split:
    """One-hot with the first level dropped, numbers standardised; 80/20 with seed 0."""
    names = [*(f"c{k}" for k in range(14)), "income"]
    path = folder() / "adult" / "adult.data.gz"
    table = pd.read_csv(path, header=None, names=names, skipinitialspace=True)
    y = (table.pop("income").str.strip() == ">50K").to_numpy().astype(int)
    numbers = table.select_dtypes("number")
    levels = pd.get_dummies(table.drop(columns=numbers.columns), drop_first=True)
    scaled = (numbers - numbers.mean()) / numbers.std(ddof=0)
    x = np.hstack([scaled.to_numpy(float), levels.to_numpy(float)])
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[: len(x) // 5], order[len(x) // 5 :]
    return x[train], y[train], x[test], y[test]
