"""Quantiles, one or several at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.metrics import d2_pinball_score

from rflaf.distributions import ErrorShape
from rflaf.losses.base import Array, Float64
from rflaf.losses.numbers import check_one_column
from rflaf.losses.robust import Robust


@final
@dataclass(frozen=True)
class Quantile(Robust):
    """The pinball loss times two, |score - target| - (2 q - 1) (score - target).

    Nearer than 0.15 of the targets' spread it is a parabola. Several quantiles are scores of
    one model. A prediction has them sorted: they never cross, and sorting never raises the loss.

    Attributes
    ----------
    quantile : float or increasing floats
        q, between 0 and 1. A number gives one prediction per row, others a column each.

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
        single = np.ndim(self.quantile) == 0
        levels = tuple(float(q) for q in np.ravel(self.quantile))
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
        """None for several quantiles, which are what is known of the noise."""
        return super().residuals(scores, y) if self.single else None

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """Predictions are quantiles."""
        return shape.moved(-float(shape.quantile(np.array(self.quantile))))

    def quality(self, y: Array, prediction: Array, weights: Array | None) -> float:
        """How much lower the pinball loss is than that of the best constants: their mean."""
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
