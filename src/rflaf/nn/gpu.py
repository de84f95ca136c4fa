"""The kernels in Triton, for CUDA: values, and then both gradients in one pass.

z is C × L with one activation for each row, C = 1 where all of z shares one; `cells` are those of
`rflaf.fused.Tables`, with a row for either tail, and `frame` says where they lie. Numbers are
computed in the precision of the table: float64 for float64, and float32 for all others.

The sums for the coefficients want every element added to the cell that it lies in. Atomic additions
to a few hundred cells would wait for one another. Here a program keeps the sums of all cells in
registers: with the number of a cell written in two digits of base 16, the matrix (high digit is h)
times the matrix (low digit is l, times g t^k) has the sums of all cells, and is one small matrix
product per block of elements. Programs store their sums apart, and one reduction adds them, so that
the result does not depend on the order in which they run.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # elements of a program that evaluates
SUM_BLOCK = 64  # elements of one matrix product
PROGRAMS = 512  # that sum, in all: a few for each multiprocessor of a large GPU,
LEAST_BLOCKS = 16  # and blocks of each: its sums are as many numbers as the elements of these
DIGIT = 16  # base of the two digits of a cell's number


@triton.jit
def locate(z, frame_ptr):
    """The row of each element in its table, and its place t there. NaN goes to the first row."""
    low, high = tl.load(frame_ptr), tl.load(frame_ptr + 1)
    inverse, inverse_rest = tl.load(frame_ptr + 2), tl.load(frame_ptr + 3)
    whole, rest, last = tl.load(frame_ptr + 4), tl.load(frame_ptr + 5), tl.load(frame_ptr + 8)
    z = tl.where(z > low, z, low)
    z = tl.where(z < high, z, high)
    position = tl.fma(z, inverse, whole + rest)
    position = tl.where(position > 0, position, 0)
    position = tl.where(position < last, position, last)
    row = position.to(tl.int32)
    # z * inverse - (row - whole) in one rounding, then what few bits leave out of either
    exact = tl.fma(z, inverse, whole - row.to(z.dtype))
    return row, exact + tl.fma(z, inverse_rest, rest)


@triton.jit
def apply_kernel(z_ptr, cells_ptr, frame_ptr, out_ptr, length, n_rows, BLOCK: tl.constexpr):
    channel = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < length
    z = tl.load(z_ptr + channel * length + at, mask=mask, other=0.0)
    z = z.to(cells_ptr.dtype.element_ty)
    row, t = locate(z, frame_ptr)
    cubic = cells_ptr + (channel * n_rows + row) * 4
    c0, c1 = tl.load(cubic), tl.load(cubic + 1)
    c2, c3 = tl.load(cubic + 2), tl.load(cubic + 3)
    value = tl.fma(tl.fma(tl.fma(c3, t, c2), t, c1), t, c0)
    value = tl.where(z != z, z, value)
    tl.store(out_ptr + channel * length + at, value.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gradient_kernel(
    g_ptr, z_ptr, cells_ptr, frame_ptr, dz_ptr, sums_ptr, length, n_rows, blocks,
    NEED_Z: tl.constexpr, NEED_SUMS: tl.constexpr, HIGH: tl.constexpr, DIGIT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """`blocks` blocks of elements; sums_ptr is C × programs × HIGH × (DIGIT 4)."""
    channel = tl.program_id(1).to(tl.int64)
    number = cells_ptr.dtype.element_ty
    total = tl.zeros((HIGH, DIGIT * 4), dtype=number)
    first = tl.program_id(0).to(tl.int64) * blocks * BLOCK
    digits = tl.arange(0, HIGH)
    columns = tl.arange(0, DIGIT * 4)
    for block in range(blocks):
        at = first + block * BLOCK + tl.arange(0, BLOCK)
        mask = at < length
        z = tl.load(z_ptr + channel * length + at, mask=mask, other=0.0).to(number)
        g = tl.load(g_ptr + channel * length + at, mask=mask, other=0.0).to(number)
        row, t = locate(z, frame_ptr)
        if NEED_Z:
            cubic = cells_ptr + (channel * n_rows + row) * 4
            c1, c2, c3 = tl.load(cubic + 1), tl.load(cubic + 2), tl.load(cubic + 3)
            slope = tl.fma(tl.fma(3 * c3, t, 2 * c2), t, c1) * tl.load(frame_ptr + 2)
            slope = tl.where(z != z, z, slope * g)
            target = dz_ptr + channel * length + at
            tl.store(target, slope.to(dz_ptr.dtype.element_ty), mask=mask)
        if NEED_SUMS:
            # the tails' t may be so large that its powers overflow; only t itself matters there
            inside = (row > 0) & (row < n_rows - 1)
            square = tl.where(inside, t * t, 0.0)
            cube = tl.where(inside, square * t, 0.0)
            g = tl.where(z != z, z, g)
            power = (columns % 4)[None, :]
            rise = tl.where(power == 1, t[:, None], tl.where(power == 2, square[:, None], 1.0))
            rise = tl.where(power == 3, cube[:, None], rise)
            here = (row % DIGIT)[:, None] == (columns // 4)[None, :]
            weights = tl.where(here, g[:, None] * rise, 0.0)
            places = (digits[:, None] == (row // DIGIT)[None, :]).to(number)
            total += tl.dot(places, weights, input_precision="ieee", out_dtype=number)
    if NEED_SUMS:
        program = channel * tl.num_programs(0) + tl.program_id(0)
        at = digits[:, None] * (DIGIT * 4) + columns[None, :]
        tl.store(sums_ptr + program * (HIGH * DIGIT * 4) + at, total)


def apply(z: Tensor, cells: Tensor, frame: Tensor) -> Tensor:
    """sigma(z) of z, C × L and contiguous, in z's dtype."""
    out = torch.empty_like(z)
    channels, length = z.shape
    grid = (triton.cdiv(length, BLOCK), channels)
    apply_kernel[grid](z, cells, frame, out, length, cells.shape[1], BLOCK=BLOCK)
    return out


def gradients(
    g: Tensor, z: Tensor, cells: Tensor, frame: Tensor, need_z: bool, need_sums: bool
) -> tuple[Tensor, Tensor]:
    """g sigma'(z), and the sums over cells, shaped as `cells`; empty where not needed."""
    channels, length = z.shape
    n_rows = cells.shape[1]
    high = high_digits(n_rows)
    n_blocks = triton.cdiv(length, SUM_BLOCK)
    most = max(1, min(PROGRAMS // channels, n_blocks // LEAST_BLOCKS))
    blocks = triton.cdiv(n_blocks, most)
    programs = triton.cdiv(n_blocks, blocks)
    dz = torch.empty_like(z) if need_z else z.new_empty(0)
    shape = (channels, programs, high * DIGIT * 4) if need_sums else (0,)
    sums = torch.empty(shape, dtype=cells.dtype, device=z.device)
    gradient_kernel[(programs, channels)](
        g, z, cells, frame, dz, sums, length, n_rows, blocks,
        NEED_Z=need_z, NEED_SUMS=need_sums, HIGH=high, DIGIT=DIGIT, BLOCK=SUM_BLOCK,
    )  # fmt: skip
    if not need_sums:
        return dz, sums
    total = sums.sum(dim=1).view(channels, -1, 4)
    return dz, total[:, :n_rows]


def high_digits(n_rows: int) -> int:
    """How many values the high digit takes: a power of two, 16 at least, as the product wants."""
    return int(max(16, triton.next_power_of_2(triton.cdiv(n_rows, DIGIT))))
