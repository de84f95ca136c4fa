"""Small sets that ship with scikit-learn, for demonstrations and tests."""

from __future__ import annotations

import numpy as np
from sklearn import datasets as sk

from rflaf.datasets.types import Protocol, Raw

_BUNDLED = {
    "diabetes": sk.load_diabetes,
    "digits": sk.load_digits,
    "breast_cancer": sk.load_breast_cancer,
    "wine": sk.load_wine,
    "iris": sk.load_iris,
}


def make(name: str, protocol: Protocol) -> Raw:
    """The rows as scikit-learn has them. The protocols differ only in what follows."""
    if name == "friedman1":
        inputs, target = sk.make_friedman1(2000, noise=1.0, random_state=0)
        names = [f"x{k}" for k in range(10)]
    else:
        bunch = _BUNDLED[name]()
        inputs, target, names = bunch.data, bunch.target, bunch.feature_names
    return Raw(inputs, target, tuple(map(str, names)), is_number=np.ones(inputs.shape[1], bool))
