"""sigma as the piecewise cubic that it is: its slopes and its bends, differentiable in a.

A cell of the table has c0 + c1 t + c2 t² + c3 t³ for t in [0, 1], so that extremes of the slope and
integrals of the second derivative have closed forms. They are exact for what the kernels evaluate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from rflaf.arrays import Float64
from rflaf.fused import Layout
from rflaf.nn.layouts import cubics_of, layout_of, named_basis

_POWER_CELLS = 256  # on the grid, for powers, which have no table


@dataclass(frozen=True, eq=False)
class Pieces:
    """Slopes of sigma by cell, C × n_cells, as quadratics of t, and beyond both ends, C × 2."""

    linear: Tensor
    square: Tensor
    cube: Tensor
    tails: Tensor
    cell: float

    @property
    def starts(self) -> Tensor:
        """Slopes at the left ends of the cells."""
        return self.linear / self.cell

    @property
    def ends(self) -> Tensor:
        """Slopes at the right ends of the cells."""
        return (self.linear + 2 * self.square + 3 * self.cube) / self.cell

    def jumps(self) -> Tensor:
        """Changes of the slope between cells, and to the tails, C × (n_cells + 1)."""
        before = torch.cat([self.tails[:, :1], self.ends], 1)
        return torch.cat([self.starts, self.tails[:, 1:]], 1) - before

    def bends(self) -> tuple[Tensor, Tensor]:
        """sigma'' at the left and right ends of the cells; it is linear between them."""
        left = 2 * self.square / self.cell**2
        return left, left + 6 * self.cube / self.cell**2

    def extremes(self) -> tuple[Tensor, Tensor]:
        """The least and the largest slope of each activation, C numbers each."""
        inner = torch.where(self.cube == 0, torch.ones_like(self.cube), self.cube)
        t = (-self.square / (3 * inner)).clamp(0, 1)
        middle = (self.linear + 2 * self.square * t + 3 * self.cube * t * t) / self.cell
        slopes = torch.cat([self.tails, self.starts, self.ends, middle], 1)
        return slopes.amin(1), slopes.amax(1)


def pieces(a: Tensor, name: str) -> Pieces:
    """The pieces of the activations with coefficients a, of N or C × N; in double precision."""
    cubics, slopes, cell = _on(name, a.device)
    rows = a.reshape(-1, a.shape[-1]).to(cubics.dtype)
    c = torch.tensordot(rows, cubics, 1)
    return Pieces(c[..., 1], c[..., 2], c[..., 3], rows @ slopes, cell)


def mean_square(a: Tensor, name: str) -> Tensor:
    """The mean of sigma² over the table's interval, for each activation; exact."""
    cubics, _, _ = _on(name, a.device)
    nodes, weights = np.polynomial.legendre.leggauss(4)  # exact for a cubic squared
    powers = torch.from_numpy(((nodes + 1) / 2) ** np.arange(4)[:, None])
    values = torch.tensordot(a.reshape(-1, a.shape[-1]).to(cubics.dtype), cubics, 1)
    squares = (values @ powers.to(cubics)) ** 2 @ torch.from_numpy(weights / 2).to(cubics)
    return squares.mean(1)


@lru_cache(maxsize=32)
def _on(name: str, device: torch.device) -> tuple[Tensor, Tensor, float]:
    """The cubics of the single functions, N × n_cells × 4, their tails' slopes, and the cell."""
    basis, layout = named_basis(name), layout_of(name)
    if layout is None:
        edges, step = np.linspace(*basis.grid, _POWER_CELLS + 1, retstep=True)
        rises, cell = basis.derivative(edges).T, float(step)
        cubics, slopes = _hermite(basis(edges).T, rises * cell), rises[:, [0, -1]]
    elif isinstance(layout, Layout):
        cubics, slopes = cubics_of(name)
        cubics, cell = cubics[:, :-1], layout.cell
    else:
        raise ValueError(f"{basis!r} jumps, so it has no slope everywhere.")
    dtype = torch.float32 if device.type == "mps" else torch.float64
    with torch.inference_mode(False):  # a cached tensor must not belong to one mode
        made = [torch.from_numpy(each).to(device, dtype) for each in (cubics, slopes)]
    return made[0], made[1], cell


def _hermite(values: Float64, rises: Float64) -> Float64:
    """Cubics with the given values and slopes at the ends of cells, whose length is 1."""
    start, end, first, last = values[:, :-1], values[:, 1:], rises[:, :-1], rises[:, 1:]
    change = end - start
    return np.stack([start, first, 3 * change - 2 * first - last, first + last - 2 * change], -1)
