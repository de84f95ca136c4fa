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
from scipy import sparse

from rflaf import fused
from rflaf.arrays import Array, Float64
from rflaf.rows import Block
from rflaf.solvers.features import (
    Projected,
    Workspace,
    apply_metric,
    check_finite,
    features,
    project,
    pull_back,
)
from rflaf.solvers.linalg import factorise, solve_factored


class Size(NamedTuple):
    """The size of a sketch."""

    features: int
    fit_rows: int
    held_out_rows: int


class Sketch(NamedTuple):
    """Rows to fit on, rows held out, and a random projection."""

    fit: Block
    held_out: Block
    projection: Array

    def reduced(self, size: Size) -> Sketch:
        """Fewer features and rows to fit on, with the same rows held out."""
        rows = slice(None, None, max(len(self.fit.weights) // size.fit_rows, 1))
        projection = np.ascontiguousarray(self.projection[:, : size.features])
        return self._replace(fit=self.fit.at(rows), projection=projection)


@dataclass(frozen=True)
class Problem:
    """What an activation and a metric are learned from.

    Attributes
    ----------
    rows : Block
        Inputs in their form, an array, sparse matrix or BinnedMatrix, n × d, each column of about
        unit scale; targets, n × C, centred and of about unit scale; and weights.
    projection : array, d × M
        The model's W. Sketches take some of its columns, and keep its ratio of rows to features
        where that is cheap enough, for the best activation depends on it.
    scales : array of d, optional
        What the columns of x were divided by. Undoing that is tried too: it suits inputs that have
        one unit, such as pixels.
    """

    rows: Block
    projection: Array
    scales: Array | None = None


class Sampler:
    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        x, self.y, self.weights = problem.rows[1:4]
        self.x = x.tocsr() if sparse.issparse(x) else x
        self.rng = rng
        dtype = np.float64 if x.dtype == np.float64 else np.float32
        self.projection = problem.projection.astype(dtype)
        self.rows = np.flatnonzero(self.weights > 0)

    def draw(self, size: Size) -> Sketch:
        """Other rows and columns at every call."""
        both = size.fit_rows + size.held_out_rows
        wanted = min(both, len(self.rows))
        rows = self.rng.choice(self.rows, wanted, replace=False)
        split = round(wanted * size.fit_rows / both)
        sides = np.sort(rows[:split]), np.sort(rows[split:])
        w, columns = self.projection, None
        if size.features < w.shape[1]:
            columns = self.rng.choice(w.shape[1], size.features, replace=False)
            w = np.ascontiguousarray(w[:, columns])
        fit, held_out = (
            Block(0, self._inputs(side, columns), self.y[side], self.weights[side])
            for side in sides
        )
        return Sketch(fit, held_out, w)

    def know(self, w: Array) -> None:
        """Take Z = X W from now on, of which nothing is to be learned, in the place of X."""
        self.x = Projected(project(self.x, w.astype(self.projection.dtype)))

    def _inputs(self, rows: Array, columns: Array | None) -> Any:
        return self.x.at(rows, columns) if isinstance(self.x, Projected) else self.x[rows]


def held_out_loss(
    sigma: fused.Sigma,
    metric: Array,
    alpha: float,
    sketch: Sketch,
    fit_intercept: bool = True,
    learn_metric: bool = True,
    space: Workspace | None = None,
) -> tuple[float, Float64, Array, float]:
    """J, and its gradients for the coefficients, the metric (0 where not asked) and log alpha."""
    ridge, slopes = sketch_ridge(sigma, metric, sketch, fit_intercept, space)
    known = ridge.gradients(alpha)
    if known is None:
        check_finite(ridge.trace)
        raise ValueError("The matrix to factorise is not finite.")
    by_metric = np.zeros(())
    if learn_metric:
        rows = zip((sketch.fit.x, sketch.held_out.x), slopes)
        by_input = sum(pull_back(x, by_z) for x, by_z in rows)
        full = np.ndim(metric) == 2
        by_metric = np.einsum("dm,em->de" if full else "dm,dm->d", by_input, sketch.projection)
    return known.loss, known.coefficients, np.asarray(by_metric), known.log_alpha


def sketch_ridge(
    sigma: fused.Sigma,
    metric: Array,
    sketch: Sketch,
    fit_intercept: bool,
    space: Workspace | None = None,
) -> tuple[fused.HeldOut | PlainHeldOut, list[Array]]:
    """Ridge solutions of a sketch, and its two Z, which the gradients for Z will replace."""
    space = Workspace() if space is None else space
    dtype = sketch.projection.dtype
    w = apply_metric(metric, sketch.projection).astype(dtype)
    sides = []
    for name, block in (("z fit", sketch.fit), ("z held out", sketch.held_out)):
        x, weights = block.x, block.weights
        z = project(x, w, space.array(name, (x.shape[0], w.shape[1]), dtype))
        sides.append(fused.HeldOutRows(z, block.y, weights / weights.sum()))
    (fit, held_out), constant = sides, float(fit_intercept)
    if isinstance(sigma, fused.Table) and dtype == np.float32:
        return fused.HeldOut(sigma, fit, held_out, constant, space.array), [fit.z, held_out.z]
    return PlainHeldOut(sigma, fit, held_out, constant), [fit.z, held_out.z]


class PlainHeldOut:
    """`fused.HeldOut` in NumPy and float64: for activations without a table, or in float64."""

    def __init__(
        self,
        sigma: fused.Sigma,
        fit: fused.HeldOutRows,
        held_out: fused.HeldOutRows,
        constant: float,
    ) -> None:
        self._sigma, self._sides = sigma, (fit, held_out)
        with np.errstate(over="ignore", invalid="ignore"):  # the trace tells
            self._phi = [
                features(sigma, side.z, constant).astype(np.float64) for side in (fit, held_out)
            ]
            weighted = self._phi[0] * fit.share[:, None]
            self._gram, self._right = self._phi[0].T @ weighted, weighted.T @ fit.y
        trace = float(np.trace(self._gram))
        # the model will compute them in the precision of Z, where they would overflow sooner
        self.trace = trace if trace < float(np.finfo(fit.z.dtype).max) else np.inf

    def loss(self, alpha: float) -> float:
        """J for a penalty; infinite where the features overflow."""
        if not np.isfinite(self.trace):
            return np.inf
        return self._solved(alpha)[2]

    def gradients(self, alpha: float) -> fused.Gradients | None:
        """J and its gradients; those for Z take the place of Z. None: not finite."""
        if not np.isfinite(self.trace):
            return None
        (fit, held_out), (phi, others) = self._sides, self._phi
        factor, v, loss, error = self._solved(alpha)
        pull = 2 * held_out.share[:, None] * error / error.shape[1]
        q = solve_factored(factor, others.T @ pull)
        share = fit.share[:, None]
        left = np.hstack([share * (fit.y - phi @ v), -share * (phi @ q)])
        upstream = (left, np.hstack([q[:-1], v[:-1]])), (pull, v[:-1])
        coefficients = np.zeros(())
        for side, factors in zip(self._sides, upstream):
            given = tuple(part.astype(side.z.dtype) for part in factors)
            coefficients = coefficients + fused.adjoint(self._sigma, side.z, given)
            fused.slope(self._sigma, side.z, given, out=side.z)
        by_log_alpha = -alpha * float(np.sum(q[:-1] * v[:-1]))
        return fused.Gradients(loss, np.asarray(coefficients), by_log_alpha)

    def _solved(self, alpha: float) -> tuple[Float64, Float64, float, Float64]:
        """The factor, the output weights, J, and the errors."""
        held_out, size = self._sides[1], len(self._gram)
        floor = 1e-9 * self.trace / size + 1e-30
        diagonal = np.full(size, max(alpha, floor))
        diagonal[-1] = floor
        factor = factorise(self._gram + np.diag(diagonal))
        v = solve_factored(factor, self._right)
        error = self._phi[1] @ v - held_out.y
        loss = float(held_out.share @ np.mean(error**2, axis=1))
        return factor, v, loss if np.isfinite(loss) else np.inf, error
