"""Where the functions of BLAS and LAPACK are, for calls without the GIL."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack


@lru_cache(maxsize=2)
def addresses(dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """Those of the products in a precision, and of factors in float64, as `jit_blas` wants them."""
    letter = "s" if dtype == np.float32 else "d"
    found = [capsule_address(cython_blas, letter + name) for name in ("gemm", "gemv", "syrk")]
    found += [capsule_address(cython_lapack, name) for name in ("dpotrf", "dpotrs")]
    return np.array(found, np.int64)


def capsule_address(module: Any, name: str) -> int:
    """The address of a C function of a Cython module; its integers are C ints, as scipy says."""
    capsule = module.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, signature(capsule)))
