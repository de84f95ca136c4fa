"""The machine code by which a thread takes ranges of a kernel's work; see `team`.

It is LLVM's code, and no function of numba: it calls the kernel that Python calls, too, so that
nothing is compiled twice, and takes milliseconds to make. A call is an array of 64-bit words, which
`team` lists.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from rflaf.fused.jit_cache import uninterrupted
from rflaf.nn import team

_WORD = ir.IntType(64)
_OK = 0, -2  # states of a kernel that has not raised: a value, None


def entrance(kernel, kinds):
    """The address of `void enter(call)`, and the library that it lives in.

    `kinds` are those of the arguments: (dtype, axes, whether its address comes with the call) for
    an array, None, or "number".
    """
    return uninterrupted(lambda kinds: _compiled(kernel, kinds))(kinds)


def _compiled(kernel, kinds):
    known = {None: types.none, "number": types.int64}
    signature = tuple(
        known[k] if k in known else types.Array(from_dtype(np.dtype(k[0])), k[1], "C")
        for k in kinds
    )
    kernel.compile(signature)
    made = kernel.overloads[signature]
    with global_compiler_lock:
        library = cpu_target.target_context.codegen().create_library("rflaf-team")
        module = library.create_ir_module("rflaf-team")
        _write(module, made, kinds)
        library.add_ir_module(module)
        library.finalize()
        return library.get_pointer_to_function("enter"), (library, made)


def _write(module, made, kinds):
    """Take a seat; then range after range, unless there is none left."""
    kind = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer()])
    function = ir.Function(module, kind, "enter")
    first, loop, work, end = (function.append_basic_block(n) for n in ("seat", "next", "do", "end"))
    b, (call,) = ir.IRBuilder(first), function.args

    def at(k):
        return b.gep(call, [_word(k)])

    def count_up(k):
        return b.atomic_rmw("add", at(k), _word(1), "monotonic")

    value, error = b.alloca(_WORD), b.alloca(_WORD)  # what the kernel returns
    seat = count_up(team._TAKEN)
    seats, ranges, each = (b.load(at(k)) for k in (team._SEATS, team._COUNT, team._EACH))
    rows = b.load(at(team._ROWS))
    b.cbranch(b.icmp_signed("<", seat, seats), loop, end)
    b.position_at_end(loop)
    done = b.phi(_WORD)
    done.add_incoming(_word(0), first)
    b.cbranch(b.icmp_signed("<", done, each), work, end)
    b.position_at_end(work)
    k = count_up(team._NEXT)
    some = b.icmp_signed("<", k, ranges)
    with b.if_then(some):
        failed = _call(b, made, kinds, at, rows, k, value, error)
        b.atomic_rmw("or", at(team._FAILED), failed, "monotonic")
    done.add_incoming(b.add(done, _word(1)), b.block)
    b.cbranch(some, loop, end)
    b.position_at_end(end)
    b.ret_void()


def _call(b, made, kinds, at, rows, k, value, error):
    """Call the kernel with the arguments in row k; flags of what failed."""
    convention, desc = cpu_target.target_context.call_conv, made.fndesc
    kind = convention.get_function_type(desc.restype, desc.argtypes)
    coming = iter(range(len(kinds)))
    addresses = []  # for each word of the arguments, None, or where its array's address is
    for each in kinds:
        if isinstance(each, tuple):
            _, axes, comes = each
            addresses += [None] * 4 + [next(coming) if comes else None] + [None] * (2 * axes)
        else:
            addresses.append(None)
    assert len(kind.args) == 2 + len(addresses), "numba's convention of calls has changed"
    row = b.inttoptr(b.add(rows, b.mul(k, _word(8 * len(addresses)))), _WORD.as_pointer())
    given = [b.bitcast(p, t) for p, t in zip((value, error), kind.args)]
    for j, (array, wanted) in enumerate(zip(addresses, kind.args[2:])):
        word = b.load(b.gep(row, [_word(j)]))
        if array is not None:
            word = b.add(word, b.load(at(team._ARRAYS + array)))
        given.append(b.inttoptr(word, wanted) if isinstance(wanted, ir.PointerType) else word)
    place = made.library.get_pointer_to_function(desc.llvm_func_name)
    status = b.call(b.inttoptr(_word(place), kind.as_pointer()), given)
    raised = b.not_(b.or_(*(b.icmp_signed("==", status, ir.Constant(status.type, s)) for s in _OK)))
    failed = b.select(raised, _word(team._ERROR), _word(0))
    if desc.restype == types.boolean:
        said = b.load(b.bitcast(value, ir.IntType(8).as_pointer()))
        refused = b.icmp_signed("==", said, ir.Constant(said.type, 0))
        failed = b.select(refused, b.or_(failed, _word(team._REFUSED)), failed)
    return failed


def _word(k):
    return ir.Constant(_WORD, k)
