"""Chebyshev polynomials scaled to the grid: polynomials that do not explode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from rflaf.bases.base import Array, GridBasis


@final
class Chebyshev(GridBasis):
    """T_0, ..., T_{n-1} on the grid, each within [-1, 1]; outside, the value at the edge.

    Parameters
    ----------
    n : int
        Number of polynomials; the degree is n - 1.
    low, high : float
        The grid, which is mapped to [-1, 1].

    Examples
    --------
    >>> Chebyshev(3, -2, 2)([0.0, 2.0, 100.0])
    array([[ 1.,  0., -1.],
           [ 1.,  1.,  1.],
           [ 1.,  1.,  1.]])
    """

    tail = "constant"

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        slope = 2 / (self.high - self.low)
        x = (z - self.low) * z.dtype.type(slope) - 1
        # T_k' = k U_{k-1}; both follow p_{k+1} = 2 x p_k - p_{k-1}
        if order:
            yield np.zeros_like(x)
        current, following = np.ones_like(x), (2 * x if order else x)
        for k in range(order, self.n):
            yield k * slope * current if order else current
            current, following = following, 2 * x * following - current
