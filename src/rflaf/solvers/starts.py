"""Where learning starts from, and all there is to choose where rows are few."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special

from rflaf import fused
from rflaf.solvers.ridge import NormalEquations, check_finite
from rflaf.solvers.sketches import Sketch, apply_metric, features

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Metric = Literal["full", "diagonal", "none"]

FILL = 0.6  # standard deviation of Z at the start: L has room to grow before Z leaves [-2, 2]
_FREQUENCIES = (0.3, 1.1, 2.2, 4.5, 9.0)  # of the activation to start from; 0.3: nearly linear
_ALPHAS = 10.0 ** np.arange(-6, 1)
_SHARES = 10.0 ** np.arange(-8, 1.5, 0.5)  # penalties, in units of the features' total variance


@dataclass(frozen=True)
class Learned:
    """The activation's coefficients, the metric, the penalty, and how they were found.

    `metric` is d × d, a vector of d, or a number, and applies to the inputs as they were given.
    """

    coefficients: Float64
    metric: Float64
    alpha: float
    history: list[dict[str, float]] = field(default_factory=list)


def compiled(basis: Any, a: Float64) -> fused.Sigma:
    """The activation with coefficients a, for the fused kernels."""
    if basis.tail == "direct":
        return fused.Direct(basis, a)
    return fused.basis_layout(basis).table(a)


def start_on_sketch(
    sketch: Sketch,
    basis: Any,
    coefficients: Array | None,
    metric: Metric,
    alpha: float | None,
    scales: Array | None,
    fit_intercept: bool,
) -> Learned:
    """The best of a few activations, scales and penalties, judged on one small sketch."""
    penalties = _ALPHAS if alpha is None else np.array([alpha])
    best, chosen = np.inf, None
    for a, metric_start in _candidates(basis, coefficients, metric, sketch.x_fit.shape[1], scales):
        losses = sketch_losses(compiled(basis, a), metric_start, penalties, sketch, fit_intercept)
        if chosen is None or losses.min() < best:
            best, chosen = losses.min(), Learned(a, metric_start, float(penalties[losses.argmin()]))
    assert chosen is not None
    return chosen


def start_on_few_rows(
    x: Any,
    y: Array,
    basis: Any,
    *,
    metric: Metric,
    projection: Array,
    weights: Array,
    coefficients: Array | None = None,
    alpha: float | None = None,
    scales: Array | None = None,
    fit_intercept: bool = True,
) -> Learned:
    """The best of the same, by generalised cross-validation over all rows.

    For rows too few to hold any out, and too few for more than a scale of each input's own.
    """
    if metric == "full":
        metric = "diagonal"
    x, y, weights = _distinct_rows(x, np.asarray(y, np.float64), weights)
    best, chosen = np.inf, None
    for a, metric_start in _candidates(basis, coefficients, metric, x.shape[1], scales):
        w = apply_metric(metric_start, projection).astype(projection.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            phi = features(compiled(basis, a), x, w)[1][:, :-1].astype(np.float64)
            if not np.isfinite(np.square(phi).sum()):
                continue
        penalties, losses = _few_rows_losses(phi, y, weights, alpha, fit_intercept)
        # rounding must not decide: the largest penalty of those that are as good
        at = np.flatnonzero(losses <= (1 + 1e-6) * losses.min())[-1]
        if chosen is None or losses[at] < (1 - 1e-6) * best:
            best, chosen = losses[at], Learned(a, metric_start, float(penalties[at]))
    if chosen is None:
        check_finite(np.inf)
    assert chosen is not None
    return chosen


def _distinct_rows(x: Any, y: Float64, weights: Array) -> tuple[Array, Float64, Float64]:
    """Rows that differ, with the sums of their weights.

    So that a row of weight 2 is the same as two rows, and the weights' unit is of no account.
    """
    used = weights > 0
    x = x[used].toarray() if sparse.issparse(x) else x[used]
    both, place = np.unique(np.hstack([x, y[used]]), axis=0, return_inverse=True)
    total = np.zeros(len(both))
    np.add.at(total, place.ravel(), weights[used] / weights.max())
    return both[:, : x.shape[1]].astype(x.dtype), both[:, x.shape[1] :], total


def sketch_losses(
    sigma: fused.Sigma, metric: Array, alphas: Array, sketch: Sketch, fit_intercept: bool
) -> Float64:
    """The held-out error for several penalties; infinite where the features overflow."""
    w = apply_metric(metric, sketch.projection).astype(sketch.projection.dtype)
    sums = []
    for x, y, share in (sketch[:3], sketch[3:6]):
        sums.append(NormalEquations.empty(w.shape[1], y.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            phi = features(sigma, x, w)[1]
        largest = float(np.abs(phi).max())
        if not largest < 1e100:
            return np.full(len(alphas), np.inf)
        # products of float32 are faster, and overflow sooner
        sums[-1].add(phi if largest < 1e12 else phi.astype(np.float64), y, share)
    fit, held = sums
    return np.array([held.loss(fit.solve(a, fit_intercept)).mean() for a in alphas])


def _candidates(
    basis: Any, coefficients: Array | None, metric: Metric, d: int, scales: Array | None
) -> list[tuple[Float64, Float64]]:
    """Coefficients and metrics to start from.

    cos(f z) + sin(f z) gives the Gaussian kernel of bandwidth 1 / f: this is the usual choice of a
    bandwidth, as a place to start from.
    """
    metrics = [np.full(d, FILL / np.sqrt(max(d, 1)))]
    if scales is not None and np.ptp(scales) > 0:
        relative = scales / scales.max()
        metrics.append(relative * FILL / np.linalg.norm(relative))
    if metric == "full":
        metrics = [np.diag(each) for each in metrics]
    if coefficients is None:
        fits = [
            basis.fit(lambda z, f=f: np.cos(f * z) + np.sin(f * z), ridge=1e-8)
            for f in _FREQUENCIES
        ]
        return [(_unit_height(basis, a), each) for each in metrics for a in fits]
    grow = (1.0,) if metric == "none" else _FREQUENCIES
    return [(np.asarray(coefficients, np.float64), f * each) for each in metrics for f in grow]


def _few_rows_losses(
    phi: Float64, y: Float64, weights: Array, alpha: float | None, fit_intercept: bool
) -> tuple[Float64, Float64]:
    """Penalties, and generalised cross-validation for each.

    From singular values, and not from sums of squares: near interpolation the residual is many
    orders below the target, and a difference of sums would be rounding alone.
    """
    share = weights / weights.sum()
    if fit_intercept:
        phi, y = phi - share @ phi, y - share @ y
    root = np.sqrt(share)[:, None]
    left, scale, _ = linalg.svd(phi * root, full_matrices=False)
    values = scale**2
    target = y * root
    inside = left.T @ target
    outside = np.sum((target - left @ inside) ** 2)
    total = values.sum() if values.sum() > 1e-12 else 1.0
    penalties = np.array([alpha]) if alpha is not None else total * _SHARES
    count = len(y)
    rank = np.count_nonzero(values > 1e-13 * total)
    losses = []
    for penalty in penalties:
        left_over = penalty / (values[:rank] + penalty)
        error = outside + np.sum((left_over[:, None] * inside[:rank]) ** 2)
        error += np.sum(inside[rank:] ** 2)
        rest = max(count - fit_intercept - rank, 0.0)
        free, square = rest + left_over.sum(), rest + np.sum(left_over**2)
        losses.append(
            error / max(free / count, 1e-12) ** 2 * _caution(free**2 / max(square, 1e-30))
        )
    return penalties, np.array(losses)


def _caution(degrees: float) -> float:
    """What to multiply an error by that so many degrees of freedom tell of: a bound of 95 %.

    Where next to none are left over, the residual is small by chance alone now and then, and
    of several candidates the luckiest would be taken.
    """
    half = max(degrees, 0.1) / 2
    return float(half / max(special.gammaincinv(half, 0.05), 1e-30))


def _unit_height(basis: Any, a: Float64) -> Float64:
    at = np.linspace(basis.low, basis.high, 257)
    return a / max(float(np.sqrt(np.mean(basis.combine(a, at) ** 2))), 1e-30)
