"""Products of features by BLAS, called from compiled loops, in numba.

The functions are those of the BLAS and LAPACK that scipy brings, called by their addresses, which
`rflaf.fused.blas` finds: compiled code that holds an address itself could not be kept on disk.
Letters and the numbers 0 and 1 are given by their addresses, too.

Matrices are row by row. BLAS has them by columns, and so sees the transposed ones: features are
w × n there, and what they are multiplied by, C rows of w numbers here, is w × C.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rflaf.fused.jit import internal
from rflaf.fused.jit_memory import zeros

# places of the addresses in `blas`: functions, letters, and the numbers 0 and 1
GEMM, GEMV, SYRK, POTRF, POTRS, PLAIN, TRANSPOSED, LOWER, ZERO, ONE = range(10)


@intrinsic
def call(typing, function, arguments):
    """Call a function of pointers alone, which returns nothing.

    An array is given by its first element, a number by a C int of it; addresses are unsigned.
    """

    def pointer(context, builder, kind, value):
        if isinstance(kind, types.Array):
            value = context.make_array(kind)(context, builder, value).data
        elif kind.signed:
            value = cgutils.alloca_once_value(builder, builder.trunc(value, ir.IntType(32)))
        else:
            return value
        return builder.ptrtoint(value, ir.IntType(64))

    def code(context, builder, signature, args):
        given = [
            pointer(context, builder, kind, builder.extract_value(args[1], k))
            for k, kind in enumerate(arguments)
        ]
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * len(given)).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), given)
        return context.get_dummy_value()

    return types.void(function, arguments), code


@internal
def features_times(blas, phi, n, w, v, outputs, out):
    """Phi V into `out`, n × C, for V in C rows of w."""
    t, a, b = blas[TRANSPOSED], blas[ONE], blas[ZERO]
    if outputs == 1:
        call(blas[GEMV], (t, w, n, a, phi, w, v, 1, b, out, 1))
    else:
        call(blas[GEMM], (t, blas[PLAIN], outputs, n, w, a, v, w, phi, w, b, out, outputs))


@internal
def transposed_times(blas, phi, n, w, y, outputs, out):
    """Phi' Y into `out`, C rows of w, for Y of n × C."""
    no, a, b = blas[PLAIN], blas[ONE], blas[ZERO]
    if outputs == 1:
        call(blas[GEMV], (no, w, n, a, phi, w, y, 1, b, out, 1))
    else:
        call(blas[GEMM], (no, blas[TRANSPOSED], w, outputs, n, a, phi, w, y, outputs, b, out, w))


@internal
def tile_of_product(blas, x, stride, n, d, w, width, count, out, out_stride):
    """The first `count` columns of X W into `out`; rows of the three are their strides apart."""
    no, a, b = blas[PLAIN], blas[ONE], blas[ZERO]
    apart = max(stride, 1)
    call(blas[GEMM], (no, no, count, n, d, a, w, width, x, apart, b, out, out_stride))


@internal
def gram_of(blas, phi, n, w, out):
    """Phi' Phi, of which the part right of the diagonal and the diagonal are filled."""
    call(blas[SYRK], (blas[LOWER], blas[PLAIN], w, n, blas[ONE], phi, w, blas[ZERO], out, w))


@internal
def factorise(blas, matrix, w):
    """The Cholesky factor in the place of the part right of the diagonal; False: there is none."""
    info = zeros(1, np.int32)
    call(blas[POTRF], (blas[LOWER], w, matrix, w, info))
    return info[0] == 0


@internal
def solve_factored(blas, matrix, w, right, outputs):
    """The solution in the place of `right`, C rows of w."""
    call(blas[POTRS], (blas[LOWER], w, outputs, matrix, w, right, w, 0))
