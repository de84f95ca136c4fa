"""Products of features by BLAS, called from compiled loops, in numba.

The functions are those of the BLAS and LAPACK that scipy brings, called by their addresses, which
`rflaf.fused.blas` finds: compiled code that holds an address itself could not be kept on disk.
Constants, too, are given by their addresses; arrays made of lists take long to compile.

Matrices are row by row. BLAS has them by columns, and so sees the transposed ones: features are
w × n there, and what they are multiplied by, C rows of w numbers here, is w × C.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rflaf.fused.jit import compiled

# places of the addresses in `blas`: functions, letters, and the numbers 0 and 1
GEMM, GEMV, SYRK, POTRF, POTRS, PLAIN, TRANSPOSED, LOWER, ZERO, ONE, INT_ONE = range(11)


@intrinsic
def call(typing, function, pointers):
    """Call a function of pointers alone, which returns nothing."""

    def code(context, builder, signature, args):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word] * len(pointers)).as_pointer()
        given = [builder.extract_value(args[1], k) for k in range(len(pointers))]
        builder.call(builder.inttoptr(args[0], kind), given)
        return context.get_dummy_value()

    return types.void(function, pointers), code


@intrinsic
def address(typing, array, k):
    """The address of an element."""

    def code(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        return builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))

    return types.int64(array, types.intp), code


@compiled
def keep(array):
    """Arrays that only an address names must live until it has been used."""
    return array.size


@compiled
def features_times(blas, phi, n, w, v, outputs, out):
    """Phi V into `out`, n × C, for V in C rows of w."""
    sizes = np.empty(3, np.int32)
    sizes[0], sizes[1], sizes[2] = outputs, n, w
    c, rows, width = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    p, x, y = address(phi, 0), address(v, 0), address(out, 0)
    t, a, b, one = blas[TRANSPOSED], blas[ONE], blas[ZERO], blas[INT_ONE]
    if outputs == 1:
        call(blas[GEMV], (t, width, rows, a, p, width, x, one, b, y, one))
    else:
        call(blas[GEMM], (t, blas[PLAIN], c, rows, width, a, x, width, p, width, b, y, c))
    keep(sizes)


@compiled
def transposed_times(blas, phi, n, w, y, outputs, out):
    """Phi' Y into `out`, C rows of w, for Y of n × C."""
    sizes = np.empty(3, np.int32)
    sizes[0], sizes[1], sizes[2] = outputs, n, w
    c, rows, width = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    p, x, found = address(phi, 0), address(y, 0), address(out, 0)
    no, a, b, one = blas[PLAIN], blas[ONE], blas[ZERO], blas[INT_ONE]
    if outputs == 1:
        call(blas[GEMV], (no, width, rows, a, p, width, x, one, b, found, one))
    else:
        call(blas[GEMM], (no, blas[TRANSPOSED], width, c, rows, a, p, width, x, c, b, found, width))
    keep(sizes)


@compiled
def tile_of_product(blas, x, stride, n, d, w, width, count, out, out_stride):
    """The first `count` columns of X W into `out`; rows of the three are their strides apart."""
    sizes = np.empty(6, np.int32)
    sizes[0], sizes[1], sizes[2] = count, n, d
    sizes[3], sizes[4], sizes[5] = width, max(stride, 1), out_stride
    columns, rows, inner = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    left, left_apart = address(w, 0), address(sizes, 3)
    right, right_apart = address(x, 0), address(sizes, 4)
    found, apart = address(out, 0), address(sizes, 5)
    no, a, b = blas[PLAIN], blas[ONE], blas[ZERO]
    call(
        blas[GEMM],
        (no, no, columns, rows, inner, a, left, left_apart, right, right_apart, b, found, apart),
    )
    keep(sizes)


@compiled
def gram_of(blas, phi, n, w, out):
    """Phi' Phi, of which the part right of the diagonal and the diagonal are filled."""
    sizes = np.empty(2, np.int32)
    sizes[0], sizes[1] = w, n
    width, rows, p, found = address(sizes, 0), address(sizes, 1), address(phi, 0), address(out, 0)
    a, b = blas[ONE], blas[ZERO]
    call(blas[SYRK], (blas[LOWER], blas[PLAIN], width, rows, a, p, width, b, found, width))
    keep(sizes)


@compiled
def factorise(blas, matrix, w):
    """The Cholesky factor in the place of the part right of the diagonal; False: there is none."""
    sizes = np.empty(2, np.int32)
    sizes[0], sizes[1] = w, 0
    width, info = address(sizes, 0), address(sizes, 1)
    call(blas[POTRF], (blas[LOWER], width, address(matrix, 0), width, info))
    keep(sizes)
    return sizes[1] == 0


@compiled
def solve_factored(blas, matrix, w, right, outputs):
    """The solution in the place of `right`, C rows of w."""
    sizes = np.empty(3, np.int32)
    sizes[0], sizes[1], sizes[2] = w, outputs, 0
    width, columns, info = address(sizes, 0), address(sizes, 1), address(sizes, 2)
    factor, found = address(matrix, 0), address(right, 0)
    call(blas[POTRS], (blas[LOWER], width, columns, factor, width, found, width, info))
    keep(sizes)
