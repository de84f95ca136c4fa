"""Small models and the data that several modules fit them to."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons

from rflaf import RFLAFClassifier, RFLAFRegressor

SMALL = {
    "n_components": 40, "max_iter": 10, "n_members": 2, "input_form": "raw", "random_state": 0
}  # fmt: skip


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(n_samples=700, noise=0.1, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(700, noise=0.2, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def three():
    """Three classes with names."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 3))
    radius = np.hypot(X[:, 0], X[:, 1])
    y = np.array(["in", "on", "out"])[np.digitize(radius, [0.8, 1.5])]
    return X[:300], y[:300], X[300:], y[300:]
