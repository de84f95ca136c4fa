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
from rflaf.fused.held_out import HeldOut, HeldOutRows
from rflaf.solvers.features import (
    Projected,
    Workspace,
    apply_metric,
    check_finite,
    features,
    project,
    pull_back,
)
from rflaf.solvers.linalg import factorise, refine, solve_factored

Array = NDArray[Any]
Float64 = NDArray[np.float64]


class Size(NamedTuple):
    """Of a sketch."""

    features: int
    fit_rows: int
    held_rows: int


class Sketch(NamedTuple):
    """Rows to fit on, rows to judge by, and a random projection."""

    x_fit: Any
    y_fit: Array
    weights_fit: Array
    x_held: Any
    y_held: Array
    weights_held: Array
    projection: Array

    def reduced(self, size: Size) -> Sketch:
        """Fewer features and rows to fit on, with the same rows to judge by."""
        rows = slice(None, None, max(len(self.weights_fit) // size.fit_rows, 1))
        return self._replace(
            x_fit=self.x_fit[rows],
            y_fit=self.y_fit[rows],
            weights_fit=self.weights_fit[rows],
            projection=np.ascontiguousarray(self.projection[:, : size.features]),
        )


@dataclass(frozen=True)
class Problem:
    """What an activation and a metric are learned from.

    Attributes
    ----------
    x : array, sparse matrix or BinnedMatrix, n × d
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
        w, columns = self.projection, None
        if size.features < w.shape[1]:
            columns = self.rng.choice(w.shape[1], size.features, replace=False)
            w = np.ascontiguousarray(w[:, columns])
        parts = [(self._inputs(r, columns), self.y[r], self.weights[r]) for r in (fit, held)]
        return Sketch(*parts[0], *parts[1], w)

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
    space = Workspace() if space is None else space
    if is_compiled(sigma, sketch):
        problem = held_out(sigma, metric, sketch, float(fit_intercept), space)
        found = problem.rows.gradients(alpha)
        if found is None:
            check_finite(problem.rows.trace)
            raise ValueError("The matrix to factorise is not finite.")
        by_metric = _by_metric(metric, sketch, problem.z) if learn_metric else np.zeros(())
        return found.loss, found.coefficients, by_metric, found.log_alpha
    return plain_held_out_loss(sigma, metric, alpha, sketch, fit_intercept, learn_metric, space)


def plain_held_out_loss(
    sigma: fused.Sigma,
    metric: Array,
    alpha: float,
    sketch: Sketch,
    fit_intercept: bool,
    learn_metric: bool,
    space: Workspace,
) -> tuple[float, Float64, Array, float]:
    """`held_out_loss` in NumPy, for any activation and precision, and what it means."""
    dtype = sketch.projection.dtype
    w = apply_metric(metric, sketch.projection).astype(dtype)
    m, outputs = w.shape[1], sketch.y_fit.shape[1]
    (z_fit, phi_fit), (z_held, phi_held) = (
        _features(sigma, x, w, float(fit_intercept), name, space)
        for name, x in (("fit", sketch.x_fit), ("held", sketch.x_held))
    )
    share_fit = (sketch.weights_fit / sketch.weights_fit.sum())[:, None]
    share_held = (sketch.weights_held / (sketch.weights_held.sum() * outputs))[:, None]

    system = _System(phi_fit, share_fit[:, 0], alpha, space)
    right = phi_fit.T @ (share_fit * sketch.y_fit).astype(dtype)
    v = system.solve(right)
    error = phi_held @ v.astype(dtype) - sketch.y_held
    loss = float(np.sum(share_held * error**2))
    pull = (2 * share_held * error).astype(dtype)
    q = system.solve(phi_held.T @ pull)

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
    by_metric = _by_metric(metric, sketch, (slope_fit, slope_held))
    return loss, coefficients, by_metric, log_alpha


def _by_metric(metric: Array, sketch: Sketch, slopes: tuple[Array, Array]) -> Array:
    """The gradient for the metric, from those for Z."""
    by_input = pull_back(sketch.x_fit, slopes[0]) + pull_back(sketch.x_held, slopes[1])
    if np.ndim(metric) == 2:
        return np.asarray(by_input @ sketch.projection.T)
    return np.asarray(np.einsum("dm,dm->d", by_input, sketch.projection))


def is_compiled(sigma: fused.Sigma, sketch: Sketch) -> bool:
    """Whether the compiled way takes a sketch."""
    return isinstance(sigma, fused.Table) and sketch.projection.dtype == np.float32


class HeldOutProblem(NamedTuple):
    """A sketch for the compiled way, and its Z, which the gradients for Z replace."""

    rows: HeldOut
    z: tuple[Array, Array]


def held_out(
    sigma: fused.Sigma, metric: Array, sketch: Sketch, constant: float, space: Workspace
) -> HeldOutProblem:
    """The features of a sketch and their sums; `constant` is 1 for an intercept, 0 for none."""
    assert isinstance(sigma, fused.Table)
    w = apply_metric(metric, sketch.projection).astype(np.float32)
    sides = []
    for name, x, y, weights in (
        ("z fit", sketch.x_fit, sketch.y_fit, sketch.weights_fit),
        ("z held", sketch.x_held, sketch.y_held, sketch.weights_held),
    ):
        z = project(x, w, space.array(name, (x.shape[0], w.shape[1]), np.float32))
        sides.append(HeldOutRows(z, y, weights / weights.sum()))
    rows = HeldOut(sigma, sides[0], sides[1], constant, space.array)
    return HeldOutProblem(rows, (sides[0].z, sides[1].z))


def _features(
    sigma: fused.Sigma, x: Any, w: Array, constant: float, name: str, space: Workspace
) -> tuple[Array, Array]:
    """Z and the features, in the memory of a name."""
    n, m = x.shape[0], w.shape[1]
    z = project(x, w, space.array(f"z {name}", (n, m), w.dtype))
    return z, features(sigma, z, constant, space.array(f"phi {name}", (n, m + 1), w.dtype))


class _System:
    """Phi' D Phi + alpha, but for the intercept, with the rows' shares in D.

    Where the features are float32, so are the products of the factor, which takes half the time.
    Their error can be as large as alpha, however short the sums, so solutions are refined with
    products of the features themselves; without that the gradient is wrong and the descent climbs.
    """

    def __init__(self, phi: Array, share: Array, alpha: float, space: Workspace) -> None:
        n, m = phi.shape
        self._weighted, self._share = phi, float(share[0])
        if np.ptp(share) > 0:
            root = np.sqrt(share).astype(phi.dtype)[:, None]
            self._weighted = np.multiply(phi, root, out=space.array("root", (n, m), phi.dtype))
            self._share = 1.0
        gram = space.array("gram", (m, m), phi.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # the trace tells
            np.matmul(self._weighted.T, self._weighted, out=gram)
        matrix = space.array("matrix", (m, m), np.float64)
        np.multiply(gram, self._share, out=matrix, dtype=np.float64)
        trace = float(np.trace(matrix))
        check_finite(trace)
        floor = 1e-9 * trace / m + 1e-30
        self._diagonal = np.full((m, 1), max(alpha, floor))
        self._diagonal[-1] = floor
        matrix[np.diag_indices(m)] += self._diagonal[:, 0]
        self._exact = phi.dtype == np.float64
        # the rounding of single products, as a part of the diagonal
        self._factor = factorise(matrix, 0.0 if self._exact else 1e-7 * trace / m)

    def solve(self, right: Array) -> Float64:
        right = right.astype(np.float64)
        if self._exact:
            return solve_factored(self._factor, right)
        return refine(self._product, self._factor, right)

    def _product(self, p: Float64) -> Float64:
        image = self._weighted.T @ (self._weighted @ p.astype(self._weighted.dtype))
        return self._share * image + self._diagonal * p
