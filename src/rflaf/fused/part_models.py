"""Models for parts of the rows: partitions, with output weights of its own for each part.

A partition has the cuts of a binary tree of depth D, the first of all rows, then those of its two
sides, and so on. Cuts of level l are along a row's z_l. Within `widths` of a cut both sides have a
share, which is handed over smoothly. A score is the sum over partitions and parts of

    share (phi · v + b),

with v and b of C × m + 1 numbers per part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rflaf.fused.blas import addresses
from rflaf.fused.chunks import flat, for_all_rows, for_each, split_rows
from rflaf.fused.cpu import apply, slope
from rflaf.fused.table import Array, Float64, Sigma, Table

_CHUNK = 1 << 16  # elements of Z at once


class PartModels(NamedTuple):
    """T partitions of depth D: cuts and widths, T × 2^D - 1, and weights, T × 2^D × C × m + 1."""

    cuts: Float64
    widths: Float64
    coef: Array


class PartRows(NamedTuple):
    """The rows of parts one after the other, the roots of their weights, and where parts end."""

    rows: Array
    root: Float64
    ends: Array


def fit_parts(parts: PartRows, phi: Array, target: Float64, penalties: Float64) -> Float64:
    """Ridge solutions, parts × penalties × C × w, for features of n × w and targets of n × C.

    They are zero where rounding leaves none.
    """
    from rflaf.fused.jit_part_fits import fit_parts as loop

    shape = len(parts.ends), len(penalties), target.shape[1], phi.shape[1]
    out = np.zeros(shape)
    given = flat(phi), shape[3], flat(np.ascontiguousarray(target)), shape[2]
    loop(addresses(np.dtype(np.float64)), *given, *parts, penalties, out.ravel())
    return out


def part_scores(partitions: PartModels, sigma: Sigma, z: Array) -> Float64:
    """The scores, n × C, of the models that `partitions` have, for Z of n × T m."""
    from rflaf.fused.jit_parts import score_rows

    m, *rest = _given(partitions, z)
    out = np.zeros((len(z), partitions.coef.shape[2]))

    def task(rows: slice) -> None:
        some = np.ascontiguousarray(z[rows])
        features = flat(some), flat(apply(sigma, some)), m
        score_rows(*features, *rest, flat(out[rows], True), len(some))

    for_all_rows(task, z.shape, _CHUNK)
    return out


def part_slopes(
    partitions: PartModels, sigma: Sigma, z: Array, end: Array | None = None, steps: int = 1
) -> Array:
    """The derivative of the scores of `partitions` in Z, n × C × T m.

    With an `end`, n × T m, it is the mean along the straight way there, in `steps` steps. For a
    step shares have their mean and their mean slope, so that no hand-over is stepped over.
    """
    from rflaf.fused.jit_parts import slope_rows

    m, *rest = _given(partitions, z)
    out = np.zeros((len(z), partitions.coef.shape[2], z.shape[1]), z.dtype)
    none = np.zeros((0, 0), z.dtype)

    def task(rows: slice) -> None:
        start, target = np.ascontiguousarray(z[rows]), flat(out[rows], True)
        step = np.zeros_like(start) if end is None else (end[rows] - start) / z.dtype.type(steps)

        def add(steps: int, z: Array, table: Any, *features: Array) -> None:
            given = (flat(each) for each in (z, step, *features))
            slope_rows(*given, steps, table, m, *rest, target, len(z))

        if isinstance(sigma, Table):
            add(steps, start, sigma.in_dtype(z.dtype), none, none)
        else:
            ones = np.ones((len(start), 1), z.dtype), np.ones((z.shape[1], 1), z.dtype)
            for k in range(steps):
                some = start + z.dtype.type(k + 0.5) * step
                begin = start + z.dtype.type(k) * step
                add(1, begin, None, apply(sigma, some), slope(sigma, some, ones))
        out[rows] /= steps

    for_each(task, split_rows(z.shape, _CHUNK))
    return out


def _given(partitions: PartModels, z: Array) -> tuple[Any, ...]:
    """The features of a partition, and partitions as the kernels take them."""
    cuts, widths, coef = (flat(np.ascontiguousarray(each)) for each in partitions)
    trees, nodes = partitions.cuts.shape
    return z.shape[1] // trees, cuts, widths, nodes, coef, partitions.coef.shape[2]
