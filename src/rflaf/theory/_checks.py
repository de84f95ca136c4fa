"""What the functions of the theory accept, and the errors for anything else."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

FloatArray = NDArray[np.float64]

REAL = [Interval(Real, None, None, closed="neither")]
POSITIVE = [Interval(Real, 0, None, closed="neither")]
NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]
CONFIDENCE = [Interval(Real, 0, 0.5, closed="neither")]
COUNT = [Interval(Integral, 1, None, closed="left")]
ORDER = [Interval(Integral, 0, None, closed="left")]


def check_points(X: ArrayLike, Y: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Two arrays of points with as many columns, finite, float64; the second may be the first."""
    first: FloatArray = check_array(X, dtype=np.float64, input_name="X")
    if Y is None:
        return first, first
    second: FloatArray = check_array(Y, dtype=np.float64, input_name="Y")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"'X' and 'Y' must have as many columns. Got {first.shape[1]} and {second.shape[1]}."
        )
    return first, second


def check_counts(caller: str, name: str, given: ArrayLike) -> FloatArray:
    """One count or an array of counts, all of them at least 1, as floats."""
    counts = np.asarray(given, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts >= 1).all()):
        raise ValueError(
            f"The {name!r} parameter of {caller} must be finite and at least 1. Got {given!r}."
        )
    return counts
