"""Ridge regression from sums over rows.

The problem is min over V, b of  sum_i w_i |y_i - V' phi_i - b|² / sum_i w_i + alpha |V|².
All it needs of the data are sums over rows, taken block by block in float64; streaming, sample
weights and distributed fits are the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rflaf.solvers.result import Solution

Array = NDArray[Any]
Float64 = NDArray[np.float64]


@dataclass
class NormalEquations:
    """The sums: of w, and of w times the products of (features, 1) with themselves and with y."""

    gram: Float64  # (M + 1) × (M + 1); the last row and column belong to the intercept
    moment: Float64  # (M + 1) × C
    square: Float64  # C: sum of w y²
    weight: float
    rows: int

    @classmethod
    def empty(cls, m: int, n_outputs: int) -> NormalEquations:
        shape = (m + 1, m + 1)
        return cls(np.zeros(shape), np.zeros((m + 1, n_outputs)), np.zeros(n_outputs), 0.0, 0)

    def add(self, phi: Array, y: Array, weights: Array | None = None) -> None:
        """Add rows: `phi` is n × (M + 1) with ones in its last column, y is n × C.

        The products of a block are taken in the features' own precision.
        """
        if weights is None:
            left, weighted_y = phi, y
            self.weight += len(y)
        else:
            root = np.sqrt(weights).astype(phi.dtype)[:, None]
            left, weighted_y = phi * root, y * weights[:, None]
            self.weight += float(np.sum(weights, dtype=np.float64))
        self.gram += left.T @ left
        self.moment += phi.T @ weighted_y.astype(phi.dtype)
        self.square += np.einsum("nc,nc->c", y, weighted_y, dtype=np.float64)
        self.rows += len(y) if weights is None else int(np.count_nonzero(weights))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
            self.weight + other.weight,
            self.rows + other.rows,
        )

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram - other.gram,
            self.moment - other.moment,
            self.square - other.square,
            self.weight - other.weight,
            self.rows - other.rows,
        )

    def penalised(self, alpha: float, fit_intercept: bool = True) -> Float64:
        """gram / weight + alpha, but for the intercept."""
        m = len(self.gram) - 1
        matrix = self.gram / self.weight
        matrix[np.arange(m), np.arange(m)] += alpha
        if not fit_intercept:
            matrix[m, :] = matrix[:, m] = 0
            matrix[m, m] = 1
        return matrix

    def solve(self, alpha: float, fit_intercept: bool = True) -> Float64:
        """The weights, (M + 1) × C, intercept last."""
        check_finite(np.trace(self.gram))
        right = self.moment / self.weight
        if not fit_intercept:
            right[-1] = 0
        return solve_positive(self.penalised(alpha, fit_intercept), right)

    def loss(self, weights: Float64) -> Float64:
        """The mean squared error of each output, for weights from anywhere."""
        cross = np.einsum("mc,mc->c", weights, self.moment)
        model = np.einsum("mc,mc->c", weights, self.gram @ weights)
        return np.maximum(self.square - 2 * cross + model, 0) / self.weight


class FeatureOverflow(ValueError):
    """Features, or sums of their products, are not finite."""


def check_finite(number: float) -> None:
    """Raise where features have overflowed on the way into a sum."""
    if not np.isfinite(number):
        raise FeatureOverflow(
            "The features overflow: the activation is too large on some rows, as high powers are. "
            "Take another basis, such as Chebyshev polynomials, or fewer powers."
        )


def solve_positive(matrix: Float64, right: Float64) -> Float64:
    """Solve with a symmetric matrix that should be positive definite; `matrix` is overwritten.

    Cholesky where it works. Where rounding has made the matrix indefinite, its eigenvalues: those
    below rounding are left out, which gives the solution of least norm.
    """
    try:
        factor = linalg.cho_factor(matrix.copy(), lower=True, overwrite_a=True)
        solution = linalg.cho_solve(factor, right)
        if np.isfinite(solution).all():
            return solution
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(matrix, overwrite_a=True)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ right)


def cholesky_with_floor(matrix: Float64, floor: float = 0.0) -> Float64:
    """The lower factor of matrix + floor, with the least floor (in powers of ten) that will do."""
    least = 1e-12 * float(np.trace(matrix)) / len(matrix) + 1e-30
    while True:
        try:
            return linalg.cholesky(matrix + floor * np.eye(len(matrix)), lower=True)
        except linalg.LinAlgError:  # noqa: PERF203 - rare, and a few times at most
            floor = max(10 * floor, least)


def choose_alpha(
    pairs: list[tuple[NormalEquations, NormalEquations]],
    start: float,
    *,
    fit_intercept: bool = True,
    step: float = 4.0,
    most: int = 24,
) -> tuple[float, list[dict[str, float]]]:
    """The penalty with the least error on held-out rows, by walking from `start`.

    `pairs` has the sums of the rows to fit to and of those held out: one pair, or one for each
    fold of a cross-validation. Steps by the factor `step` in whichever direction the error falls,
    until it rises: the price of each step is a factorisation, never another pass over the rows.
    """
    tried: dict[int, float] = {}

    def loss(k: int) -> float:
        if k not in tried:
            alpha = start * step**k
            losses = [held.loss(fit.solve(alpha, fit_intercept)).mean() for fit, held in pairs]
            tried[k] = float(np.mean(losses))
        return tried[k]

    best, direction = 0, -1 if loss(-1) < loss(0) else 1
    total = sum(np.trace(fit.gram) / fit.weight for fit, _ in pairs) / len(pairs)
    least = 1e-10 * float(total) / len(pairs[0][0].gram)  # below, rounding decides
    while len(tried) < most and loss(best + direction) < loss(best):
        best += direction
        if start * step ** (best + direction) < least:
            break
    path = [{"alpha": start * step**k, "loss": tried[k]} for k in sorted(tried)]
    return start * step**best, path


def ridge_path(
    equations: NormalEquations, alphas: Array, fit_intercept: bool = True
) -> list[Solution]:
    """Solutions for several penalties from one Gram matrix."""
    solutions = []
    for alpha in np.asarray(alphas, dtype=float):
        weights = equations.solve(float(alpha), fit_intercept)
        solutions.append(Solution(weights[:-1], weights[-1], float(alpha)))
    return solutions


def leave_one_out_losses(
    phi: Array, y: Array, alphas: Array, weights: Array | None = None, fit_intercept: bool = True
) -> Float64:
    """The mean squared error of leaving out one row at a time, for each penalty, in closed form.

    One singular value decomposition of the features serves all penalties. `phi` is n × M, without
    a column of ones. A row left out does not change the total weight that `alpha` refers to.
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    w = w / w.sum()
    x, t = np.asarray(phi, np.float64), np.asarray(y, np.float64)
    root = np.sqrt(w)[:, None]
    mean_leverage = np.zeros(len(t))
    if fit_intercept:
        x, t = x - w @ x, t - w @ t
        mean_leverage = w
    left, scale, _ = linalg.svd(x * root, full_matrices=False)
    target = t * root
    projected = left.T @ target
    losses = []
    for alpha in np.asarray(alphas, dtype=float):
        shrink = scale**2 / (scale**2 + alpha) if alpha else (scale > 1e-12).astype(float)
        residual = target - left @ (shrink[:, None] * projected)
        leverage = (left**2) @ shrink + mean_leverage
        losses.append(np.sum((residual / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))
    return np.array(losses) / t.shape[1]


def gcv_losses(equations: NormalEquations, alphas: Array, fit_intercept: bool = True) -> Float64:
    """Generalised cross-validation for each penalty: training error over (1 - degrees / n)².

    It needs the sums alone, and one eigenvalue decomposition for all penalties.
    """
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
    values, rotated = np.maximum(values, 0), vectors.T @ moment
    losses = []
    for alpha in np.asarray(alphas, dtype=float):
        inverse = 1 / np.maximum(values + alpha, 1e-300)
        solution = rotated * inverse[:, None]
        explained = np.sum((2 * rotated - values[:, None] * solution) * solution, axis=0)
        error = square - explained
        count = max(equations.weight, equations.rows)  # a row of weight 2 is two rows
        free = 1 - (np.sum(values * inverse) + fit_intercept) / count
        losses.append(np.mean(np.maximum(error, 0)) / max(free, 1e-12) ** 2)
    return np.array(losses)
