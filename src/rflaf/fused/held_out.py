"""Ridge solutions on some rows of features, judged on others: one compiled call for each question.

`reference.held_out` says in NumPy what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rflaf.fused.blas import addresses
from rflaf.fused.chunks import flat
from rflaf.fused.table import Array, Float64, Table
from rflaf.runtime.threads import parallel

_SINGLE = np.dtype(np.float32)
_SHARED = 3e8  # products of a Gram matrix from which on threads share the work
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

    What takes long is done in parts, which threads share.

    Parameters
    ----------
    sigma : Table
    fit, held : HeldOutRows
        Rows to fit to, and rows to judge by.
    constant : float
        1 for an intercept, 0 for none.
    room : callable
        Gives arrays by name, shape and dtype, with anything in them.
    """

    def __init__(
        self, sigma: Table, fit: HeldOutRows, held: HeldOutRows, constant: float, room: Room
    ) -> None:
        from rflaf.fused.jit import apply_rows
        from rflaf.fused.jit_ridge import add_triangle, sketch_sums

        self._sigma = sigma
        (n, self._m), self._outputs = fit.z.shape, fit.y.shape[1]
        w = self._m + 1
        self._fit, self._held = (
            _Side.of(side, room(f"phi {name}", (len(side.z), w), np.float32))
            for name, side in (("fit", fit), ("held", held))
        )
        uneven = bool(np.ptp(fit.share) > 0)
        self._weighted = flat(room("root", (n if uneven else 0, w), np.float32), True)
        halves = [slice(0, n)] if n * w * w < _SHARED else [slice(0, n // 2), slice(n // 2, n)]
        self._parts = [(self._fit, rows) for rows in halves] + [(self._held, slice(0, len(held.z)))]
        sums = [
            (
                flat(room(f"gram {k}", (w, w), np.float32), True),
                np.empty(w * self._outputs, np.float32),
            )
            for k in range(len(halves))
        ]
        units, table = [1.0] * len(halves), sigma.in_dtype(_SINGLE)
        m, outputs = self._m, self._outputs

        def task(k: int) -> None:
            side, rows = self._parts[k]
            z, phi = flat(side.z[rows.start * m :]), side.phi[rows.start * w : rows.stop * w]
            apply_rows(z, m, m, *table, phi, w, rows.stop - rows.start)
            phi[m::w] = constant
            if k < len(halves):
                weighted = self._weighted[rows.start * w : rows.stop * w]
                given = phi, side.y[rows.start * outputs :], side.share[rows], outputs, weighted
                units[k] = float(sketch_sums(addresses(_SINGLE), *given, *sums[k]))

        _for_each_part(task, self._parts)
        for gram, right in sums[1:]:
            add_triangle(sums[0][0], gram, w)
            np.add(sums[0][1], right, out=sums[0][1])
        self._sums = sums[0][0], units[0], sums[0][1]
        self._matrix = flat(room("matrix", (w, w), np.float64), True)

    @property
    def trace(self) -> float:
        """Of the Gram matrix; not finite where features overflow."""
        return float(self._sums[1] * self._sums[0][:: self._m + 2].sum(dtype=np.float64))

    def loss(self, alpha: float) -> float:
        """J for a penalty; infinite where the features overflow."""
        from rflaf.fused.jit_ridge import sketch_loss

        (gram, unit, right), held = self._sums, self._held
        share = held.share / self._outputs
        given = gram, right, unit, alpha, self._matrix, held.phi, held.y, share
        return float(sketch_loss(addresses(_SINGLE), *given, self._outputs))

    def gradients(self, alpha: float) -> Gradients | None:
        """J and its gradients; those for Z take the place of Z. None: not finite."""
        from rflaf.fused.jit_ridge import add_cell_sums, sketch_pulls
        from rflaf.fused.jit_vectors import COPIES

        fit, held, outputs, m = self._fit, self._held, self._outputs, self._m
        factors = {
            id(side): tuple(np.empty(rank * length, np.float32) for length in (len(side.share), m))
            for side, rank in ((fit, 2 * outputs), (held, outputs))
        }
        loss, by_alpha, finite = sketch_pulls(
            addresses(_SINGLE), self._sums, alpha, fit.y, fit.share, fit.phi, self._weighted,
            held.y, held.share / outputs, held.phi, outputs, self._matrix, factors[id(fit)],
            factors[id(held)],
        )  # fmt: skip
        if not finite:
            return None
        layout, table = self._sigma.layout, self._sigma.in_dtype(_SINGLE)
        moments = np.zeros((len(self._parts), layout.n_cells + 1, 4))
        tails = np.zeros((len(self._parts), 2 if self._sigma.basis.tail == "linear" else 0))

        def task(k: int) -> None:
            side, rows = self._parts[k]
            left, right = factors[id(side)]
            rank = len(right) // m
            z, factor = side.z[rows.start * m : rows.stop * m], left[rows.start * rank :]
            own = np.empty((len(moments[k]), COPIES, 4), np.float32)
            add_cell_sums(z, m, *table, factor, right, own, moments[k], tails[k])

        _for_each_part(task, self._parts)
        coefficients = layout.pull_back(moments.sum(axis=0), tails.sum(axis=0))
        return Gradients(loss, coefficients, alpha * by_alpha)


class _Side(NamedTuple):
    """Rows as the kernels take them, and room for their features."""

    z: Array
    y: Array
    share: Array
    phi: Array

    @classmethod
    def of(cls, rows: HeldOutRows, phi: Array) -> _Side:
        y = flat(np.ascontiguousarray(rows.y, np.float32))
        share = np.ascontiguousarray(rows.share, np.float64)
        return cls(flat(rows.z, True), y, share, flat(phi, True))


def _for_each_part(task: Callable[[int], None], parts: list[Any]) -> None:
    """Threads share what has been cut into parts; less than that is not worth waking them."""
    if len(parts) > 2:
        parallel(task, len(parts))
    else:
        for k in range(len(parts)):
            task(k)
