"""A Kolmogorov-Arnold network of two layers on the B-splines of `rflaf.bases`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rflaf.bases import BSpline
from rflaf.fused import basis_layout
from rflaf.nn.layouts import single_functions
from rflaf.nn.networks import seeded


class KANLayer(nn.Module):
    """out_j = sum_i [s_ji silu(x_i) + sum_k c_jik B_k(x_i)].

    The values B_k(x_i), n × in × N with degree + 1 of every N not zero, meet the coefficients in
    one matrix product; no n × out × in tensor is made.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Sizes.
    basis : BSpline
        Of degree 3 at most.
    generator : torch.Generator, optional
        For the parameters.
    """

    pieces: Tensor
    first: Tensor

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        basis: BSpline,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.basis = basis
        base = torch.randn(n_inputs, n_outputs, generator=generator, dtype=dtype)
        splines = torch.randn(n_inputs * basis.n, n_outputs, generator=generator, dtype=dtype)
        self.base = nn.Parameter(base / n_inputs**0.5)
        self.splines = nn.Parameter(0.1 * splines / n_inputs**0.5)
        pieces, first = _local_pieces(basis)
        self.register_buffer("pieces", pieces.to(base.dtype), persistent=False)
        self.register_buffer("first", first, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """From n × in to n × out."""
        values = self.basis_values(x).flatten(1)
        return nn.functional.silu(x) @ self.base + values @ self.splines

    def basis_values(self, x: Tensor) -> Tensor:
        """B_k(x_i), n × in × N."""
        h, margin = self.basis.spacing, self.basis.degree
        start = self.basis.low - margin * h  # where the first spline begins
        place = (x - start) / h
        cell = place.detach().nan_to_num(0.0).long().clamp(0, self.first.shape[0] - 1)
        # outside all splines the place is held at the end of the last one, where they are zero
        t = place.clamp(0.0, float(self.first.shape[0])) - cell
        pieces = self.pieces[cell]
        local = pieces[..., 3]
        for power in (2, 1, 0):
            local = local * t[..., None] + pieces[..., power]
        columns = self.first[cell][..., None] + torch.arange(local.shape[-1], device=x.device)
        empty = local.new_zeros(*x.shape, self.basis.n + 2 * margin)
        values = empty.scatter(-1, columns, local)
        return values[..., margin : margin + self.basis.n]


class KAN(nn.Module):
    """A Kolmogorov-Arnold network with one hidden layer.

    Parameters
    ----------
    n_inputs : int
        d.
    n_hidden : int
        Width of the hidden layer; the paper takes max(M // 16, 10).
    n_outputs : int, optional
        C. By default the output is a vector of one number a row, the shape of a regression's
        target. An n × 1 output against a target of n would be compared in all n × n pairs.
    n_cells : int
        Cells of the grid.
    grid : (float, float)
        Outside it the splines fade to zero within three cells, and the SiLU branch goes on.
    degree : int
        Of the splines, 1 to 3.
    seed : int, optional
        For the parameters.
    dtype : torch.dtype, optional
        Of the parameters.

    Examples
    --------
    >>> import torch
    >>> from rflaf.nn import KAN
    >>> KAN(9, 10, seed=0)(torch.randn(5, 9)).shape
    torch.Size([5])
    >>> KAN(9, 10, 3, seed=0)(torch.randn(5, 9)).shape
    torch.Size([5, 3])
    """

    frozen = False

    def __init__(
        self,
        n_inputs: int,
        n_hidden: int = 187,
        n_outputs: int | None = None,
        *,
        n_cells: int = 16,
        grid: tuple[float, float] = (-2.0, 2.0),
        degree: int = 3,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if degree not in (1, 2, 3):
            raise ValueError(f"The 'degree' parameter of KAN must be 1, 2 or 3. Got {degree!r}.")
        basis = BSpline(n_cells + degree, *grid, degree=degree)
        generator = seeded(seed)
        self.n_outputs = n_outputs
        self.hidden = KANLayer(n_inputs, n_hidden, basis, generator, dtype)
        self.out = KANLayer(n_hidden, n_outputs or 1, basis, generator, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The prediction, of shape n, or n × C."""
        y: Tensor = self.out(self.hidden(x))
        return y[:, 0] if self.n_outputs is None else y


def _local_pieces(basis: BSpline) -> tuple[Tensor, Tensor]:
    """For each cell the cubics of the degree + 1 splines on it, and the column of the first.

    Columns are counted with `degree` empty ones on either side, so that every cell has as many.
    """
    layout = basis_layout(basis, 1)  # a cell a knot: such splines are cubics themselves
    cubics = torch.from_numpy(single_functions(layout, basis.n)[0])
    n_cells, width = basis.n + basis.degree, basis.degree + 1
    begin = round((basis.low - basis.degree * basis.spacing - layout.low) / layout.cell)
    padded = torch.zeros(basis.n + 2 * basis.degree, n_cells, 4, dtype=cubics.dtype)
    padded[basis.degree : basis.degree + basis.n] = cubics[:, begin : begin + n_cells]
    cells = torch.arange(n_cells)
    columns = cells[:, None] + torch.arange(width)
    return padded[columns, cells[:, None]], cells
