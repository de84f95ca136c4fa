"""Multinomial logistic regression on features.

Features of a random layer are strongly correlated, and plain L-BFGS crawls along the narrow valleys
that this makes. The unknowns are therefore changed by a Cholesky factor of (nearly) the loss's
curvature. The first step from zero is then the ridge solution, and one or two dozen do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rflaf import fused
from rflaf.rows import Block, Rows
from rflaf.solvers.features import KeptBlocks, check_finite, features, project
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, whiten
from rflaf.solvers.result import Solution

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Part = tuple[Array, Array, Array]  # features, classes and weights of a block

_STEP = 4.0  # from one penalty that is tried to the next
_MOST_TRIED = 10  # penalties
# A rougher loss while choosing leaves the weights where the last penalty had them, and then all
# penalties look the same.
_ROUGH, _FINE = 1e-5, 1e-6  # how far from its least the loss may be, while choosing and at the end


def cross_entropy(scores: Array, target: Array, weights: Array) -> tuple[float, Array]:
    """The weighted mean of -log p, and its gradient in the scores.

    One column of scores stands for two classes: the first has the score 0.
    """
    full = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    log_p = log_softmax(full.astype(np.float64), axis=1)
    share = weights / weights.sum()
    rows = np.arange(len(target))
    loss = -float(share @ log_p[rows, target])
    gradient = np.exp(log_p)
    gradient[rows, target] -= 1
    gradient *= share[:, None]
    return loss, gradient[:, 1:] if scores.shape[1] == 1 else gradient


def probabilities(scores: Array) -> Array:
    """One column for each output: of two classes there is one."""
    return expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)


@dataclass(frozen=True)
class ClassRows:
    """Rows of known classes on their way to features.

    Attributes
    ----------
    rows : Rows
    weight : float
        Of all rows together.
    size : int
        Rows of a block.
    prepare : callable, optional
        Makes standardised inputs and classes as numbers of a block as it is read. None where rows
        have both already.
    """

    rows: Rows
    weight: float
    size: int
    prepare: Callable[[Block], Block] | None = None


@dataclass(frozen=True)
class Features:
    """sigma(X W), and behind it a constant: 1 for an intercept, 0 for none."""

    sigma: fused.Sigma
    w: Array
    constant: float
    prepare: Callable[[Block], Block] | None
    kept: KeptBlocks

    def parts(self, blocks: Iterable[Block]) -> Iterator[Part]:
        """Features, classes and weights of each block."""
        for number, block in enumerate(blocks):
            size = len(block.weights) * (self.w.shape[1] + 3) * self.w.itemsize
            part = self.kept.get(number, size, partial(self._make, block))
            yield self._make(block) if part is None else part

    def _make(self, block: Block) -> Part:
        ready = block if self.prepare is None else self.prepare(block)
        phi = features(self.sigma, project(ready.x, self.w), self.constant)
        return phi, ready.y, ready.weights


@dataclass(frozen=True)
class Slopes:
    """The sum of the losses for output weights v, and its gradient."""

    features: Features
    v: Array

    def __call__(self, blocks: Iterable[Block]) -> tuple[float, Float64]:
        loss, by_v = 0.0, np.zeros(self.v.shape)
        for phi, target, weights in self.features.parts(blocks):
            total = float(weights.sum())
            if total > 0:
                part, slope = cross_entropy(phi @ self.v, target, weights)
                loss += part * total
                by_v += phi.T @ (slope * total).astype(phi.dtype)
        return loss, by_v


@dataclass(frozen=True)
class Curvature:
    """The sum of p (1 - p) phi phi', on average over the outputs, for output weights v."""

    features: Features
    v: Array

    def __call__(self, blocks: Iterable[Block]) -> Float64:
        total = np.zeros((len(self.v), len(self.v)))
        for phi, _, weights in self.features.parts(blocks):
            p = probabilities(phi @ self.v)
            root = np.sqrt(weights * np.mean(p * (1 - p), axis=1))[:, None].astype(phi.dtype)
            left = phi * root
            total += left.T @ left
        return total


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other))
    return one + other


class Objective:
    """The mean cross-entropy over rows plus alpha |v|², as a function of the output weights."""

    def __init__(
        self, sigma: fused.Sigma, w: Array, rows: ClassRows, fit_intercept: bool, room: int
    ) -> None:
        self.rows, self.fit_intercept, self.shape = rows, fit_intercept, w.shape
        self._features = Features(sigma, w, float(fit_intercept), rows.prepare, KeptBlocks(room))
        self._dtype = w.dtype

    def loss(self, v: Float64, alpha: float = 0.0) -> tuple[float, Float64]:
        """The loss and its gradient, with the penalty."""
        task = Slopes(self._features, v.astype(self._dtype))
        loss, by_v = self.rows.rows.reduce(task, _add, self.rows.size)
        loss, by_v = loss / self.rows.weight, by_v / self.rows.weight
        by_v[:-1] += 2 * alpha * v[:-1]
        if not self.fit_intercept:
            by_v[-1] = 0
        return loss + alpha * float(np.sum(v[:-1] ** 2)), by_v

    def curvature(self, v: Float64) -> Float64:
        """The mean of p (1 - p) phi phi'."""
        task = Curvature(self._features, v.astype(self._dtype))
        total = self.rows.rows.reduce(task, _add, self.rows.size) / self.rows.weight
        check_finite(float(np.trace(total)))
        if not self.fit_intercept:
            total[-1, -1] = 1.0
        return total

    def solve(
        self,
        curvature: Float64,
        alpha: float,
        start: Float64,
        tol: float,
        max_iter: int,
        least: int = 0,
    ) -> tuple[Float64, int]:
        """Output weights with a loss within `tol` of the least, relatively; and steps taken."""
        matrix = curvature.copy()
        m = len(matrix) - 1
        floor = 1e-6 * float(np.trace(matrix)) / (m + 1) + 1e-12
        matrix[np.diag_indices(m + 1)] += floor
        matrix[np.arange(m), np.arange(m)] += 2 * alpha
        factor = factorise(matrix)

        def value(unknowns: Float64) -> tuple[float, Float64]:
            loss, by_v = self.loss(whiten(factor, unknowns, transposed=True), alpha)
            return loss, whiten(factor, by_v)

        found, steps = minimise(value, np.tril(factor).T @ start, tol, max_iter, least)
        return whiten(factor, found, transposed=True), steps


@dataclass(frozen=True)
class SoftmaxSettings:
    """How to solve it.

    Attributes
    ----------
    n_classes : int
    alpha : float, optional
        A penalty to keep.
    start_alpha : float
        The penalty to try first.
    room : int
        Bytes in which features may be kept between passes.
    """

    n_classes: int
    alpha: float | None = None
    start_alpha: float = 1e-4
    fit_intercept: bool = True
    max_iter: int = 200
    room: int = 1 << 30
    tol: float = _FINE


def fit_softmax(
    sigma: fused.Sigma,
    w: Array,
    every: ClassRows,
    fit: ClassRows,
    held: ClassRows | None,
    settings: SoftmaxSettings,
) -> Solution:
    """Output weights for classes 0 ... n_classes - 1.

    Penalties are tried from `start_alpha` in whichever direction the cross-entropy of the held-out
    rows falls, each from the last one's solution. Then the weights are fitted to every row.

    Parameters
    ----------
    sigma : Table or Direct
    w : array, d × M
    every, fit, held : ClassRows
        All rows for the last fit; those to fit to while choosing, and those that choose. Without
        the last, `settings.alpha` must be given.
    """
    outputs = 1 if settings.n_classes == 2 else settings.n_classes
    problem = Objective(sigma, w, fit, settings.fit_intercept, settings.room)
    v = np.zeros((w.shape[1] + 1, outputs))
    curvature = problem.curvature(v)
    path: list[dict[str, Any]] = []
    alpha = settings.alpha
    if alpha is None:
        assert held is not None
        judge = Objective(sigma, w, held, settings.fit_intercept, settings.room // 4)
        alpha, v = _choose(problem, judge, curvature, v, settings, path)
    if every is not fit or alpha != settings.alpha:
        curvature = problem.curvature(v)
        problem = Objective(sigma, w, every, settings.fit_intercept, settings.room)
    v, _ = problem.solve(curvature, alpha, v, settings.tol, settings.max_iter)
    return Solution(v[:-1], v[-1] * settings.fit_intercept, alpha, path)


def _choose(
    problem: Objective,
    judge: Objective,
    curvature: Float64,
    v: Float64,
    settings: SoftmaxSettings,
    path: list[dict[str, Any]],
) -> tuple[float, Float64]:
    """The penalty with the least held-out loss, and its solution; adds what was tried to `path`."""
    found: dict[int, tuple[float, Float64]] = {}

    def loss(k: int, start: Float64) -> float:
        if k not in found and len(found) < _MOST_TRIED:
            alpha = settings.start_alpha * _STEP**k
            solution, steps = problem.solve(curvature, alpha, start, _ROUGH, settings.max_iter, 1)
            found[k] = judge.loss(solution)[0], solution
            path.append({"alpha": alpha, "loss": found[k][0], "steps": steps})
        return found[k][0] if k in found else np.inf

    best, direction = 0, -1
    loss(0, v)
    if not loss(-1, found[0][1]) < found[0][0]:
        direction = 1
    while loss(best + direction, found[best][1]) < found[best][0]:
        best += direction
    return settings.start_alpha * _STEP**best, found[best][1]


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
