"""Sketches of a problem, and the held-out error of their ridge solution with its gradient.

For given coefficients a, metric L and penalty alpha, the output weights are a ridge solution on
rows T, and what decides is its error J on other rows H. With the features Phi = sigma(X L W) and
a column of ones behind them, A = Phi_T'Phi_T / n_T + alpha, A V = Phi_T'y_T / n_T,
R = Phi_H V - y_H and A Q = (2 / n_H) Phi_H'R, the gradient of J = |R|² / n_H is

    dJ/dPhi_H = (2 / n_H) R V',   dJ/dPhi_T = ((y_T - Phi_T V) Q' - (Phi_T Q) V') / n_T,
    dJ/dalpha = -sum of Q ∘ V,

all of low rank, so that the fused kernels turn them into the gradients for a and L without another
n × M matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rflaf import fused
from rflaf.solvers.ridge import check_finite

Array = NDArray[Any]
Float64 = NDArray[np.float64]


class Sketch(NamedTuple):
    """Rows to fit on, rows to judge by, and a random projection."""

    x_fit: Any
    y_fit: Array
    w_fit: Array
    x_held: Any
    y_held: Array
    w_held: Array
    projection: Array


@dataclass(frozen=True)
class Plan:
    """Sizes of the sketches of one stage, and its rates."""

    steps: int
    features: int
    fit_rows: int
    held_rows: int
    rate: float


class Sampler:
    """Draws sketches."""

    def __init__(
        self, x: Any, y: Array, weights: Array, projection: Array, rng: np.random.Generator
    ) -> None:
        self.x = x.tocsr() if sparse.issparse(x) else x
        self.y, self.weights, self.rng = y, weights, rng
        self.projection = projection.astype(np.float64 if x.dtype == np.float64 else np.float32)
        self.rows = np.flatnonzero(weights > 0)

    def draw(self, plan: Plan) -> Sketch:
        wanted = min(plan.fit_rows + plan.held_rows, len(self.rows))
        rows = self.rng.choice(self.rows, wanted, replace=False)
        split = round(wanted * plan.fit_rows / (plan.fit_rows + plan.held_rows))
        fit, held = np.sort(rows[:split]), np.sort(rows[split:])
        w = self.projection
        if plan.features < w.shape[1]:
            columns = self.rng.choice(w.shape[1], plan.features, replace=False)
            w = np.ascontiguousarray(w[:, columns])
        parts = [(self.x[r], self.y[r], self.weights[r]) for r in (fit, held)]
        return Sketch(*parts[0], *parts[1], w)


def apply_metric(metric: Array, projection: Array) -> Array:
    """L W for a full, diagonal or scalar L."""
    if np.ndim(metric) == 2:
        return np.asarray(metric @ projection)
    return np.asarray(np.reshape(metric, (-1, 1)) * projection)


def features(sigma: fused.Sigma, x: Any, w: Array) -> tuple[Array, Array]:
    """Z = X W, and sigma(Z) with a column of ones behind it."""
    z = np.asarray(x @ w)
    phi = np.ones((z.shape[0], z.shape[1] + 1), z.dtype)
    fused.apply(sigma, z, out=phi[:, :-1])
    return z, phi


def held_out_loss(
    sigma: fused.Sigma,
    metric: Array,
    alpha: float,
    sketch: Sketch,
    fit_intercept: bool = True,
    learn_metric: bool = True,
) -> tuple[float, Float64, Array, float]:
    """J, and its gradients for the coefficients, the metric (0 where not asked) and log alpha."""
    dtype = sketch.projection.dtype
    w = apply_metric(metric, sketch.projection).astype(dtype)
    z_fit, phi_fit = features(sigma, sketch.x_fit, w)
    z_held, phi_held = features(sigma, sketch.x_held, w)
    m, outputs = w.shape[1], sketch.y_fit.shape[1]
    if not fit_intercept:
        phi_fit[:, m] = phi_held[:, m] = 0
    share_fit = (sketch.w_fit / sketch.w_fit.sum())[:, None]
    share_held = (sketch.w_held / (sketch.w_held.sum() * outputs))[:, None]

    root = np.sqrt(share_fit).astype(dtype)
    factor = _factorise(phi_fit * root, alpha)
    right = phi_fit.T @ (share_fit * sketch.y_fit).astype(dtype)
    v = linalg.cho_solve(factor, right.astype(np.float64), check_finite=False)
    error = phi_held @ v.astype(dtype) - sketch.y_held
    loss = float(np.sum(share_held * error**2))
    pull = (2 * share_held * error).astype(dtype)
    q = linalg.cho_solve(factor, (phi_held.T @ pull).astype(np.float64), check_finite=False)

    v_m, q_m = v[:m].astype(dtype), q[:m].astype(dtype)
    residual = sketch.y_fit - phi_fit @ v.astype(dtype)
    back = -(phi_fit @ q.astype(dtype))
    from_fit = ((share_fit * np.hstack([residual, back])).astype(dtype), np.hstack([q_m, v_m]))
    from_held = (pull, v_m)
    coefficients = fused.adjoint(sigma, z_fit, from_fit) + fused.adjoint(sigma, z_held, from_held)
    log_alpha = -alpha * float(np.sum(q[:m] * v[:m]))
    if not learn_metric:
        return loss, coefficients, np.zeros(()), log_alpha
    slope_fit = fused.slope(sigma, z_fit, from_fit, out=z_fit)
    slope_held = fused.slope(sigma, z_held, from_held, out=z_held)
    by_input = np.asarray(sketch.x_fit.T @ slope_fit) + np.asarray(sketch.x_held.T @ slope_held)
    if np.ndim(metric) == 2:
        return loss, coefficients, by_input @ sketch.projection.T, log_alpha
    return loss, coefficients, np.einsum("dm,dm->d", by_input, sketch.projection), log_alpha


def _factorise(weighted: Array, alpha: float) -> Any:
    """The Cholesky factor of Phi'Phi + alpha, raising alpha where rounding needs it.

    The products are taken in float64: in float32 their error can be as large as alpha, however
    short the sums, and then the gradient is wrong and the descent climbs.
    """
    wide = weighted.astype(np.float64)
    matrix = wide.T @ wide
    check_finite(np.trace(matrix))
    m = len(matrix) - 1
    floor = 1e-9 * np.trace(matrix) / (m + 1) + 1e-30
    while True:
        trial = matrix.copy()
        trial[np.arange(m), np.arange(m)] += max(alpha, floor)
        trial[m, m] += floor
        try:
            return linalg.cho_factor(trial, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            floor *= 10
