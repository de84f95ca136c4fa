"""Logistic regression that goes on: earlier rows are kept as a quadratic in the output weights.

Near its least, the loss of the rows seen so far is that least plus half the curvature times the
square of the distance from it (Laplace's approximation). More rows add their own loss to this
quadratic; where the sum is least, it becomes the next one. No earlier row is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.solvers.lbfgs import minimise
from rflaf.solvers.linalg import factorise, whiten
from rflaf.solvers.softmax import Objective

Array = NDArray[Any]
Float64 = NDArray[np.float64]

_FINE = 1e-5  # how far from its least the loss may be
_MOST_STEPS = 200


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


def known_weights(objective: Objective, v: Float64, alpha: float) -> KnownWeights:
    """What rows tell whose loss is least at v."""
    weight = objective.rows.weight
    return KnownWeights(v, objective.curvature(v) * weight, weight, alpha * weight)


def add_rows(known: KnownWeights, objective: Objective) -> KnownWeights:
    """What is known with the rows of `objective` added.

    The penalty is what is known before any row, so that more rows add nothing to it: relative to
    the loss it becomes smaller, as the best one does. The unknowns are changed by a factor of the curvatures' sum, as `Objective.solve` does.
    """
    more = objective.rows.weight
    total = known.weight + more
    m = len(known.v) - 1
    penalised = np.arange(m), np.arange(m)
    stiff = known.curvature.copy()
    stiff[penalised] += 2 * known.penalty
    matrix = (stiff + more * objective.curvature(known.v)) / total
    factor = factorise(matrix, 1e-6 * float(np.trace(matrix)) / (m + 1) + 1e-12)

    def value(unknowns: Float64) -> tuple[float, Float64]:
        v = whiten(factor, unknowns, transposed=True)
        loss, by_v = objective.loss(v)
        moved = v - known.v
        pull = stiff @ moved
        loss = (more * loss + 0.5 * float(np.sum(moved * pull))) / total
        return loss, whiten(factor, (more * by_v + pull) / total)

    start = factor.T @ known.v
    found = minimise(value, start, _FINE, _MOST_STEPS, least=1)[0]
    v = whiten(factor, found, transposed=True)
    curvature = known.curvature + more * objective.curvature(v)
    return KnownWeights(v, curvature, total, known.penalty)
