"""Multinomial logistic regression on the features of a few rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rflaf.solvers.result import Solution

Array = NDArray[Any]
Float64 = NDArray[np.float64]


def fit_few(
    phi: Array, target: Array, weights: Array, n_classes: int, alpha: float, fit_intercept: bool
) -> Solution:
    """The same problem for a few rows, solved to rounding by Newton's method.

    The weights lie in the span of the rows, so that as many unknowns as rows do.
    """
    left, scale, right = linalg.svd(phi.astype(np.float64), full_matrices=False)
    kept = scale > 1e-12 * max(scale[0], 1e-300)
    kept[0] = True  # all features may be zero
    model = LogisticRegression(
        C=1 / (2 * alpha * weights.sum()),
        fit_intercept=fit_intercept,
        solver="newton-cholesky",
        tol=1e-12,
        max_iter=1000,
    )
    with warnings.catch_warnings():  # it stops at rounding, short of so small a tolerance
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        model.fit(left[:, kept] * scale[kept], target, sample_weight=weights)
    coef = right[kept].T @ model.coef_.T
    intercept = np.atleast_1d(model.intercept_) * fit_intercept
    if len(model.classes_) < n_classes:
        coef, intercept = _with_absent_classes(coef, intercept, model.classes_, n_classes)
    return Solution(coef, intercept, alpha)


def _with_absent_classes(
    coef: Float64, intercept: Float64, present: Array, n_classes: int
) -> tuple[Float64, Float64]:
    """Columns for all classes; those without a row get a probability of nearly nothing."""
    if len(present) == 2:  # one column, the log-odds of the second
        coef, intercept = coef * [[-0.5, 0.5]], intercept * np.array([-0.5, 0.5])
    every = np.zeros((len(coef), n_classes))
    offsets = np.full(n_classes, -30.0)
    every[:, present], offsets[present] = coef, intercept
    return every, offsets
