"""Output weights for any loss.

Features of a random layer are strongly correlated, and plain L-BFGS crawls along the narrow valleys
that this makes. The unknowns are therefore changed by a Cholesky factor of (nearly) the loss's
curvature. The first step is then Newton's, and one or two dozen do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused, rules
from rflaf.losses import Loss
from rflaf.rows import Block
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import KeptBlocks, check_finite, features, project
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, unwhiten, whiten
from rflaf.solvers.parts import RowPart, add_results
from rflaf.solvers.penalty import walk
from rflaf.solvers.result import Solution
from rflaf.solvers.ridge import NormalEquations, add_gram

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Part = tuple[Array, Array, Array]  # features, targets and weights of a block

# How far from its least the loss may be, relatively, while choosing and at the end. A rougher loss
# while choosing leaves the weights where the last penalty had them, and then all penalties look the
# same. With many outputs a pass is long, and later steps hardly move the loss of other rows.
_ROUGH, _FINE = 3e-5, 1e-6
_MANY, _MANY_ROUGH, _MANY_FINE = 8, 3e-4, 1e-4  # more outputs than this
_FIRST = 1e-2  # the same, before the curvature is taken anew
_EXACT = 1e-22  # and for so few rows that none are held out, where a step costs nothing
_MOST_STEPS = 200


@dataclass(frozen=True)
class FeatureMap:
    """sigma(X W), and behind it a constant: 1 for an intercept, 0 for none.

    With fewer rows than features, `rotation`, M × r, takes them to the span of the rows.
    """

    sigma: fused.Sigma
    w: Array
    constant: float
    rotation: Array | None = None

    @property
    def width(self) -> int:
        """Features and the constant."""
        return int((self.w if self.rotation is None else self.rotation).shape[1]) + 1

    def __call__(self, x: Any) -> Array:
        """The features of inputs in their form."""
        phi = features(self.sigma, project(x, self.w), self.constant)
        if self.rotation is None:
            return phi
        return np.hstack([phi[:, :-1] @ self.rotation.astype(phi.dtype), phi[:, -1:]])

    def unrotated(self, v: Float64) -> Float64:
        """Output weights of the features themselves."""
        if self.rotation is None:
            return v
        return np.vstack([self.rotation.astype(np.float64) @ v[:-1], v[-1:]])


@dataclass(frozen=True)
class FeatureBlocks:
    """Features, targets and weights of blocks, kept between passes while there is room."""

    features: FeatureMap
    kept: KeptBlocks

    def __call__(self, blocks: Iterable[Block]) -> Iterator[Part]:
        for number, block in enumerate(blocks):
            size = len(block.weights) * (self.features.width + 3) * self.features.w.itemsize
            part = self.kept.get(number, size, partial(self._make, block))
            yield self._make(block) if part is None else part

    def _make(self, block: Block) -> Part:
        return np.ascontiguousarray(self.features(block.x)), block.y, block.weights


@dataclass(frozen=True)
class SumSlopes:
    """The sums of the losses for output weights v, of their gradient, and of the weights."""

    blocks: FeatureBlocks
    loss: Loss
    v: Float64

    def __call__(self, blocks: Iterable[Block]) -> tuple[float, Float64, float]:
        total, by_v, weight = 0.0, np.zeros(self.v.shape), 0.0
        for phi, target, weights in self.blocks(blocks):

            def of_rows(
                scores: Float64, rows: slice, target: Array = target, weights: Array = weights
            ) -> tuple[float, Float64]:
                value, slope = self.loss.slopes(scores, target[rows])
                return float(weights[rows] @ value), slope * weights[rows, None]

            part, slopes = fused.slopes(phi, self.v, of_rows)
            total, by_v, weight = total + part, by_v + slopes, weight + float(weights.sum())
        return total, by_v, weight


@dataclass(frozen=True)
class SumCurvature:
    """The sum of curvature phi phi', on average over the outputs, and the sum of the weights."""

    blocks: FeatureBlocks
    loss: Loss
    v: Float64

    def __call__(self, blocks: Iterable[Block]) -> tuple[Float64, float]:
        total, weight = np.zeros((len(self.v), len(self.v))), 0.0
        for phi, target, weights in self.blocks(blocks):
            bend = self.loss.curvature(fused.times(phi, self.v), target).mean(axis=1)
            root = np.sqrt(weights * bend).astype(phi.dtype)
            add_gram(total, phi * root[:, None])
            weight += float(weights.sum())
        return total, weight


class Objective:
    """The mean loss over rows plus alpha |v|², as a function of the output weights.

    Rows come in `parts`, and become `features`. With `known`, the sums of a quadratic model of
    earlier rows, their loss is part of it.
    """

    def __init__(
        self,
        features: FeatureMap,
        parts: list[RowPart],
        loss: Loss,
        known: NormalEquations | None = None,
    ) -> None:
        self.features, self.parts, self.loss, self.known = features, parts, loss, known

    def total(self, task: Callable[[FeatureBlocks, Loss, Float64], Any], v: Float64) -> Any:
        """What a task makes of all rows for output weights v."""
        results = (
            part.reduce(task(FeatureBlocks(self.features, part.kept), self.loss, v))
            for part in self.parts
        )
        return reduce(add_results, results)

    def value(self, v: Float64, alpha: float = 0.0) -> tuple[float, Float64]:
        """The loss and its gradient, with the penalty."""
        total, by_v, weight = self.total(SumSlopes, v)
        if self.known is not None:
            pull = self.known.gram @ v
            total += float(np.sum(v * pull) - 2 * np.sum(v * self.known.moment))
            total += float(self.known.square.sum())
            by_v, weight = by_v + 2 * (pull - self.known.moment), weight + self.known.weight
        by_v = by_v / weight
        by_v[:-1] += 2 * alpha * v[:-1]
        if not self.features.constant:
            by_v[-1] = 0
        return total / weight + alpha * float(np.sum(v[:-1] ** 2)), by_v

    def curvature(self, v: Float64) -> Float64:
        """The mean of the loss's curvature times phi phi'."""
        total, weight = self.total(SumCurvature, v)
        if self.known is not None:
            total, weight = total + 2 * self.known.gram, weight + self.known.weight
        total = total / weight
        check_finite(float(np.trace(total)))
        if not self.features.constant:  # `known` may have one, which must not move
            total[-1] = total[:, -1] = 0.0
            total[-1, -1] = 1.0
        return total

    def start(self, constant: Float64) -> Float64:
        """Output weights of zero, with the intercept `constant`."""
        v = np.zeros((self.features.width, self.loss.outputs))
        v[-1] = constant * self.features.constant
        return v

    def solve(self, curvature: Float64, alpha: float, start: Float64, tol: float) -> Float64:
        """Output weights with a loss within `tol` of the least, relatively.

        Steps go from `start`, in units of the square root of `curvature` plus the penalty.
        """
        matrix = curvature.copy()
        m = len(matrix) - 1
        floor = 1e-6 * float(np.trace(matrix)) / (m + 1) + 1e-12
        matrix[np.diag_indices(m + 1)] += floor
        matrix[np.arange(m), np.arange(m)] += 2 * alpha
        factor = factorise(matrix)

        def value(unknowns: Float64) -> tuple[float, Float64]:
            total, by_v = self.value(whiten(factor, unknowns, transposed=True), alpha)
            return total, whiten(factor, by_v)

        begin = unwhiten(factor, start)
        best, _ = minimise(value, begin, tol, _MOST_STEPS, 1, smallest=self.loss.enough)
        return whiten(factor, best, transposed=True)


@dataclass(frozen=True)
class NewtonProblem:
    """Features and rows of one model.

    Attributes
    ----------
    features : FeatureMap
    fit : RowPart
        Rows to fit to while the penalty is chosen.
    held_out : RowPart, optional
        Rows that choose it.
    every : list of RowPart, optional
        Rows of the last fit; by default those of `fit`.
    constant : array of C
        The best scores that are the same for all rows.
    """

    features: FeatureMap
    fit: RowPart
    held_out: RowPart | None
    every: list[RowPart] | None
    constant: Float64


@dataclass(frozen=True)
class NewtonSettings:
    """How to solve it.

    Attributes
    ----------
    alpha : float
        The penalty, or with `search` and held-out rows the one to start from.
    one_by_one : bool
        Whether models are solved in turn, because each pass reads the rows again.
    """

    alpha: float
    search: bool = True
    one_by_one: bool = False


def solve_newton(
    problems: list[NewtonProblem], loss: Loss, settings: NewtonSettings
) -> list[Solution]:
    """Output weights of several models with one penalty.

    The loss of held-out rows chooses the penalty, over the first few `problems` together, each
    trial from the last one's solution. Then the weights of all are fitted to every row.
    """
    models = [_Model(problem, loss) for problem in problems]
    parallel(lambda k: models[k].begin(), len(models))
    alpha, path = settings.alpha, list[dict[str, Any]]()
    if settings.search and all(problem.held_out is not None for problem in problems):
        alpha, path = _choose(models[: rules.PENALTY_MEMBERS], settings.alpha)
    if settings.one_by_one:
        for model in models:
            model.finish(alpha)
    else:
        parallel(lambda k: models[k].finish(alpha), len(models))
    return [model.solution(alpha, path) for model in models]


class _Model:
    """One of the models while the penalty is chosen."""

    def __init__(self, problem: NewtonProblem, loss: Loss) -> None:
        self.problem, self.loss = problem, loss
        self.objective = Objective(problem.features, [problem.fit], loss)
        self.tried: dict[float, Float64] = {}
        many = loss.outputs > _MANY
        self.rough, self.fine = (_MANY_ROUGH, _MANY_FINE) if many else (_ROUGH, _FINE)

    def begin(self) -> None:
        """The curvature without a penalty, at no weights."""
        self.v = self.objective.start(self.problem.constant)
        self.curvature = self.objective.curvature(self.v)

    def held_out_loss(self, alpha: float) -> tuple[float, float]:
        """The loss of rows that are held out, for a penalty, and their weight."""
        part = self.problem.held_out
        assert part is not None
        start = self._near(alpha)
        self.tried[alpha] = self.objective.solve(self.curvature, alpha, start, self.rough)
        judge = Objective(self.problem.features, [part], self.loss)
        total, _, weight = judge.total(SumSlopes, self.tried[alpha])
        return total / weight, weight

    def finish(self, alpha: float) -> None:
        """Fit to every row."""
        problem, self.v = self.problem, self._near(alpha)
        # Far from no weights the curvature there is soon a poor one. For one output it serves as
        # long as passes are cheap; for several it does not.
        if self.loss.outputs > 1:
            if not self.tried:
                self.v = self.objective.solve(self.curvature, alpha, self.v, _FIRST)
            self.curvature = self.objective.curvature(self.v)
        self.honest: Float64 | None = None
        if problem.held_out is not None:
            tol = self.fine if problem.every is None else self.rough
            self.v = self.honest = self.objective.solve(self.curvature, alpha, self.v, tol)
        if problem.every is not None:
            self.objective = Objective(problem.features, problem.every, self.loss)
        if problem.every is not None or self.honest is None:
            tol = _EXACT if problem.held_out is None else self.fine
            self.v = self.objective.solve(self.curvature, alpha, self.v, tol)

    def _near(self, alpha: float) -> Float64:
        """The solution for the nearest penalty so far, to start from."""
        if not self.tried:
            return self.v
        return self.tried[min(self.tried, key=lambda other: abs(np.log(other / alpha)))]

    def solution(self, alpha: float, path: list[dict[str, Any]]) -> Solution:
        """The weights, back from the span of the rows."""
        unrotated = self.problem.features.unrotated
        v = unrotated(self.v)
        honest = None if self.honest is None else unrotated(self.honest)
        return Solution(v[:-1], v[-1] * self.problem.features.constant, alpha, path, honest=honest)


def _choose(models: list[_Model], start: float) -> tuple[float, list[dict[str, Any]]]:
    """The penalty with the least loss on held-out rows, and what was tried."""
    step = rules.PENALTY_STEP

    def losses(steps: Sequence[int]) -> list[float]:
        means = []
        for k in steps:
            pairs: list[Any] = [None] * len(models)

            def task(i: int, k: int = k, pairs: list[Any] = pairs) -> None:
                pairs[i] = models[i].held_out_loss(start * step**k)

            parallel(task, len(models))
            values, weights = np.array(pairs).T
            # where all rows are right by far, a lower penalty is no better for any of them
            means.append(max(float(np.average(values, weights=weights)), models[0].loss.enough))
        return means

    walked = walk(losses, most=rules.MOST_PENALTIES, low=-12, high=8, together=False)
    path = [{"alpha": start * step**k, "loss": walked.losses[k]} for k in sorted(walked.losses)]
    return start * step**walked.middle, path
