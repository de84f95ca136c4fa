"""Deviances for counts and other non-negative targets: Poisson, gamma and Tweedie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from rflaf.distributions import (
    CountDistribution,
    Distribution,
    ErrorShape,
    GammaDistribution,
    SumDistribution,
)
from rflaf.losses.base import Array, Float64, Loss
from rflaf.losses.numbers import check_one_column, largest_size
from rflaf.rows import Sample

_RATES = 1.5  # power of the distribution of rates
_MOST_DOUBT = 2.0  # times a prediction: the deviation that doubts beyond the rows add
_RAREST = 1e-9  # mean of a fold without events, in units of that of all rows


@dataclass(frozen=True)
class Deviance(Loss):
    """Half the unit deviance of a mean m = exp(score) with a variance in proportion to m^power.

    Attributes
    ----------
    unit : float
        The mean of the targets, which is their unit.
    power : float
        1: Poisson; between 1 and 2: compound Poisson-gamma; 2: gamma.
    whole : bool
        Whether all targets are integers.
    """

    unit: float = 1.0
    whole: bool = False
    power: float = field(default=1.0, init=False)

    lowest = 0.0
    needs_all_kinds = True
    outputs = 1

    def check(self, y: Any) -> Array:
        return check_one_column(self.name, y)

    def check_values(self, y: Array, first: int = 0) -> None:
        bad = y <= 0 if self.power >= 2 else y < 0
        if bad.any():
            row = int(np.argmax(bad))
            what = "positive targets" if self.power >= 2 else "targets that are not negative"
            raise ValueError(
                f"loss={self.name!r} takes {what}. Got {y[row]:g} in row {first + row}."
            )

    def opened(self, sample: Sample, fit_intercept: bool) -> Deviance:
        largest = float(largest_size(sample.y))
        if not largest > 0:
            raise ValueError(f"loss={self.name!r} needs positive targets. Got only zeros.")
        mean = largest * float(np.average(sample.y / largest, weights=sample.weights))
        whole = bool(np.all(sample.y == np.round(sample.y)))
        return replace(self, unit=mean if fit_intercept else 1.0, whole=whole)

    def encode(self, y: Array, weights: Array) -> tuple[Array, Array]:
        return y / self.unit, weights

    def slopes(self, scores: Float64, target: Array) -> tuple[Float64, Float64]:
        score, power = scores[:, 0], self.power
        mean, rest = _exp((2 - power) * score), target * _exp((1 - power) * score)
        if power == 1:
            value = mean - target + xlogy(target, target) - target * score
        elif power == 2:
            value = rest - 1 - np.log(target) + score
        else:
            least = target ** (2 - power) / ((2 - power) * (power - 1))
            value = mean / (2 - power) + rest / (power - 1) - least
        return value, (mean - rest)[:, None]

    def curvature(self, scores: Float64, target: Array) -> Float64:
        mean = (2 - self.power) * _exp((2 - self.power) * scores)
        return mean + (self.power - 1) * target[:, None] * _exp((1 - self.power) * scores)

    def constant(self, target: Array, weights: Array) -> Float64:
        mean = np.average(target, weights=weights, keepdims=True)
        return np.log(np.maximum(mean, _RAREST))

    def kinds(self, target: Array) -> NDArray[np.intp] | None:
        """Zeros and others, if these are rare."""
        events = target > 0
        return None if 2 * np.count_nonzero(events) > len(events) else events.astype(np.intp)

    def doubts(self, target: Array) -> str | None:
        if np.count_nonzero(target) > 1:
            return None
        return f"loss={self.name!r} has one positive target: its predictions may be far too low."

    def score(self, scores: Float64, target: Array, weights: Array) -> float:
        # zeros alone are no evidence: the best constant is as low as can be
        return super().score(scores, target, weights) if target.any() else 0.0

    def in_units(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        return coef, intercept + np.log(self.unit)

    def predict(self, scores: Array) -> Array:
        return np.exp(scores[:, 0])

    def moved(self, scores: Array, by: Array) -> Array:
        # the upper end of a gamma distribution falls where the deviation is many times the mean
        return np.exp(scores) * np.minimum(np.expm1(np.minimum(by, 50.0)), _MOST_DOUBT)

    def error_scale(self, prediction: Array) -> Array:
        return prediction ** (self.power / 2)

    def distribution(
        self, prediction: Array, std: Array, shapes: Sequence[ErrorShape]
    ) -> Distribution:
        """That of the loss; for rates, which are no counts, a sum of gamma variables."""
        mean, std = prediction[:, 0], std[:, 0]
        if self.power >= 2:
            return GammaDistribution(mean, std)
        if self.power == 1 and self.whole:
            return CountDistribution(mean, std)
        return SumDistribution(mean, std, self.power if self.power > 1 else _RATES)

    def export(self, graph: Any, scores: str) -> str:
        return str(graph.add("Exp", scores))


def _exp(values: Array) -> Array:
    """Finite: infinity times a target of zero would be NaN."""
    return np.exp(np.minimum(values, 700.0))


@final
@dataclass(frozen=True)
class Poisson(Deviance):
    """exp(score) - target score, up to a constant: for counts, and rates weighted by exposure.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import Poisson
    >>> value, slope = Poisson().slopes(np.zeros((2, 1)), np.array([1.0, 3.0]))
    >>> value.round(3).tolist(), slope.tolist()
    ([0.0, 1.296], [[0.0], [-2.0]])
    """

    name = "poisson"


@final
@dataclass(frozen=True)
class Gamma(Deviance):
    """score + target exp(-score), up to a constant: for positive targets and relative errors."""

    power: float = field(default=2.0, init=False)

    name = "gamma"


@final
@dataclass(frozen=True)
class Tweedie(Deviance):
    """For sums of claims and the like: many zeros, and positive targets."""

    power: float = 1.5

    name = "tweedie"
