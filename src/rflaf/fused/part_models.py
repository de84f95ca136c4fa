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

from rflaf.fused.chunks import flat, for_all_rows
from rflaf.fused.cpu import apply, slope
from rflaf.fused.table import Array, Float64, Sigma

_CHUNK = 1 << 16  # elements of Z at once


class PartModels(NamedTuple):
    """T partitions of depth D: cuts and widths, T × 2^D - 1, and weights, T × 2^D × C × m + 1."""

    cuts: Float64
    widths: Float64
    coef: Array


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
    partitions: PartModels, sigma: Sigma, z: Array, step: Any = 0, out: Array | None = None
) -> Array:
    """The derivative of these scores in Z, n × C × T m; added to `out` where that is given.

    `partitions` are those of `part_scores`.
    With a `step`, n × T m, it is for the way from z - step / 2 to z + step / 2: shares have their
    mean and their mean slope there, so that no hand-over is stepped over.
    """
    from rflaf.fused.jit_parts import slope_rows

    m, *rest = _given(partitions, z)
    step = np.broadcast_to(np.asarray(step, z.dtype), z.shape)
    if out is None:
        out = np.zeros((len(z), partitions.coef.shape[2], z.shape[1]), z.dtype)

    def task(rows: slice) -> None:
        some = np.ascontiguousarray(z[rows])
        ones = np.ones((len(some), 1), z.dtype), np.ones((z.shape[1], 1), z.dtype)
        features = some, apply(sigma, some), slope(sigma, some, ones)
        given = *features, np.ascontiguousarray(step[rows])
        slope_rows(*(flat(each) for each in given), m, *rest, flat(out[rows], True), len(some))

    for_all_rows(task, z.shape, _CHUNK)
    return out


def _given(partitions: PartModels, z: Array) -> tuple[Any, ...]:
    """The features of a partition, and partitions as the kernels take them."""
    cuts, widths, coef = (flat(np.ascontiguousarray(each)) for each in partitions)
    trees, nodes = partitions.cuts.shape
    return z.shape[1] // trees, cuts, widths, nodes, coef, partitions.coef.shape[2]
