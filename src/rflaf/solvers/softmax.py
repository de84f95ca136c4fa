"""Multinomial logistic regression on features, and a joint refinement with the activation.

Features of a random layer are strongly correlated, and plain L-BFGS crawls along the narrow valleys
that this makes. The unknowns are therefore changed by the Cholesky factor of the features' second
moments, after which a few dozen steps do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rflaf import fused
from rflaf.solvers.result import Solution

Array = NDArray[Any]
Float64 = NDArray[np.float64]

KEPT_BYTES = 1 << 30  # of Z or of features; beyond that they are computed again when needed


class Rows:
    """Inputs, the layer they go through, the classes of the rows as numbers, and their weights."""

    def __init__(
        self,
        x: Any,
        w: Array,
        target: NDArray[np.intp],
        weights: Array,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.x, self.w, self.target, self.weights = x, w, target, weights
        step = max(1, (1 << 23) // max(w.shape[1], 1))
        self.blocks = [slice(k, min(k + step, len(target))) for k in range(0, len(target), step)]
        self.small = len(target) * w.shape[1] * w.itemsize <= kept_bytes
        self._z: list[tuple[Array, Array, Array]] = []
        self._phi: list[tuple[Array, Array, Array]] = []

    def __len__(self) -> int:
        return len(self.target)

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return float(self.weights.sum())

    def inputs(self) -> Iterator[tuple[Any, Array, Array]]:
        """Inputs, classes and weights of each block."""
        for block in self.blocks:
            yield self.x[block], self.target[block], self.weights[block]

    def parts(self, keep: bool = True) -> Iterator[tuple[Array, Array, Array]]:
        """Z, classes and weights of each block; Z is kept for the next time, if there is room."""
        if self._z:
            yield from self._z
            return
        made = []
        for x, target, weights in self.inputs():
            part = np.asarray(x @ self.w), target, weights
            if keep and self.small:
                made.append(part)
            yield part
        self._z = made

    def keep_features(self, sigma: fused.Sigma, intercept: bool) -> None:
        """Compute them once, for a sigma that stays, where there is room."""
        self._phi = []
        if self.small:
            parts = self.parts(keep=False)
            self._phi = [(features(sigma, z, intercept), t, u) for z, t, u in parts]

    def forget_features(self) -> None:
        self._phi = []

    def slopes(
        self, v: Array, sigma: fused.Sigma, intercept: bool, by_sigma: bool
    ) -> tuple[float, Float64, Float64]:
        """The mean loss for output weights v, its gradient in v and in sigma's coefficients.

        The last is zero unless asked for. Features that were kept are taken for sigma's otherwise.
        """
        loss, by_v, by_a = 0.0, np.zeros(v.shape), np.zeros(sigma.basis.n)
        total = self.weight
        kept = not by_sigma and bool(self._phi)
        for first, target, weights in self._phi if kept else self.parts():
            phi = first if kept else features(sigma, first, intercept)
            part, slope = cross_entropy(phi @ v, target, weights)
            share = float(weights.sum()) / total
            slope = (slope * share).astype(phi.dtype)
            loss += part * share
            by_v += phi.T @ slope
            if by_sigma:
                by_a += fused.adjoint(sigma, first, (slope, v[:-1]))
        return loss, by_v, by_a


class StreamedRows(Rows):
    """The same for rows that come in blocks, as often as they are asked for.

    Parameters
    ----------
    blocks : callable
        Begins a pass over (inputs, classes, weights).
    count, weight : int, float
        Of all rows together.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterable[tuple[Any, Array, Array]]],
        w: Array,
        count: int,
        weight: float,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        nothing = np.zeros(0, np.intp)
        super().__init__(np.zeros((0, w.shape[0])), w, nothing, np.zeros(0))
        self._begin, self._count, self._weight = blocks, count, weight
        self.small = count * w.shape[1] * w.itemsize <= kept_bytes

    def __len__(self) -> int:
        return self._count

    @property
    def weight(self) -> float:
        return self._weight

    def inputs(self) -> Iterator[tuple[Any, Array, Array]]:
        yield from self._begin()


def features(sigma: fused.Sigma, z: Array, intercept: bool) -> Array:
    """sigma(Z), and a column of ones behind it, or of zeros without an intercept."""
    phi = np.full((len(z), z.shape[1] + 1), float(intercept), z.dtype)
    fused.apply(sigma, z, out=phi[:, :-1])
    return phi


def cross_entropy(
    scores: Array, target: Array, weights: Array, with_gradient: bool = True
) -> tuple[float, Array]:
    """The weighted mean of -log p, and its gradient in the scores.

    One column of scores stands for two classes: the first has the score 0.
    """
    full = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    log_p = log_softmax(full.astype(np.float64), axis=1)
    share = weights / weights.sum()
    rows = np.arange(len(target))
    loss = -float(share @ log_p[rows, target])
    if not with_gradient:
        return loss, scores
    gradient = np.exp(log_p)
    gradient[rows, target] -= 1
    gradient *= share[:, None]
    return loss, gradient[:, 1:] if scores.shape[1] == 1 else gradient


class _Problem:
    """Loss and gradient in changed unknowns, block by block."""

    def __init__(
        self, sigma: fused.Sigma, rows: Rows, alpha: float, factor: Float64, intercept: bool
    ) -> None:
        self.sigma, self.rows, self.alpha = sigma, rows, alpha
        self.factor, self.intercept = factor, intercept

    def weights(self, unknowns: Float64) -> Float64:
        return linalg.solve_triangular(self.factor, unknowns, lower=True, trans="T")

    def evaluate(
        self, unknowns: Float64, sigma: fused.Sigma | None = None
    ) -> tuple[float, Float64, Float64]:
        """The loss, its gradient in the unknowns, and (with a sigma) in its coefficients."""
        v = self.weights(unknowns)
        loss, by_v, by_a = self.rows.slopes(
            v.astype(self.rows.w.dtype), sigma or self.sigma, self.intercept, sigma is not None
        )
        loss += self.alpha * float(np.sum(v[:-1] ** 2))
        by_v[:-1] += 2 * self.alpha * v[:-1]
        if not self.intercept:
            by_v[-1] = 0
        return loss, linalg.solve_triangular(self.factor, by_v, lower=True), by_a


def fit_softmax(
    sigma: fused.Sigma,
    every: Rows,
    fit: Rows,
    held: Rows,
    n_classes: int,
    *,
    alpha: float | None = None,
    fit_intercept: bool = True,
    refine: bool = True,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> tuple[Solution, fused.Sigma]:
    """Output weights for classes 0 ... n_classes - 1, and the activation, refined with them.

    Penalties are tried from large to small, each started from the last one's solution, until the
    cross-entropy of the held-out rows rises. Then coefficients and weights are refined together,
    which is kept where the held-out rows like it. Last, the weights are fitted to all rows.

    Parameters
    ----------
    sigma : Table or Direct
    every, fit, held : Rows
        All rows for the last fit; those to fit to while choosing, and those that choose. With no
        held-out rows, `alpha` must be given.
    alpha : float, optional
        A penalty to keep.
    """
    outputs = 1 if n_classes == 2 else n_classes
    factor = _factor(sigma, fit, fit_intercept)
    unknowns = np.zeros((fit.w.shape[1] + 1, outputs))
    if alpha is not None:
        alphas: Array = np.array([alpha])
    else:
        alphas = 10.0 ** np.arange(-1, -7.75, -0.5)
    problem = _Problem(sigma, fit, float(alphas[0]), factor, fit_intercept)
    fit.keep_features(sigma, fit_intercept)
    best, path = np.inf, []
    chosen, chosen_unknowns = float(alphas[0]), unknowns
    for each in alphas:
        problem.alpha = float(each)
        unknowns, steps = _minimise(problem, unknowns, max_iter, tol)
        loss = _held_loss(sigma, held, problem.weights(unknowns), fit_intercept)
        path.append({"alpha": float(each), "loss": loss, "steps": steps})
        if loss < best:
            best, chosen, chosen_unknowns = loss, float(each), unknowns
        elif loss > 1.002 * best:
            break
    fit.forget_features()
    problem.alpha = chosen
    if refine and isinstance(sigma, fused.Table) and len(held):
        better = _refine(problem, chosen_unknowns, held, best, max_iter // 2)
        if better is not None:
            sigma, chosen_unknowns, refined = better
            path.append({"alpha": chosen, "loss": refined, "refined": True})
    v = problem.weights(chosen_unknowns)
    if isinstance(every, StreamedRows):
        # A step is a pass over all rows, and blocks must not matter: fewer steps, to a closer end.
        factor, tol = _factor(sigma, fit, fit_intercept, v, chosen), 0.01 * tol
    last = _Problem(sigma, every, chosen, factor, fit_intercept)
    every.keep_features(sigma, fit_intercept)
    unknowns, _ = _minimise(last, factor.T @ v, max_iter, tol)
    v = last.weights(unknowns)
    return Solution(v[:-1], v[-1] * fit_intercept, chosen, path), sigma


def fit_few(
    phi: Array, target: Array, weights: Array, n_classes: int, alpha: float, fit_intercept: bool
) -> Solution:
    """The same problem for a few rows, solved to rounding by Newton's method.

    The weights lie in the span of the rows, so that as many unknowns as rows do.
    """
    left, scale, right = linalg.svd(phi.astype(np.float64), full_matrices=False)
    kept = scale > 1e-12 * max(scale[0], 1e-300)
    kept[0] = True  # all features may be zero
    model = LogisticRegression(
        C=1 / (2 * alpha * weights.sum()),
        fit_intercept=fit_intercept,
        solver="newton-cholesky",
        tol=1e-12,
        max_iter=1000,
    )
    with warnings.catch_warnings():  # it stops at rounding, short of so small a tolerance
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        model.fit(left[:, kept] * scale[kept], target, sample_weight=weights)
    coef = right[kept].T @ model.coef_.T
    intercept = np.atleast_1d(model.intercept_) * fit_intercept
    if len(model.classes_) < n_classes:
        coef, intercept = _with_absent_classes(coef, intercept, model.classes_, n_classes)
    return Solution(coef, intercept, alpha)


def _with_absent_classes(
    coef: Float64, intercept: Float64, present: Array, n_classes: int
) -> tuple[Float64, Float64]:
    """Columns for all classes; those without a row get a probability of nearly nothing."""
    if len(present) == 2:  # one column, the log-odds of the second
        coef, intercept = coef * [[-0.5, 0.5]], intercept * np.array([-0.5, 0.5])
    every = np.zeros((len(coef), n_classes))
    offsets = np.full(n_classes, -30.0)
    every[:, present], offsets[present] = coef, intercept
    return every, offsets


def _factor(
    sigma: fused.Sigma,
    rows: Rows,
    fit_intercept: bool,
    v: Float64 | None = None,
    alpha: float = 0.0,
) -> Float64:
    """Lower Cholesky factor of the features' second moments, with a floor under them.

    With output weights v and a penalty, it is nearly that of the loss's curvature there: rows count
    by p (1 - p), on average over the outputs.
    """
    m = rows.w.shape[1]
    moments = np.zeros((m + 1, m + 1))
    total = max(len(rows), 1) if v is None else rows.weight
    for z, _, weights in rows.parts():
        phi = features(sigma, z, fit_intercept)
        if v is not None:
            p = _probabilities(phi @ v.astype(phi.dtype))
            phi *= np.sqrt(weights * np.mean(p * (1 - p), axis=1))[:, None]
        moments += phi.T @ phi
    moments /= total
    moments[np.arange(m), np.arange(m)] += 2 * alpha
    floor = (1e-6 if v is None else 1e-9) * np.trace(moments) / (m + 1) + 1e-12
    while True:
        moments[np.diag_indices(m + 1)] += floor
        try:
            return linalg.cholesky(moments, lower=True)
        except linalg.LinAlgError:  # the rounding of float32 products
            floor *= 10


def _probabilities(scores: Array) -> Array:
    """One column for each output: of two classes there is one."""
    return expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)


def _minimise(problem: _Problem, start: Float64, max_iter: int, tol: float) -> tuple[Float64, int]:
    def value(flat: Float64) -> tuple[float, Float64]:
        loss, gradient, _ = problem.evaluate(flat.reshape(start.shape))
        return loss, gradient.ravel()

    found = optimize.minimize(
        value,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": tol, "gtol": tol, "maxcor": 20},
    )
    return found.x.reshape(start.shape), int(found.nit)


def _refine(
    problem: _Problem, unknowns: Float64, held: Rows, best: float, max_iter: int
) -> tuple[fused.Sigma, Float64, float] | None:
    """Weights and coefficients together, from where they are; the best step on held-out rows."""
    table = problem.sigma
    assert isinstance(table, fused.Table)
    height = float(np.sqrt(np.mean(table.coefficients**2)))
    size = unknowns.size
    kept: list[tuple[fused.Sigma, Float64, float]] = []

    def split(flat: Float64) -> tuple[Float64, fused.Table]:
        return flat[:size].reshape(unknowns.shape), table.layout.table(flat[size:] * height)

    def value(flat: Float64) -> tuple[float, Float64]:
        u, sigma = split(flat)
        loss, by_u, by_a = problem.evaluate(u, sigma)
        return loss, np.concatenate([by_u.ravel(), by_a * height])

    def judge(flat: Float64) -> None:
        u, sigma = split(flat)
        loss = _held_loss(sigma, held, problem.weights(u), problem.intercept)
        if loss < (kept[-1][2] if kept else best):
            kept.append((sigma, u, loss))

    optimize.minimize(
        value,
        np.concatenate([unknowns.ravel(), table.coefficients / height]),
        jac=True,
        method="L-BFGS-B",
        callback=judge,
        options={"maxiter": max_iter, "ftol": 1e-7, "maxcor": 20},
    )
    return kept[-1] if kept else None


def _held_loss(sigma: fused.Sigma, held: Rows, v: Float64, fit_intercept: bool) -> float:
    if not len(held):
        return 0.0
    scores = fused.predict_inputs(sigma, held.x, held.w, v[:-1]) + v[-1] * fit_intercept
    return cross_entropy(scores, held.target, held.weights, with_gradient=False)[0]
