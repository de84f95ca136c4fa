"""An activation compiled to piecewise cubics on uniform cells.

The learned activation is a function of one variable. A layout has the values of all N basis
functions at the nodes of a fine grid, as one sparse matrix; times the coefficients it gives sigma
there, and from that the cubic of every cell. Evaluating sigma then costs an index and three
multiplications for any N. The transpose of the same matrix turns sums gathered in the cells
into the gradient for the coefficients.

The cubic of a cell takes sigma's values at its ends and thirds. Against Hermite's cubic (values and
slopes at the ends) the error is a fifth, cell⁴/1944 times the fourth derivative, and a kink at the
end of a cell, as linear B-splines have, does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.runtime.cached import computed_once

if TYPE_CHECKING:
    from rflaf.bases import Basis

Array = NDArray[Any]
Float64 = NDArray[np.float64]

DEFAULT_TOL = 2e-6
"""Error of a table relative to the largest |sigma|, unless another is given."""
MAX_CELLS = 1 << 18
_FARTHEST = 1 << 19  # cells from zero
_TAIL_SHARE = 0.1  # of the tolerance, for what is cut off at the ends
_CELL_SHARE = 0.6  # of the tolerance, for the cubics; the rest is left for rounding
_WORST_PLACE = 0.5 - 5**0.5 / 6  # where in a cell |t (t - 1/3) (t - 2/3) (t - 1)| is largest
# from the values at t = 0, 1/3, 2/3, 1 to the coefficients of 1, t, t², t³
_CUBIC = np.array([[2.0, 0, 0, 0], [-11, 18, -9, 2], [18, -45, 36, -9], [-9, 27, -27, 9]]).T / 2


@dataclass(frozen=True, eq=False)
class Layout:
    """A basis on the cells from low + k * cell to low + (k + 1) * cell, k = 0 ... n_cells - 1.

    `node_map`, 3 n_cells + 1 by N, has the values of the functions at the ends and thirds of the
    cells; `edge_slopes`, 2 by N, their slopes at both ends of the range, for linear tails.
    """

    basis: Basis
    low: float
    cell: float
    n_cells: int
    node_map: sparse.csr_array
    edge_slopes: Float64

    @property
    def high(self) -> float:
        """The upper end of the last cell."""
        return self.low + self.n_cells * self.cell

    @computed_once
    def _adjoint_map(self) -> sparse.csr_array:
        return sparse.csr_array(self.node_map.T)

    def table(self, coefficients: Float64) -> Table:
        """The cubics of sum_i a_i B_i."""
        values = self.node_map @ coefficients
        corners = np.stack([values[k : k + 3 * self.n_cells : 3] for k in range(4)], axis=1)
        cells = np.zeros((self.n_cells + 1, 4))
        np.matmul(corners, _CUBIC, out=cells[:-1])
        cells[-1, 0] = values[-1]  # for z at the upper end, and beyond
        frame = table_frame(self.low, self.cell, self.n_cells, self.edge_slopes @ coefficients)
        return Table(self, coefficients, cells, frame)

    def pull_back(self, moments: Float64, tails: Float64) -> Float64:
        """The gradient for the coefficients: the transpose of `table`.

        `moments`, n_cells + 1 by 4, has the sums of g, gt, gt², gt³ over each cell, and `tails`
        those of g times the distance beyond either end, for linear tails.
        """
        corners = moments[:-1] @ _CUBIC.T
        values = np.zeros(3 * self.n_cells + 1)
        for k in range(4):
            values[k : k + 3 * self.n_cells : 3] += corners[:, k]
        values[-1] += moments[-1, 0]
        if not np.isfinite(values.sum()):  # a dense product would spread it to every function
            return np.full(self.basis.n, np.nan)
        gradient = np.asarray(self._adjoint_map @ values)
        if tails.size:
            with np.errstate(invalid="ignore"):  # z at infinity: NaN, as the dense formula gives
                gradient += tails @ self.edge_slopes
        return gradient


def table_frame(low: float, cell: float, n_cells: int, slopes: Float64) -> Float64:
    """Where `n_cells` cells of width `cell` from `low` on lie, and the `slopes` of the tails.

    A position is z / cell - low / cell. Both are given in two parts, the first of few bits, so that
    float32 kernels lose nothing when they subtract the number of the cell.
    """
    inverse, shift = 1 / cell, -low / cell
    coarse, whole = float(np.float32(inverse)), float(np.round(shift))
    place = (low, low + n_cells * cell, coarse, inverse - coarse, whole, shift - whole)
    return np.array([*place, *slopes, n_cells])


@dataclass(frozen=True, eq=False)
class Table:
    """sigma as cubics: c0 + c1 t + c2 t² + c3 t³ in each cell, t in [0, 1).

    Made by `Activation.table`, or by `Layout.table` where the coefficients change often. `layout`
    has the cells' places and `cells` their cubics. `frame` has the range, the two parts of 1 / cell
    and of -low / cell, the slopes of the tails, and the number of cells.
    """

    layout: Layout = field(repr=False)
    coefficients: Float64 = field(repr=False)
    cells: Float64 = field(repr=False)
    frame: Float64 = field(repr=False)

    @property
    def basis(self) -> Basis:
        """The basis that the table was made from."""
        return self.layout.basis

    def in_dtype(self, dtype: Any) -> tuple[Array, Array]:
        """Cells and frame in float32 or float64, as the kernels take them."""
        return (self.cells, self.frame) if dtype == np.float64 else self._single

    @computed_once
    def _single(self) -> tuple[Array, Array]:
        return self.cells.astype(np.float32), self.frame.astype(np.float32)

    def __call__(self, z: Any, out: Array | None = None) -> Array:
        """sigma(z) for an array of any shape."""
        from rflaf.fused import cpu

        return cpu.apply(self, z, out)


@dataclass(frozen=True, eq=False)
class Direct:
    """An activation without a table (powers, fixed functions): the formula itself."""

    basis: Basis
    coefficients: Float64

    def __call__(self, z: Any, out: Array | None = None) -> Array:
        """sigma(z) for an array of any shape."""
        from rflaf.fused import cpu

        return cpu.apply(self, z, out)


Sigma = Table | Direct
"""A compiled activation."""


@lru_cache(maxsize=32)
def basis_layout(basis: Basis, parts: int = 8, tail_tol: float = 1e-7) -> Layout:
    """The layout of `basis` with `parts` cells per spacing; tails below `tail_tol` are cut off."""
    start, stop = basis.reach(tail_tol)
    spacing = basis.spacing
    if basis.tail != "zero":  # both ends of the range must be ends of cells
        spacing = (stop - start) / np.ceil((stop - start) / spacing - 1e-9)
    cell = spacing / parts
    below = int(np.ceil((basis.low - start) / cell - 1e-9))
    above = int(np.ceil((stop - basis.low) / cell - 1e-9))
    if basis.tail == "zero":  # the first cell is made zero, and so is the last node
        below += 1
    n_cells = below + above
    if n_cells > MAX_CELLS:
        raise ValueError(
            f"A table of {basis!r} with {parts} cells to its spacing would have {n_cells} cells. "
            f"Expected at most {MAX_CELLS}: use a larger 'tol' or a narrower grid."
        )
    low = basis.low - below * cell
    if max(abs(low), abs(stop)) / cell > _FARTHEST:
        raise ValueError(
            f"The grid of {basis!r} lies too far from zero for the width of its functions: float32 "
            "cannot distinguish the cells. Shift the inputs, or use wider functions."
        )
    nodes = low + cell / 3 * np.arange(3 * n_cells + 1)
    edge_slopes = np.zeros((2, basis.n))
    if basis.tail != "zero":
        nodes = np.clip(nodes, basis.low, basis.high)
    if basis.tail == "linear":
        edge_slopes = basis.derivative(np.array([basis.low, basis.high]))
    rows, entries = [], []
    for values in basis.functions(nodes):
        column = values.copy()
        if basis.tail == "zero":
            column[[0, 1, 2, 3, -1]] = 0
        rows.append(np.flatnonzero(np.abs(column) > 1e-3 * tail_tol))
        entries.append(column[rows[-1]])
    starts = np.cumsum([0, *(r.size for r in rows)])
    columns = sparse.csc_array(
        (np.concatenate(entries), np.concatenate(rows), starts), (nodes.size, basis.n)
    )
    return Layout(basis, low, cell, n_cells, sparse.csr_array(columns), edge_slopes)


def compile_activation(basis: Basis, coefficients: Float64, tol: float = DEFAULT_TOL) -> Sigma:
    """The table of sum_i a_i B_i with an error of at most `tol` times its largest value.

    The cells are made smaller until the error, measured once in every cell, is small enough.
    """
    if basis.tail == "direct":
        return Direct(basis, coefficients)
    largest_a = np.abs(coefficients).max()
    tail_tol, parts = _TAIL_SHARE * tol, 1
    while True:
        layout = basis_layout(basis, parts, _power_of_ten(tail_tol))
        table = layout.table(coefficients)
        worst = layout.low + layout.cell * (np.arange(layout.n_cells) + _WORST_PLACE)
        exact = basis.combine(coefficients, worst)
        height = max(np.abs(exact).max(), np.abs(table.cells[:, 0]).max())
        if height == 0:
            return table
        # where the functions cancel, what is left out of each weighs more
        wanted_tail = max(_TAIL_SHARE * tol * min(1.0, height / largest_a), 1e-30)
        if _power_of_ten(wanted_tail) < _power_of_ten(tail_tol):
            tail_tol = wanted_tail
            continue
        error = np.abs(table.cells[:-1] @ _WORST_PLACE ** np.arange(4.0) - exact).max()
        excess = error / (_CELL_SHARE * tol * height)
        if excess <= 1:
            return table
        # the error falls as the fourth power, once the cells are small enough for that
        parts = 4 if parts == 1 else max(parts + 1, int(np.ceil(1.02 * parts * excess**0.25)))


def _power_of_ten(x: float) -> float:
    """The power of ten at or below x, so that few layouts are made."""
    return float(10.0 ** np.floor(np.log10(x) + 1e-9))
