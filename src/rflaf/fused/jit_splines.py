"""The compiled loops of `spline_sums`, in numba."""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import compiled, internal
from rflaf.fused.jit_memory import clear, zeros


@internal
def _locate(x, low, inverse, degree, n_cells):
    """The cell of x counted from the first knot, its place t there, and whether x is among them."""
    place = (x - low) * inverse + degree
    inside = place >= 0 and place <= n_cells
    held = min(max(place, 0.0), float(n_cells)) if place == place else 0.0
    cell = min(int(held), n_cells - 1)
    return cell, (place if place != place else held) - cell, inside


@internal
def _local(pieces, t, values, slopes):
    """The degree + 1 splines at t, and their derivatives in t."""
    degree = pieces.shape[0] - 1
    for p in range(degree + 1):
        value, slope = pieces[degree, p], 0.0
        for power in range(degree - 1, -1, -1):
            slope = slope * t + value
            value = value * t + pieces[power, p]
        values[p], slopes[p] = value, slope


@compiled
def spline_rows(x, low, inverse, pieces, c, out):
    """out (n × out) = sum over i, k of B_k(x_i) c_ik, with c of in × N × out"""
    degree, n_splines, n_outputs = pieces.shape[0] - 1, c.shape[1], c.shape[2]
    values, slopes = zeros(degree + 1, np.float64), zeros(degree + 1, np.float64)
    for r in range(x.shape[0]):
        target = out[r]
        clear(target)
        for i in range(x.shape[1]):
            cell, t, _ = _locate(x[r, i], low, inverse, degree, n_splines + degree)
            _local(pieces, t, values, slopes)
            for p in range(max(0, degree - cell), min(degree + 1, n_splines + degree - cell)):
                row, b = c[i, cell + p - degree], x.dtype.type(values[p])
                for j in range(n_outputs):
                    target[j] += b * row[j]


@compiled
def spline_gradient_rows(x, low, inverse, pieces, c, g, dx, dc):
    """The gradients for x, into `dx`, and for c, added to `dc`"""
    degree, n_splines, n_outputs = pieces.shape[0] - 1, c.shape[1], c.shape[2]
    values, slopes = zeros(degree + 1, np.float64), zeros(degree + 1, np.float64)
    for r in range(x.shape[0]):
        upstream = g[r]
        for i in range(x.shape[1]):
            cell, t, inside = _locate(x[r, i], low, inverse, degree, n_splines + degree)
            _local(pieces, t, values, slopes)
            total = 0.0 if t == t else t
            for p in range(max(0, degree - cell), min(degree + 1, n_splines + degree - cell)):
                row, sums = c[i, cell + p - degree], dc[i, cell + p - degree]
                b, dot = x.dtype.type(values[p]), x.dtype.type(0)
                for j in range(n_outputs):
                    sums[j] += b * upstream[j]
                    dot += row[j] * upstream[j]
                total += slopes[p] * dot
            dx[r, i] = total * inverse if inside or t != t else 0.0
