"""Kernels of `rflaf.fused` on ranges of their work, by PyTorch's own threads.

PyTorch's threads spin between its operations, and a thread of Python that is woken beside them
starts 50 to 100 microseconds later: longer than a range takes. So the threads of PyTorch, which its
OpenMP library keeps, do the ranges. A `Plan` has the arguments for each. A small function in
machine code takes one range after another and calls the kernel, without Python and the GIL.
Without such a library, and in a forked child, where these threads are gone, those of
`rflaf.runtime.threads` call the function instead.

What a range is depends on shapes alone, so threads change no result.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rflaf.runtime.threads import nobody_helps, parallel, thread_count

# Words of a call: those that its threads count up, what each may do, then addresses of arrays
_NEXT, _TAKEN, _FAILED, _COUNT, _SEATS, _EACH, _ROWS, _ARRAYS = range(8)
_ERROR, _REFUSED = 1, 2  # flags of _FAILED: the kernel raised, or returned False
_SHARED_WORK = 1 << 16  # elements from which threads share the work

_team: list[Any] = []  # once sought: the function that starts PyTorch's threads, or None


class Part(NamedTuple):
    """An array among the arguments of a kernel: a part of one whose address comes with the call.

    `start`, in elements, and the numbers in `shape` are those of every range, or one for each.
    """

    dtype: str
    shape: tuple[Any, ...]
    start: Any = 0


class Constant(NamedTuple):
    """An array among the arguments that is the same in every call."""

    array: Any


class Plan:
    """The ranges of a kernel's work.

    `arguments` are its own, in order: a Part, a Constant, None, or a number (or one per range).
    """

    def __init__(self, kernel: Any, count: int, elements: int, arguments: Sequence[Any]) -> None:
        columns = [each for argument in arguments for each in _words(argument)]
        self._rows = np.empty((count, len(columns)), np.int64)
        for k, column in enumerate(columns):
            self._rows[:, k] = column
        self._enter, self._address, self._code = _entrance(kernel, tuple(map(_kind, arguments)))
        self.count, self._shared = count, count > 1 and elements >= _SHARED_WORK
        self._kept = arguments  # keeps its arrays alive
        self._head = [0, 0, 0, count, 1, count, self._rows.ctypes.data]
        self._call = ctypes.c_int64 * (_ARRAYS + sum(isinstance(a, Part) for a in arguments))

    def run(self, *addresses: int) -> bool:
        """Do all ranges, for arrays at these addresses; whether none of them was refused."""
        call = self._call(*self._head, *addresses)
        limit = min(torch.get_num_threads(), thread_count()) if self._shared else 1
        if limit == 1 or nobody_helps():
            self._enter(ctypes.addressof(call))
        elif start := _starter():
            call[_SEATS] = limit
            # all of PyTorch's threads: a smaller team would end some, and the next start them anew
            start(self._address, ctypes.addressof(call), torch.get_num_threads(), 0)
        else:
            call[_SEATS], call[_EACH] = self.count, 1
            parallel(lambda _: self._enter(ctypes.addressof(call)), self.count)
        if call[_FAILED] & _ERROR:
            raise MemoryError("A compiled kernel has no memory to work in.")
        return not call[_FAILED]


def address(array: Any) -> int:
    """The address of a NumPy array; `array.ctypes` would take a microsecond."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


def _kind(argument: Any) -> Any:
    """Its kind: dtype, dimensions, and whether its address comes with the call, for arrays."""
    if isinstance(argument, Part):
        return argument.dtype, len(argument.shape), True
    if isinstance(argument, Constant):
        return argument.array.dtype.char, argument.array.ndim, False
    return argument if argument is None else "number"


def _words(argument: Any) -> list[Any]:
    """An argument as numba's compiled functions take it."""
    start = 0
    if isinstance(argument, Constant):
        array = argument.array
        start, argument = address(array), Part(array.dtype.char, array.shape)
    if not isinstance(argument, Part):
        return [0 if argument is None else argument]
    shape, size = argument.shape, np.dtype(argument.dtype).itemsize
    start = start + argument.start * size
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, strides[0] * length)
    items = strides[0] // size * shape[0]
    return [0, 0, items, size, start, *shape, *strides]  # 0, 0: nobody owns it


def _starter() -> Callable[..., None] | None:
    """GOMP_parallel(function, data, threads, flags) of PyTorch's own OpenMP library.

    libgomp has it, and so have LLVM's and Intel's libraries on Linux. Asked for a symbol, PyTorch's
    library also looks into those it is linked with.
    """
    if not _team:
        _team.append(_find_starter())
    return _team[0]


def _find_starter() -> Callable[..., None] | None:
    if not torch.backends.openmp.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        place = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
        start = ctypes.CDLL(str(place), mode=os.RTLD_NOLOAD | os.RTLD_NOW).GOMP_parallel
    except (OSError, AttributeError):  # no such file, symbol, or flag of `os`
        return None
    start.restype = None
    start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    return start


@lru_cache(maxsize=64)
def _entrance(kernel: Any, kinds: tuple[Any, ...]) -> tuple[Callable[[int], None], int, Any]:
    """The function that takes ranges and calls the kernel; its address, and what has its code."""
    from rflaf.nn.jit_team import entrance

    place, code = entrance(kernel, kinds)  # type: ignore[no-untyped-call]
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(place), place, code


def _forget_team() -> None:
    _team[:] = [None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_team)
