"""The operators rflaf::evaluate, rflaf::slope and rflaf::adjoint.

They are closed under differentiation, so that any number of backward passes works:

    E_k(z, a)    = sigma^(k)(z)                  evaluate
    S_k(g, z, a) = g sigma^(k)(z)                slope
    A_k(g, z)    = sum over z of g B_i^(k)(z)    adjoint

    dE_k: S_{k+1} for z, A_k for a
    dS_k: S_k for g, S_{k+1} for z, A_k for a
    dA_k: E_k and S_{k+1} with the incoming gradient in the place of a, for g and z

E_0, S_1 and A_0, which are all that a single backward pass needs, run through the fused kernels on
the CPU in float32 and float64. The rest, and every other device and dtype, runs through `gather`.
Arguments are as in `gather`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rflaf import fused
from rflaf.fused.threads import at_most
from rflaf.nn import gather
from rflaf.nn.layouts import layout_of, sigma_of
from rflaf.nn.table_maps import table_map

@torch.library.custom_op("rflaf::evaluate", mutates_args=())
def evaluate(z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order or not _runs_fused(z, a, basis):
        return gather.evaluate(z, a, basis, order).contiguous()
    if layout_of(basis) is None:
        return torch.from_numpy(fused.apply(sigma(a, basis), _numpy(z)))
    out = torch.empty(z.shape, dtype=z.dtype)
    with at_most(torch.get_num_threads()):
        fused.apply_tables(table_map(basis).tables(a, z.dtype), _channels(z, a), _channels(out, a))
    return out


@torch.library.custom_op("rflaf::slope", mutates_args=())
def slope(g: Tensor, z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order != 1 or not _runs_fused(z, a, basis):
        return (g * gather.evaluate(z, a, basis, order)).contiguous()
    return _gradients(g, z, a, basis)[0]


@torch.library.custom_op("rflaf::adjoint", mutates_args=())
def adjoint(g: Tensor, z: Tensor, like: Tensor, basis: str, order: int) -> Tensor:
    if order or not _runs_fused(z, like, basis):
        return gather.adjoint(g, z, like, basis, order).contiguous()
    return _gradients(g, z, like, basis, need_z=False)[1]


@evaluate.register_fake
def _(z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    return torch.empty(z.shape, dtype=z.dtype, device=z.device)


@slope.register_fake
def _(g: Tensor, z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    return torch.empty(z.shape, dtype=z.dtype, device=z.device)


@adjoint.register_fake
def _(g: Tensor, z: Tensor, like: Tensor, basis: str, order: int) -> Tensor:
    return torch.empty(like.shape, dtype=like.dtype, device=like.device)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.basis, ctx.order = inputs
    ctx.save_for_backward(*tensors)


def _evaluate_backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
    z, a = ctx.saved_tensors
    need_z, need_a = ctx.needs_input_grad[:2]
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


evaluate.register_autograd(_evaluate_backward, setup_context=_save)
slope.register_autograd(_slope_backward, setup_context=_save)
adjoint.register_autograd(_adjoint_backward, setup_context=_save)


def sigma(a: Tensor, basis: str) -> fused.Sigma:
    """The activation as `rflaf.fused` takes it, for one that all channels share."""
    return sigma_of(basis, a.detach().to(torch.float64).numpy().tobytes())


def _runs_fused(z: Tensor, a: Tensor, basis: str) -> bool:
    if z.device.type != "cpu" or z.dtype not in (torch.float32, torch.float64) or not z.numel():
        return False
    if layout_of(basis) is None:
        return a.ndim == 1 and not gather.has_formula(basis)
    return True


def _gradients(
    g: Tensor, z: Tensor, a: Tensor, basis: str, need_z: bool = True
) -> tuple[Tensor, Tensor]:
    """g sigma'(z), empty if not wanted, and the gradient for a."""
    if layout_of(basis) is None:
        direct, rows, weights = sigma(a, basis), *(_numpy(t).reshape(1, -1) for t in (z, g))
        slopes = fused.slope(direct, rows, weights).reshape(z.shape)
        gradient = torch.from_numpy(fused.adjoint(direct, rows, weights)).to(a.dtype)
        return torch.from_numpy(slopes), gradient
    maps = table_map(basis)
    dz = torch.empty(z.shape if need_z else 0, dtype=z.dtype)
    target = _channels(dz, a) if need_z else None
    with at_most(torch.get_num_threads()):
        weights = _channels(g.to(z.dtype), a)
        sums = fused.cell_sums(maps.tables(a, z.dtype), _channels(z, a), weights, target)
    return dz, maps.pull_back(sums, a)


def _channels(tensor: Tensor, a: Tensor) -> Any:
    """The tensor as the kernels take it, outer × C × inner."""
    return _numpy(tensor.contiguous()).reshape(1, a.shape[0] if a.ndim == 2 else 1, -1)


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()
