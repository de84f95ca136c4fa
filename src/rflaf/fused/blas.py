"""Where the functions of BLAS and LAPACK are, for calls without the GIL."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

_LETTERS = np.frombuffer(b"NTL", np.uint8)
_NUMBERS = {kind: np.array([0, 1], kind) for kind in (np.float32, np.float64, np.int32)}


@lru_cache(maxsize=2)
def addresses(dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """What `jit_blas` wants: products in a precision, factors in float64, letters and numbers."""
    letter = "s" if dtype == np.float32 else "d"
    found = [capsule_address(cython_blas, letter + name) for name in ("gemm", "gemv", "syrk")]
    found += [capsule_address(cython_lapack, name) for name in ("dpotrf", "dpotrs")]
    found += [_LETTERS[k:].ctypes.data for k in range(3)]
    numbers = _NUMBERS[dtype.type]
    found += [numbers[k:].ctypes.data for k in range(2)]
    return np.array([*found, _NUMBERS[np.int32][1:].ctypes.data], np.int64)


def capsule_address(module: Any, name: str) -> int:
    """The address of a C function of a Cython module; its integers are C ints, as scipy says."""
    capsule = module.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, signature(capsule)))
