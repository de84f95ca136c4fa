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

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rflaf import fused
from rflaf.nn import gather
from rflaf.nn.layouts import layout_of, sigma_of

_WIDE = 512  # rows at least this long go to the kernels as they are,
_CUT = 4096  # others are cut anew, into rows of this length
_LONG_CHANNEL = 4096  # elements from which a call of the kernels for each channel pays


@torch.library.custom_op("rflaf::evaluate", mutates_args=())
def evaluate(z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order or not _runs_fused(z, a, basis):
        return gather.evaluate(z, a, basis, order).contiguous()
    out = torch.empty(z.shape, dtype=z.dtype)
    for part, target, coefficients in _channels(a, z, out):
        fused.apply(sigma_of(basis, coefficients), _numpy(part), out=target.numpy())
    return out


@torch.library.custom_op("rflaf::slope", mutates_args=())
def slope(g: Tensor, z: Tensor, a: Tensor, basis: str, order: int) -> Tensor:
    if order != 1 or not _runs_fused(z, a, basis):
        return (g * gather.evaluate(z, a, basis, order)).contiguous()
    out = torch.empty(z.shape, dtype=z.dtype)
    for part, upstream, target, coefficients in _channels(a, z, g, out):
        sigma = sigma_of(basis, coefficients)
        for matrix, weights, rows in _matrices(_numpy(part), _numpy(upstream), target.numpy()):
            fused.slope(sigma, matrix, weights, out=rows)
    return out


@torch.library.custom_op("rflaf::adjoint", mutates_args=())
def adjoint(g: Tensor, z: Tensor, like: Tensor, basis: str, order: int) -> Tensor:
    if order or not _runs_fused(z, like, basis):
        return gather.adjoint(g, z, like, basis, order).contiguous()
    gradients = []
    for part, upstream, coefficients in _channels(like, z, g):
        sigma = sigma_of(basis, coefficients)
        total = np.zeros(like.shape[-1])
        for matrix, weights in _matrices(_numpy(part), _numpy(upstream)):
            total += fused.adjoint(sigma, matrix, weights)
        gradients.append(total)
    return torch.from_numpy(np.stack(gradients)).to(like.dtype).reshape(like.shape)


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


def _runs_fused(z: Tensor, a: Tensor, basis: str) -> bool:
    if z.device.type != "cpu" or z.dtype not in (torch.float32, torch.float64):
        return False
    if a.ndim == 2 and z.numel() < _LONG_CHANNEL * a.shape[0]:
        return False
    return layout_of(basis) is not None or not gather.has_formula(basis)


def _channels(a: Tensor, *tensors: Tensor) -> Iterator[tuple[Any, ...]]:
    """The parts of the tensors that have one activation, each with its coefficients."""
    rows = a.detach().to(torch.float64).numpy()
    if rows.ndim == 1:
        yield *tensors, rows.tobytes()
        return
    for c, row in enumerate(rows):
        yield *(tensor[c] for tensor in tensors), row.tobytes()


def _matrices(z: Any, *others: Any) -> Iterator[tuple[Any, ...]]:
    """The arrays as matrices with rows long enough for the kernels."""
    if z.ndim == 2 and z.shape[1] >= _WIDE:
        yield z, *others
        return
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (z, *others)]
    whole = z.size // _CUT * _CUT
    if whole:
        yield tuple(array[:whole].reshape(-1, _CUT) for array in flat)
    if whole < z.size:
        yield tuple(array[None, whole:] for array in flat)


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()
