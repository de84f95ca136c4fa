"""The polynomials of theorem 3.2, by way of the probabilists' Hermite polynomials.

P_k(p) = He_{2k}(√p), √p Q_k(p) = He_{2k+1}(√p) and R_n(p) = He_n(√p)². The sums that the paper
prints alternate in sign and lose digits with every order; the three-term recurrence of the
normalised polynomials He_n / √n! does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial, sqrt

import numpy as np
from numpy.typing import ArrayLike

from rflaf.bases.base import checked
from rflaf.theory._checks import ORDER, FloatArray


def hermite_terms(
    n_terms: int, x: FloatArray, ratio: ArrayLike = 1.0, log_scale: ArrayLike = 0.0
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield m and e with He_n(x) ratio^n exp(log_scale) / √n! = m 2^e, for n = 0, 1, ...

    The power of two is kept apart, so that nothing overflows or vanishes on the way.
    """
    x, ratio = np.asarray(x, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    binary = np.floor(np.asarray(log_scale) / np.log(2.0))
    current = np.exp(log_scale - binary * np.log(2.0)) * np.ones_like(x)
    before = np.zeros_like(x)
    exponent = binary + np.zeros_like(x)
    for n in range(n_terms):
        yield current, exponent
        following = (x * ratio * current - np.sqrt(n) * ratio**2 * before) / np.sqrt(n + 1.0)
        shift = np.frexp(np.maximum(np.abs(following), np.abs(current)))[1]
        before, current = np.ldexp(current, -shift), np.ldexp(following, -shift)
        exponent = exponent + shift


@checked(k=ORDER)
def P_k(k: int, p: ArrayLike) -> FloatArray:
    """The polynomial P_k of theorem 3.2 at p >= 0; infinite where a float cannot hold it.

    Examples
    --------
    >>> from rflaf.theory import P_k
    >>> round(float(P_k(2, 5.0)), 12)               # p² - 6p + 3
    -2.0
    """
    return _power_of_two(*_hermite(2 * k, _root("P_k", p)))


@checked(k=ORDER)
def Q_k(k: int, p: ArrayLike) -> FloatArray:
    """The polynomial Q_k of theorem 3.2 at p >= 0; infinite where a float cannot hold it.

    Examples
    --------
    >>> from rflaf.theory import Q_k
    >>> round(float(Q_k(2, 5.0)), 12)               # p² - 10p + 15
    -10.0
    """
    x = _root("Q_k", p)
    value, exponent = _hermite(2 * k + 1, x)
    # He_{2k+1}(x)/x tends to He'_{2k+1}(0) = (2k+1) He_{2k}(0)
    at_zero, its_exponent = _hermite(2 * k, np.zeros_like(x))
    away = x > 0
    return _power_of_two(
        np.where(away, value / np.where(away, x, 1.0), (2 * k + 1) * at_zero),
        np.where(away, exponent, its_exponent),
    )


@checked(n=ORDER)
def R_n(n: int, p: ArrayLike) -> FloatArray:
    """R_n(p) = He_n(√p)² at p >= 0; infinite where a float cannot hold it.

    Examples
    --------
    >>> from rflaf.theory import R_n
    >>> round(float(R_n(3, 5.0)), 12)               # p (p - 3)²
    20.0
    """
    value, exponent = _hermite(n, _root("R_n", p))
    return _power_of_two(np.square(value), 2 * exponent)


@checked(n=ORDER)
def log_R_n(n: int, p: ArrayLike) -> FloatArray:
    """log R_n(p), for any n; -inf at a zero.

    Examples
    --------
    >>> from rflaf.theory import log_R_n
    >>> bool(2500 < log_R_n(500, 2.0) < 2700)       # R_500 itself is beyond a float
    True
    """
    value, exponent = _hermite(n, _root("log_R_n", p))
    with np.errstate(divide="ignore"):
        return 2 * (np.log(np.abs(value)) + exponent * np.log(2.0))


def _hermite(n: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """m and e with He_n(x) = m 2^e."""
    for term in hermite_terms(n + 1, x):
        value, exponent = term
    # √n! from the exact integer: an even number of its bits is moved to the exponent
    n_factorial = factorial(n)
    shift = max(n_factorial.bit_length() - 128, 0) // 2
    return value * sqrt(n_factorial >> (2 * shift)), exponent + shift


def _power_of_two(value: FloatArray, exponent: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.ldexp(value, exponent.astype(int))


def _root(caller: str, p: ArrayLike) -> FloatArray:
    p = np.asarray(p, dtype=np.float64)
    if not (np.isfinite(p).all() and (p >= 0).all()):
        raise ValueError(f"The 'p' parameter of {caller} must be finite and not negative.")
    return np.sqrt(p)
