"""The operators rflaf::evaluate, rflaf::slope, rflaf::adjoint and rflaf::gradients.

They are closed under differentiation, so that any number of backward passes works:

    E_k(z, a)    = sigma^(k)(z)                  evaluate
    S_k(g, z, a) = g sigma^(k)(z)                slope
    A_k(g, z)    = sum over z of g B_i^(k)(z)    adjoint

    dE_k: S_{k+1} for z, A_k for a
    dS_k: S_k for g, S_{k+1} for z, A_k for a
    dA_k: E_k and S_{k+1} with the incoming gradient in the place of a, for g and z

`gradients` is S_1 and A_0 in one pass. E_0, S_1 and A_0, which are all that a single backward pass
needs, run through the fused kernels on the CPU in float32 and float64, and through those of `gpu`
on CUDA where Triton is installed. The rest, and every other device and dtype, runs through
`gather`. Arguments are as in `gather`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from rflaf import fused
from rflaf.bases import Polynomial
from rflaf.nn import gather, table_kernels
from rflaf.nn.layouts import layout_of, named_basis, sigma_of
from rflaf.nn.table_maps import table_map


@torch.library.custom_op("rflaf::evaluate", mutates_args=())
def evaluate(z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order == 0 and runs_on_gpu(z, basis):
        tables = table_map(basis).device_tables(a, z)
        return gpu_kernels().apply(_rows(z, a), *tables).view(z.shape)
    if order or not _runs_fused(z, a, basis):
        return gather.evaluate(z, a, basis, order).contiguous()
    if layout_of(basis) is None:
        return torch.from_numpy(fused.apply(sigma(a, basis), as_numpy(z)))
    out = torch.empty(z.shape, dtype=z.dtype, device=z.device)
    table_kernels.apply_tables(
        table_map(basis).tables(a, z.dtype), z.contiguous(), _channels(z, a), out
    )
    return out


@torch.library.custom_op("rflaf::slope", mutates_args=())
def slope(g: Tensor, z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order != 1 or not _has_kernels(z, a, basis):
        return (g * gather.evaluate(z, a, basis, order)).contiguous()
    return _gradients(g, z, a, basis, need_a=False)[0]


@torch.library.custom_op("rflaf::adjoint", mutates_args=())
def adjoint(g: Tensor, z: Tensor, like: Tensor, basis: str, order: int) -> Tensor:
    if order or not _has_kernels(z, like, basis):
        return gather.adjoint(g, z, like, basis, order).contiguous()
    return _gradients(g, z, like, basis, need_z=False)[1]


@torch.library.custom_op("rflaf::gradients", mutates_args=())
def gradients(g: Tensor, z: Tensor, a: Tensor, basis: str) -> tuple[Tensor, Tensor]:
    if not _has_kernels(z, a, basis):
        dz = (g * gather.evaluate(z, a, basis, 1)).contiguous()
        return dz, gather.adjoint(g, z, a, basis, 0).contiguous()
    return _gradients(g, z, a, basis)


evaluate.register_fake(lambda z, a, basis, order: z.new_empty(z.shape))
slope.register_fake(lambda g, z, a, basis, order: z.new_empty(z.shape))
adjoint.register_fake(lambda g, z, like, basis, order: like.new_empty(like.shape))
gradients.register_fake(lambda g, z, a, basis: (z.new_empty(z.shape), a.new_empty(a.shape)))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.basis, ctx.order = inputs
    ctx.save_for_backward(*tensors)


def _evaluate_backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
    z, a = ctx.saved_tensors
    need_z, need_a = ctx.needs_input_grad[:2]
    if need_z and need_a and ctx.order == 0:
        return *gradients(h, z, a, ctx.basis), None, None
    dz = slope(h, z, a, ctx.basis, ctx.order + 1) if need_z else None
    da = adjoint(h, z, a, ctx.basis, ctx.order) if need_a else None
    return dz, da, None, None


def _slope_backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
    g, z, a = ctx.saved_tensors
    need_g, need_z, need_a = ctx.needs_input_grad[:3]
    dg = slope(h, z, a, ctx.basis, ctx.order) if need_g else None
    dz = slope(h * g, z, a, ctx.basis, ctx.order + 1) if need_z else None
    da = adjoint(h * g, z, a, ctx.basis, ctx.order) if need_a else None
    return dg, dz, da, None, None


def _adjoint_backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
    g, z, _ = ctx.saved_tensors
    need_g, need_z = ctx.needs_input_grad[:2]
    dg = evaluate(z, h, ctx.basis, ctx.order) if need_g else None
    dz = slope(g, z, h, ctx.basis, ctx.order + 1) if need_z else None
    return dg, dz, None, None, None


def _save_gradients(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.basis = inputs
    ctx.save_for_backward(*tensors)


def _gradients_backward(ctx: Any, h_z: Tensor, h_a: Tensor) -> tuple[Any, ...]:
    g, z, a = ctx.saved_tensors
    need_g, need_z, need_a = ctx.needs_input_grad[:3]
    dg = dz = da = None
    if need_g:
        dg = slope(h_z, z, a, ctx.basis, 1) + evaluate(z, h_a, ctx.basis, 0)
    if need_z:
        dz = slope(h_z * g, z, a, ctx.basis, 2) + slope(g, z, h_a, ctx.basis, 1)
    if need_a:
        da = adjoint(h_z * g, z, a, ctx.basis, 1)
    return dg, dz, da, None


evaluate.register_autograd(_evaluate_backward, setup_context=_save)
slope.register_autograd(_slope_backward, setup_context=_save)
adjoint.register_autograd(_adjoint_backward, setup_context=_save)
gradients.register_autograd(_gradients_backward, setup_context=_save_gradients)


def sigma(a: Tensor, basis: str) -> fused.Sigma:
    """The activation as `rflaf.fused` takes it, for one that all channels share."""
    return sigma_of(basis, a.detach().to(torch.float64).numpy().tobytes())


def _runs_fused(z: Tensor, a: Tensor, basis: str) -> bool:
    if z.device.type != "cpu" or z.dtype not in (torch.float32, torch.float64) or not z.numel():
        return False
    if layout_of(basis) is None:  # `gather` has a formula for powers alone
        return a.ndim == 1 and not isinstance(named_basis(basis), Polynomial)
    return True


def _has_kernels(z: Tensor, a: Tensor, basis: str) -> bool:
    return runs_on_gpu(z, basis) or _runs_fused(z, a, basis)


def runs_on_gpu(z: Tensor, basis: str) -> bool:
    if z.device.type != "cuda" or not z.is_floating_point() or not z.numel():
        return False
    return gpu_kernels() is not None and layout_of(basis) is not None


@lru_cache(maxsize=1)
def gpu_kernels() -> Any:
    """The module of the kernels in Triton, or None where it is not installed."""
    try:
        return import_module("rflaf.nn.gpu")
    except ImportError:
        return None


def _gradients(
    g: Tensor, z: Tensor, a: Tensor, basis: str, need_z: bool = True, need_a: bool = True
) -> tuple[Tensor, Tensor]:
    """g sigma'(z) and the gradient for a; those not wanted may be empty."""
    if layout_of(basis) is None:
        direct, rows, weights = sigma(a, basis), *(as_numpy(t).reshape(1, -1) for t in (z, g))
        slopes = fused.slope(direct, rows, weights).reshape(z.shape)
        gradient = torch.from_numpy(fused.adjoint(direct, rows, weights)).to(a.dtype)
        return torch.from_numpy(slopes), gradient
    maps = table_map(basis)
    if z.device.type == "cuda":
        given = _rows(g, a), _rows(z, a), *maps.device_tables(a, z), need_z, need_a
        dz, sums = gpu_kernels().gradients(*given)
        da = maps.device_pull_back(sums, a) if need_a else sums
        return dz.view(z.shape) if need_z else dz, da
    dz = torch.empty(z.shape if need_z else 0, dtype=z.dtype, device=z.device)
    block, upstream = z.contiguous(), g.to(z.dtype).contiguous()
    target = dz if need_z else None
    sums = table_kernels.cell_sums(
        maps.tables(a, z.dtype), block, _channels(z, a), upstream, target
    )
    return dz, maps.pull_back(sums, a)


def _rows(tensor: Tensor, a: Tensor) -> Tensor:
    """The tensor as the kernels in Triton take it, C × L."""
    return tensor.contiguous().view(a.shape[0] if a.ndim == 2 else 1, -1)


def _channels(z: Tensor, a: Tensor) -> tuple[int, int, int]:
    """z as the kernels take it: outer, channels, inner."""
    channels = a.shape[0] if a.ndim == 2 else 1
    return 1, channels, z.numel() // channels


def as_numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()
