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

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf import fused
from rflaf.solvers.features import apply_metric, check_finite, features, project
from rflaf.solvers.linalg import factorise, solve_factored

Array = NDArray[Any]
Float64 = NDArray[np.float64]


class Sketch(NamedTuple):
    """Rows to fit on, rows to judge by, and a random projection."""

    x_fit: Any
    y_fit: Array
    weights_fit: Array
    x_held: Any
    y_held: Array
    weights_held: Array
    projection: Array


class Size(NamedTuple):
    """Of a sketch."""

    features: int
    fit_rows: int
    held_rows: int


@dataclass(frozen=True)
class Problem:
    """What an activation and a metric are learned from.

    Attributes
    ----------
    x : array or sparse matrix, n × d
        Inputs, each column of about unit scale.
    y : array, n × C
        Targets, centred and of about unit scale.
    weights : array, n
    projection : array, d × M
        The model's W. Sketches take some of its columns, and keep its ratio of rows to features
        where that is cheap enough, for the best activation depends on it.
    scales : array of d, optional
        What the columns of x were divided by. Undoing that is tried too: it suits inputs that have
        one unit, such as pixels.
    """

    x: Any
    y: Array
    weights: Array
    projection: Array
    scales: Array | None = None

    def at(self, rows: Array) -> Problem:
        """The same for some of the rows."""
        return replace(self, x=self.x[rows], y=self.y[rows], weights=self.weights[rows])


class Sampler:
    """Draws sketches."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        x = problem.x
        self.x = x.tocsr() if sparse.issparse(x) else x
        self.y, self.weights, self.rng = problem.y, problem.weights, rng
        dtype = np.float64 if x.dtype == np.float64 else np.float32
        self.projection = problem.projection.astype(dtype)
        self.rows = np.flatnonzero(problem.weights > 0)

    def draw(self, size: Size) -> Sketch:
        wanted = min(size.fit_rows + size.held_rows, len(self.rows))
        rows = self.rng.choice(self.rows, wanted, replace=False)
        split = round(wanted * size.fit_rows / (size.fit_rows + size.held_rows))
        fit, held = np.sort(rows[:split]), np.sort(rows[split:])
        w = self.projection
        if size.features < w.shape[1]:
            columns = self.rng.choice(w.shape[1], size.features, replace=False)
            w = np.ascontiguousarray(w[:, columns])
        parts = [(self.x[r], self.y[r], self.weights[r]) for r in (fit, held)]
        return Sketch(*parts[0], *parts[1], w)


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
    z_fit, z_held = project(sketch.x_fit, w), project(sketch.x_held, w)
    phi_fit, phi_held = (features(sigma, z, float(fit_intercept)) for z in (z_fit, z_held))
    m, outputs = w.shape[1], sketch.y_fit.shape[1]
    share_fit = (sketch.weights_fit / sketch.weights_fit.sum())[:, None]
    share_held = (sketch.weights_held / (sketch.weights_held.sum() * outputs))[:, None]

    root = np.sqrt(share_fit).astype(dtype)
    factor = _factor(phi_fit * root, alpha)
    right = phi_fit.T @ (share_fit * sketch.y_fit).astype(dtype)
    v = solve_factored(factor, right)
    error = phi_held @ v.astype(dtype) - sketch.y_held
    loss = float(np.sum(share_held * error**2))
    pull = (2 * share_held * error).astype(dtype)
    q = solve_factored(factor, phi_held.T @ pull)

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


def _factor(weighted: Array, alpha: float) -> Float64:
    """The factor of Phi'Phi + alpha, but for the intercept.

    The products are taken in float64: in float32 their error can be as large as alpha, however
    short the sums, and then the gradient is wrong and the descent climbs.
    """
    wide = weighted.astype(np.float64)
    matrix = wide.T @ wide
    check_finite(np.trace(matrix))
    m = len(matrix) - 1
    floor = 1e-9 * np.trace(matrix) / (m + 1) + 1e-30
    matrix[np.arange(m), np.arange(m)] += max(alpha, floor)
    matrix[m, m] += floor
    return factorise(matrix)
