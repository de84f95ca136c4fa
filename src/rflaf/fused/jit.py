"""The compiled loops, in numba. Nothing here checks its arguments: `cpu` does.

LLVM turns a plain loop of table look-ups into scalar code. The
intrinsics below say what is meant: for eight elements at once (four in float64), load each one's
row of four numbers whole and transpose in registers, which is several times as fast.

Intrinsics and loops share this file because numba's cache looks only at the file of the function
it compiles. The kernels release the GIL; `threads` runs them on one range of rows after another.

Arguments: matrices are flat, with the distance of their rows beside them, and start at the first of
`n` rows to do. `frame` and `cells` are those of `Table`. The upstream matrix is `dense`, or, where
that is empty, the product of `left` (n × C) and `right` (C × M).
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from rflaf.fused.jit_cache import ForgivingCache

TILE = 512  # elements of scratch, which stay in the first-level cache


def compiled(function):
    """njit, kept on disk where some folder can be written."""
    options = {"nogil": True, "fastmath": {"contract", "nsz", "reassoc"}, "error_model": "numpy"}
    dispatcher = njit(**options)(function)
    with suppress(RuntimeError):  # "no locator available": read-only install, no cache folder
        dispatcher._cache = ForgivingCache(function)  # as njit's `cache` does with its own
    return dispatcher


# ---- LLVM vectors -------------------------------------------------------------------------------


def _shuffle(b, x, y, mask):
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask))


def _splat(b, x, lanes):
    undefined = ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined)
    first = b.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
    return _shuffle(b, first, first, [0] * lanes)


def _multiply_add(b, x, y, z):
    """x y + z, in one rounding."""
    scalar = "f32" if x.type.element == ir.FloatType() else "f64"
    kind = ir.FunctionType(x.type, [x.type] * 3)
    fma = cgutils.get_or_insert_function(b.module, kind, f"llvm.fma.v{x.type.count}{scalar}")
    return b.call(fma, [x, y, z])


def _transpose(b, w):
    """Four vectors of 4 or 8 numbers: transpose each 4 × 4 block of columns."""
    n = w[0].type.count

    def interleave(x, y, k):
        return _shuffle(b, x, y, [s for g in range(k, n, 4) for s in (g, n + g, g + 1, n + g + 1)])

    def join(x, y, k):
        return _shuffle(b, x, y, [s for g in range(k, n, 4) for s in (g, g + 1, n + g, n + g + 1)])

    low = interleave(w[0], w[1], 0), interleave(w[2], w[3], 0)
    high = interleave(w[0], w[1], 2), interleave(w[2], w[3], 2)
    return [join(*low, 0), join(*low, 2), join(*high, 0), join(*high, 2)]


def _rows_to_columns(b, rows):
    if len(rows) == 1:
        return [_shuffle(b, rows[0], rows[0], [k]) for k in range(4)]
    if len(rows) == 8:
        rows = [_shuffle(b, rows[q], rows[q + 4], list(range(8))) for q in range(4)]
    return _transpose(b, rows)


def _columns_to_rows(b, columns):
    lanes = columns[0].type.count
    if lanes == 1:
        halves = [_shuffle(b, columns[k], columns[k + 1], [0, 1]) for k in (0, 2)]
        return [_shuffle(b, *halves, [0, 1, 2, 3])]
    blocks = _transpose(b, columns)
    picks = [(blocks[k % 4], k // 4 * 4) for k in range(lanes)]
    return [_shuffle(b, block, block, [g, g + 1, g + 2, g + 3]) for block, g in picks]


class _Group:
    """`lanes` elements of an array of scalar type `dtype`, inside an intrinsic."""

    def __init__(self, context, builder, dtype, whole):
        self.context, self.b = context, builder
        self.size = dtype.bitwidth // 8
        self.lanes = 32 // self.size if whole else 1
        self.vector = ir.VectorType(context.get_value_type(dtype), self.lanes)

    def pointer(self, array_type, array, index, vector):
        data = self.context.make_array(array_type)(self.context, self.b, array).data
        return self.b.bitcast(self.b.gep(data, [index]), vector.as_pointer())

    def load(self, array_type, array, index):
        number = self.context.get_value_type(array_type.dtype)
        vector = ir.VectorType(number, self.lanes)
        value = self.b.load(self.pointer(array_type, array, index, vector))
        value.align = array_type.dtype.bitwidth // 8
        return value

    def store(self, value, array_type, array, index):
        self.b.store(value, self.pointer(array_type, array, index, self.vector)).align = self.size

    def scalars(self, frame):
        return [_splat(self.b, self.b.extract_value(frame, k), self.lanes) for k in range(9)]

    def locate(self, z, frame):
        """The cell of each element, and its place t in it. NaN goes to the first cell."""
        b = self.b
        low, high, inverse, inverse_rest, whole, rest, _, _, last = self.scalars(frame)
        z = b.select(b.fcmp_ordered(">", z, low), z, low)
        z = b.select(b.fcmp_ordered("<", z, high), z, high)
        position = _multiply_add(b, z, inverse, b.fadd(whole, rest))
        # z is in the range, but rounding must not lead out of the table
        nothing = ir.Constant(self.vector, [0.0] * self.lanes)
        position = b.select(b.fcmp_ordered(">", position, nothing), position, nothing)
        position = b.select(b.fcmp_ordered("<", position, last), position, last)
        cell = b.fptosi(position, ir.VectorType(ir.IntType(32), self.lanes))
        # z * inverse - (cell - whole), in one rounding, then what float32 leaves out of either
        exact = _multiply_add(b, z, inverse, b.fsub(whole, b.sitofp(cell, self.vector)))
        return cell, b.fadd(exact, _multiply_add(b, z, inverse_rest, rest))

    def row_pointers(self, array_type, array, cell):
        row = ir.VectorType(self.context.get_value_type(array_type.dtype), 4)
        base = self.pointer(array_type, array, ir.Constant(ir.IntType(64), 0), row)
        for k in range(self.lanes):
            j = self.b.extract_element(cell, ir.Constant(ir.IntType(32), k))
            yield self.b.gep(base, [self.b.zext(j, ir.IntType(64))])

    def cubics(self, array_type, array, cell):
        rows = []
        for pointer in self.row_pointers(array_type, array, cell):
            row = self.b.load(pointer)
            row.align = self.size
            rows.append(row)
        return _rows_to_columns(self.b, rows)

    def value(self, z, cubic, t):
        b, (c0, c1, c2, c3) = self.b, cubic
        result = _multiply_add(b, _multiply_add(b, _multiply_add(b, c3, t, c2), t, c1), t, c0)
        return b.select(b.fcmp_unordered("uno", z, z), z, result)

    def inner_slope(self, cubic, t, frame):
        b, (_, c1, c2, c3) = self.b, cubic
        triple_c3 = b.fadd(c3, b.fadd(c3, c3))
        bend = _multiply_add(b, triple_c3, t, b.fadd(c2, c2))
        return b.fmul(_multiply_add(b, bend, t, c1), self.scalars(frame)[2])

    def slope(self, z, cubic, t, frame):
        b = self.b
        low, high, _, _, _, _, slope_low, slope_high, _ = self.scalars(frame)
        result = self.inner_slope(cubic, t, frame)
        result = b.select(b.fcmp_ordered("<", z, low), slope_low, result)
        result = b.select(b.fcmp_ordered(">", z, high), slope_high, result)
        return b.select(b.fcmp_unordered("uno", z, z), z, result)

    def add_moments(self, z, weight, cell, t, array_type, array):
        b = self.b
        columns = [b.select(b.fcmp_unordered("uno", z, z), z, weight)]
        for _ in range(3):
            columns.append(b.fmul(columns[-1], t))
        kind = ir.VectorType(self.context.get_value_type(array_type.dtype), 4)
        align = array_type.dtype.bitwidth // 8
        pointers = self.row_pointers(array_type, array, cell)
        for row, pointer in zip(_columns_to_rows(b, columns), pointers):
            total = b.load(pointer)
            total.align = align
            row = row if row.type == kind else b.fpext(row, kind)
            b.store(b.fadd(total, row), pointer).align = align


def _evaluate(whole):
    @intrinsic
    def evaluate(typing, z, i, cells, frame, out, o):
        """out[o...] = sigma(z[i...])"""

        def code(context, builder, signature, args):
            group = _Group(context, builder, z.dtype, whole)
            value = group.load(z, args[0], args[1])
            cell, t = group.locate(value, args[3])
            cubic = group.cubics(cells, args[2], cell)
            group.store(group.value(value, cubic, t), out, args[4], args[5])
            return context.get_dummy_value()

        return types.void(z, i, cells, frame, out, o), code

    return evaluate


def _slope(whole):
    @intrinsic
    def slope(typing, z, i, cells, frame, g, gi, out, o):
        """out[o...] = g[gi...] * sigma'(z[i...])"""

        def code(context, builder, signature, args):
            group = _Group(context, builder, z.dtype, whole)
            value = group.load(z, args[0], args[1])
            cell, t = group.locate(value, args[3])
            result = group.slope(value, group.cubics(cells, args[2], cell), t, args[3])
            result = builder.fmul(result, group.load(g, args[4], args[5]))
            group.store(result, out, args[6], args[7])
            return context.get_dummy_value()

        return types.void(z, i, cells, frame, g, gi, out, o), code

    return slope


def _spread(whole):
    @intrinsic
    def spread(typing, z, i, frame, g, gi, moments):
        """moments[cell of z] += (g, g t, g t², g t³)"""

        def code(context, builder, signature, args):
            group = _Group(context, builder, z.dtype, whole)
            value = group.load(z, args[0], args[1])
            weight = group.load(g, args[3], args[4])
            cell, t = group.locate(value, args[2])
            group.add_moments(value, weight, cell, t, moments, args[5])
            return context.get_dummy_value()

        return types.void(z, i, frame, g, gi, moments), code

    return spread


def _evaluate_own(whole):
    @intrinsic
    def evaluate_own(typing, z, i, cells, frame, starts, k, out, o):
        """out[o...] = sigma(z[i...]), each by the table that begins in row starts[k...] of cells"""

        def code(context, builder, signature, args):
            group = _Group(context, builder, z.dtype, whole)
            value = group.load(z, args[0], args[1])
            cell, t = group.locate(value, args[3])
            cell = builder.add(cell, group.load(starts, args[4], args[5]))
            cubic = group.cubics(cells, args[2], cell)
            group.store(group.value(value, cubic, t), out, args[6], args[7])
            return context.get_dummy_value()

        return types.void(z, i, cells, frame, starts, k, out, o), code

    return evaluate_own


def _differentiate(whole, sloped):
    @intrinsic
    def differentiate(typing, z, i, cells, frame, starts, k, g, gi, moments, out, o):
        """The moments for g[gi...] and, where `sloped`, out[o...] = g[gi...] * sigma'(z[i...])

        Both by the rows of cells and moments that begin with row starts[k...].
        """

        def code(context, builder, signature, args):
            group = _Group(context, builder, z.dtype, whole)
            value = group.load(z, args[0], args[1])
            weight = group.load(g, args[6], args[7])
            cell, t = group.locate(value, args[3])
            cell = builder.add(cell, group.load(starts, args[4], args[5]))
            if sloped:
                slope = group.inner_slope(group.cubics(cells, args[2], cell), t, args[3])
                unordered = builder.fcmp_unordered("uno", value, value)
                slope = builder.select(unordered, value, builder.fmul(slope, weight))
                group.store(slope, out, args[9], args[10])
            group.add_moments(value, weight, cell, t, moments, args[8])
            return context.get_dummy_value()

        return types.void(z, i, cells, frame, starts, k, g, gi, moments, out, o), code

    return differentiate


_evaluate_group, _evaluate_one = _evaluate(True), _evaluate(False)
_slope_group, _slope_one = _slope(True), _slope(False)
_spread_group, _spread_one = _spread(True), _spread(False)
_own_group, _own_one = _evaluate_own(True), _evaluate_own(False)
_both_group, _both_one = _differentiate(True, True), _differentiate(False, True)
_moments_group, _moments_one = _differentiate(True, False), _differentiate(False, False)


# ---- runs of consecutive elements ---------------------------------------------------------------


@compiled
def _unpack(f):
    return f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]


@compiled
def _evaluate_run(z, i, count, cells, frame, out, o):
    lanes = 32 // z.itemsize
    k = 0
    while k + lanes <= count:
        _evaluate_group(z, i + k, cells, frame, out, o + k)
        k += lanes
    while k < count:
        _evaluate_one(z, i + k, cells, frame, out, o + k)
        k += 1
    _continue_tails(z, i, count, frame, out, o)


@compiled
def _continue_tails(z, i, count, frame, out, o):
    """Linear tails, to which the cubics gave the edge's value."""
    if frame[6] != 0 or frame[7] != 0:
        for k in range(count):
            if z[i + k] < frame[0]:
                out[o + k] += frame[6] * (z[i + k] - frame[0]) if frame[6] != 0 else 0
            elif z[i + k] > frame[1]:
                out[o + k] += frame[7] * (z[i + k] - frame[1]) if frame[7] != 0 else 0


# Loops go over slices from index 0: an index that numba cannot prove positive is checked for being
# negative, element by element, and the loop is not vectorised.


@compiled
def _upstream_run(dense, dense_stride, left, right, width, r, j, count, g):
    if dense.size:
        row = dense[r * dense_stride + j :]
        for k in range(count):
            g[k] = row[k]
        return
    rank = right.size // width
    for c in range(rank):
        row = right[c * width + j : c * width + j + count]
        factor = left[r * rank + c]
        if c == 0:
            for k in range(count):
                g[k] = factor * row[k]
        else:
            for k in range(count):
                g[k] += factor * row[k]


@compiled
def _project_run(x, i, d, w, width, j, count, z):
    z[:count] = 0
    done = d // 4 * 4
    for c in range(0, done, 4):  # four at once: z is loaded and stored a quarter as often
        first = c * width + j
        w0, w1 = w[first:], w[first + width :]
        w2, w3 = w[first + 2 * width :], w[first + 3 * width :]
        x0, x1, x2, x3 = x[i + c], x[i + c + 1], x[i + c + 2], x[i + c + 3]
        for k in range(count):
            z[k] += (x0 * w0[k] + x1 * w1[k]) + (x2 * w2[k] + x3 * w3[k])
    for c in range(done, d):
        w0 = w[c * width + j :]
        factor = x[i + c]
        for k in range(count):
            z[k] += factor * w0[k]


@compiled
def _tail_sums(z, i, count, frame, g, tails):
    if tails.size:  # linear tails alone need these sums
        for k in range(count):
            if z[i + k] < frame[0]:
                tails[0] += g[k] * (z[i + k] - frame[0])
            elif z[i + k] > frame[1]:
                tails[1] += g[k] * (z[i + k] - frame[1])


@compiled
def _dot_run(scratch, count, right, width, j, total):
    for c in range(total.size):
        row = right[c * width + j :]
        s = scratch[0] * row[0]
        for k in range(1, count):
            s += scratch[k] * row[k]
        total[c] += s


# ---- kernels ------------------------------------------------------------------------------------


@compiled
def apply_rows(z, stride, width, cells, frame, out, out_stride, n):
    f = _unpack(frame)
    for r in range(n):
        _evaluate_run(z, r * stride, width, cells, f, out, r * out_stride)


@compiled
def slope_rows(
    z, stride, width, cells, frame, dense, dense_stride, left, right, out, out_stride, n
):
    f = _unpack(frame)
    g = np.empty(TILE, z.dtype)
    lanes = 32 // z.itemsize
    for r in range(n):
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            _upstream_run(dense, dense_stride, left, right, width, r, j, count, g)
            i, o, k = r * stride + j, r * out_stride + j, 0
            while k + lanes <= count:
                _slope_group(z, i + k, cells, f, g, k, out, o + k)
                k += lanes
            while k < count:
                _slope_one(z, i + k, cells, f, g, k, out, o + k)
                k += 1


@compiled
def spread_rows(z, stride, width, frame, dense, dense_stride, left, right, moments, tails, n):
    """Sum into moments[0], or, where there are as many as rows, into one for each row."""
    f = _unpack(frame)
    g = np.empty(TILE, z.dtype)
    lanes = 32 // z.itemsize
    for r in range(n):
        target = min(r, moments.shape[0] - 1)
        sums = moments[target]
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            _upstream_run(dense, dense_stride, left, right, width, r, j, count, g)
            i, k = r * stride + j, 0
            while k + lanes <= count:
                _spread_group(z, i + k, f, g, k, sums)
                k += lanes
            while k < count:
                _spread_one(z, i + k, f, g, k, sums)
                k += 1
            _tail_sums(z, i, count, f, g, tails[target])


@compiled
def predict_rows(z, stride, width, cells, frame, right, out, n):
    f = _unpack(frame)
    scratch = np.empty(TILE, z.dtype)
    total = np.empty(out.shape[1], np.float64)
    for r in range(n):
        total[:] = 0
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            _evaluate_run(z, r * stride + j, count, cells, f, scratch, 0)
            _dot_run(scratch, count, right, width, j, total)
        for c in range(total.size):
            out[r, c] = total[c]


@compiled
def predict_inputs_rows(x, stride, d, w, width, cells, frame, right, out, n):
    f = _unpack(frame)
    scratch = np.empty(TILE, x.dtype)
    z = np.empty(TILE, x.dtype)
    total = np.empty(out.shape[1], np.float64)
    for r in range(n):
        total[:] = 0
        for j in range(0, width, TILE):
            count = min(TILE, width - j)
            _project_run(x, r * stride, d, w, width, j, count, z)
            _evaluate_run(z, 0, count, cells, f, scratch, 0)
            _dot_run(scratch, count, right, width, j, total)
        for c in range(total.size):
            out[r, c] = total[c]


# The kernels below take tables with a row for either tail (`gradients.Tables`), one for every
# `inner` of the `width` columns, and do the columns from `first` to `stop`, `tile` at a time.


@compiled
def _table_starts(first, count, inner, n_rows, starts):
    """The first row of the table of each column from `first` on."""
    channel, left = first // inner, inner - first % inner
    for k in range(count):
        starts[k] = channel * n_rows
        left -= 1
        if left == 0:
            channel, left = channel + 1, inner


@compiled
def own_apply_rows(z, width, first, stop, inner, tile, cells, frame, out, n):
    f = _unpack(frame)
    starts = np.empty(tile, np.int32)
    lanes = 32 // z.itemsize
    for j in range(first, stop, tile):
        count = min(tile, stop - j)
        _table_starts(j, count, inner, cells.shape[1], starts)
        for r in range(n):
            i, k = r * width + j, 0
            while k + lanes <= count:
                _own_group(z, i + k, cells, f, starts, k, out, i + k)
                k += lanes
            while k < count:
                _own_one(z, i + k, cells, f, starts, k, out, i + k)
                k += 1


@compiled
def _gradient_run(z, i, count, cells, f, starts, g, gi, moments, out):
    lanes = 32 // z.itemsize
    k = 0
    if out.size:
        while k + lanes <= count:
            _both_group(z, i + k, cells, f, starts, k, g, gi + k, moments, out, i + k)
            k += lanes
        while k < count:
            _both_one(z, i + k, cells, f, starts, k, g, gi + k, moments, out, i + k)
            k += 1
    else:
        while k + lanes <= count:
            _moments_group(z, i + k, cells, f, starts, k, g, gi + k, moments, out, i + k)
            k += lanes
        while k < count:
            _moments_one(z, i + k, cells, f, starts, k, g, gi + k, moments, out, i + k)
            k += 1


@compiled
def gradient_rows(
    z, width, first, stop, inner, tile, cells, frame, dense, left, right, moments, out, n
):
    """Sums over cells into `moments` and, unless it is empty, g sigma'(z) into `out`.

    The sums are in z's precision: few elements go into each.
    """
    f = _unpack(frame)
    starts, scratch = np.empty(tile, np.int32), np.empty(tile, z.dtype)
    for j in range(first, stop, tile):
        count = min(tile, stop - j)
        _table_starts(j, count, inner, cells.shape[1], starts)
        if dense.size:  # outside the loop: numba counts references where it takes either
            for r in range(n):
                i = r * width + j
                _gradient_run(z, i, count, cells, f, starts, dense, i, moments, out)
        else:
            for r in range(n):
                i = r * width + j
                _upstream_run(dense, 0, left, right, width, r, j, count, scratch)
                _gradient_run(z, i, count, cells, f, starts, scratch, 0, moments, out)
