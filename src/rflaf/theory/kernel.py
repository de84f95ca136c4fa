"""Theorem 3.1 and its extension to two different Gaussians: kernels in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rflaf.bases.base import check_parameters, checked
from rflaf.theory._checks import POSITIVE, REAL, FloatArray, check_points
from rflaf.theory._pairs import Pairs, mirror, tiles


@checked(center=REAL, width=POSITIVE)
def gaussian_kernel(
    X: ArrayLike, Y: ArrayLike | None = None, *, center: float, width: float
) -> FloatArray:
    """E[B(w·x) B(w·x')] for B(z) = exp(-(z - c)²/(2h²)) and w standard normal (theorem 3.1).

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (n', d)
        Points. Y is X where it is left out.
    center, width : float
        The c and h of the Gaussian.

    Returns
    -------
    array of shape (n, n')
        Accurate for any norms and widths: the determinant is a sum of positive terms.

    Examples
    --------
    >>> from rflaf.theory import gaussian_kernel
    >>> gaussian_kernel([[1.0, 0.0], [0.0, 1.0]], center=0.0, width=1.0).round(4)
    array([[0.5774, 0.5   ],
           [0.5   , 0.5774]])
    """
    c, h = float(center), float(width)
    A, B = check_points(X, Y)
    K = np.empty((len(A), len(B)))
    for rows, columns, pairs in tiles(A, B, smallest_width=h):
        _theorem_3_1(pairs, c / h, h, K[rows, columns])
    if A is B:
        mirror(K)
    return K


def _theorem_3_1(pairs: Pairs, ratio: float, h: float, out: FloatArray) -> None:
    """The formula in units of h, with `ratio` = c/h; in place, for speed."""
    u, v = pairs.first / h, pairs.second / h
    # det/h⁴ = 1 + u² + v² + u²v² sin²
    det = pairs.minus * pairs.plus
    det *= u * u
    det += 1.0
    det *= v * v
    det += 1.0 + u * u
    np.sqrt(det, out=out)
    np.reciprocal(out, out=out)
    if ratio == 0:
        return
    # (2h² + |x - x'|²)/h² = 2 + (u - v)² + 2uv (1 - cos)
    exponent = pairs.minus * (2 * u)
    exponent *= v
    exponent += np.square(u - v)
    exponent += 2.0
    exponent /= det
    exponent *= -0.5 * ratio * ratio
    np.exp(exponent, out=exponent)
    out *= exponent


@checked(center=REAL, width=POSITIVE)
def rotation_invariant_kernel(r: ArrayLike, *, center: float, width: float) -> FloatArray:
    """K(r) for unit vectors with r = x·x' in [-1, 1]: what theorem 3.1 becomes on the sphere.

    Examples
    --------
    >>> from rflaf.theory import rotation_invariant_kernel
    >>> float(rotation_invariant_kernel(0.0, center=0.0, width=1.0))
    0.5
    """
    c, h = float(center), float(width)
    r = np.asarray(r, dtype=np.float64)
    if not (np.abs(r) <= 1).all():
        raise ValueError("The 'r' parameter of rotation_invariant_kernel must be within [-1, 1].")
    # (1 + h²)² - r² = ((1 - r) + h²)((1 + r) + h²)
    plus, minus = (1 + r) + h * h, (1 - r) + h * h
    return np.asarray(h * h / np.sqrt(plus * minus) * np.exp(-c * c / plus))


def gaussian_cross_kernel(
    X: ArrayLike,
    Y: ArrayLike | None = None,
    *,
    centers: tuple[float, float],
    widths: tuple[float, float],
) -> FloatArray:
    """E[B_1(w·x) B_2(w·x')] for two Gaussians with different centres and widths.

    With S the 2 × 2 Gram matrix of x and x' and D = diag(h_1², h_2²), it is
    h_1 h_2 det(D + S)^(-1/2) exp(-½ c'(D + S)⁻¹c). It is not symmetric in x and x'.

    Examples
    --------
    >>> from rflaf.theory import gaussian_cross_kernel, gaussian_kernel
    >>> x = [[1.0, 2.0], [0.5, -1.0]]
    >>> both = gaussian_cross_kernel(x, centers=(0.3, 0.3), widths=(0.5, 0.5))
    >>> bool(abs(both - gaussian_kernel(x, center=0.3, width=0.5)).max() < 1e-15)
    True
    """
    c, h = _two("centers", centers, REAL), _two("widths", widths, POSITIVE)
    A, B = check_points(X, Y)
    # x and x' play different parts, so that the half above the diagonal is not enough
    B = B.view() if A is B else B
    K = np.empty((len(A), len(B)))
    for rows, columns, pairs in tiles(A, B, smallest_width=min(h)):
        K[rows, columns] = cross_values(pairs, c, h)
    return K


def cross_values(pairs: Pairs, c: tuple[float, float], h: tuple[float, float]) -> FloatArray:
    """The closed form on a tile of pairs."""
    det = determinant(pairs, h)
    return h[0] * h[1] / np.sqrt(det) * np.exp(-0.5 * quadratic_form(pairs, c, h) / det)


def determinant(pairs: Pairs, h: tuple[float, float]) -> FloatArray:
    """det(D + S) = h_1²h_2² + h_1²|x'|² + h_2²|x|² + |x|²|x'|² sin², a sum of positive terms."""
    p, q = h[0] * h[0], h[1] * h[1]
    s, t = np.square(pairs.first), np.square(pairs.second)
    return p * q + p * t + q * s + (s * t) * (pairs.minus * pairs.plus)


def quadratic_form(pairs: Pairs, c: tuple[float, float], h: tuple[float, float]) -> FloatArray:
    """det · c'(D + S)⁻¹c = c_1²h_2² + c_2²h_1² + |c_1 x' - c_2 x|², the last without cancelling."""
    u, v = abs(c[1]) * pairs.first, abs(c[0]) * pairs.second
    gap = pairs.minus if c[0] * c[1] >= 0 else pairs.plus
    return (c[0] * h[1]) ** 2 + (c[1] * h[0]) ** 2 + np.square(u - v) + 2 * u * v * gap


def _two(name: str, given: Any, each: list[Any]) -> tuple[float, float]:
    if np.shape(given) != (2,):
        raise ValueError(
            f"The {name!r} parameter of gaussian_cross_kernel must be two numbers. Got {given!r}."
        )
    for value in given:
        check_parameters("gaussian_cross_kernel", {name: each}, {name: value})
    return float(given[0]), float(given[1])
