"""Squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rflaf.distributions import ErrorShape
from rflaf.losses.base import Array, Float64, Quadratic
from rflaf.losses.numbers import Numbers

_PILED = 0.01  # of the targets at one end: it is where they stop


@dataclass(frozen=True)
class SquaredError(Numbers):
    """(score - target)², for targets in units of their standard deviation, from their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import SquaredError
    >>> loss = SquaredError(np.zeros(1), np.ones(1))
    >>> value, slope = loss.slopes(np.array([[3.0]]), np.array([[1.0]]))
    >>> value.tolist(), slope.tolist()
    ([4.0], [[4.0]])
    """

    name = "squared_error"
    score_name = "R²"
    quadratic = True

    def middle_and_spread(self, targets: Array, share: Array) -> tuple[Array, Array]:
        mean, varies = share @ targets, np.ptp(targets, axis=0) > 0  # not by rounding alone
        return mean, np.sqrt(share @ (targets - mean) ** 2) * varies

    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        apart = scores - target
        return np.einsum("nc,nc->n", apart, apart), 2 * apart

    def curvature(self, scores: Float64, target: Array) -> Float64:
        return np.full(scores.shape, 2.0)

    def quadratic_model(self, scores: Float64, target: Array, flattest: float = 0.0) -> Quadratic:
        return Quadratic(target, np.ones(len(target)))

    def constant(self, target: Array, weights: Array) -> Float64:
        return np.average(target, axis=0, weights=weights)

    def bounds(self, target: Array, scores: Float64) -> Float64:
        """Those of the targets; a value that many targets have at one end is not passed."""
        ends = np.array([target.min(axis=0), target.max(axis=0)])
        piled = [np.mean(target == end, axis=0) > _PILED for end in ends]
        more = np.where(piled, 0.0, self.reach * np.ptp(target, axis=0))
        return ends + np.array([[-1.0], [1.0]]) * more

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """Moved to a `shape` of mean 0: predictions are means."""
        return shape.moved(-shape.mean)

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        mean = np.average(target, axis=0, weights=weights)
        spread = np.average((target - mean) ** 2, axis=0, weights=weights)
        error = np.average((scores - target) ** 2, axis=0, weights=weights)
        varies = spread > 0
        return float(np.mean(np.where(varies, 1 - error / np.where(varies, spread, 1), error == 0)))
