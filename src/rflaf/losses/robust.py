"""What losses share that grow like the absolute error, and are not moved by outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import optimize

from rflaf.losses.base import Array, Float64
from rflaf.losses.numbers import Numbers

_PULL = 1e-10  # where several constants are as good, towards that nearest to zero


@dataclass(frozen=True)
class Robust(Numbers):
    """|score - target|, but a parabola nearer than `width`, minus `tilt` (score - target).

    Targets are in units of the median distance from their median. A straight line has no
    curvature, and the parabola has it for few rows: steps are taken by the parabola that touches
    the loss and lies above it, whose curvature is one over the distance.
    """

    score_name = "D²"
    width: ClassVar[float]  # in units of the targets' spread

    @property
    def tilt(self) -> Any:
        """Of each score, between -1 and 1."""
        return 0.0

    def middle_and_spread(self, targets: Array, share: Array) -> tuple[Array, Array]:
        middle = weighted_median(targets, share)
        apart = np.abs(targets - middle)
        spread = weighted_median(apart, share)
        # half of the targets may be the same, or all: the width is nothing beside these then
        spread = np.where(spread > 1e-9 * apart.max(axis=0), spread, share @ apart)
        return middle, np.where(spread > 0, spread, 1e-6)

    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        apart = scores - target
        near = np.clip(apart, -self.width, self.width)
        slope = near / self.width
        value = slope * (apart - near / 2) - self.tilt * apart
        return value.sum(axis=1), slope - self.tilt

    def curvature(self, scores: Float64, target: Array) -> Float64:
        return 1 / np.maximum(np.abs(scores - target), self.width)

    def constant(self, target: Array, weights: Array) -> Float64:
        tilt = np.broadcast_to(self.tilt, target.shape[1:])
        share = weights / weights.sum()

        def best(column: Array, tilt: float) -> float:
            def slope(score: float) -> float:
                near = np.clip((score - column) / self.width, -1, 1)
                return float(share @ near) - tilt + _PULL * score

            low, high = column.min() - self.width, column.max() + self.width
            if slope(low) * slope(high) > 0:  # the pull decides
                return float(np.clip(0.0, low, high))
            return float(optimize.brentq(slope, low, high, xtol=1e-14))

        return np.array([best(*each) for each in zip(target.T, tilt)])

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        """How much lower the loss is than that of the best constant."""
        plain = np.broadcast_to(self.constant(target, weights), target.shape)
        most = self.value(plain, target, weights)
        return 1 - self.value(scores, target, weights) / most if most > 0 else 0.0


def weighted_median(values: Array, share: Array) -> Array:
    """The least value of each column that half of the weight does not exceed."""
    order = np.argsort(values, axis=0, kind="stable")
    total = np.cumsum(share[order], axis=0)
    place = np.argmax(total >= (0.5 - 1e-9) * total[-1], axis=0)  # rounding must not decide
    return np.take_along_axis(np.take_along_axis(values, order, 0), place[None], 0)[0]
