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

from rflaf import fused
from rflaf.solvers.features import check_finite, features, project
from rflaf.solvers.gcv import gcv_losses, spectrum_of_sums
from rflaf.solvers.linalg import factorise, solve_positive, whiten

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


@dataclass(frozen=True)
class Posterior:
    """What the rows leave unknown.

    Attributes
    ----------
    noise : array of C
        Standard deviation of the targets about the model: the residual over the degrees of
        freedom that are left.
    factor : array, (M + 1) × (M + 1), or None
        |factor phi|² is the variance of the prediction for phi, in units of the noise's.
    """

    noise: Float64
    factor: NDArray[np.float32] | None


def posterior(
    sums: NormalEquations, weights: Float64, alpha: float, fit_intercept: bool, with_factor: bool
) -> Posterior:
    """The noise, and the covariance of output weights that solve `sums` with the penalty alpha."""
    count = max(sums.weight, sums.rows)
    degrees, root = min(len(sums.gram), count / 2), None
    if with_factor:
        factor = factorise(sums.penalised(alpha, fit_intercept))
        inverse = whiten(factor, np.eye(len(factor)))
        # trace of (gram / weight) (gram / weight + alpha)^-1
        degrees = float(np.einsum("ij,ij->", inverse @ (sums.gram / sums.weight), inverse))
        root = (inverse / np.sqrt(count)).astype(np.float32)
    free = max(count - degrees, 1.0)
    return Posterior(np.sqrt(sums.loss(weights) * count / free), root)


def prediction_spread(
    sigma: fused.Sigma, x: Any, w: Array, factor: Array, fit_intercept: bool
) -> Array:
    """The standard deviation of new observations at rows x, in units of the noise's."""
    phi = features(sigma, project(x, w), float(fit_intercept))
    known = phi.astype(np.float32) @ factor.T
    return np.sqrt(1 + np.sum(known**2, axis=1))


def choose_penalty(
    folds: list[NormalEquations], start: float, fit_intercept: bool
) -> tuple[float, list[dict[str, float]]]:
    """The penalty for all rows, from the sums of their folds, and what was tried.

    Of two folds the second is the validation part; several are a cross-validation. A single one
    leaves generalised cross-validation.
    """
    everything = sum(folds[1:], folds[0])
    if len(folds) == 1:
        m = len(everything.gram) - 1
        size = np.trace(everything.gram) / everything.weight / m
        alphas = size * 10.0 ** np.arange(-6, 2.5, 0.5)
        losses = gcv_losses(spectrum_of_sums(everything, fit_intercept), alphas)
        path = [{"alpha": float(a), "loss": float(q)} for a, q in zip(alphas, losses)]
        return float(alphas[losses.argmin()]), path
    if len(folds) == 2:
        pairs = [(folds[0], folds[1])]
    else:
        pairs = [(everything - held, held) for held in folds]
    pairs = [(fit, held) for fit, held in pairs if fit.rows and held.rows]
    return choose_alpha(pairs, start, fit_intercept=fit_intercept)
