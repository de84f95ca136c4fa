"""Products of features by BLAS, called from compiled loops, in numba.

The functions are those of the BLAS and LAPACK that scipy brings, called by their addresses, which
`rflaf.fused.blas` finds: compiled code that holds an address itself could not be kept on disk.

Matrices are row by row. BLAS has them by columns, and so sees the transposed ones: features are
w × n there, and what they are multiplied by, C rows of w numbers here, is w × C.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rflaf.fused.jit import compiled, inlined

GEMM, GEMV, SYRK, POTRF, POTRS = range(5)  # places of their addresses in `blas`
_PLAIN, _TRANSPOSED, LOWER = ord("N"), ord("T"), ord("L")


@intrinsic
def call(typing, function, pointers):
    """Call a function of pointers alone, which returns nothing."""

    def code(context, builder, signature, args):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word] * len(pointers)).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), cgutils.unpack_tuple(builder, args[1]))
        return context.get_dummy_value()

    return types.void(function, pointers), code


@inlined
def address(array, k):
    """The address of an element."""
    return array.ctypes.data + k * array.itemsize


@compiled
def features_times(blas, phi, n, w, v, outputs, out):
    """Phi V into `out`, n × C, for V in C rows of w."""
    letters = np.array([_TRANSPOSED, _PLAIN], np.uint8)
    sizes = np.array([outputs, n, w, 1], np.int32)
    ones = np.array([1.0, 0.0], phi.dtype)
    t, no, one = address(letters, 0), address(letters, 1), address(sizes, 3)
    c, rows, width = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    a, b, x, y = address(ones, 0), address(ones, 1), v.ctypes.data, out.ctypes.data
    p = phi.ctypes.data
    if outputs == 1:
        call(blas[GEMV], (t, width, rows, a, p, width, x, one, b, y, one))
    else:
        call(blas[GEMM], (t, no, c, rows, width, a, x, width, p, width, b, y, c))
    keep(letters, sizes, ones)


@compiled
def transposed_times(blas, phi, n, w, y, outputs, out):
    """Phi' Y into `out`, C rows of w, for Y of n × C."""
    letters = np.array([_TRANSPOSED, _PLAIN], np.uint8)
    sizes = np.array([outputs, n, w, 1], np.int32)
    ones = np.array([1.0, 0.0], phi.dtype)
    t, no, one = address(letters, 0), address(letters, 1), address(sizes, 3)
    c, rows, width = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    a, b, x, found = address(ones, 0), address(ones, 1), y.ctypes.data, out.ctypes.data
    p = phi.ctypes.data
    if outputs == 1:
        call(blas[GEMV], (no, width, rows, a, p, width, x, one, b, found, one))
    else:
        call(blas[GEMM], (no, t, width, c, rows, a, p, width, x, c, b, found, width))
    keep(letters, sizes, ones)


@compiled
def tile_of_product(blas, x, stride, n, d, w, width, count, out, out_stride):
    """The first `count` columns of X W into `out`; rows of the three are their strides apart."""
    letters = np.array([_PLAIN], np.uint8)
    sizes = np.array([count, n, d, width, stride, out_stride], np.int32)
    ones = np.array([1.0, 0.0], x.dtype)
    plain, columns, rows = address(letters, 0), address(sizes, 0), address(sizes, 1)
    inner, a, b = address(sizes, 2), address(ones, 0), address(ones, 1)
    left, left_apart = w.ctypes.data, address(sizes, 3)
    right, right_apart = x.ctypes.data, address(sizes, 4)
    found, apart = out.ctypes.data, address(sizes, 5)
    call(
        blas[GEMM],
        (plain, plain, columns, rows, inner, a, left, left_apart, right, right_apart, b, found,
         apart),
    )  # fmt: skip
    keep(letters, sizes, ones)


@compiled
def gram_of(blas, phi, n, w, out):
    """Phi' Phi, of which the part right of the diagonal and the diagonal are filled."""
    letters = np.array([LOWER, _PLAIN], np.uint8)
    sizes = np.array([w, n], np.int32)
    ones = np.array([1.0, 0.0], phi.dtype)
    width, a, b = address(sizes, 0), address(ones, 0), address(ones, 1)
    p, found, lower, plain = (
        phi.ctypes.data,
        out.ctypes.data,
        address(letters, 0),
        address(letters, 1),
    )
    call(blas[SYRK], (lower, plain, width, address(sizes, 1), a, p, width, b, found, width))
    keep(letters, sizes, ones)


@compiled
def keep(one, two, three):
    """Arrays that only an address names must live until it has been used."""
    return one.size + two.size + three.size
