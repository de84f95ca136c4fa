"""Logistic regression that goes on: earlier rows are kept as a quadratic in the output weights.

Near its least, the loss of the rows seen so far is that least plus half the curvature times the
square of the distance from it (Laplace's approximation). More rows add their own loss to this
quadratic; where the sum is least, it becomes the next one. No earlier row is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from rflaf.rows import Block
from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, solve_factored, unwhiten, whiten
from rflaf.solvers.softmax import Features, Objective

Array = NDArray[Any]
Float64 = NDArray[np.float64]

_FINE = 1e-5  # how far from its least the loss may be
_MOST_STEPS = 200
_STEP = 4.0  # from one penalty that is tried to the next
_MOST_TRIED = 5  # in a row
_SURE = 2.0  # times what is chance: a gain by more than that changes the penalty,
_LEAST_ROWS = 10  # if there are as many rows to tell it


@dataclass(frozen=True)
class KnownWeights:
    """What the rows seen so far tell of the output weights.

    Attributes
    ----------
    v : array, M + 1 × C
        Where their loss is least, the intercept last.
    curvature : array, M + 1 × M + 1
        The sum over rows of p (1 - p) phi phi', on average over the outputs.
    weight : float
        Of these rows together.
    penalty : float
        The summed cross-entropy has penalty |v|² added to it, without the intercept.
    """

    v: Float64
    curvature: Float64
    weight: float
    penalty: float

    @property
    def alpha(self) -> float:
        """The penalty of the mean cross-entropy."""
        return self.penalty / self.weight

    def stiff(self, penalty: float) -> Float64:
        """The curvature of the loss with a penalty."""
        matrix = self.curvature.copy()
        m = len(matrix) - 1
        matrix[np.arange(m), np.arange(m)] += 2 * penalty
        return matrix

    def with_penalty(self, penalty: float) -> KnownWeights:
        """Where the loss of the same rows is least with another penalty, by the quadratic."""
        right = self.stiff(self.penalty) @ self.v
        matrix = self.stiff(penalty)
        v = solve_factored(factorise(matrix, 1e-6 * _floor(matrix)), right)
        return replace(self, v=v, penalty=penalty)


@dataclass(frozen=True)
class RowLosses:
    """For output weights v the loss of each row and its weight, n × 2, block by block."""

    features: Features
    v: Array

    def __call__(self, blocks: Iterable[Block]) -> list[Float64]:
        found = []
        for phi, target, weights in self.features.parts(blocks):
            scores = (phi @ self.v).astype(np.float64)
            if scores.shape[1] == 1:
                scores = np.column_stack([np.zeros(len(scores)), scores])
            losses = -log_softmax(scores, axis=1)[np.arange(len(target)), target]
            found.append(np.column_stack([losses, weights]))
        return found


def known_weights(objective: Objective, v: Float64, alpha: float) -> KnownWeights:
    """What rows tell whose loss is least at v."""
    weight = objective.weight
    return KnownWeights(v, objective.curvature(v) * weight, weight, alpha * weight)


def add_rows(known: KnownWeights, objective: Objective, alpha: float | None = None) -> KnownWeights:
    """What is known with the rows of `objective` added.

    The penalty is what is known before any row, so that rows add nothing to it: relative to the
    loss it becomes smaller, as the best one does. These rows are new, so they choose it first. A
    given `alpha` is kept instead, as the penalty of the mean. The unknowns are changed by a factor
    of the curvatures' sum, as `Objective.solve` does.
    """
    if alpha is None:
        known = _choose_penalty(known, objective)
    more, extra = objective.weight, alpha or 0.0
    total = known.weight + more
    stiff = known.stiff(known.penalty)
    matrix = (stiff + more * objective.curvature(known.v)) / total
    m = len(matrix) - 1
    matrix[np.arange(m), np.arange(m)] += 2 * extra * more / total
    factor = factorise(matrix, _floor(matrix))

    def value(unknowns: Float64) -> tuple[float, Float64]:
        v = whiten(factor, unknowns, transposed=True)
        loss, by_v = objective.loss(v, extra)
        moved = v - known.v
        pull = stiff @ moved
        loss = (more * loss + 0.5 * float(np.sum(moved * pull))) / total
        return loss, whiten(factor, (more * by_v + pull) / total)

    start = unwhiten(factor, known.v)
    found = minimise(value, start, _FINE, _MOST_STEPS, least=1)[0]
    v = whiten(factor, found, transposed=True)
    curvature = known.curvature + more * objective.curvature(v)
    return KnownWeights(v, curvature, total, known.penalty + extra * more)


def _choose_penalty(known: KnownWeights, objective: Objective) -> KnownWeights:
    """The same rows with the penalty that suits new ones, where these tell it beyond chance."""
    losses, weights = np.concatenate(objective.total(RowLosses, known.v)).T
    for step in (1 / _STEP, _STEP):
        for _ in range(_MOST_TRIED):
            other = known.with_penalty(known.penalty * step)
            new = np.concatenate(objective.total(RowLosses, other.v))[:, 0]
            gain = losses - new
            mean = float(weights @ gain) / float(weights.sum())
            chance = float(np.sqrt(np.sum((weights * (gain - mean)) ** 2)) / weights.sum())
            if len(gain) < _LEAST_ROWS or not mean > _SURE * chance:
                break
            known, losses = other, new
    return known


def _floor(matrix: Float64) -> float:
    """What is added to the diagonal before it is factorised."""
    return 1e-6 * float(np.trace(matrix)) / len(matrix) + 1e-12
