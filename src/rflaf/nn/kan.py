"""A Kolmogorov-Arnold network of two layers on the B-splines of `rflaf.bases`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.interpolate import BSpline as BSplineCurve
from scipy.interpolate import PPoly
from torch import Tensor, nn

from rflaf.bases import BSpline
from rflaf.fused import combine_splines, spline_gradients
from rflaf.nn.eager import differentiable, runs_eagerly
from rflaf.nn.networks import seeded
from rflaf.runtime.threads import at_most

_SPLINE_NOISE = 0.03  # the splines start almost flat: a new network computes little but SiLU
_BLOCK_NUMBERS = 2**22  # of the B_k(x_i) at a time: larger arrays take longer to allocate than fill


class KANLayer(nn.Module):
    """out_j = sum_i [b_ji silu(x_i) + s_ji sum_k c_jik B_k(x_i)].

    Of every N values B_k(x_i), degree + 1 are not zero. On the CPU a kernel multiplies these alone.
    Elsewhere, compiled, and for second derivatives all of them, n × in × N, meet the coefficients
    in one matrix product, in blocks of rows. No n × out × in tensor is made.

    The scale s_ji could be merged into the c_jik. The functions would be the same, but not how they
    are learned: Adam moves each number by its rate. Where a layer's inputs lie in few cells, the
    c_jik of all edges into j would move together, and j by the rate times their number, beyond the
    next layer's grid. Scales that differ in size and sign keep the edges apart.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        basis: BSpline,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.n_inputs, self.basis = n_inputs, basis
        bound = n_inputs**-0.5
        edges = torch.empty(n_inputs, n_outputs, dtype=dtype)
        draws = torch.randn(n_inputs, basis.n, n_outputs, generator=generator, dtype=dtype)
        self.base = nn.Parameter(edges.clone().uniform_(-bound, bound, generator=generator))
        self.scales = nn.Parameter(edges.clone().uniform_(-bound, bound, generator=generator))
        self.splines = nn.Parameter(_SPLINE_NOISE / basis.n * draws)

    def forward(self, x: Tensor) -> Tensor:
        """From n × in to n × out."""
        coefficients = self.scales[:, None] * self.splines
        if x.ndim == 2 and runs_eagerly(x, coefficients):
            sums = _SplineSums.apply(x, coefficients, self)  # type: ignore[no-untyped-call]
        else:
            sums = self.dense_sums(x, coefficients)
        return nn.functional.silu(x) @ self.base + sums

    def dense_sums(self, x: Tensor, coefficients: Tensor) -> Tensor:
        """sum over i, k of B_k(x_i) c_ik by matrix products."""
        flat = coefficients.flatten(0, 1)
        # compiled or traced, the number of blocks would be fixed, and with it the number of rows
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        whole = traced or torch.compiler.is_compiling()
        rows = max(1, _BLOCK_NUMBERS // (self.n_inputs * self.basis.n))
        blocks = (x,) if whole else torch.split(x, rows)
        return torch.cat([self.basis_values(block).flatten(1) @ flat for block in blocks])

    def basis_values(self, x: Tensor) -> Tensor:
        """B_k(x_i), n × in × N."""
        n, degree = self.basis.n, self.basis.degree
        n_cells = n + degree
        place = (x - self.basis.low) / self.basis.spacing + degree  # in cells from the first knot
        # outside all splines the place is held at the end of the last one, where they are zero
        place = place.clamp(0.0, float(n_cells))
        cell = place.detach().nan_to_num(0.0).long().clamp(max=n_cells - 1)
        t = (place - cell)[..., None]
        pieces = torch.tensor(_pieces(degree), dtype=x.dtype, device=x.device)
        local = pieces[degree]
        for power in reversed(range(degree)):
            local = local * t + pieces[power]
        # the first and last cells have fewer splines: `degree` columns at either end take the rest
        columns = cell[..., None] + torch.arange(degree + 1, device=x.device)
        values = local.new_zeros(*x.shape, n + 2 * degree).scatter(-1, columns, local)
        return values[..., degree : degree + n]


class _SplineSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, coefficients: Tensor, layer: KANLayer) -> Tensor:
        ctx.save_for_backward(x, coefficients)
        ctx.layer = layer
        with at_most(torch.get_num_threads()):
            return torch.from_numpy(combine_splines(*_spline_arrays(layer, x, coefficients)))

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        x, coefficients = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            return *differentiable(ctx.layer.dense_sums, [x, coefficients], h), None
        with at_most(torch.get_num_threads()):
            arrays = *_spline_arrays(ctx.layer, x, coefficients), h.contiguous().numpy()
            dx, dc = spline_gradients(*arrays)
        return torch.from_numpy(dx), torch.from_numpy(dc), None


def _spline_arrays(layer: KANLayer, x: Tensor, coefficients: Tensor) -> tuple[Any, ...]:
    basis = layer.basis
    pieces = np.array(_pieces(basis.degree))
    given, c = (t.detach().contiguous().numpy() for t in (x, coefficients))
    return given, basis.low, basis.spacing, pieces, c


class KAN(nn.Module):
    """A Kolmogorov-Arnold network with one hidden layer.

    Parameters
    ----------
    n_inputs : int
        d.
    n_hidden : int
        Width of the hidden layer; the paper takes max(M // 16, 10).
    n_outputs : int, optional
        C. By default the output is a vector of one number per row, like the target of a regression.
    n_cells : int
        Cells of the grid.
    grid : (float, float)
        Outside it the splines fade to zero within three cells; the SiLU branch continues.
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


@lru_cache
def _pieces(degree: int) -> list[list[float]]:
    """The degree + 1 B-splines on a cell of uniform knots as polynomials: powers × splines."""
    whole = BSplineCurve.basis_element(np.arange(degree + 2.0))
    pieces = PPoly.from_spline(whole).c[:, degree : 2 * degree + 1]
    # the spline that began first is in its last piece; PPoly has the highest power first
    return pieces[::-1, ::-1].tolist()
