"""Activations and read-outs on the CPU outside of compilers: fewer calls than the operators make.

One kernel gives the values, and one both gradients. What they write goes to memory that is used
again. Whatever else is asked for (other devices and dtypes, compilers, a second derivative) runs
through the operators of `ops`; ONNX and `torch.func` go through `gather`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rflaf import fused
from rflaf.fused.threads import at_most
from rflaf.nn import buffers, gather, ops
from rflaf.nn.layouts import layout_of
from rflaf.nn.table_maps import table_map

Shape = tuple[int, int, int]  # outer, channels, inner
# Elements from which threads share the work. With fewer, a step of a 512-wide network on two
# threads was faster when one did it; perhaps because PyTorch's own still hold the processors.
_SHARED_WORK = 1 << 18
_MOST_OUTPUTS = 16  # beyond, a matrix product is faster than the kernel's own


def activate(z: Tensor, a: Tensor, basis: str, dim: int = -1) -> Tensor:
    """sigma(z); where a is C × N, with one activation for each of the C channels along `dim`."""
    if runs_here(z, a, basis):
        shape = _as_channels(z, a, dim)
        out: Tensor = _Activate.apply(z, a, basis, shape)  # type: ignore[no-untyped-call]
        return out
    evaluate = gather.evaluate if gather.must_be_plain() else ops.evaluate
    if a.ndim == 1:
        return evaluate(z, a, basis, 0)
    first = z.movedim(dim, 0)
    values = evaluate(first.reshape(a.shape[0], -1), a, basis, 0)
    return values.reshape(first.shape).movedim(0, dim)


def readout(z: Tensor, a: Tensor, V: Tensor, basis: str) -> Tensor:
    """sigma(Z) V, for Z of n × M, V of M or M × C, and a of N.

    The gradient for sigma(Z) is the product of that for the output, n × C, and V'. The kernel takes
    the factors, so that the product is never formed.
    """
    fits = z.ndim == 2 and z.shape[1] == V.shape[0] and V.numel() <= _MOST_OUTPUTS * V.shape[0]
    if not (fits and V.dtype == z.dtype and runs_here(z, a, basis)):
        return activate(z, a, basis) @ V
    if torch.is_grad_enabled() and (z.requires_grad or a.requires_grad or V.requires_grad):
        out: Tensor = _Readout.apply(z, a, V, basis)  # type: ignore[no-untyped-call]
        return out
    sigma = ops.sigma(a, basis)
    with at_most(_threads(z)):
        return torch.from_numpy(fused.predict(sigma, _numpy(z), _numpy(V)))


def runs_here(z: Tensor, a: Tensor, basis: str) -> bool:
    """Whether the kernels may be called without the operators around them."""
    return runs_eagerly(z, a) and layout_of(basis) is not None


def runs_eagerly(z: Tensor, a: Tensor) -> bool:
    """Whether kernels for NumPy's arrays may be called: on the CPU, and nobody traces."""
    if z.device.type != "cpu" or z.dtype not in (torch.float32, torch.float64):
        return False
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or torch.compiler.is_compiling():
        return False
    if torch.is_autocast_enabled("cpu") or torch._C._are_functorch_transforms_active():
        return False
    return type(z) is Tensor and a.dtype == z.dtype and z.numel() > 0


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, a: Tensor, basis: str, shape: Shape) -> Tensor:
        whole, out = z.contiguous(), buffers.empty(z.shape, z.dtype)
        tables = table_map(basis).tables(a, z.dtype)
        with at_most(_threads(z)):
            fused.apply_tables(tables, _numpy(whole).reshape(shape), _numpy(out).reshape(shape))
        ctx.save_for_backward(z, a)
        ctx.rest = basis, shape, tables
        return out

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        z, a = ctx.saved_tensors
        basis, shape, tables = ctx.rest
        need_z, need_a = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            return *_twice(h, z, a, basis, shape, (need_z, need_a)), None, None
        dz = buffers.empty(z.shape, z.dtype) if need_z else None
        whole, g = (_numpy(t.contiguous()).reshape(shape) for t in (z, h))
        target = None if dz is None else _numpy(dz).reshape(shape)
        cells = tables.cells.shape
        room = _numpy(buffers.empty(cells, z.dtype)) if cells[0] > 1 else None
        with at_most(_threads(z)):
            sums = fused.cell_sums(tables, whole, g, target, room)
        da = table_map(basis).pull_back(sums, a) if need_a else None
        return dz, da, None, None


class _Readout(torch.autograd.Function):
    """Keeps sigma(Z), which the gradient for V needs."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, a: Tensor, V: Tensor, basis: str) -> Tensor:
        whole, phi = z.contiguous(), buffers.empty(z.shape, z.dtype)
        tables = table_map(basis).tables(a, z.dtype)
        shape = z.shape[0], 1, z.shape[1]
        with at_most(_threads(z)):
            fused.apply_tables(tables, _numpy(whole).reshape(shape), _numpy(phi).reshape(shape))
        ctx.save_for_backward(z, a, V, phi)
        ctx.rest = basis, shape, tables
        return phi @ V

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        z, a, V, phi = ctx.saved_tensors
        basis, shape, tables = ctx.rest
        need_z, need_a, need_v = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():
            g = torch.outer(h, V) if V.ndim == 1 else h @ V.T
            dz, da = _twice(g, z, a, basis, (1, 1, 1), (need_z, need_a))
            dv = ops.evaluate(z, a, basis, 0).T @ h if need_v else None
            return dz, da, dv, None
        dv = phi.T @ h if need_v else None
        dz = buffers.empty(z.shape, z.dtype) if need_z else None
        da = None
        if need_z or need_a:
            target = None if dz is None else _numpy(dz).reshape(shape)
            factors = _numpy(h.contiguous()), _numpy(V.contiguous())
            with at_most(_threads(z)):
                whole = _numpy(z.contiguous()).reshape(shape)
                sums = fused.cell_sums(tables, whole, factors, target)
            da = table_map(basis).pull_back(sums, a) if need_a else None
        return dz, da, dv, None


def _twice(
    h: Tensor, z: Tensor, a: Tensor, basis: str, shape: Shape, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients for z and a through operators that can be differentiated in turn."""

    def rows(tensor: Tensor) -> Tensor:
        if a.ndim == 1:
            return tensor
        return tensor.reshape(shape).movedim(1, 0).reshape(shape[1], -1)

    dz = da = None
    if needs[0]:
        dz = ops.slope(rows(h), rows(z), a, basis, 1)
        if a.ndim == 2:
            dz = dz.reshape(shape[1], shape[0], shape[2]).movedim(0, 1).reshape(z.shape)
    if needs[1]:
        da = ops.adjoint(rows(h), rows(z), a, basis, 0)
    return dz, da


def _threads(z: Tensor) -> int:
    return torch.get_num_threads() if z.numel() >= _SHARED_WORK else 1


def _as_channels(z: Tensor, a: Tensor, dim: int) -> Shape:
    if a.ndim == 1:
        return 1, 1, z.numel()
    at = dim % z.ndim
    outer = z.shape[:at].numel()
    return outer, a.shape[0], z.numel() // (outer * a.shape[0])


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()
