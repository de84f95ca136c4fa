"""Small sets that ship with scikit-learn or with this package, for demonstrations and tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rflaf.datasets.types import Dataset


def make(name: str) -> Dataset:
    """The rows as scikit-learn, or the file here, has them."""
    if name == "airfoil":
        file = Path(__file__).with_name("airfoil.csv")
        header = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
        return Dataset(rows[:, :-1], rows[:, -1], tuple(header[:-1]), is_number=np.ones(5, bool))
    from sklearn import datasets  # takes a while, and most sets do without

    if name == "friedman1":
        inputs, target = datasets.make_friedman1(2000, noise=1.0, random_state=0)
        names = [f"x{k}" for k in range(10)]
    else:
        bunch = getattr(datasets, f"load_{name}")()
        inputs, target, names = bunch.data, bunch.target, bunch.feature_names
    return Dataset(inputs, target, tuple(map(str, names)), is_number=np.ones(inputs.shape[1], bool))
