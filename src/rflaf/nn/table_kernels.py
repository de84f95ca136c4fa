"""The training kernels of `rflaf.fused` on tensors: values, and sums over cells for the gradient.

They do what the functions of the same names in `rflaf.fused.reference` do, and tests compare the
two. PyTorch's threads do the work (`team`), and what depends on shapes alone is kept for the next
step. All tensors are contiguous, on the CPU, and of one dtype.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rflaf.fused import Tables
from rflaf.nn import buffers
from rflaf.nn.team import Constant, Part, Plan, address

Shape = tuple[int, int, int]  # outer, channels, inner

_CHUNK = 1 << 15  # elements of a range
_LARGEST = 6 << 15  # elements of a range at most, whose sums are in the precision of z
_MOST_SUMS = 32  # ranges that have sums of their own, unless these would be larger
_ACROSS = 512  # columns that go through all rows together, where each channel has its table
_TOGETHER = 64  # channels of them at most, whose tables stay in the second-level cache
_COPIES = 4  # of the sums of one activation: `rflaf.fused.jit_vectors.COPIES`


def apply_tables(tables: Tables, z: Tensor, shape: Shape, out: Tensor) -> None:
    """sigma_c(z) of every channel c, into `out`; z is `shape`, flat."""
    plan = _apply_plan(shape, tables.cells.shape[1], tables.cells.dtype.char)
    plan.run(place_of(z), *map(address, tables), place_of(out))


def cell_sums(tables: Tables, z: Tensor, shape: Shape, g: Tensor, dz: Tensor | None) -> Any:
    """The sums of g, gt, gt², gt³ over the cells, and g times sigma'(z) into `dz`."""
    cells = tables.cells
    plan = _sums_plan(shape, cells.shape[1], cells.dtype.char, dz is not None)
    if shape[1] > 1:
        sums = buffers.empty(cells.shape, z.dtype).numpy()
        sums.fill(0)
    else:
        sums = np.zeros((plan.count, cells.shape[1], _COPIES, 4), cells.dtype)
    places = *map(address, tables), place_of(g), address(sums)
    plan.run(place_of(z), *places, 0 if dz is None else place_of(dz))
    return sums if shape[1] > 1 else _total(sums)


def readout_tables(tables: Tables, z: Tensor, order: Tensor, v: Tensor, phi: Tensor) -> Tensor:
    """sigma(Z) V, n × C, and sigma(Z) into `phi`, where Z is the rows of z that `order` names."""
    cells, right = tables.cells, _rows_of(v)
    out = torch.empty((order.shape[0], right.shape[0]), dtype=z.dtype, device="cpu")
    plan = _readout_plan(z.shape, *out.shape, cells.shape[1], cells.dtype.char)
    arrays = map(address, tables)
    places = place_of(z), place_of(order), *arrays, place_of(right), place_of(phi)
    if not plan.run(*places, place_of(out)):
        raise IndexError(
            f"The rows to read must be numbers from 0 to {len(z) - 1}. "
            f"Got {int(order.min())} to {int(order.max())} instead."
        )
    return out


def readout_sums(
    tables: Tables, z: Tensor, order: Tensor, v: Tensor, h: Tensor, dz: Tensor | None
) -> Any:
    """`cell_sums` for what `readout_tables` was given, and the gradient h for its result."""
    cells, right = tables.cells, _rows_of(v)
    shapes = z.shape, order.shape[0], right.shape[0], cells.shape[1]
    plan = _readout_sums_plan(*shapes, cells.dtype.char, dz is not None)
    sums = np.zeros((plan.count, cells.shape[1], _COPIES, 4), cells.dtype)
    arrays = *map(address, tables), place_of(h), place_of(right), address(sums)
    plan.run(place_of(z), place_of(order), *arrays, 0 if dz is None else place_of(dz))
    return _total(sums)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is numbers in the memory of the CPU, and no promise of any."""
    return tensor.is_cpu and not (tensor.is_neg() or tensor._is_zerotensor())


def place_of(tensor: Tensor) -> int:
    """Where its numbers begin. Machine code reads there, whatever is there."""
    if not is_plain(tensor):
        raise TypeError(f"A kernel of the CPU needs plain tensors there. Got {tensor.device}.")
    return tensor.data_ptr()


def _rows_of(v: Tensor) -> Tensor:
    """V of M or M × C, as C × M."""
    if v.ndim == 1 and v.is_contiguous():
        return v[None]
    return v.detach().reshape(v.shape[0], -1).T.contiguous()


def _total(sums: Any) -> Any:
    """The sum over ranges, in order, of the sums over their copies."""
    from rflaf.fused.jit import add_copies

    count, n_rows, copies, _ = sums.shape
    totals = np.empty((count, n_rows, 4))
    add_copies(sums.reshape(-1, copies, 4), totals.reshape(-1, 4))
    return totals if count == 1 else totals.sum(axis=0, keepdims=True)


# ---- what depends on shapes alone ---------------------------------------------------------------


@lru_cache(maxsize=64)
def _apply_plan(shape: Shape, n_rows: int, dtype: str) -> Plan:
    from rflaf.fused.jit import own_apply_rows

    count, z, place, cells, n = _ranges(shape, n_rows, dtype)
    arguments = z, *place, cells, _frame(dtype), z, n
    return Plan(own_apply_rows, count, math.prod(shape), arguments)


@lru_cache(maxsize=64)
def _sums_plan(shape: Shape, n_rows: int, dtype: str, has_dz: bool) -> Plan:
    from rflaf.fused.jit import gradient_rows

    count, z, place, cells, n = _ranges(shape, n_rows, dtype)
    sums = _own_sums(count, n_rows, dtype)
    if shape[1] > 1:
        sums = Part(dtype, (cells.shape[0] * n_rows, 4), cells.start)
    dz = z if has_dz else Part(dtype, (0,))
    arguments = z, *place, cells, _frame(dtype), z, sums, dz, n
    return Plan(gradient_rows, count, math.prod(shape), arguments)


@lru_cache(maxsize=64)
def _readout_plan(shape: Any, n: int, outputs: int, n_rows: int, dtype: str) -> Plan:
    from rflaf.fused.jit import readout_rows

    width, (first, rows) = shape[1], _split(n, shape[1])
    place = _readout_place(shape, first, rows, n_rows, dtype)
    right = Part(dtype, (outputs * width,))
    phi = Part(dtype, (rows * width,), first * width)
    out = Part(dtype, (rows, outputs), first * outputs)
    return Plan(readout_rows, len(first), n * width, (*place, right, phi, out))


@lru_cache(maxsize=64)
def _readout_sums_plan(
    shape: Any, n: int, outputs: int, n_rows: int, dtype: str, has_dz: bool
) -> Plan:
    from rflaf.fused.jit import readout_gradient_rows

    width, (first, rows) = shape[1], _split(n, shape[1])
    place = _readout_place(shape, first, rows, n_rows, dtype)
    left = Part(dtype, (rows * outputs,), first * outputs)
    right = Part(dtype, (outputs * width,))
    dz = Part(dtype, (rows * width,), first * width) if has_dz else Part(dtype, (0,))
    arguments = *place, left, right, _own_sums(len(first), n_rows, dtype), dz
    return Plan(readout_gradient_rows, len(first), n * width, arguments)


def _readout_place(shape: Any, first: Any, rows: Any, n_rows: int, dtype: str) -> tuple[Any, ...]:
    """z, order, width, cells, frame"""
    z, order = Part(dtype, (math.prod(shape),)), Part("q", (rows,), first)
    return z, order, shape[1], Part(dtype, (1, n_rows, 4)), _frame(dtype)


def _frame(dtype: str) -> Part:
    return Part(dtype, (9,))


def _own_sums(count: int, n_rows: int, dtype: str) -> Part:
    """Sums of every range, of one activation."""
    return Part(dtype, (n_rows, _COPIES, 4), np.arange(count) * (n_rows * _COPIES * 4))


def _ranges(shape: Shape, n_rows: int, dtype: str) -> tuple[int, Part, tuple[Any, ...], Part, int]:
    """How many ranges z is cut into, and arguments of kernels: z, place, cells, n.

    One channel is cut into ranges of elements, several into ranges of channels. The place is width,
    first, stop, together and starts.
    """
    outer, channels, inner = shape
    size = math.prod(shape)
    if channels == 1:
        first, lengths = _split(size, 1)
        place: tuple[Any, ...] = lengths, 0, lengths, lengths, None
        return len(first), Part(dtype, (lengths,), first), place, Part(dtype, (1, n_rows, 4)), 1
    step = max(1, _CHUNK // (outer * inner))
    if step > _TOGETHER:
        step = step // _TOGETHER * _TOGETHER
    first = np.arange(0, channels, step)
    own = np.minimum(step, channels - first)
    # for the columns of so many channels, the first rows of their tables
    starts = np.repeat(np.arange(min(step, channels), dtype=np.int32) * n_rows, inner)
    together = min(_ACROSS, _TOGETHER * inner)
    place = channels * inner, first * inner, (first + own) * inner, together, Constant(starts)
    cells = Part(dtype, (own, n_rows, 4), first * (n_rows * 4))
    return len(first), Part(dtype, (size,)), place, cells, outer


def _split(n: int, width: int) -> tuple[Any, Any]:
    """Where ranges of n rows begin, and how many rows each has."""
    step = max(1, _CHUNK // width, min(-(-n // _MOST_SUMS), _LARGEST // width))
    first = np.arange(0, n, step)
    return first, np.minimum(step, n - first)
