"""Activations and read-outs on the CPU outside of compilers: fewer calls than the operators make.

One kernel gives the values, and one both gradients. What they write goes to memory that is used
again. Whatever else is asked for (other devices and dtypes, compilers, a second derivative) runs
through the operators of `ops`; ONNX and `torch.func` go through `gather`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from rflaf import fused
from rflaf.nn import buffers, gather, ops, table_kernels
from rflaf.nn.layouts import layout_of
from rflaf.nn.ops import as_numpy
from rflaf.nn.table_kernels import is_plain
from rflaf.nn.table_maps import table_map
from rflaf.runtime.threads import at_most

# Elements from which threads share a prediction. With fewer one was faster: threads of Python start
# late beside those of PyTorch (see `team`).
_SHARED_WORK = 1 << 18
_MOST_OUTPUTS = 16  # beyond, a matrix product is faster than the kernel's own


def activate(z: Tensor, a: Tensor, basis: str, dim: int = -1) -> Tensor:
    """sigma(z); where a is C × N, with one activation for each of the C channels along `dim`."""
    if runs_here(z, a, basis):
        return _Activate.apply(z, a, basis, dim)  # type: ignore[no-untyped-call]
    return _by_operators(z, a, basis, dim)


def _by_operators(z: Tensor, a: Tensor, basis: str, dim: int = -1) -> Tensor:
    evaluate = gather.evaluate if gather.must_be_plain() else ops.evaluate
    if a.ndim == 1:
        return evaluate(z, a, basis, 0)
    first = z.movedim(dim, 0)
    values = evaluate(first.reshape(a.shape[0], -1), a, basis, 0)
    return values.reshape(first.shape).movedim(0, dim)


def network(x: Tensor, W: Tensor, a: Tensor, V: Tensor, basis: str) -> Tensor:
    """sigma(X W) V, as `readout` of X W, which goes to memory that is used again."""
    same = x.ndim == 2 and x.shape[1] == W.shape[0] and x.dtype == W.dtype and type(x) is Tensor
    wanted = any(tensor.requires_grad for tensor in (x, W, a, V))
    if not (same and wanted and torch.is_grad_enabled() and _fits(x, W.shape[1], a, V, basis)):
        return readout(x @ W, a, V, basis)
    return _Readout.apply(x, W, a, V, basis, None)  # type: ignore[no-untyped-call]


def readout(z: Tensor, a: Tensor, V: Tensor, basis: str, rows: Tensor | None = None) -> Tensor:
    """sigma(Z) V, for Z of n × M, V of M or M × C, and a of N; if `rows` is given, of those of Z.

    The gradient for sigma(Z) is the product of that for the output, n × C, and V'. The kernel takes
    the factors, so that the product is never formed, and it reads the rows where they are.
    """
    here = z.ndim == 2 and _fits(z, z.shape[1], a, V, basis)
    training = torch.is_grad_enabled() and (z.requires_grad or a.requires_grad or V.requires_grad)
    if rows is not None:
        numbers = rows.ndim == 1 and rows.numel() > 0 and rows.dtype == torch.int64 and rows.is_cpu
        if not (here and training and not z.requires_grad and numbers):
            z, rows = z.index_select(0, rows), None
    if not (here and z.numel()):
        return activate(z, a, basis) @ V
    if training:
        return _Readout.apply(z, None, a, V, basis, rows)  # type: ignore[no-untyped-call]
    sigma = ops.sigma(a, basis)
    with at_most(torch.get_num_threads() if z.numel() >= _SHARED_WORK else 1):
        return torch.from_numpy(fused.predict(sigma, as_numpy(z), as_numpy(V)))


def _fits(x: Tensor, width: int, a: Tensor, V: Tensor, basis: str) -> bool:
    """Whether the kernels take V for so many columns of Z, and x may go to them."""
    few = V.shape[0] == width and 0 < V.numel() <= _MOST_OUTPUTS * width
    return few and V.dtype == x.dtype and runs_here(x, a, basis) and is_plain(V)


def runs_here(z: Tensor, a: Tensor, basis: str) -> bool:
    """Whether the kernels may be called without the operators around them."""
    return runs_eagerly(z, a) and layout_of(basis) is not None


def runs_eagerly(z: Tensor, a: Tensor) -> bool:
    """Whether kernels for NumPy's arrays may be called: on the CPU, and nobody traces."""
    if z.dtype not in (torch.float32, torch.float64):
        return False
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or torch.compiler.is_compiling():
        return False
    if torch.is_autocast_enabled("cpu") or torch._C._are_functorch_transforms_active():
        return False
    # a compiler, which has gone by now, knows no such questions
    plain = type(z) is Tensor and is_plain(z) and is_plain(a)
    return plain and a.dtype == z.dtype and z.numel() > 0


def differentiable(
    function: Callable[..., Tensor], inputs: list[Tensor | None], h: Tensor
) -> list[Tensor | None]:
    """Gradients for the `inputs`, differentiable in turn; `h` is that for the function's value."""
    with torch.enable_grad():
        value = function(*inputs)
    asks = [each is not None and each.requires_grad for each in inputs]
    needed = [each for each, wanted in zip(inputs, asks) if wanted and each is not None]
    found = iter(torch.autograd.grad(value, needed, h, create_graph=True))
    return [next(found) if wanted else None for wanted in asks]


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, a: Tensor, basis: str, dim: int) -> Tensor:
        whole, out = z.contiguous(), buffers.empty(z.shape, z.dtype)
        tables, shape = table_map(basis).tables(a, z.dtype), _as_channels(z, a, dim)
        table_kernels.apply_tables(tables, whole, shape, out)
        ctx.save_for_backward(z, a)
        ctx.rest = basis, dim, tables
        return out

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        z, a = ctx.saved_tensors
        basis, dim, tables = ctx.rest
        need_z, need_a = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():  # somebody wants to differentiate once more
            found = differentiable(lambda z, a: _by_operators(z, a, basis, dim), [z, a], h)
            return *found, None, None
        shape = _as_channels(z, a, dim)
        dz = buffers.empty(z.shape, z.dtype) if need_z else None
        sums = table_kernels.cell_sums(tables, z.contiguous(), shape, _numbers(h), dz)
        da = table_map(basis).pull_back(sums, a) if need_a else None
        return dz, da, None, None


class _Readout(torch.autograd.Function):
    """sigma(Z) V for Z = X W; without W, for X or its `rows`. Keeps sigma(Z), for V's gradient."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, W: Tensor | None, a: Tensor, V: Tensor, basis: str, rows: Tensor | None
    ) -> Tensor:
        z = x.contiguous()
        if W is not None:
            z = torch.mm(x, W, out=buffers.empty((x.shape[0], W.shape[1]), x.dtype))
        order = _order(rows, len(z))
        phi = buffers.empty((len(order), z.shape[1]), z.dtype)
        tables = table_map(basis).tables(a, z.dtype)
        out = table_kernels.readout_tables(tables, z, order, V, phi)
        ctx.save_for_backward(x, W, a, V, z, phi, rows)
        ctx.rest = basis, tables
        return out if V.ndim == 2 else out[:, 0]

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Any, ...]:
        x, W, a, V, z, phi, rows = ctx.saved_tensors
        basis, tables = ctx.rest
        if torch.is_grad_enabled():  # somebody wants to differentiate once more

            def plain(x: Tensor, W: Tensor | None, a: Tensor, V: Tensor) -> Tensor:
                z = x if W is None else x @ W
                z = z if rows is None else z.index_select(0, rows)
                return _by_operators(z, a, basis) @ V

            return *differentiable(plain, [x, W, a, V], h), None, None
        need_x, need_w, need_a, need_v = ctx.needs_input_grad[:4]
        need_z = need_x or need_w
        dv = phi.T @ h if need_v else None
        dz = da = None
        if need_z or need_a:
            dz = buffers.empty(z.shape, z.dtype) if need_z else None
            sums = table_kernels.readout_sums(tables, z, _order(rows, len(z)), V, _numbers(h), dz)
            da = table_map(basis).pull_back(sums, a) if need_a else None
        if W is None or dz is None:
            return dz, None, da, dv, None, None
        dx = dz @ W.T if need_x else None
        dw = x.T.contiguous() @ dz if need_w else None  # a copy of few numbers: a faster product
        return dx, dw, da, dv, None, None


def _numbers(h: Tensor) -> Tensor:
    """A gradient as numbers in memory, which PyTorch may not have made of it yet."""
    return (h if is_plain(h) else h + 0).contiguous()


def _order(rows: Tensor | None, n: int) -> Tensor:
    return _all_rows(n) if rows is None else rows.contiguous()


@lru_cache(maxsize=4)
def _all_rows(n: int) -> Tensor:
    with torch.inference_mode(False):  # a cached tensor must not belong to one mode
        return torch.arange(n, device="cpu")


def _as_channels(z: Tensor, a: Tensor, dim: int) -> tuple[int, int, int]:
    """z as the kernels take it: outer, channels, inner."""
    if a.ndim == 1:
        return 1, 1, z.numel()
    at = dim % z.ndim
    outer = z.shape[:at].numel()
    return outer, a.shape[0], z.numel() // (outer * a.shape[0])
