"""sigma(Z) V in one operator, for training by the paper's method.

In its backward pass the gradient for sigma(Z) is the product of that for the output, n × C, and V'.
The kernels take the factors: neither that product nor sigma(Z) is ever stored.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rflaf import fused
from rflaf.nn import ops
from rflaf.nn.layouts import layout_of, sigma_of

_MOST_OUTPUTS = 16  # beyond, matrix products are faster than the kernels


def readout(z: Tensor, a: Tensor, V: Tensor, basis: str) -> Tensor:
    """sigma(Z) V, for Z of n × M, V of M or M × C, and a of N; as `ops.evaluate` and a product."""
    if not _runs_fused(z, a, V, basis):
        return ops.evaluate(z, a, basis, 0) @ V
    out: Tensor = _Readout.apply(z, a, V, basis)  # type: ignore[no-untyped-call]
    return out


class _Readout(torch.autograd.Function):
    """Not an operator like those of `ops`: in a step of training those take longer in Python."""

    @staticmethod
    def forward(z: Tensor, a: Tensor, V: Tensor, basis: str) -> Tensor:
        sigma = sigma_of(basis, _bytes(a))
        return torch.from_numpy(fused.predict(sigma, z.detach().numpy(), V.detach().numpy()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.basis = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        z, a, V = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            return *_differentiable(z, a, V, h, ctx.basis, ctx.needs_input_grad), None
        sigma = sigma_of(ctx.basis, _bytes(a))
        z_array, v_array, upstream = (tensor.detach().numpy() for tensor in (z, V, h))
        need_z = ctx.needs_input_grad[0]
        da, dv, dz = fused.readout_gradient(sigma, z_array, v_array, upstream, need_z)
        gradients = dz, da, dv
        made = (None if g is None else torch.from_numpy(g).to(z.dtype) for g in gradients)
        return *(g if need else None for g, need in zip(made, ctx.needs_input_grad)), None


def _differentiable(
    z: Tensor, a: Tensor, V: Tensor, h: Tensor, basis: str, needs: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    g = torch.outer(h, V) if V.ndim == 1 else h @ V.T
    dz = ops.slope(g, z, a, basis, 1) if needs[0] else None
    da = ops.adjoint(g, z, a, basis, 0) if needs[1] else None
    dv = ops.evaluate(z, a, basis, 0).T @ h if needs[2] else None
    return dz, da, dv


def _runs_fused(z: Tensor, a: Tensor, V: Tensor, basis: str) -> bool:
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return False
    if z.device.type != "cpu" or z.dtype not in (torch.float32, torch.float64):
        return False
    if type(z) is not Tensor or a.dtype != z.dtype or V.dtype != z.dtype:
        return False
    if z.ndim != 2 or z.shape[1] != V.shape[0] or z.numel() == 0:
        return False
    return V.numel() <= _MOST_OUTPUTS * V.shape[0] and layout_of(basis) is not None


def _bytes(a: Tensor) -> bytes:
    return a.detach().to(torch.float64).numpy().tobytes()
