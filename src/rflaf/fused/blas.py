"""Addresses of functions of BLAS and LAPACK, for calls without the GIL."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

_LETTERS = np.frombuffer(b"NTL", np.uint8)
_NUMBERS = {kind: np.array([0, 1], kind) for kind in (np.float32, np.float64)}
# letters, C ints and floats, the last by Cython's names for them
_KNOWN = re.compile(r"(char|int|float|double|__pyx_t_\w+_[sd]) \*")


@lru_cache(maxsize=2)
def addresses(dtype: np.dtype[Any]) -> NDArray[np.uint64]:
    """What `jit_blas` wants: products in a precision, factors in float64, letters and numbers."""
    letter = "s" if dtype == np.float32 else "d"
    found = [capsule_address(cython_blas, letter + name) for name in ("gemm", "gemv", "syrk")]
    found += [capsule_address(cython_lapack, name) for name in ("dpotrf", "dpotrs")]
    found += [_LETTERS[k:].ctypes.data for k in range(3)]
    numbers = _NUMBERS[dtype.type]
    found += [numbers[k:].ctypes.data for k in range(2)]
    return np.array(found, np.uint64)


def capsule_address(module: Any, name: str) -> int:
    """The address of the function `name` of a `module`: scipy's cython_blas or cython_lapack.

    It is called with pointers to C ints: one that takes others would read beyond them.
    """
    from numba.extending import get_cython_function_address

    # Cython names a capsule by the function's signature, which is how it prints
    capsule = repr(module.__pyx_capi__[name])
    found = re.search(r'"void \((.*)\)"', capsule)
    for kind in found[1].split(", ") if found else [capsule]:
        if not _KNOWN.fullmatch(kind):
            raise ImportError(
                f"{module.__name__}.{name} must take pointers to letters, C ints and floats. Got "
                f"{kind!r} instead: rflaf needs a scipy whose BLAS has 32-bit integers (LP64)."
            )
    return int(get_cython_function_address(module.__name__, name))
