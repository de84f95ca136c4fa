"""B-splines on uniform knots."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from scipy.interpolate import BSpline as ScipyBSpline
from sklearn.utils._param_validation import Interval, StrOptions

from rflaf.bases.base import Array, Basis, Tail, check_grid, check_parameters


@final
class BSpline(Basis):
    """N B-splines on uniform knots, which sum to one on [low, high].

    The knots lie (high - low) / (n - degree) apart, and `degree` of them on either side of the
    grid, so that n > degree. Function i is nonzero between the knots i and i + degree + 1.

    Parameters
    ----------
    n : int
        Number of functions, more than `degree`.
    low, high : float
        The grid.
    degree : int
        1 to 5.
    extrapolate : {"zero", "constant", "linear"}
        Outside the grid: the splines as they are, which end in zero `degree` knots further out;
        the value at the grid's edge; or a straight line with the value and slope of the edge.

    Examples
    --------
    >>> basis = BSpline(9, -2, 2, degree=2)
    >>> round(float(basis(0.3).sum()), 12)
    1.0
    >>> float(basis(5.0).sum())
    0.0
    """

    def __init__(
        self,
        n: int,
        low: float = -2.0,
        high: float = 2.0,
        degree: int = 2,
        extrapolate: str = "zero",
    ) -> None:
        check_parameters(
            "BSpline",
            {
                "n": [Interval(Integral, 1, None, closed="left")],
                "low": [Real],
                "high": [Real],
                "degree": [Interval(Integral, 1, 5, closed="both")],
                "extrapolate": [StrOptions({"zero", "constant", "linear"})],
            },
            locals(),
        )
        if n <= degree:
            raise ValueError(
                f"The 'n' parameter of BSpline must be more than 'degree'. "
                f"Got n={n}, degree={degree}."
            )
        self.low, self.high = check_grid("BSpline", low, high)
        self.n, self.degree, self.extrapolate = int(n), int(degree), extrapolate
        self.tail: Tail = extrapolate  # type: ignore[assignment]

    @property
    def spacing(self) -> float:
        """The distance between knots."""
        return (self.high - self.low) / (self.n - self.degree)

    @property
    def knots(self) -> Array:
        """All n + degree + 1 knots."""
        return self.low + self.spacing * np.arange(-self.degree, self.n + 1)

    def reach(self, tol: float) -> tuple[float, float]:
        margin = self.degree * self.spacing if self.tail == "zero" else 0.0
        return self.low - margin, self.high + margin

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        u = (z.astype(np.float64) - self.low) / self.spacing + self.degree
        if order == self.degree:  # the slope jumps at knots: at the upper edge, that of the grid
            u = np.where(u == self.n, np.nextafter(u, 0), u)
        spline = _cardinal(self.degree, order)
        scale = self.spacing**-order
        for i in range(self.n):
            v = u - i
            inside = (v >= 0) & (v < self.degree + 1)
            values = np.where(np.isnan(v), v, 0.0)
            values[inside] = spline(v[inside]) * scale
            yield values.astype(z.dtype)


@lru_cache
def _cardinal(degree: int, order: int) -> Any:
    """The B-spline on the knots 0, ..., degree + 1, or its derivative."""
    return ScipyBSpline.basis_element(np.arange(degree + 2.0)).derivative(order)
