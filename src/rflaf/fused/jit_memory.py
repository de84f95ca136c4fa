"""Arrays inside compiled loops, as intrinsics: numba takes longer to compile functions."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_new_ref
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_ALIGNED = 32  # bytes, a whole vector


def _new(context, builder, kind, length):
    """An array of one axis, not filled."""
    array = context.make_array(kind)(context, builder)
    number = context.get_data_type(kind.dtype)
    itemsize = ir.Constant(length.type, context.get_abi_sizeof(number))
    memory = context.nrt.meminfo_alloc_aligned(
        builder, builder.mul(length, itemsize), ir.Constant(ir.IntType(32), _ALIGNED)
    )
    data = builder.bitcast(context.nrt.meminfo_data(builder, memory), number.as_pointer())
    populate_array(array, data, [length], [itemsize], itemsize, memory)
    return array


def _fill_with_zeros(builder, array):
    size = builder.mul(array.nitems, array.itemsize)
    cgutils.memset(builder, array.data, size, 0)


@intrinsic
def zeros(typing, length, dtype):
    """An array of `length` zeros."""
    kind = types.Array(dtype.dtype, 1, "C")

    def code(context, builder, signature, args):
        array = _new(context, builder, kind, args[0])
        _fill_with_zeros(builder, array)
        return impl_ret_new_ref(context, builder, kind, array._getvalue())

    return kind(types.intp, dtype), code


@intrinsic
def clear(typing, array):
    """Fill a contiguous array with zeros."""

    def code(context, builder, signature, args):
        _fill_with_zeros(builder, context.make_array(array)(context, builder, args[0]))
        return context.get_dummy_value()

    return types.void(array), code


@intrinsic
def copied(typing, numbers, dtype):
    """A copy of a vector of floats in another precision, or the same."""
    kind = types.Array(dtype.dtype, 1, "C")

    def code(context, builder, signature, args):
        source = context.make_array(numbers)(context, builder, args[0])
        array = _new(context, builder, kind, source.nitems)
        with cgutils.for_range(builder, source.nitems) as loop:
            number = builder.load(builder.gep(source.data, [loop.index]))
            number = context.cast(builder, number, numbers.dtype, kind.dtype)
            builder.store(number, builder.gep(array.data, [loop.index]))
        return impl_ret_new_ref(context, builder, kind, array._getvalue())

    return kind(numbers, dtype), code


@intrinsic
def upstream_run(typing, dense, i, left, r, right, width, j, count, g):
    """g = dense[i...]; if that is None or empty, columns j... of row r of `left` times `right`."""

    def code(context, builder, signature, args):
        def data(k, kind):
            return context.make_array(kind)(context, builder, args[k])

        factors, rows, target = data(2, left), data(4, right), data(8, g)

        def multiply():
            cgutils.memset(builder, target.data, builder.mul(args[7], target.itemsize), 0)
            rank = builder.sdiv(rows.nitems, args[5])
            with cgutils.for_range(builder, rank) as outer:
                at = builder.add(builder.mul(args[3], rank), outer.index)
                factor = builder.load(builder.gep(factors.data, [at]))
                row = builder.add(builder.mul(outer.index, args[5]), args[6])
                with cgutils.for_range(builder, args[7]) as inner:
                    number = builder.gep(rows.data, [builder.add(row, inner.index)])
                    term = builder.fmul(factor, builder.load(number))
                    place = builder.gep(target.data, [inner.index])
                    builder.store(builder.fadd(builder.load(place), term), place)

        if dense == types.none:
            multiply()
        else:
            given = data(0, dense)
            some = builder.icmp_signed(">", given.nitems, ir.Constant(ir.IntType(64), 0))
            with builder.if_else(some) as (then, otherwise):
                with then:
                    source = builder.gep(given.data, [args[1]])
                    cgutils.raw_memcpy(builder, target.data, source, args[7], given.itemsize)
                with otherwise:
                    multiply()
        return context.get_dummy_value()

    number = types.intp
    return types.void(dense, number, left, number, right, number, number, number, g), code


@intrinsic
def dot_run(typing, x, i, y, j, count):
    """The sum of x[i + k] y[j + k] over k < count, in the precision of x."""

    def code(context, builder, signature, args):
        total = cgutils.alloca_once_value(builder, context.get_constant(x.dtype, 0))
        flags = ("contract", "nsz", "reassoc")
        with cgutils.for_range(builder, args[4]) as loop:
            pair = []
            for kind, array, start in ((x, args[0], args[1]), (y, args[2], args[3])):
                data = context.make_array(kind)(context, builder, array).data
                number = builder.load(builder.gep(data, [builder.add(start, loop.index)]))
                pair.append(context.cast(builder, number, kind.dtype, x.dtype))
            term = builder.fmul(*pair, flags=flags)
            builder.store(builder.fadd(builder.load(total), term, flags=flags), total)
        return builder.load(total)

    return x.dtype(x, types.intp, y, types.intp, types.intp), code
