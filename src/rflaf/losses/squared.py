"""Squared error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from rflaf.losses.base import Array, Float64, Loss, Quadratic
from rflaf.rows import Sample

_PILED = 0.01  # of the targets at one end: it is where they stop
_LARGEST = 1e300  # of the targets: a model of larger ones might not be finite


@dataclass(frozen=True)
class SquaredError(Loss):
    """(score - target)², for targets in units of their standard deviation, from their mean.

    Attributes
    ----------
    mean, scale : array of C
        Of the targets.
    single : bool
        Whether targets are one number per row, and predictions too.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import SquaredError
    >>> loss = SquaredError(np.zeros(1), np.ones(1))
    >>> value, slope = loss.slopes(np.array([[3.0]]), np.array([[1.0]]))
    >>> value.tolist(), slope.tolist()
    ([4.0], [[4.0]])
    """

    mean: Array | None = None
    scale: Array | None = None
    single: bool = True

    name = "squared_error"
    score_name = "R²"
    quadratic = True
    reach = 3.0

    def check(self, y: Any) -> Array:
        return check_array(
            y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y"
        )

    def opened(self, sample: Sample, fit_intercept: bool) -> SquaredError:
        targets = sample.y.reshape(len(sample.y), -1)
        largest = np.abs(targets).max(axis=0)
        if largest.max() > _LARGEST:
            raise ValueError(
                f"'y' must lie between -{_LARGEST:g} and {_LARGEST:g}. Got {largest.max():g}."
            )
        unit = np.where(largest > 0, largest, 1.0)  # squares of very large or small ones are lost
        share, small = sample.weights / sample.weights.sum(), targets / unit
        mean = share @ small
        spread = np.sqrt(share @ (small - mean) ** 2) * unit
        varies = targets.max(axis=0) > targets.min(axis=0)
        mean = np.where(varies, mean * unit, targets[0])
        scale = np.where(varies & (spread > 0), spread, 1.0)
        mean = mean if fit_intercept else np.zeros_like(mean)
        return replace(self, mean=mean, scale=scale, single=sample.y.ndim == 1)

    @property
    def outputs(self) -> int:
        return len(self.units[1])

    @property
    def units(self) -> tuple[Array, Array]:
        """The mean and the scale of the targets, once they are known."""
        assert self.mean is not None
        assert self.scale is not None
        return self.mean, self.scale

    def encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        mean, scale = self.units
        targets = y.reshape(len(y), -1)
        if targets.shape[1] != len(scale):
            raise ValueError(
                f"'y' must have {len(scale)} targets, as in the first call. Got {targets.shape[1]}."
            )
        return targets / scale - mean / scale, weights

    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        apart = scores - target
        return np.einsum("nc,nc->n", apart, apart), 2 * apart

    def curvature(self, scores: Float64, target: Array) -> Float64:
        return np.full(scores.shape, 2.0)

    def quadratic_model(self, scores: Float64, target: Array, flattest: float = 0.0) -> Quadratic:
        return Quadratic(target, np.ones(len(target)))

    def constant(self, target: Array, weights: Array) -> Float64:
        return np.average(target, axis=0, weights=weights)

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        mean, scale = self.units
        return coef * scale, intercept * scale + mean

    def bounds(self, target: Array, scores: Float64) -> Float64:
        """Those of the targets; a value that many targets have at one end is not passed."""
        ends = np.array([target.min(axis=0), target.max(axis=0)])
        piled = [np.mean(target == end, axis=0) > _PILED for end in ends]
        more = np.where(piled, 0.0, self.reach * np.ptp(target, axis=0))
        return ends + np.array([[-1.0], [1.0]]) * more

    def predict(self, scores: Array) -> Array:
        return scores[:, 0] if self.single else scores

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        mean = np.average(target, axis=0, weights=weights)
        spread = np.average((target - mean) ** 2, axis=0, weights=weights)
        error = np.average((scores - target) ** 2, axis=0, weights=weights)
        varies = spread > 0
        return float(np.mean(np.where(varies, 1 - error / np.where(varies, spread, 1), 0)))
