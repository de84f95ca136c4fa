"""The mean of any loss over rows as a function of the output weights, and where it is least.

Features of a random layer are strongly correlated, and plain L-BFGS crawls along the narrow valleys
that this makes. The unknowns are therefore changed by a Cholesky factor of (nearly) the loss's
curvature. The first step is then Newton's, and one or two dozen do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from rflaf import fused
from rflaf.arrays import Array, Float64
from rflaf.losses import Loss
from rflaf.rows import Block
from rflaf.solvers.features import KeptBlocks, check_finite, features, project, rotated
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, unwhiten, whiten
from rflaf.solvers.parts import RowPart, add_results
from rflaf.solvers.ridge import NormalEquations, add_gram

Part = tuple[Array, Array, Array]  # features, targets and weights of a block

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
        return rotated(phi, self.rotation)


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
class SumParts:
    """The sums over blocks, of these shapes, of what a function makes of them for weights v."""

    of_part: Callable[[Part, Loss, Float64], Any]
    shapes: tuple[tuple[int, ...], ...]
    blocks: FeatureBlocks
    loss: Loss
    v: Float64

    def __call__(self, blocks: Iterable[Block]) -> Any:
        found = (self.of_part(part, self.loss, self.v) for part in self.blocks(blocks))
        return reduce(add_results, found, tuple(map(np.zeros, self.shapes)))


def slopes_of(part: Part, loss: Loss, v: Float64) -> tuple[float, Float64, float]:
    """The sums of the losses, of their gradient, and of the weights."""
    phi, target, weights = part

    def of_rows(scores: Float64, rows: slice) -> tuple[float, Float64]:
        value, slope = loss.slopes(scores, target[rows])
        return float(weights[rows] @ value), slope * weights[rows, None]

    return *fused.slopes(phi, v, of_rows), float(weights.sum())


def loss_of(part: Part, loss: Loss, v: Float64) -> tuple[float, float]:
    """The sums of the losses, and of the weights."""
    phi, target, weights = part
    value, _ = loss.slopes(fused.times(phi, v), target)
    return float(weights @ value), float(weights.sum())


def curvature_of(part: Part, loss: Loss, v: Float64) -> tuple[Float64, float]:
    """The sum of curvature phi phi', on average over the outputs, and the sum of the weights."""
    phi, target, weights = part
    bend = loss.curvature(fused.times(phi, v), target).mean(axis=1)
    total = np.zeros((len(v), len(v)))
    add_gram(total, phi * np.sqrt(weights * bend).astype(phi.dtype)[:, None])
    return total, float(weights.sum())


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

    def total(
        self, of_part: Callable[[Part, Loss, Float64], Any], v: Float64, *shapes: tuple[int, ...]
    ) -> Any:
        """What `of_part` makes of all rows for output weights v: sums of these shapes."""
        results = []
        for part in self.parts:
            blocks = FeatureBlocks(self.features, part.kept)
            results.append(part.reduce(SumParts(of_part, shapes, blocks, self.loss, v)))
        return reduce(add_results, results)

    def value(self, v: Float64, alpha: float = 0.0) -> tuple[float, Float64]:
        """The loss and its gradient, with the penalty."""
        total, by_v, weight = self.total(slopes_of, v, (), v.shape, ())
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
        total, weight = self.total(curvature_of, v, (len(v), len(v)), ())
        if self.known is not None:
            total, weight = total + 2 * self.known.gram, weight + self.known.weight
        total = total / weight
        check_finite(float(np.trace(total)))
        if not self.features.constant:  # `known` may have one, which must not move
            total[-1] = total[:, -1] = 0.0
            total[-1, -1] = 1.0
        return total

    def mean_loss(self, v: Float64) -> tuple[float, float]:
        """The loss without a penalty, and the weight of the rows."""
        total, weight = self.total(loss_of, v, (), ())
        return float(total / weight), float(weight)

    def start(self, constant: Float64) -> Float64:
        """Output weights of zero, with the intercept `constant`."""
        v = np.zeros((self.features.width, self.loss.outputs))
        v[-1] = constant * self.features.constant
        return v

    def solve(
        self,
        curvature: Float64,
        alpha: float,
        start: Float64,
        tol: float,
        stop: Callable[[Float64, float], bool] | None = None,
    ) -> Float64:
        """Output weights with a loss within `tol` of the least, relatively.

        Steps go from `start`, in units of the square root of `curvature` plus the penalty, until
        `stop` says so of output weights, and of what is still to gain.
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

        def stops(unknowns: Float64, left: float) -> bool:
            return stop is not None and stop(whiten(factor, unknowns, transposed=True), left)

        begin = unwhiten(factor, start)
        best, _ = minimise(value, begin, tol, _MOST_STEPS, 1, self.loss.enough, stops)
        return whiten(factor, best, transposed=True)
