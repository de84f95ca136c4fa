"""The factorisation that survives matrices which rounding has made singular."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

Float64 = NDArray[np.float64]
_LEAST = 1e-12  # of the mean of the diagonal: the first floor that is tried


def factorise(matrix: Float64, floor: float = 0.0) -> Float64:
    """A Cholesky factor of a symmetric matrix, plus `floor` on its diagonal; overwrites `matrix`.

    Where rounding has made the matrix indefinite, the floor is raised tenfold until it serves.
    The result is for `solve_factored` and `whiten`. Only its lower triangle counts.
    """
    if not matrix.flags.c_contiguous:
        matrix = np.ascontiguousarray(matrix)
    diagonal = matrix.diagonal().copy()
    least = _LEAST * float(np.mean(np.abs(diagonal))) + 1e-30
    at = np.diag_indices(len(matrix))
    while np.isfinite(least) and np.isfinite(floor):  # LAPACK takes NaN for an answer
        matrix[at] = diagonal + floor
        # the transpose of a symmetric matrix is itself, and is laid out as LAPACK wants it
        factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        if failed == 0:
            return np.asarray(factor.T)
        # LAPACK has spoilt one triangle; the other still has the matrix
        _mirror(matrix)
        floor = max(10 * floor, least)
    raise ValueError("The matrix to factorise is not finite.")


def _mirror(matrix: Float64) -> None:
    """Copy the upper triangle onto the lower one."""
    rows, columns = np.tril_indices(len(matrix), -1)
    matrix[rows, columns] = matrix[columns, rows]


def solve_factored(factor: Float64, right: Any) -> Float64:
    """The solution of the system whose matrix was factorised."""
    right = np.asarray(right, np.float64)
    return linalg.cho_solve((factor.T, False), right, check_finite=False)  # no copy of the factor


def solve_positive(matrix: Float64, right: Any) -> Float64:
    """Solve with a symmetric matrix that should be positive definite; it is overwritten."""
    return solve_factored(factorise(matrix), right)


def whiten(factor: Float64, right: Any, transposed: bool = False) -> Float64:
    """L^-1 right, or L'^-1 right, where L is the lower factor."""
    trans = "N" if transposed else "T"
    return linalg.solve_triangular(factor.T, right, lower=False, trans=trans, check_finite=False)
