"""Powers of z: the paper's Taylor basis."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from sklearn.utils._param_validation import Interval

from rflaf.bases.base import Array, Basis, check_grid, check_parameters


@final
class Polynomial(Basis):
    """The powers z^0, ..., z^(n-1).

    They are evaluated as they are, everywhere: high powers overflow for large |z|, and then the
    result is an infinity. `Chebyshev` spans the same polynomials on the grid without that.

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

    def __init__(self, n: int, low: float = -2.0, high: float = 2.0) -> None:
        check_parameters(
            "Polynomial",
            {"n": [Interval(Integral, 1, None, closed="left")], "low": [Real], "high": [Real]},
            n=n,
            low=low,
            high=high,
        )
        self.n = int(n)
        self.low, self.high = check_grid("Polynomial", low, high)

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

    def parameters(self) -> dict[str, Any]:
        return {"n": self.n, "low": self.low, "high": self.high}
