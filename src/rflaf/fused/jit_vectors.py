"""What the compiled loops do with a run of elements, as LLVM's vectors.

LLVM turns a plain loop of table look-ups into scalar code. The intrinsics here say what is meant:
eight elements at once (four in float64), then the rest one by one. Their loops are built here, too:
a function of numba for each takes longer to compile than the rest of a kernel.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_ROW_UNIT = 16  # rows are counted in bytes of float32: the processor multiplies by up to 8 itself
COPIES = 4  # of sums, so that elements of one cell do not wait for one another


def _shuffle(b, x, y, mask):
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask))


def splat(b, x, lanes):
    undefined = ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined)
    first = b.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
    return _shuffle(b, first, first, [0] * lanes)


def _declared(b, kind, name):
    """A function of LLVM, which may be known; llvmlite itself has no names for those of vectors."""
    return b.module.globals.get(name) or ir.Function(b.module, kind, name)


def _multiply_add(b, x, y, z):
    """x y + z, in one rounding."""
    scalar = "f32" if x.type.element == ir.FloatType() else "f64"
    kind = ir.FunctionType(x.type, [x.type] * 3)
    return b.call(_declared(b, kind, f"llvm.fma.v{x.type.count}{scalar}"), [x, y, z])


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
        return [splat(self.b, self.b.extract_value(frame, k), self.lanes) for k in range(9)]

    def locate(self, z, frame):
        """The cell of each element, and its place t in it; for NaN the first cell, and NaN."""
        b = self.b
        low, high, inverse, inverse_rest, whole, rest, _, _, last = self.scalars(frame)
        z = b.select(b.fcmp_ordered("<", z, low), low, z)  # NaN stays
        z = b.select(b.fcmp_ordered(">", z, high), high, z)
        position = _multiply_add(b, z, inverse, b.fadd(whole, rest))
        # rounding, too, must not lead out of the table; NaN becomes 0 here
        nothing = ir.Constant(self.vector, [0.0] * self.lanes)
        position = b.select(b.fcmp_ordered(">", position, nothing), position, nothing)
        position = b.select(b.fcmp_ordered("<", position, last), position, last)
        cell = b.fptosi(position, ir.VectorType(ir.IntType(32), self.lanes))
        # z * inverse - (cell - whole), in one rounding, then what float32 leaves out of either
        exact = _multiply_add(b, z, inverse, b.fsub(whole, b.sitofp(cell, self.vector)))
        return cell, b.fadd(exact, _multiply_add(b, z, inverse_rest, rest))

    def row_pointers(self, array_type, array, rows_type, rows, k, copies=1):
        """Where each element's row of four numbers is, by its number in `rows`.

        The lanes take the `copies` of a row in turns.
        """
        byte, word = ir.IntType(8), ir.IntType(64)
        row_type = ir.VectorType(self.context.get_value_type(array_type.dtype), 4)
        row_size = array_type.dtype.bitwidth // 2  # four numbers, in bytes
        base = self.pointer(array_type, array, ir.Constant(word, 0), byte)
        first = self.pointer(rows_type, rows, k, ir.IntType(32))
        for lane in range(self.lanes):
            row = self.b.load(self.b.gep(first, [ir.Constant(word, lane)]))
            step = ir.Constant(word, copies * row_size // _ROW_UNIT)
            row = self.b.mul(self.b.zext(row, word), step)
            copy = ir.Constant(word, row_size * (lane % copies))
            pointer = self.b.gep(base, [self.b.add(row, copy)])
            yield self.b.bitcast(pointer, row_type.as_pointer())

    def cubics(self, *place):
        rows = []
        for pointer in self.row_pointers(*place):
            row = self.b.load(pointer)
            row.align = self.size
            rows.append(row)
        return _rows_to_columns(self.b, rows)

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
        return b.select(b.fcmp_ordered(">", z, high), slope_high, result)

    def add_moments(self, weight, t, array_type, array, *place):
        b = self.b
        nothing = ir.Constant(self.vector, [0.0] * self.lanes)
        columns = [_multiply_add(b, t, nothing, weight)]  # the weight, or NaN where t is
        for _ in range(3):
            columns.append(b.fmul(columns[-1], t))
        kind = ir.VectorType(self.context.get_value_type(array_type.dtype), 4)
        align = array_type.dtype.bitwidth // 8
        copies = COPIES if array_type.ndim == 3 else 1
        pointers = self.row_pointers(array_type, array, *place, copies)
        for row, pointer in zip(_columns_to_rows(b, columns), pointers):
            total = b.load(pointer)
            total.align = align
            row = row if row.type == kind else b.fpext(row, kind)
            b.store(b.fadd(total, row), pointer).align = align


def _for_run(context, builder, dtype, count, step):
    """step(group, k) for all `count` elements: those of whole groups, then one after another."""
    whole = _Group(context, builder, dtype, True)
    rest = builder.and_(count, ir.Constant(count.type, -whole.lanes))
    nothing, one = ir.Constant(count.type, 0), ir.Constant(count.type, 1)
    with cgutils.for_range_slice(
        builder, nothing, rest, ir.Constant(count.type, whole.lanes), count.type
    ) as (k, _):
        step(whole, k)
    with cgutils.for_range_slice(builder, rest, count, one, count.type) as (k, _):
        step(_Group(context, builder, dtype, False), k)
    return context.get_dummy_value()


def _prefetch(group, array_type, array, i):
    """Ask for the memory of array[i] before it is needed."""
    b, byte, flag = group.b, ir.IntType(8), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag])
    hints = [ir.Constant(flag, n) for n in (0, 3, 1)]  # to read, to the nearest cache, data
    fetch = _declared(b, kind, "llvm.prefetch.p0")
    b.call(fetch, [group.pointer(array_type, array, i, byte), *hints])


@intrinsic
def unpacked(typing, frame):
    """The nine numbers of a table's frame."""
    numbers = types.UniTuple(frame.dtype, 9)

    def code(context, builder, signature, args):
        data = context.make_array(frame)(context, builder, args[0]).data
        places = [builder.gep(data, [ir.Constant(ir.IntType(64), k)]) for k in range(9)]
        return context.make_tuple(builder, numbers, [builder.load(place) for place in places])

    return numbers(frame), code


@intrinsic
def locate_run(typing, z, i, count, frame, starts, s, rows, t):
    """rows = cells of z[i...], from row starts[s...] on, and t = places in them"""

    def code(context, builder, signature, args):
        def step(group, k):
            row, place = group.locate(group.load(z, args[0], builder.add(args[1], k)), args[3])
            if starts != types.none:
                row = builder.add(row, group.load(starts, args[4], builder.add(args[5], k)))
            row = builder.mul(row, ir.Constant(row.type, [_ROW_UNIT] * group.lanes))
            builder.store(row, group.pointer(rows, args[6], k, row.type)).align = 4
            group.store(place, t, args[7], k)

        return _for_run(context, builder, z.dtype, args[2], step)

    return types.void(z, types.intp, types.intp, frame, starts, types.intp, rows, t), code


@intrinsic
def evaluate_run(typing, rows, t, count, cells, out, o, z, coming):
    """out[o...] = the cubics in `rows` of cells at t

    Unless z is None, z[coming...] is fetched from memory meanwhile: rows of a batch lie anywhere,
    so that the processor does not foresee which is next. Asked for all at once, they would keep
    other reads waiting.
    """

    def code(context, builder, signature, args):
        def step(group, k):
            if z != types.none and group.lanes > 1:
                _prefetch(group, z, args[6], builder.add(args[7], k))
            c0, c1, c2, c3 = group.cubics(cells, args[3], rows, args[0], k)
            place = group.load(t, args[1], k)
            value = _multiply_add(builder, c3, place, c2)
            value = _multiply_add(builder, value, place, c1)
            value = _multiply_add(builder, value, place, c0)
            group.store(value, out, args[4], builder.add(args[5], k))

        return _for_run(context, builder, t.dtype, args[2], step)

    return types.void(rows, t, types.intp, cells, out, types.intp, z, types.intp), code


@intrinsic
def slope_run(typing, z, i, rows, t, count, cells, frame, g, out, o):
    """out[o...] = g * sigma'(z[i...]), which is located in `rows` and t; `out` may be z"""

    def code(context, builder, signature, args):
        def step(group, k):
            value = group.load(z, args[0], builder.add(args[1], k))
            cubic = group.cubics(cells, args[5], rows, args[2], k)
            result = group.slope(value, cubic, group.load(t, args[3], k), args[6])
            result = builder.fmul(result, group.load(g, args[7], k))
            group.store(result, out, args[8], builder.add(args[9], k))

        return _for_run(context, builder, z.dtype, args[4], step)

    number = types.intp
    return types.void(z, number, rows, t, number, cells, frame, g, out, number), code


@intrinsic
def spread_run(typing, rows, t, count, g, gi, moments):
    """moments[rows] += (g, g t, g t², g t³), for g[gi...]

    Moments of three axes have `COPIES` of each row of four, to be added up by the caller.
    """

    def code(context, builder, signature, args):
        def step(group, k):
            weight = group.load(g, args[3], builder.add(args[4], k))
            place = group.load(t, args[1], k)
            group.add_moments(weight, place, moments, args[5], rows, args[0], k)

        return _for_run(context, builder, t.dtype, args[2], step)

    return types.void(rows, t, types.intp, g, types.intp, moments), code


@intrinsic
def both_run(typing, rows, t, count, cells, frame, g, gi, moments, out, o):
    """`spread_run`, and out[o...] = g[gi...] times the slopes in `rows` of cells at t"""

    def code(context, builder, signature, args):
        def step(group, k):
            cubic = group.cubics(cells, args[3], rows, args[0], k)
            place = group.load(t, args[1], k)
            weight = group.load(g, args[5], builder.add(args[6], k))
            slope = builder.fmul(group.inner_slope(cubic, place, args[4]), weight)
            group.store(slope, out, args[8], builder.add(args[9], k))
            group.add_moments(weight, place, moments, args[7], rows, args[0], k)

        return _for_run(context, builder, t.dtype, args[2], step)

    number = types.intp
    return types.void(rows, t, number, cells, frame, g, number, moments, out, number), code


@intrinsic
def continue_tails(typing, z, i, count, frame, out, o):
    """Linear tails of z[i...], to which the cubics in out[o...] gave the edge's value."""

    def code(context, builder, signature, args):
        low, high, left, right = (builder.extract_value(args[3], k) for k in (0, 1, 6, 7))
        zero = ir.Constant(low.type, 0.0)
        source, target = (
            context.make_array(kind)(context, builder, args[k]).data
            for k, kind in ((0, z), (4, out))
        )

        def slanted(slope):
            return builder.fcmp_unordered("!=", slope, zero)

        with (
            builder.if_then(builder.or_(slanted(left), slanted(right))),
            cgutils.for_range(builder, args[2]) as loop,
        ):
            value = builder.load(builder.gep(source, [builder.add(args[1], loop.index)]))
            place = builder.gep(target, [builder.add(args[5], loop.index)])
            below = builder.fcmp_ordered("<", value, low)
            above = builder.fcmp_ordered(">", value, high)
            slope = builder.select(below, left, builder.select(above, right, zero))
            beyond = builder.fsub(value, builder.select(below, low, high))
            held = builder.load(place)
            moved = builder.fma(slope, beyond, held)  # in one rounding, wherever the element is
            # 0 times infinity must stay 0
            builder.store(builder.select(slanted(slope), moved, held), place)
        return context.get_dummy_value()

    return types.void(z, types.intp, types.intp, frame, out, types.intp), code


@intrinsic
def tail_sums(typing, z, i, count, frame, g, tails):
    """Add g times how far z[i...] lies below the grid to tails[0], and above it to tails[1].

    Linear tails alone need these sums: `tails` is empty for others.
    """

    def code(context, builder, signature, args):
        source, weights = (
            context.make_array(kind)(context, builder, args[k]).data for k, kind in ((0, z), (4, g))
        )
        sums = context.make_array(tails)(context, builder, args[5])
        edges = [builder.extract_value(args[3], k) for k in (0, 1)]
        some = builder.icmp_signed(">", sums.nitems, ir.Constant(sums.nitems.type, 0))
        with builder.if_then(some), cgutils.for_range(builder, args[2]) as loop:
            value = builder.load(builder.gep(source, [builder.add(args[1], loop.index)]))
            weight = builder.load(builder.gep(weights, [loop.index]))
            for k, (sign, edge) in enumerate(zip("<>", edges)):
                with builder.if_then(builder.fcmp_ordered(sign, value, edge)):
                    term = builder.fmul(weight, builder.fsub(value, edge))
                    place = builder.gep(sums.data, [ir.Constant(ir.IntType(64), k)])
                    term = context.cast(builder, term, z.dtype, tails.dtype)
                    builder.store(builder.fadd(builder.load(place), term), place)
        return context.get_dummy_value()

    return types.void(z, types.intp, types.intp, frame, g, tails), code
