"""The factorisation that survives matrices which rounding has made singular, and what uses it."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from rflaf.arrays import Float64
from rflaf.fused import capsule_address

_LEAST = 1e-11  # of the mean of the diagonal: the first floor that is tried


def factorise(matrix: Float64, floor: float = 0.0) -> Float64:
    """The lower Cholesky factor of a symmetric matrix, with `floor` added to its diagonal.

    Where rounding has made the matrix indefinite, the floor is raised tenfold until it serves. The
    factor takes the memory of `matrix`; what lies above its diagonal is undefined.
    """
    matrix = np.ascontiguousarray(matrix, np.float64)
    diagonal = matrix.diagonal().copy()
    least = _LEAST * float(np.mean(np.abs(diagonal))) + 1e-30
    at = np.diag_indices(len(matrix))
    while np.isfinite(least) and np.isfinite(floor):  # LAPACK takes NaN for an answer
        matrix[at] = diagonal + floor
        if _cholesky(matrix):
            return matrix.T
        for row in range(len(matrix) - 1):  # as it was, from the triangle that is still there
            matrix[row, row + 1 :] = matrix[row + 1 :, row]
        floor = max(10 * floor, least)
    raise ValueError("The matrix to factorise is not finite.")


@lru_cache
def _lapack(name: str, letters: int, count: int) -> Any:
    """A function of scipy's LAPACK, of some letters and `count` pointers, which releases the GIL.

    scipy's own call of it keeps the GIL, and numpy's takes half as long again for its copies.
    """
    kinds = [ctypes.c_char_p] * letters + [ctypes.c_void_p] * count
    return ctypes.CFUNCTYPE(None, *kinds)(capsule_address(cython_lapack, name))


def _cholesky(matrix: Float64) -> bool:
    """Put the transposed factor in the upper triangle; False where there is none."""
    n, info = ctypes.c_int(len(matrix)), ctypes.c_int(0)
    size = ctypes.byref(n)
    _lapack("dpotrf", 1, 4)(b"L", size, matrix.ctypes.data, size, ctypes.byref(info))  # by columns
    return info.value == 0


def solve_factored(factor: Float64, right: Any) -> Float64:
    """The solution of the system whose matrix was factorised, for a vector or some columns."""
    return _by_factor("dpotrs", (b"L",), factor, right)


def solve_positive(matrix: Float64, right: Any, floor: float = 0.0) -> Float64:
    """Solve with a symmetric matrix that should be positive definite; it is lost."""
    return solve_factored(factorise(matrix, floor), right)


def whiten(factor: Float64, right: Any, transposed: bool = False) -> Float64:
    """L^-1 right, or L'^-1 right, where L is the lower factor."""
    return _by_factor("dtrtrs", (b"L", b"T" if transposed else b"N", b"N"), factor, right)


def _by_factor(name: str, letters: tuple[bytes, ...], factor: Float64, right: Any) -> Float64:
    """What LAPACK makes of a lower factor and a vector or some columns."""
    lower = np.asfortranarray(factor)
    found = np.array(np.asarray(right, np.float64).T, order="C")  # by columns, as LAPACK has them
    n, columns, info = (ctypes.c_int(k) for k in (len(lower), found.size // len(lower), 0))
    size = ctypes.byref(n)
    place = size, ctypes.byref(columns), lower.ctypes.data, size, found.ctypes.data, size
    _lapack(name, len(letters), 7)(*letters, *place, ctypes.byref(info))
    return np.ascontiguousarray(found.T)


def unwhiten(factor: Float64, right: Any) -> Float64:
    """L' right."""
    return np.asarray(np.tril(factor).T @ right)
