"""Rows that several test modules fit models to."""

import numpy as np


def weighted_rows(n):
    """Inputs of three scales, a curved target with noise, and weights, some of them zero."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [0, 5, 0]
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y, rng.uniform(0, 2, n) * (rng.random(n) < 0.9)
