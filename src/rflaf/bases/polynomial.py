"""Powers of z: the paper's Taylor basis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from rflaf.bases.base import Array, GridBasis


@final
class Polynomial(GridBasis):
    """The powers z^0, ..., z^(n-1).

    They are evaluated everywhere: for large |z|, high powers overflow to infinity. `Chebyshev`
    spans the same polynomials on the grid without overflow.

    Parameters
    ----------
    n : int
        Number of powers; the degree is n - 1.
    low, high : float
        Where `fit` samples. They do not change the functions.

    Examples
    --------
    >>> Polynomial(4)(2.0)
    array([1., 2., 4., 8.])
    """

    tail = "direct"

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        power = np.ones_like(z)
        if order:
            yield np.zeros_like(z)
        for i in range(order, self.n):
            yield i * power if order else power
            power = power * z

    def combine(self, coefficients: Array, z: Array, order: int = 0) -> Array:
        # Horner's rule, from the highest power that is there: at infinity it gives the limit
        a = np.trim_zeros(np.asarray(coefficients, dtype=np.float64), "b")
        if order:
            a = a[1:] * np.arange(1, a.size)
        total = np.full_like(z, a[-1] if a.size else 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            for c in a[-2::-1]:
                total *= z
                total += c
        return np.where(np.isnan(z), z, total)
