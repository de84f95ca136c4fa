"""Ridge solutions of a sketch, their errors on other rows and the gradients, in numba.

One call does what NumPy would need some sixty for. That matters less for the time of a call than
for the GIL: threads that take and release it at every small product wait for one another, and two
of them were hardly faster than one. `reference.held_out` is what this computes, and has the same
letters; w = m + 1.
"""

from __future__ import annotations

import numpy as np

from rflaf.fused.jit import backward_rows, compiled, inlined, internal
from rflaf.fused.jit_blas import (
    factorise,
    features_times,
    gram_of,
    solve_factored,
    transposed_times,
)
from rflaf.fused.jit_memory import clear, copied, zeros
from rflaf.fused.jit_vectors import COPIES

_RANGE = 3 << 15  # elements whose sums are in float32
_STEPS, _TOL = 8, 1e-4  # of conjugate gradients that undo the rounding of a matrix in float32
_LEAST = 1e-11  # of the mean of the diagonal: the first floor that is tried


@internal
def _factor(blas, gram, share, diagonal, floor, w, matrix):
    """The Cholesky factor of share Gram + diagonal; False where nothing is finite.

    Where rounding has made the matrix indefinite, the floor is raised tenfold until it serves.
    """
    mean = 0.0
    for k in range(w):
        mean += abs(share * gram[k * w + k] + diagonal[k]) / w
    if not np.isfinite(mean) or not np.isfinite(floor):
        return False
    while np.isfinite(floor):
        for j in range(w):
            row, found = gram[j * w + j : (j + 1) * w], matrix[j * w + j : (j + 1) * w]
            for k in range(row.size):
                found[k] = share * row[k]
            found[0] += diagonal[j] + floor
        if factorise(blas, matrix, w):
            return True
        floor = max(10 * floor, _LEAST * mean + 1e-30)
    return False


@internal
def _products(one, other, w, found):
    """The dot products of rows of w numbers, one by one."""
    for c in range(found.size):
        total = 0.0
        for k in range(c * w, (c + 1) * w):
            total += one[k] * other[k]
        found[c] = total


@internal
def _times_system(blas, phi, share, diagonal, n, w, p, outputs, image, middle):
    """(share Phi' Phi + diagonal) p into `image`, and Phi p into `middle`, in float32."""
    found = zeros(w * outputs, np.float32)
    features_times(blas, phi, n, w, copied(p, np.float32), outputs, middle)
    transposed_times(blas, phi, n, w, middle, outputs, found)
    for c in range(outputs):
        for k in range(w):
            i = c * w + k
            image[i] = share * found[i] + diagonal[k] * p[i]


@internal
def _solve(blas, phi, share, diagonal, matrix, n, w, right, outputs, fitted):
    """A solution by the factor, refined by conjugate gradients; Phi times it goes to `fitted`."""
    x, image, z = (
        copied(right, np.float64),
        zeros(right.size, np.float64),
        zeros(right.size, np.float64),
    )
    size, end = zeros(outputs, np.float64), zeros(outputs, np.float64)
    curve = zeros(outputs, np.float64)
    solve_factored(blas, matrix, w, x, outputs)
    _times_system(blas, phi, share, diagonal, n, w, x, outputs, image, fitted)
    r = zeros(right.size, np.float64)
    for i in range(r.size):
        r[i] = right[i] - image[i]
    p = copied(r, np.float64)
    solve_factored(blas, matrix, w, p, outputs)
    _products(r, p, w, size)
    _products(right, x, w, end)
    steps = 0
    while steps < _STEPS:
        enough = True
        for c in range(outputs):
            enough &= size[c] <= _TOL * _TOL * end[c]
        if enough:
            break
        steps += 1
        _times_system(blas, phi, share, diagonal, n, w, p, outputs, image, fitted)
        _products(p, image, w, curve)
        for i in range(r.size):
            length = size[i // w] / max(curve[i // w], 1e-300)
            x[i] += length * p[i]
            r[i] -= length * image[i]
            z[i] = r[i]
        solve_factored(blas, matrix, w, z, outputs)
        for c in range(outputs):
            curve[c] = size[c]
        _products(r, z, w, size)
        for i in range(r.size):
            p[i] = z[i] + size[i // w] / max(curve[i // w], 1e-300) * p[i]
    if steps:
        features_times(blas, phi, n, w, copied(x, np.float32), outputs, fitted)
    return x


@inlined
def _shared_out(share, values, outputs):
    """Rows of numbers times the shares of the rows."""
    found = zeros(values.size, np.float32)
    for r in range(share.size):
        for c in range(outputs):
            found[r * outputs + c] = share[r] * values[r * outputs + c]
    return found


@compiled
def sketch_sums(blas, phi, y, share, outputs, weighted, gram, right):
    """Phi' D Phi and Phi' D y for the shares D; returns what the first is to be multiplied by.

    Where the rows have different shares, `weighted` becomes the features times their roots.
    """
    n, w = share.size, phi.size // share.size
    transposed_times(blas, phi, n, w, _shared_out(share, y, outputs), outputs, right)
    if not weighted.size:
        gram_of(blas, phi, n, w, gram)
        return share[0]
    for r in range(n):
        root = np.float32(np.sqrt(share[r]))
        row, target = phi[r * w : (r + 1) * w], weighted[r * w : (r + 1) * w]
        for k in range(w):
            target[k] = root * row[k]
    gram_of(blas, weighted, n, w, gram)
    return 1.0


@compiled
def add_triangle(gram, other, w):
    """Add the part of a Gram matrix that is filled."""
    for j in range(w):
        row, more = gram[j * w + j : (j + 1) * w], other[j * w + j : (j + 1) * w]
        for k in range(row.size):
            row[k] += more[k]


@internal
def sketch_system(gram, unit, alpha, w):
    """What a penalty adds to the diagonal, and rounding; the intercept has no penalty."""
    trace = 0.0
    for k in range(w):
        trace += unit * gram[k * w + k]
    floor = 1e-9 * trace / w + 1e-30
    diagonal = zeros(w, np.float64)
    for k in range(w):
        diagonal[k] = max(alpha, floor)
    diagonal[w - 1] = floor
    return diagonal, 1e-7 * trace / w


@compiled
def sketch_loss(blas, gram, right, unit, alpha, matrix, phi_held, y_held, share_held, outputs):
    """The error on held-out rows of the solution for a penalty; infinite where it overflows.

    The solution is that of the Gram matrix, whatever rounding has done to it.
    """
    w, n = right.size // outputs, share_held.size
    diagonal, floor = sketch_system(gram, unit, alpha, w)
    if not _factor(blas, gram, unit, diagonal, 0.1 * floor, w, matrix):
        return np.inf
    v = copied(right, np.float64)
    solve_factored(blas, matrix, w, v, outputs)
    error = zeros(n * outputs, np.float32)
    features_times(blas, phi_held, n, w, copied(v, np.float32), outputs, error)
    total = 0.0
    for r in range(n):
        for c in range(outputs):
            apart = np.float64(error[r * outputs + c]) - y_held[r * outputs + c]
            total += share_held[r] * apart * apart
    return total if np.isfinite(total) else np.inf


@compiled
def sketch_pulls(
    blas, sums, alpha, y_fit, share_fit, phi_fit, weighted, y_held, share_held, phi_held, outputs,
    matrix, of_fit, of_held,
):  # fmt: skip
    """J, its gradient for alpha, and whether all was finite.

    `sums` are the Gram matrix, its unit and the right side. The gradients for the features are
    products of two factors each: `of_fit` gets n × 2C and 2C rows of m numbers, and `of_held`, for
    the rows held out, n × C and C rows.
    """
    gram, unit, right = sums
    n, held = share_fit.size, share_held.size
    w = phi_fit.size // n
    m = w - 1
    diagonal, floor = sketch_system(gram, unit, alpha, w)
    if not _factor(blas, gram, unit, diagonal, floor, w, matrix):
        return 0.0, 0.0, False
    phi = weighted if weighted.size else phi_fit
    back, fitted = zeros(n * outputs, np.float32), zeros(n * outputs, np.float32)
    v = _solve(blas, phi, unit, diagonal, matrix, n, w, copied(right, np.float64), outputs, fitted)
    v_single, error = copied(v, np.float32), of_held[0]
    features_times(blas, phi_held, held, w, v_single, outputs, error)
    loss = 0.0
    for r in range(held):
        for c in range(outputs):
            i = r * outputs + c
            error[i] -= y_held[i]
            loss += share_held[r] * error[i] ** 2
            error[i] *= 2 * share_held[r]  # from here on the pull
    pulled = zeros(w * outputs, np.float32)
    transposed_times(blas, phi_held, held, w, error, outputs, pulled)
    q = _solve(blas, phi, unit, diagonal, matrix, n, w, copied(pulled, np.float64), outputs, back)
    by_alpha = 0.0
    for c in range(outputs):
        for k in range(m):
            by_alpha -= q[c * w + k] * v[c * w + k]
            of_fit[1][c * m + k] = q[c * w + k]
            of_fit[1][(outputs + c) * m + k] = of_held[1][c * m + k] = v[c * w + k]
    if weighted.size:
        features_times(blas, phi_fit, n, w, v_single, outputs, fitted)
        features_times(blas, phi_fit, n, w, copied(q, np.float32), outputs, back)
    for r in range(n):
        for c in range(outputs):
            i = r * outputs + c
            of_fit[0][2 * r * outputs + c] = share_fit[r] * (y_fit[i] - fitted[i])
            of_fit[0][(2 * r + 1) * outputs + c] = -share_fit[r] * back[i]
    return loss, by_alpha, True


@compiled
def add_cell_sums(z, m, cells, frame, left, right, own, moments, tails):
    """Add the sums of g, gt, gt², gt³ over the cells, for g of two factors, a range after another.

    g sigma'(z) takes the place of z. `own` has room for the sums of a range.
    """
    rank, step, n = right.size // m, max(1, _RANGE // m), z.size // m
    for start in range(0, n, step):
        rows = min(step, n - start)
        part, factors = z[start * m :], left[start * rank :]
        clear(own)
        upstream, sums = (None, 0, factors, right), (own, tails)
        backward_rows(part, m, m, cells, frame, *upstream, *sums, part, m, rows)
        for cell in range(moments.shape[0]):
            for k in range(4):
                for copy in range(COPIES):
                    moments[cell, k] += own[cell, copy, k]
