"""The loops of `binned`, in numba. Matrices are flat, row after row; nothing is checked here.

Sums up to edges have rows of `padded` numbers, a multiple of BLOCK: loops over that many have no
rest, which takes as long as the rest of the loop otherwise.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rflaf.fused.jit import compiled
from rflaf.fused.jit_memory import clear, zeros
from rflaf.fused.jit_vectors import splat

BLOCK = 32
TILE, ROWS = 256, 64  # columns of W and rows at once, which stay in the second-level cache


@compiled
def locate(x, d, columns, starts, edges, place, part, n):
    for r in range(n):
        for c in range(columns.size):
            value = x[r * d + columns[c]]
            low, high = starts[c], starts[c + 1] - 1
            while high - low > 1:
                middle = (low + high) // 2
                if value >= edges[middle]:
                    low = middle
                else:
                    high = middle
            share = (value - edges[low]) / (edges[low + 1] - edges[low])
            share = 0.0 if share < 0 else share  # NaN stays
            place[r * columns.size + c] = low
            part[r * columns.size + c] = 1.0 if share > 1 else share


@compiled
def add_up(w, width, padded, starts, mean, scale, table):
    """W summed from the first edge of each column to all its edges, with the means taken off."""
    for c in range(starts.size - 1):
        first, last = starts[c] - c, starts[c + 1] - 1 - c  # each column has a bin less than edges
        zero = table[starts[c] * padded : (starts[c] + 1) * padded]
        for b in range(first, last):
            row, taken = w[b * width : (b + 1) * width], mean[b] / scale[b]
            for k in range(width):
                zero[k] -= taken * row[k]
        for b in range(first, last):
            at = (b + c) * padded
            row, factor = w[b * width : (b + 1) * width], 1 / scale[b]
            below, now = table[at : at + padded], table[at + padded : at + 2 * padded]
            for k in range(width):
                now[k] = below[k] + factor * row[k]


class _Blocks:
    """BLOCK numbers at once, of arrays of one type, inside an intrinsic."""

    def __init__(self, context, builder, dtype, index):
        self.context, self.b, self.index = context, builder, index
        self.vector = ir.VectorType(context.get_value_type(dtype), BLOCK)
        self.align = dtype.bitwidth // 8

    def pointer(self, array_type, array, at):
        data = self.context.make_array(array_type)(self.context, self.b, array).data
        place = self.b.gep(data, [self.b.add(at, self.index)])
        return self.b.bitcast(place, self.vector.as_pointer())

    def load(self, *place):
        value = self.b.load(self.pointer(*place))
        value.align = self.align
        return value

    def store(self, value, *place):
        self.b.store(value, self.pointer(*place)).align = self.align

    def splat(self, number):
        return splat(self.b, number, BLOCK)


def _for_blocks(context, builder, dtype, count, step):
    nothing, size = ir.Constant(count.type, 0), ir.Constant(count.type, BLOCK)
    with cgutils.for_range_slice(builder, nothing, count, size, count.type) as (index, _):
        step(_Blocks(context, builder, dtype, index))
    return context.get_dummy_value()


@intrinsic
def _add_rows(typing, table, starts, padded, factors, count, z):
    """Add a row of the table times a factor to z for each of one or two `starts`.

    Where `padded` is a number, what is added is what lies between the row and the next, which has
    come a share of the way: the factor. Two rows at once load and store z half as often.
    """
    between = padded != types.none

    def code(context, builder, signature, args):
        def step(blocks):
            terms = []
            for k in range(len(starts)):
                start, factor = (builder.extract_value(args[a], k) for a in (1, 3))
                row = blocks.load(table, args[0], start)
                if between:
                    high = blocks.load(table, args[0], builder.add(start, args[2]))
                    part = builder.fmul(blocks.splat(factor), builder.fsub(high, row))
                    terms.append(builder.fadd(row, part))
                else:
                    terms.append(builder.fmul(blocks.splat(factor), row))
            total = terms[0] if len(terms) == 1 else builder.fadd(*terms)
            at = z, args[5], ir.Constant(args[4].type, 0)
            blocks.store(builder.fadd(blocks.load(*at), total), *at)

        return _for_blocks(context, builder, z.dtype, args[4], step)

    return types.void(table, starts, padded, factors, types.intp, z), code


@compiled
def project(values, plain, place, part, columns, w, table, width, padded, out, stride, n):
    """X W for rows with `plain` columns that are not cut and `columns` that are."""
    z = zeros(TILE, out.dtype)
    for start in range(0, n, ROWS):
        for j in range(0, padded, TILE):
            count = min(TILE, padded - j)
            for r in range(start, min(start + ROWS, n)):
                clear(z)
                x, at = r * plain, r * columns
                for c in range(0, plain // 2 * 2, 2):
                    starts, factors = (
                        (c * padded + j, (c + 1) * padded + j),
                        (values[x + c], values[x + c + 1]),
                    )
                    _add_rows(w, starts, None, factors, count, z)
                if plain % 2:
                    c = plain - 1
                    _add_rows(w, (c * padded + j,), None, (values[x + c],), count, z)
                for c in range(at, at + columns // 2 * 2, 2):
                    starts = place[c] * padded + j, place[c + 1] * padded + j
                    _add_rows(table, starts, padded, (part[c], part[c + 1]), count, z)
                if columns % 2:
                    c = at + columns - 1
                    _add_rows(table, (place[c] * padded + j,), padded, (part[c],), count, z)
                row = out[r * stride + j : r * stride + min(j + count, width)]
                for k in range(row.size):
                    row[k] = z[k]


@intrinsic
def _share_out(typing, z, share, at, padded, count, sums):
    """Add z to two rows of sums, of which the upper one gets the share."""

    def code(context, builder, signature, args):
        def step(blocks):
            low, high = args[2], builder.add(args[2], args[3])
            value = blocks.load(z, args[0], ir.Constant(args[4].type, 0))
            upper = builder.fmul(blocks.splat(args[1]), value)
            for start, part in ((high, upper), (low, builder.fsub(value, upper))):
                total = builder.fadd(blocks.load(sums, args[5], start), part)
                blocks.store(total, sums, args[5], start)

        return _for_blocks(context, builder, z.dtype, args[4], step)

    return types.void(z, z.dtype, types.intp, types.intp, types.intp, sums), code


@compiled
def gather(place, part, columns, slopes, stride, width, padded, sums, n):
    """What `project` does, transposed: the slopes of each row go to the edges around its values."""
    z = zeros(TILE, slopes.dtype)
    for start in range(0, n, ROWS):
        for j in range(0, padded, TILE):
            count = min(TILE, padded - j)
            for r in range(start, min(start + ROWS, n)):
                row = slopes[r * stride + j : r * stride + min(j + count, width)]
                for k in range(row.size):
                    z[k] = row[k]
                for k in range(row.size, count):
                    z[k] = 0
                for c in range(r * columns, (r + 1) * columns):
                    _share_out(z, part[c], place[c] * padded + j, padded, count, sums)


@compiled
def take_apart(sums, width, padded, starts, mean, scale, out):
    """What `add_up` does, transposed; the sums are overwritten."""
    for c in range(starts.size - 1):
        first, last = starts[c], starts[c + 1] - 1
        for edge in range(last, first, -1):  # each then holds what lies at it and above
            below, now = sums[(edge - 1) * padded : edge * padded], sums[edge * padded :]
            for k in range(width):
                below[k] += now[k]
        total = sums[first * padded : (first + 1) * padded]
        for b in range(first - c, last - c):
            above = sums[(b + c + 1) * padded : (b + c + 2) * padded]
            row, factor = out[b * width : (b + 1) * width], 1 / scale[b]
            for k in range(width):
                row[k] = factor * (above[k] - mean[b] * total[k])
