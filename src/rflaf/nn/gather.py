"""The operators' arithmetic in plain PyTorch, for every device and dtype.

The specification is that of the fused kernels: a cell and four coefficients per element.
Beside value, slope and adjoint it has the derivatives of higher order, for double backward. All of
it takes z of any shape with one activation, a of N, or z of C × L with one per row, a of C × N.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from rflaf import fused
from rflaf.bases import Polynomial
from rflaf.nn.layouts import cubics_of, layout_of, named_basis


def evaluate(z: Tensor, a: Tensor, name: str, order: int = 0) -> Tensor:
    """The derivative of that order of sigma at z, in z's dtype."""
    z_wide = _at_least_single(z)
    if isinstance(named_basis(name), Polynomial):
        values = _evaluate_powers(z_wide, a, order)
    else:
        values = _evaluate_cells(z_wide, a, name, order)
    return values.to(z.dtype)


def adjoint(g: Tensor, z: Tensor, like: Tensor, name: str, order: int = 0) -> Tensor:
    """sum of g times the derivatives of the basis at z: the gradient for a, shaped as `like`."""
    z_wide, g_wide = _at_least_single(z), _at_least_single(g)
    if isinstance(named_basis(name), Polynomial):
        return _adjoint_powers(g_wide, z_wide, like, order)
    return _adjoint_cells(g_wide, z_wide, like, name, order)


def _evaluate_cells(z: Tensor, a: Tensor, name: str, order: int) -> Tensor:
    cubics, edge_slopes = _cubics_for(name, z)
    low, high, cell, n_cells = _frame(name)
    index, t = _locate(z, low, high, cell, n_cells)
    coefficients = a.to(cubics.dtype)
    rows = torch.tensordot(coefficients, cubics, 1).reshape(-1, 4).to(z.dtype)
    index = _own_rows(index, a, n_cells)
    total = torch.zeros_like(t)
    for power in range(3, order - 1, -1):  # Horner's rule on the derivative
        total = total * t + math.perm(power, order) * rows[:, power][index]
    total = total * cell**-order
    if order > 1:
        return total.masked_fill((z < low) | (z > high), 0)
    slopes = (coefficients @ edge_slopes).to(z.dtype)
    shape = (-1, *[1] * (z.ndim - 1)) if z.ndim else ()
    below, above = (slopes[..., k].reshape(shape) for k in (0, 1))
    if order == 1:
        return torch.where(z < low, below, torch.where(z > high, above, total))
    if named_basis(name).tail == "linear":
        total = torch.where(z < low, total + below * (z - low), total)
        total = torch.where(z > high, total + above * (z - high), total)
    return total


def _adjoint_cells(g: Tensor, z: Tensor, like: Tensor, name: str, order: int) -> Tensor:
    cubics, edge_slopes = _cubics_for(name, z)
    low, high, cell, n_cells = _frame(name)
    index, t = _locate(z, low, high, cell, n_cells)
    index = _own_rows(index, like, n_cells).reshape(-1)
    channels = like.shape[0] if like.ndim == 2 else 1
    moments = cubics.new_zeros(channels * (n_cells + 1), 4)
    outside = (z < low) | (z > high)
    weight = (g.masked_fill(outside, 0) if order else g) * cell**-order
    for power in range(order, 4):
        part = (math.perm(power, order) * weight).to(moments.dtype).reshape(-1)
        moments[:, power].index_add_(0, index, part)
        weight = weight * t
    gradient = moments.reshape(channels, -1) @ cubics.reshape(cubics.shape[0], -1).T
    if order < 2 and named_basis(name).tail == "linear":
        beyond = torch.stack([(z - low).clamp(max=0), (z - high).clamp(min=0)])
        weights = torch.sign(beyond).abs() if order else beyond
        tails = (weights * g).reshape(2, channels, -1).sum(-1, dtype=moments.dtype)
        gradient = gradient + tails.T @ edge_slopes.T
    return gradient.reshape(like.shape).to(like.dtype)


def _evaluate_powers(z: Tensor, a: Tensor, order: int) -> Tensor:
    coefficients = a.to(z.dtype)
    if z.device.type == "cpu" and a.ndim == 1 and a.shape[0] > order and not must_be_plain():
        factors = [math.perm(i, order) for i in range(order, a.shape[0])]
        terms = coefficients[order:] * torch.tensor(factors, dtype=z.dtype)
        out = torch.empty(z.shape, dtype=z.dtype)
        fused.evaluate_powers(z.contiguous().view(-1).numpy(), terms.numpy(), out.view(-1).numpy())
        return out
    total = torch.zeros_like(z)
    for i in range(a.shape[-1] - 1, order - 1, -1):
        c = math.perm(i, order) * coefficients[..., i]
        total = total * z + (c[:, None] if a.ndim == 2 else c)
    return total


def _adjoint_powers(g: Tensor, z: Tensor, like: Tensor, order: int) -> Tensor:
    channels = like.shape[0] if like.ndim == 2 else 1
    gradient = torch.zeros(channels, like.shape[-1], dtype=_sum_dtype(z), device=z.device)
    if z.device.type == "cpu" and like.ndim == 1 and like.shape[0] > order:
        factors = [math.perm(i, order) for i in range(order, like.shape[0])]
        flat_z, flat_g = (t.contiguous().view(-1).numpy() for t in (z, g.to(z.dtype)))
        sums = torch.from_numpy(fused.adjoint_powers(flat_z, flat_g, len(factors)))
        gradient[0, order:] = sums * torch.tensor(factors, dtype=torch.float64)
        return gradient.reshape(like.shape).to(like.dtype)
    weight = g
    for i in range(order, like.shape[-1]):
        sums = weight.reshape(channels, -1).sum(-1, dtype=gradient.dtype)
        gradient[:, i] = math.perm(i, order) * sums
        weight = weight * z
    return gradient.reshape(like.shape).to(like.dtype)


def _locate(z: Tensor, low: float, high: float, cell: float, n_cells: int) -> tuple[Tensor, Tensor]:
    """The cell of each element, and its place in it; NaN keeps a NaN for its place."""
    position = (z.clamp(low, high) - low) / cell
    index = position.nan_to_num(0.0).long().clamp(0, n_cells)
    return index, position - index


def _own_rows(index: Tensor, a: Tensor, n_cells: int) -> Tensor:
    """With one activation per row, the cells of activation c come after those of c - 1."""
    if a.ndim == 1:
        return index
    return index + (n_cells + 1) * torch.arange(a.shape[0], device=a.device)[:, None]


def _frame(name: str) -> tuple[float, float, float, int]:
    layout = layout_of(name)
    if layout is None:
        raise NotImplementedError(
            f"{named_basis(name)!r} has no table, and no formula in PyTorch: it runs on the CPU "
            "in float32 or float64, without double backward."
        )
    return layout.low, layout.low + layout.n_cells * layout.cell, layout.cell, layout.n_cells


def _cubics_for(name: str, z: Tensor) -> tuple[Tensor, Tensor]:
    if torch.compiler.is_compiling():  # a traced tensor must not get into the cache
        made = (torch.tensor(array.tolist(), dtype=torch.float64) for array in cubics_of(name))
        cubics, edge_slopes = (tensor.to(z.device, _sum_dtype(z)) for tensor in made)
        return cubics, edge_slopes
    return _cubics(name, z.device, _sum_dtype(z))


@lru_cache(maxsize=32)
def _cubics(name: str, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    _frame(name)
    with torch.inference_mode(False):  # a cached tensor must not belong to one mode
        cubics, edge_slopes = (torch.from_numpy(array) for array in cubics_of(name))
        return cubics.to(device, dtype), edge_slopes.to(device, dtype)


def _sum_dtype(z: Tensor) -> torch.dtype:
    return torch.float32 if z.device.type == "mps" else torch.float64  # MPS has no float64


def _at_least_single(z: Tensor) -> Tensor:
    return z if z.dtype == torch.float64 else z.to(torch.float32)


def must_be_plain() -> bool:
    """Whether only PyTorch's own functions will do: ONNX and `torch.func` know no others."""
    return torch.onnx.is_in_onnx_export() or torch._C._are_functorch_transforms_active()
