"""Products of many rows of features with a few outputs, without the GIL, on all free threads.

Rows are cut into ranges by the shape alone, and the sums of ranges are added in their order, in
float64: the number of threads changes no bit. Features are n × M, contiguous, in float32 or
float64; products are computed in that precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rflaf.fused.blas import addresses
from rflaf.fused.chunks import flat, for_each, split_rows
from rflaf.fused.table import Array, Float64
from rflaf.runtime.threads import parallel

_RANGE = 1 << 19  # features of a range of rows: they stay in a cache between two products
_TOGETHER = 1 << 15  # numbers in the results of one range of rows
_MOST_SUMS = 64  # arrays of sums held at once

Loss = Callable[[Float64, slice], tuple[float, Any]]
"""From the scores of a range of rows, n × C, to their loss and its gradient for the scores."""


def times(phi: Array, v: Any) -> Float64:
    """Phi V, n × C, for V of M × C."""
    phi, right = _as_rows(phi, v)
    out = np.zeros((len(phi), len(right)))
    for_each(lambda rows: _fill(phi[rows], right, out[rows]), split_rows(phi.shape, _RANGE))
    return out


def slopes(phi: Array, v: Any, loss: Loss) -> tuple[float, Float64]:
    """The loss of the scores Phi V summed over all rows, and its gradient for V, M × C.

    `loss(scores, rows)` gets the scores of a range of rows, n × C, and the slice of these rows. It
    returns their loss and its gradient for the scores. Several threads call it at once.
    """
    from rflaf.fused.jit_products import add_transposed

    phi, right = _as_rows(phi, v)
    ranges = split_rows(phi.shape, _RANGE)
    totals = [0.0] * len(ranges)

    def add(k: int, sums: Float64) -> None:
        rows = ranges[k]
        scores = np.zeros((rows.stop - rows.start, len(right)))
        _fill(phi[rows], right, scores)
        totals[k], gradient = loss(scores, rows)
        given = _checked("gradient", gradient, *scores.shape)
        if sums.size:
            place = flat(phi[rows]), phi.shape[1], flat(given), len(right)
            add_transposed(addresses(phi.dtype), *place, flat(sums, True))

    by_v = _total(add, len(ranges), right.shape)
    return float(sum(totals)), by_v


def quotients(here: Sequence[Array], there: Sequence[Array], near: float) -> Array:
    """Differences of sigma over those of z, M × n × K; the mean slope where z differ little.

    That is by less than `near`. z, sigma and its slope are M × n in `here` and M × K in `there`.
    """
    from rflaf.fused.jit_products import fill_quotients

    (m, n), count, dtype = here[0].shape, there[0].shape[1], here[0].dtype
    out = np.empty((m, n, count), dtype)
    given = [flat(np.ascontiguousarray(each)) for each in (*here, *there)]
    fill_quotients(*given[:3], n, *given[3:], count, dtype.type(near), flat(out, True))
    return out


def interpolated(tables: Array, place: Array, v: Array) -> tuple[Array, Array]:
    """Sums over m of v_mc g_m, n × C × width, and the last number of each g_m, M × n.

    g_m is what lies at `place`, M × n, between the nodes of table m: cubic through the four nearest
    of them. `tables` is M × nodes × width, with at least four nodes, and v is M × C, all in one
    precision.
    """
    from rflaf.fused.jit_products import add_interpolated

    (_, nodes, width), n, outputs = tables.shape, place.shape[1], v.shape[1]
    out, last = np.zeros((n, outputs, width), place.dtype), np.empty_like(place)
    given = flat(tables), nodes, width, flat(place), n
    results = flat(np.ascontiguousarray(v)), outputs, flat(last, True), flat(out, True)

    def task(rows: slice) -> None:
        add_interpolated(*given, rows.start, rows.stop, *results)

    for_each(task, split_rows((n, outputs * width), _TOGETHER))
    return out, last


def _fill(phi: Array, right: Array, out: Float64) -> None:
    """Phi times the transposed `right` into `out`, which is zero before."""
    from rflaf.fused.jit_products import times_rows

    outputs, width = right.shape
    if right.size:
        given = flat(phi), width, flat(right), outputs
        times_rows(addresses(phi.dtype), *given, flat(out, True))


def _total(add: Callable[[int, Float64], None], n_ranges: int, shape: tuple[int, ...]) -> Float64:
    """The transposed sum of what `add` adds for all ranges; some share sums, to save memory."""
    together = max(1, -(-n_ranges // _MOST_SUMS))
    firsts = range(0, n_ranges, together)
    sums = np.zeros((len(firsts), *shape))

    def task(j: int) -> None:
        for k in range(firsts[j], min(firsts[j] + together, n_ranges)):
            add(k, sums[j])

    parallel(task, len(firsts))
    return np.ascontiguousarray(sums.sum(axis=0).T)


def _as_rows(phi: Array, v: Any) -> tuple[Array, Array]:
    """The features, and V transposed, in their precision."""
    phi = np.asarray(phi)
    known = phi.dtype in (np.float32, np.float64)
    if phi.ndim != 2 or not known or not phi.flags.c_contiguous:
        raise ValueError(
            "'phi' must be a contiguous matrix of float32 or float64. "
            f"Got shape {phi.shape}, dtype {phi.dtype}."
        )
    return phi, np.ascontiguousarray(_checked("v", v, phi.shape[1]).T, phi.dtype)


def _checked(name: str, matrix: Any, rows: int, columns: int | None = None) -> Float64:
    """The matrix, contiguous and in float64; raises if its shape is another one."""
    found = np.ascontiguousarray(matrix, np.float64)
    wanted = (rows, found.shape[-1] if columns is None else columns)
    if found.shape != wanted or found.ndim != 2:
        raise ValueError(
            f"{name!r} must be a matrix of {rows} rows"
            f"{'' if columns is None else f' and {columns} columns'}. Got shape {found.shape}."
        )
    return found
