"""From coefficients to the tables of the training kernels, and back from sums over cells.

The way is linear: one matrix, of which the transpose turns sums into the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from rflaf.arrays import Float64
from rflaf.fused import Tables, tables_frame
from rflaf.nn import buffers
from rflaf.nn.layouts import cubics_of, layout_of, named_basis
from rflaf.runtime.cached import computed_once

_CPU = torch.device("cpu")
_DENSE = 32  # functions up to which a dense product is faster than a sparse one


@dataclass(frozen=True, eq=False)
class TableMap:
    """The matrix of a basis, N × 4 (n_cells + 2), and where its cells lie."""

    low: float
    cell: float
    n_cells: int
    straight: bool
    matrix: Float64

    def tables(self, a: Tensor, dtype: torch.dtype) -> Tables:
        """The tables of coefficients a, of N or C × N."""
        matrix, given = _tensors(self, dtype, _CPU)
        frame = given.numpy()
        if a.ndim == 2:
            out = buffers.empty((a.shape[0], matrix.shape[1]), dtype)
            cells = torch.mm(a.detach().to(dtype), matrix, out=out).numpy()
        else:
            numbers = a.detach().numpy().astype(np.float64)
            cells = self._sparse[0] @ numbers if self._sparse else numbers @ self.matrix
            cells = cells.astype(frame.dtype)
        return Tables(cells.reshape(-1, self.n_cells + 2, 4), frame)

    def pull_back(self, moments: Any, like: Tensor) -> Tensor:
        """The gradient for the coefficients, shaped as `like`."""
        if self.straight:  # at tails powers of t may overflow; their coefficients are 0
            moments[..., 0, 2:] = moments[..., -1, 2:] = 0
        if like.ndim == 2:
            sums = torch.from_numpy(moments).view(like.shape[0], -1)
            # transposed: with few columns a product takes half as long again
            gradient = torch.mm(_tensors(self, sums.dtype, _CPU)[0], sums.T).T
            return gradient.contiguous().to(like.dtype)
        flat = moments.reshape(-1).astype(np.float64, copy=False)
        if self._sparse is None:
            return _as(self.matrix @ flat, like)
        gradient = self._sparse[1] @ flat
        if not np.isfinite(flat.sum()):  # a dense product would spread it to all functions
            gradient[:] = np.nan
        return _as(gradient, like)

    def device_tables(self, a: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """`tables` on the device of z: cells, C × (n_cells + 2) × 4, and frame."""
        dtype = torch.float64 if z.dtype == torch.float64 else torch.float32
        rows = a.detach().reshape(-1, a.shape[-1]).to(z.device, dtype)
        matrix, frame = _tensors(self, dtype, z.device)
        return (rows @ matrix).view(len(rows), self.n_cells + 2, 4), frame

    def device_pull_back(self, sums: Tensor, like: Tensor) -> Tensor:
        """`pull_back` of sums in which the powers of t that do not count are zero."""
        flat = sums.reshape(len(sums), -1)
        gradient = flat @ _tensors(self, flat.dtype, flat.device)[0].T
        return gradient.view(like.shape).to(like.dtype)

    @computed_once
    def _sparse(self) -> tuple[Any, Any] | None:
        """The matrix transposed, and as it is; None where a dense product is faster."""
        if self.matrix.shape[0] <= _DENSE:
            return None
        return sparse.csr_array(self.matrix.T), sparse.csr_array(self.matrix)


def _as(gradient: Float64, like: Tensor) -> Tensor:
    """A tensor of `like`'s precision; NumPy converts a few numbers faster than PyTorch."""
    if like.dtype == torch.float32:
        return torch.from_numpy(gradient.astype(np.float32))
    return torch.from_numpy(gradient).to(like.dtype)


@lru_cache(maxsize=64)
def table_map(name: str) -> TableMap:
    layout = layout_of(name)
    assert layout is not None, name
    cubics, slopes = cubics_of(name)
    rises = slopes * layout.cell
    matrix = np.zeros((cubics.shape[0], layout.n_cells + 2, 4))
    matrix[:, 1:-1] = cubics[:, :-1]
    matrix[:, 0, 0] = cubics[:, 0, 0] - rises[:, 0]  # a cell before the first ends in its value
    matrix[:, 0, 1], matrix[:, -1, 1] = rises[:, 0], rises[:, 1]
    matrix[:, -1, 0] = cubics[:, -1, 0]
    straight = named_basis(name).tail == "linear"
    flat = matrix.reshape(len(matrix), -1)
    return TableMap(layout.low, layout.cell, layout.n_cells, straight, flat)


@lru_cache(maxsize=64)
def _tensors(maps: TableMap, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    number = np.float32 if dtype == torch.float32 else np.float64
    frame = tables_frame(maps.low, maps.cell, maps.n_cells, maps.straight, number)
    with torch.inference_mode(False):  # a cached tensor must not belong to one mode
        matrix = torch.from_numpy(maps.matrix).to(device, dtype)
        return matrix, torch.from_numpy(frame).to(device)
