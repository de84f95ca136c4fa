"""Losses that grow like the absolute error, and are robust to outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy import optimize
from sklearn.metrics import d2_pinball_score

from rflaf.distributions import ErrorShape
from rflaf.losses.base import Array, Float64
from rflaf.losses.numbers import Numbers, check_one_column

_PULL = 1e-10  # where several constants are as good, towards that nearest to zero


@dataclass(frozen=True)
class Robust(Numbers):
    """|score - target|, but a parabola nearer than `width`, minus `tilt` (score - target).

    Targets are in units of the median distance from their median. A straight line has no
    curvature, and the parabola has it for few rows: steps are taken by the parabola that touches
    the loss and lies above it, whose curvature is one over the distance.
    """

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

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        """D² of the loss itself: the parabola is for steps."""
        level = np.broadcast_to((1 + self.tilt) / 2, target.shape[1:])
        ordered = np.reshape(self.predict(scores), target.shape)
        parts = [
            d2_pinball_score(target[:, k], ordered[:, k], sample_weight=weights, alpha=level[k])
            for k in range(len(level))
        ]
        return float(np.mean(parts))

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


@final
@dataclass(frozen=True)
class AbsoluteError(Robust):
    """|score - target|, which the median of the targets minimises.

    Within 0.15 times the spread of the targets it is a parabola.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import AbsoluteError
    >>> value, slope = AbsoluteError().slopes(np.array([[3.0]]), np.array([[1.0]]))
    >>> value.round(3).tolist(), slope.tolist()
    ([1.925], [[1.0]])
    """

    name = "absolute_error"
    width = 0.15

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """Moved to a `shape` of median 0: predictions are medians."""
        return shape.moved(-float(shape.quantile(np.array(0.5))))


@final
@dataclass(frozen=True)
class Huber(Robust):
    """Squared error up to 0.3 times the spread of the targets, then absolute error.

    The prediction is a mean that is robust to outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import Huber
    >>> scores, target = np.array([[0.15], [2.0]]), np.zeros((2, 1))
    >>> Huber().slopes(scores, target)[1].tolist()
    [[0.5], [1.0]]
    """

    name = "huber"
    width = 0.3

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        return Numbers.score(self, scores, target, weights)  # the parabola is part of this loss


@final
@dataclass(frozen=True)
class Quantile(Robust):
    """The pinball loss times two, |score - target| - (2 q - 1) (score - target).

    Within 0.15 times the spread of the targets it is a parabola. Several quantiles are scores of
    one model, sorted in each prediction: they never cross, and sorting never raises the loss.

    Attributes
    ----------
    quantile : float or increasing floats
        Levels between 0 and 1. A number gives one prediction per row, several give a column each.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import Quantile
    >>> loss = Quantile(quantile=[0.1, 0.5, 0.9])
    >>> loss.predict(np.array([[1.0, 3.0, 2.0]])).tolist()
    [[1.0, 2.0, 3.0]]
    """

    quantile: Any = 0.5

    name = "quantile"
    width = 0.15

    def __post_init__(self) -> None:
        """Numbers in place of what was given, which may be a list or an array."""
        single, given = np.ndim(self.quantile) == 0, np.asarray(self.quantile)
        numbers = given.ndim < 2 and given.dtype.kind in "fi"
        levels = tuple(float(q) for q in given.ravel()) if numbers else ()
        rising = all(low < high for low, high in zip((0.0, *levels), (*levels, 1.0)))
        if not levels or not rising:
            raise ValueError(
                "'quantile' must be a number between 0 and 1, or several that increase. "
                f"Got {self.quantile!r}."
            )
        object.__setattr__(self, "quantile", levels[0] if single else levels)
        object.__setattr__(self, "single", single)

    @property
    def tilt(self) -> Array:
        return 2 * np.ravel(self.quantile) - 1

    def check(self, y: Any) -> Array:
        return check_one_column(self.name, y)

    def columns(self, y: Array) -> Array:
        return np.repeat(y[:, None], np.size(self.quantile), axis=1)

    def predict(self, scores: Array) -> Array:
        return scores[:, 0] if self.single else np.sort(scores, axis=1)

    def residuals(self, scores: Float64, y: Array) -> Float64 | None:
        """None for several quantiles."""
        return super().residuals(scores, y) if self.single else None

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """Moved to a `shape` whose quantile is 0: predictions are quantiles."""
        return shape.moved(-float(shape.quantile(np.array(self.quantile))))

    def quality(self, y: Array, prediction: Array, weights: Array | None) -> float:
        """D²: one minus the pinball loss of a `prediction` relative to the best constants."""
        columns = prediction.reshape(len(prediction), -1).T
        parts = [
            d2_pinball_score(y, column, sample_weight=weights, alpha=level)
            for column, level in zip(columns, np.ravel(self.quantile))
        ]
        return float(np.mean(parts))

    def export(self, graph: Any, scores: str) -> str:
        columns = [graph.columns(scores, [k]) for k in range(np.size(self.quantile))]
        for last in range(len(columns) - 1, 0, -1):
            for k in range(last):  # the largest of these moves to the end
                pair = columns[k], columns[k + 1]
                columns[k : k + 2] = graph.add("Min", *pair), graph.add("Max", *pair)
        return scores if self.single else str(graph.add("Concat", *columns, axis=1))


def weighted_median(values: Array, share: Array) -> Array:
    """The least value of each column that half of the weight does not exceed."""
    order = np.argsort(values, axis=0, kind="stable")
    total = np.cumsum(share[order], axis=0)
    place = np.argmax(total >= (0.5 - 1e-9) * total[-1], axis=0)  # rounding must not decide
    return np.take_along_axis(np.take_along_axis(values, order, 0), place[None], 0)[0]
