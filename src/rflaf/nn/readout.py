"""sigma(Z) V as one function, for training by the paper's method.

In its backward pass the gradient for sigma(Z) is the product of that for the output, n × C, and V'.
The kernels take the factors, so that the product is never formed. With several outputs, or where Z
needs a gradient too, one kernel computes sigma(Z) again and all gradients with it.
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
    keep = _has_one_output(V) and not z.requires_grad
    out: Tensor = _Readout.apply(z, a, V, basis, keep)[0]  # type: ignore[no-untyped-call]
    return out


class _Readout(torch.autograd.Function):
    """Gives sigma(Z) as well, which the gradient for a single output needs; empty if not `keep`.

    Not an operator like those of `ops`: in a step of training those take longer in Python.
    """

    @staticmethod
    def forward(z: Tensor, a: Tensor, V: Tensor, basis: str, keep: bool) -> tuple[Tensor, Tensor]:
        sigma = sigma_of(basis, _bytes(a))
        if not _has_one_output(V):
            out = fused.predict(sigma, _numpy(z), _numpy(V))
            return torch.from_numpy(out), z.new_empty(0)
        phi = torch.empty(z.shape, dtype=z.dtype)
        fused.apply(sigma, _numpy(z), out=phi.numpy())
        return phi @ V, phi if keep else z.new_empty(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.basis, ctx.kept = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)  # for sigma(Z) that would be n × M zeros
        ctx.save_for_backward(*tensors, output[1])

    @staticmethod
    def backward(ctx: Any, h: Tensor | None, _: None) -> tuple[Any, ...]:
        needs = ctx.needs_input_grad[:3]
        if h is None:
            return None, None, None, None, None
        z, a, V, phi = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            return *_differentiable(z, a, V, h, ctx.basis, needs), None, None
        sigma = sigma_of(ctx.basis, _bytes(a))
        dz: Any = None
        if ctx.kept:
            da, dv = fused.adjoint(sigma, _numpy(z), (_numpy(h), _numpy(V))), phi.T @ h
        else:
            arrays = _numpy(z), _numpy(V), _numpy(h)
            da, dv, dz = fused.readout_gradient(sigma, *arrays, need_z=needs[0])
        made = (None if g is None else torch.as_tensor(g, dtype=z.dtype) for g in (dz, da, dv))
        return *(g if need else None for g, need in zip(made, needs)), None, None


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


def _has_one_output(V: Tensor) -> bool:
    return V.numel() == V.shape[0]


def _bytes(a: Tensor) -> bytes:
    return a.detach().to(torch.float64).numpy().tobytes()


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()
