"""The bases of the published experiments, one of them with its defect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
from sklearn.utils._param_validation import StrOptions

from rflaf.bases import RBF, Basis, BSpline, Polynomial
from rflaf.bases.base import Array, GridBasis, checked
from rflaf.nn.layouts import CellLayout


@final
class DefectiveBSpline(GridBasis):
    """The quadratic "B-splines" of the published experiments. Only for reproducing those.

    Three pieces per function, 4/3 as high as a B-spline's. The middle one, on [c, c + h], is
    centred at (c + h/2) h where c + h/2 was meant, so that the function jumps at both its ends.
    `rflaf.bases.BSpline` is the right one.

    Parameters
    ----------
    n : int
        Number of functions, two or more; c is each of linspace(low, high, n) and h their distance.
    low, high : float
        The first and the last c. Function i lives on [c - h, c + 2h].

    Examples
    --------
    >>> basis = DefectiveBSpline(17)
    >>> float(basis(-0.0001)[8].round(2)), float(basis(0.0001)[8].round(2))  # a jump at c = 0
    (0.67, 0.98)
    """

    tail = "zero"
    least = 2

    def reach(self, tol: float) -> tuple[float, float]:
        return self.low - self.spacing, self.high + 2 * self.spacing

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        with np.errstate(invalid="ignore"):
            place = (z.astype(np.float64) - self.low) / self.spacing + 1
        for i, pieces in enumerate(self._pieces()):
            total = np.where(np.isnan(place), place, 0.0)
            for k, (c0, c1, c2) in enumerate(pieces):
                t = place - (i + k)
                inside = (t >= 0) & (t < 1)
                t = t[inside]
                value = c1 + 2 * c2 * t if order else c0 + t * (c1 + t * c2)
                total[inside] = value * self.spacing**-order
            yield total.astype(z.dtype)

    def cell_layout(self) -> CellLayout:
        """Its table, which is exact: one cell per piece."""
        n_cells = self.n + 2
        cubics = np.zeros((self.n, n_cells + 1, 4))
        for i, pieces in enumerate(self._pieces()):
            cubics[i, i : i + 3, :3] = pieces
        return CellLayout(self, self.low - self.spacing, self.spacing, n_cells, cubics)

    def _pieces(self) -> Array:
        """Coefficients of 1, t, t² of the three pieces of each function, t from 0 to 1."""
        h = self.spacing
        c = np.linspace(self.low, self.high, self.n)
        off = (c - (c + h / 2) * h) / h  # the middle piece is 4/3 (3/4 - (off + t)²)
        pieces = np.empty((self.n, 3, 3))
        pieces[:, 0] = np.array([0, 0, 1]) * 2 / 3
        pieces[:, 1] = np.stack([0.75 - off**2, -2 * off, -np.ones_like(c)], axis=1) * 4 / 3
        pieces[:, 2] = np.array([1, -2, 1]) * 2 / 3
        return pieces


@checked(kind=[StrOptions({"rbf", "bs", "pl"})])
def published_basis(kind: str, cells: int, *, corrected: bool = False) -> Basis:
    """The basis that the paper calls RBF-16, BS-16 or PL-16: `cells` + 1 functions on [-2, 2].

    Parameters
    ----------
    kind : {"rbf", "bs", "pl"}
        Gaussians, quadratic splines or powers.
    cells : int
        The number in the paper's name, which counts cells of the grid.
    corrected : bool
        For "bs": the B-splines that were meant in place of the defective ones.

    Examples
    --------
    >>> published_basis("rbf", 16)
    RBF(17 on [-2, 2])
    >>> published_basis("bs", 16)
    DefectiveBSpline(17 on [-2, 2])
    >>> published_basis("bs", 16, corrected=True).spacing
    0.25
    """
    n, h = cells + 1, 4 / cells
    if kind == "rbf":
        return RBF(n)
    if kind == "pl":
        return Polynomial(n)
    # the first spline lives on [-2 - h, -2 + 2h], as the published one does
    return BSpline(n, h - 2, 2.0, degree=2) if corrected else DefectiveBSpline(n)
