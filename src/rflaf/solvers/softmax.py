"""Multinomial logistic regression on features.

Features of a random layer are strongly correlated, and plain L-BFGS crawls along the narrow valleys
that this makes. The unknowns are therefore changed by a Cholesky factor of (nearly) the loss's
curvature. The first step from zero is then the ridge solution, and one or two dozen do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from rflaf import fused
from rflaf.fused.logistic import class_slopes
from rflaf.rows import Block, Rows
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import KeptBlocks, check_finite, features, project
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, unwhiten, whiten
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import add_gram

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Part = tuple[Array, Array, Array]  # features, classes and weights of a block

_STEP = 4.0  # from one penalty that is tried to the next
_MOST_TRIED = 10  # penalties
_CHOOSING = 2  # models that choose the penalty of all
# A rougher loss while choosing leaves the weights where the last penalty had them, and then all
# penalties look the same.
_ROUGH, _FINE = 3e-5, 1e-6  # how far from its least the loss may be, while choosing and at the end
_FIRST = 1e-2  # the same, before the curvature is taken anew


def cross_entropy(scores: Array, target: Array, weights: Array) -> tuple[float, Array]:
    """The weighted mean of -log p, and its gradient in the scores.

    One column of scores stands for two classes: the first has the score 0.
    """
    share = weights / weights.sum()
    if scores.shape[1] == 1:
        odds = scores[:, 0].astype(np.float64)
        loss = float(share @ (np.logaddexp(0, odds) - odds * target))
        return loss, (share * (expit(odds) - target))[:, None]
    by_class = np.array(scores.T, np.float64, order="C")  # sums along long rows are fast
    by_class -= by_class.max(axis=0)
    rows = np.arange(len(target))
    own = by_class[target, rows]
    np.exp(by_class, out=by_class)
    total = by_class.sum(axis=0)
    loss = float(share @ (np.log(total) - own))
    by_class *= share / total
    by_class[target, rows] -= share
    return loss, by_class.T


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
    rotation: Array | None
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
        if self.rotation is not None:
            phi = np.hstack([phi[:, :-1] @ self.rotation, phi[:, -1:]])
        return phi, ready.y, ready.weights


@dataclass(frozen=True)
class Slopes:
    """The sum of the losses for output weights v, and its gradient."""

    features: Features
    v: Array

    def __call__(self, blocks: Iterable[Block]) -> tuple[float, Float64]:
        loss, by_v = 0.0, np.zeros(self.v.shape)
        for phi, target, weights in self.features.parts(blocks):
            part, slopes = class_slopes(phi, self.v, target, weights)
            loss, by_v = loss + part, by_v + slopes
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
            add_gram(total, phi * root)
        return total


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other))
    return one + other


class Objective:
    """The mean cross-entropy over rows plus alpha |v|², as a function of the output weights."""

    def __init__(
        self, problem: SoftmaxProblem, rows: ClassRows, fit_intercept: bool, room: int
    ) -> None:
        self.weight, self.fit_intercept = rows.weight, fit_intercept
        w, rotation = problem.w, problem.rotation
        self.width = (w if rotation is None else rotation).shape[1] + 1
        constant = float(fit_intercept)
        features = Features(problem.sigma, w, constant, rows.prepare, rotation, KeptBlocks(room))
        self._parts = [(features, rows)]
        self._dtype = w.dtype

    def with_rows_of(self, other: Objective) -> Objective:
        """The same over the rows of both, with what each has kept of its features."""
        both = copy.copy(self)
        both._parts, both.weight = self._parts + other._parts, self.weight + other.weight
        return both

    def total(self, task: Callable[[Features, Array], Any], v: Float64) -> Any:
        """What a task makes of all rows for output weights v."""
        v = v.astype(self._dtype)
        parts = self._parts
        return reduce(_add, (r.rows.reduce(task(made, v), _add, r.size) for made, r in parts))

    def loss(self, v: Float64, alpha: float = 0.0) -> tuple[float, Float64]:
        """The loss and its gradient, with the penalty."""
        loss, by_v = self.total(Slopes, v)
        loss, by_v = loss / self.weight, by_v / self.weight
        by_v[:-1] += 2 * alpha * v[:-1]
        if not self.fit_intercept:
            by_v[-1] = 0
        return loss + alpha * float(np.sum(v[:-1] ** 2)), by_v

    def curvature(self, v: Float64) -> Float64:
        """The mean of p (1 - p) phi phi'."""
        total = self.total(Curvature, v) / self.weight
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

        found, steps = minimise(value, unwhiten(factor, start), tol, max_iter, least)
        return whiten(factor, found, transposed=True), steps


@dataclass(frozen=True)
class SoftmaxProblem:
    """Features and rows of one model.

    Attributes
    ----------
    sigma : Table or Direct
    w : array, d × M
    fit, held : ClassRows
        Rows to fit to while the penalty is chosen, and those that choose it (None: there are none).
    every : ClassRows, optional
        Rows for the last fit; by default those of `fit`, and those of `held` if `held_too`.
    start_alpha : float
        The penalty to try first.
    rotation : array, M × r, optional
        What features are multiplied by; with fewer rows than features r is the number of rows.
    """

    sigma: fused.Sigma
    w: Array
    fit: ClassRows
    held: ClassRows | None
    every: ClassRows | None
    start_alpha: float
    rotation: Array | None = None
    held_too: bool = False

    def objective(self, rows: ClassRows, settings: SoftmaxSettings, room: int) -> Objective:
        """The loss over some rows, with features kept between passes in up to `room` bytes."""
        return Objective(self, rows, settings.fit_intercept, room)


@dataclass(frozen=True)
class SoftmaxSettings:
    """How to solve it.

    Attributes
    ----------
    n_classes : int
    alpha : float, optional
        A penalty to keep.
    max_iter : int
        Steps of L-BFGS at most.
    room : int
        Bytes in which features may be kept between passes.
    tol : float
        About how far the loss may be from its minimum, relatively.
    """

    n_classes: int
    alpha: float | None = None
    fit_intercept: bool = True
    max_iter: int = 200
    room: int = 1 << 30
    tol: float = _FINE


def fit_softmax(problems: list[SoftmaxProblem], settings: SoftmaxSettings) -> list[Solution]:
    """Output weights for classes 0 ... n_classes - 1, for each model in `problems`.

    Penalties are tried from `start_alpha` in whichever direction the cross-entropy of the held-out
    rows falls, over the first few models together, each from the last one's solution. Then the
    weights of all are fitted to every row.
    """
    models = [_Model(problem, settings, len(problems)) for problem in problems]
    parallel(lambda k: models[k].begin(), len(models))
    path: list[dict[str, Any]] = []
    best = 0
    if settings.alpha is None and all(problem.held is not None for problem in problems):
        best = _choose(models[:_CHOOSING], path)
    if any(problem.every is not None and problem.every.prepare for problem in problems):
        for model in models:  # rows that are read anew: one pass at a time
            model.finish(best)
    else:
        parallel(lambda k: models[k].finish(best), len(models))
    return [model.solution(path) for model in models]


class _Model:
    """One of the models while the penalty is chosen."""

    def __init__(self, problem: SoftmaxProblem, settings: SoftmaxSettings, count: int) -> None:
        self.problem, self.settings, self.room = problem, settings, settings.room // count
        self.tried: dict[int, tuple[float, Float64]] = {}

    def alpha(self, k: int) -> float:
        if self.settings.alpha is not None:
            return self.settings.alpha
        return self.problem.start_alpha * _STEP**k

    def begin(self) -> None:
        """The curvature without a penalty, at no weights."""
        problem, settings = self.problem, self.settings
        outputs = 1 if settings.n_classes == 2 else settings.n_classes
        self.objective = problem.objective(problem.fit, settings, self.room)
        if problem.held is not None:
            self.judge = problem.objective(problem.held, settings, self.room // 4)
        self.v = np.zeros((self.objective.width, outputs))
        self.curvature = self.objective.curvature(self.v)

    def attempt(self, k: int, near: int) -> float:
        """The held-out loss of a penalty, with the solution for another to start from."""
        if k not in self.tried:
            start = self.tried[near][1] if near in self.tried else None
            v = self._solve(k, start, _ROUGH)
            self.tried[k] = self.judge.loss(v)[0], v
        return self.tried[k][0]

    def finish(self, k: int) -> None:
        """Fit to every row."""
        problem, settings = self.problem, self.settings
        self.chosen, self.honest = self.alpha(k), None
        more = problem.every is not None or (problem.held_too and problem.held is not None)
        start = self.tried[k][1] if k in self.tried else None
        # Where classes are told apart well, the curvature at no weights is soon a poor one. Of two
        # classes it is an upper bound: the end may be some times `tol` away, and the few steps
        # that another saves take less time than it does, unless each reads all rows anew.
        if start is None and settings.n_classes > 2:
            start = self._solve(k, None, _FIRST)
        if start is not None and (settings.n_classes > 2 or problem.every is not None):
            self.curvature = self.objective.curvature(start)
        if problem.held is not None:
            self.v = self.honest = self._solve(k, start, _ROUGH if more else settings.tol)
            start = self.v
        if problem.every is not None:
            self.objective = problem.objective(problem.every, settings, self.room)
        elif more:
            self.objective = self.objective.with_rows_of(self.judge)
        if more or problem.held is None:
            self.v = self._solve(k, start, settings.tol)

    def _solve(self, k: int, start: Float64 | None, tol: float) -> Float64:
        """Output weights for a penalty."""
        rule, first = self.settings, self.v if start is None else start
        return self.objective.solve(
            self.curvature, self.alpha(k), first, tol, rule.max_iter, least=1
        )[0]

    def solution(self, path: list[dict[str, Any]]) -> Solution:
        v = self._unrotated(self.v)
        honest = None if self.honest is None else self._unrotated(self.honest)
        intercept = v[-1] * self.settings.fit_intercept
        return Solution(v[:-1], intercept, self.chosen, path, honest=honest)

    def _unrotated(self, v: Float64) -> Float64:
        rotation = self.problem.rotation
        return v if rotation is None else np.vstack([rotation @ v[:-1], v[-1:]])


def _choose(models: list[_Model], path: list[dict[str, Any]]) -> int:
    """The step from the first penalties with the least held-out loss; adds the path to it."""
    weights = np.array([m.problem.held.weight if m.problem.held else 0.0 for m in models])
    weights = weights / weights.sum()
    tried: dict[int, float] = {}

    def loss(k: int, near: int) -> float:
        if k not in tried and len(tried) < _MOST_TRIED:
            losses = np.zeros(len(models))

            def task(i: int) -> None:
                losses[i] = models[i].attempt(k, near)

            parallel(task, len(models))
            tried[k] = float(weights @ losses)
            path.append({"alpha": models[0].alpha(k), "loss": tried[k]})
        return tried.get(k, np.inf)

    best, direction = 0, -1
    if not loss(-1, 0) < loss(0, 0):
        direction = 1
    while loss(best + direction, best) < loss(best, best):
        best += direction
    return best
