"""Generalised cross-validation: the training error over the squared share of freedom left.

It needs the eigenvalues of the features' second moments and how much of the target lies along each
eigenvector, from the rows themselves or from sums over them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, special

from rflaf.arrays import Array, Float64


class Spectrum(NamedTuple):
    """The second moments of features, and the targets along their eigenvectors."""

    values: Float64
    inside: Float64  # the targets' mean square along each, summed over outputs
    outside: float  # what no feature reaches
    n_rows: float
    spent: int  # degrees of freedom of the intercept


def spectrum_of_rows(phi: Float64, y: Float64, weights: Array, fit_intercept: bool) -> Spectrum:
    """From features, n × M, by their singular values.

    Near interpolation the residual is many orders below the target, and a difference of sums would
    be rounding alone.
    """
    share = weights / weights.sum()
    if fit_intercept:
        phi, y = phi - share @ phi, y - share @ y
    root = np.sqrt(share)[:, None]
    left, scale, _ = linalg.svd(phi * root, full_matrices=False)
    target = y * root
    along = left.T @ target
    outside = float(np.sum((target - left @ along) ** 2))
    return Spectrum(scale**2, np.sum(along**2, axis=1), outside, len(y), int(fit_intercept))


def spectrum_of_sums(equations: Any, fit_intercept: bool) -> Spectrum:
    """From normal equations, whose last row and column belong to the intercept."""
    m = len(equations.gram) - 1
    gram, moment = equations.gram / equations.weight, equations.moment / equations.weight
    square = equations.square / equations.weight
    if fit_intercept:  # centre with the sums of the column of ones
        means, target = gram[m, :m], moment[m]
        gram, moment = gram[:m, :m] - np.outer(means, means), moment[:m] - np.outer(means, target)
        square = square - target**2
    else:
        gram, moment = gram[:m, :m], moment[:m]
    values, vectors = linalg.eigh(gram)
    seen = values > 1e-13 * max(float(values[-1]), 0.0)
    values = np.where(seen, values, 0.0)
    along = np.where(seen, np.sum((vectors.T @ moment) ** 2, axis=1), 0.0)
    inside = np.divide(along, values, out=np.zeros_like(values), where=seen)
    outside = max(float(square.sum() - inside.sum()), 0.0)
    count = max(equations.weight, equations.rows)  # a row of weight 2 is two rows
    return Spectrum(values, inside, outside, count, int(fit_intercept))


def gcv_losses(spectrum: Spectrum, alphas: Array) -> Float64:
    """The criterion for each penalty, times a bound on how much it may flatter."""
    values = spectrum.values
    rank = values > 1e-13 * max(float(values.sum()), 1e-300)
    unseen = float(np.sum(spectrum.inside[~rank])) + spectrum.outside
    rest = max(spectrum.n_rows - spectrum.spent - np.count_nonzero(rank), 0.0)
    losses = []
    for alpha in np.asarray(alphas, dtype=float):
        left_over = alpha / np.maximum(values[rank] + alpha, 1e-300)
        error = unseen + float(np.sum(left_over**2 * spectrum.inside[rank]))
        free, square = rest + left_over.sum(), rest + np.sum(left_over**2)
        share = max(free / spectrum.n_rows, 1e-12)
        losses.append(error / share**2 * caution(free**2 / max(square, 1e-30)))
    return np.array(losses)


def caution(degrees: float) -> float:
    """A 95 % bound on the factor by which an error with few degrees of freedom is too small.

    Where next to none are left, the residual is sometimes small by chance alone, and the luckiest
    of several candidates would be taken.
    """
    half = max(degrees, 0.1) / 2
    return float(half / max(special.gammaincinv(half, 0.05), 1e-30))
