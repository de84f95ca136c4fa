"""Ridge solutions on some rows of features, judged on others: one compiled call for each question.

`rflaf.solvers.sketches` says in NumPy what is computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from rflaf.fused.chunks import flat
from rflaf.fused.table import Array, Float64, Table

Room = Callable[[str, tuple[int, int], Any], Array]  # memory by name, shape and dtype


class HeldOutRows(NamedTuple):
    """Z of some rows, n × M, their targets, n × C, and their shares, which sum to one.

    Z is contiguous, in float32.
    """

    z: Array
    y: Array
    share: Array


class Gradients(NamedTuple):
    """The held-out error J, and its gradients for the coefficients and the penalty's logarithm."""

    loss: float
    coefficients: Float64
    log_alpha: float


class HeldOut:
    """The ridge solutions of some rows in float32, and their errors on others.

    `constant` is 1 for an intercept, 0 for none. Arrays that are as large as Z come from `room`.
    """

    def __init__(
        self, sigma: Table, fit: HeldOutRows, held: HeldOutRows, constant: float, room: Room
    ) -> None:
        from rflaf.fused.jit_ridge import sketch_features, sketch_sums

        self._sigma, self._blas = sigma, addresses()
        (n, m), self._outputs = fit.z.shape, fit.y.shape[1]
        w, table = m + 1, sigma.in_dtype(np.dtype(np.float32))
        sides = []
        for name, side in (("fit", fit), ("held", held)):
            phi = flat(room(f"phi {name}", (len(side.z), w), np.float32), True)
            sketch_features(flat(side.z), len(side.z), m, *table, constant, phi)
            y = flat(np.ascontiguousarray(side.y, np.float32))
            sides.append((flat(side.z, True), y, np.ascontiguousarray(side.share, np.float64), phi))
        self._fit, self._held = sides
        uneven = bool(np.ptp(fit.share) > 0)
        self._weighted = flat(room("root", (n if uneven else 0, w), np.float32), True)
        gram = flat(room("gram", (w, w), np.float32), True)
        right = np.empty(w * self._outputs, np.float32)
        _, y, share, phi = self._fit
        given = phi, y, share, self._outputs, self._weighted, gram, right
        self._sums = gram, float(sketch_sums(self._blas, *given)), right
        self._matrix = flat(room("matrix", (w, w), np.float64), True)

    @property
    def trace(self) -> float:
        """Of the Gram matrix; not finite where features overflow."""
        w = self._sums[2].size // self._outputs
        return float(self._sums[1] * self._sums[0][:: w + 1].sum(dtype=np.float64))

    def loss(self, alpha: float) -> float:
        """J for a penalty; infinite where the features overflow."""
        from rflaf.fused.jit_ridge import sketch_loss

        (gram, unit, right), (_, y, share, phi) = self._sums, self._held
        given = gram, right, unit, alpha, self._matrix, phi, y, share / self._outputs
        return float(sketch_loss(self._blas, *given, self._outputs))

    def solution(self, alpha: float) -> Float64 | None:
        """The output weights for a penalty, (M + 1) × C, the intercept last; None: not finite."""
        from rflaf.fused.jit_ridge import sketch_solution

        (gram, unit, right), phi = self._sums, self._fit[3]
        given = gram, right, unit, alpha, self._matrix, phi, self._weighted, self._outputs
        v, finite = sketch_solution(self._blas, *given)
        return v.reshape(self._outputs, -1).T if finite else None

    def gradients(self, alpha: float, slopes: bool) -> Gradients | None:
        """J and its gradients; if `slopes`, those for Z take the place of Z. None: not finite."""
        from rflaf.fused.jit_ridge import sketch_gradients

        table = self._sigma.in_dtype(np.dtype(np.float32))
        layout = self._sigma.layout
        moments = np.zeros((layout.n_cells + 1, 4))
        tails = np.zeros(2 if self._sigma.basis.tail == "linear" else 0)
        (z_fit, y_fit, share_fit, phi_fit), (z_held, y_held, share_held, phi_held) = (
            self._fit,
            self._held,
        )
        loss, by_alpha, finite = sketch_gradients(
            self._blas, self._sums, alpha, *table, z_fit, y_fit, share_fit, phi_fit,
            self._weighted, z_held, y_held, share_held / self._outputs, phi_held, self._outputs,
            self._matrix, moments, tails, slopes,
        )  # fmt: skip
        if not finite:
            return None
        return Gradients(loss, layout.pull_back(moments, tails), alpha * by_alpha)


@lru_cache(maxsize=1)
def addresses() -> Array:
    """Where the functions of the BLAS and LAPACK that scipy brings are."""
    from rflaf.fused.jit_ridge import BLAS, LAPACK

    found = [capsule_address(cython_blas, name) for name in BLAS]
    return np.array(found + [capsule_address(cython_lapack, name) for name in LAPACK], np.int64)


def capsule_address(module: Any, name: str) -> int:
    """The address of a C function of a Cython module; its integers are C ints, as scipy says."""
    capsule = module.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, signature(capsule)))
