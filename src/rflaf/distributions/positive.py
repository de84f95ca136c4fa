"""Observations that are not negative: counts, positive numbers, and sums with zeros among them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import stats

from rflaf.arrays import Array
from rflaf.distributions.base import Distribution

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANELS = 4  # of the integral on each side
_REST = 1e-9  # probability that is left out of integrals and sums
_LEAST_WIDTH = 1e-12  # relative deviation, of a constant target
_MOST_COUNTS = 10_000  # that are added up one by one


@dataclass(frozen=True, repr=False)
class Positive(Distribution):
    """A family given by the mean (`prediction`) and standard deviation (`deviation`) of n rows."""

    prediction: Array
    deviation: Array

    @property
    def mean(self) -> Array:
        return self.prediction

    @property
    def std(self) -> Array:
        return self.deviation

    @property
    def _inverse_square(self) -> Array:
        """The mean over the standard deviation, squared; finite where there is no deviation."""
        return (self.prediction / np.maximum(self.deviation, _LEAST_WIDTH * self.prediction)) ** 2

    @abstractmethod
    def _survival(self, y: Array) -> Array:
        """The probability of more than y, which is not negative, k × n."""

    def cdf(self, y: Any) -> Array:
        y = np.broadcast_to(np.asarray(y, np.float64), self.prediction.shape)
        return np.where(y < 0, 0.0, 1 - self._survival(np.maximum(y, 0.0)))

    def crps(self, y: Any) -> Array:
        """By quadrature of (cdf - step)² on both sides of y."""
        y = np.broadcast_to(np.asarray(y, np.float64), self.prediction.shape)
        inside = np.maximum(y, 0.0)
        ends = self._quantile(np.array([[_REST], [1 - _REST]]))
        low, top = np.minimum(ends[0], inside), np.maximum(ends[1], inside)
        below = self._integral(low, inside, lambda s: (1 - s) ** 2)
        return below + self._integral(inside, top, np.square) + np.maximum(-y, 0.0)

    def _integral(self, low: Array, high: Array, of: Callable[[Array], Array]) -> Array:
        edges = np.linspace(low, high, _PANELS + 1)
        half = np.diff(edges, axis=0)[:, None] / 2
        at = edges[:-1, None] + half * (1 + _NODES[:, None])
        return np.sum(half * _WEIGHTS[:, None] * of(self._survival(at)), axis=(0, 1))


@final
class GammaDistribution(Positive):
    """The gamma distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.distributions import GammaDistribution
    >>> found = GammaDistribution(np.array([2.0]), np.array([2.0]))  # exponential
    >>> found.quantile(0.5).round(3).tolist()
    [1.386]
    """

    @property
    def _known(self) -> Any:
        shape = self._inverse_square
        return stats.gamma(shape, scale=self.prediction / shape)

    def _survival(self, y: Array) -> Array:
        return self._known.sf(y)

    def logpdf(self, y: Any) -> Array:
        return self._known.logpdf(y)

    def _quantile(self, q: Array) -> Array:
        return self._known.ppf(q)


@final
class CountDistribution(Positive):
    """The negative binomial distribution; Poisson's where the variance is at most the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.distributions import CountDistribution
    >>> found = CountDistribution(np.array([3.0]), np.array([3.0]))
    >>> [end.tolist() for end in found.interval(0.9)]
    [[0.0], [9.0]]
    """

    @property
    def std(self) -> Array:
        return np.maximum(self.deviation, np.sqrt(self.prediction))

    @property
    def _known(self) -> Any:
        # a variance closer to the mean than this is numerically equal to it
        share = np.minimum(self.prediction / self.std**2, 1 - 1e-9)
        return stats.nbinom(self.prediction * share / (1 - share), share)

    def _survival(self, y: Array) -> Array:
        return self._known.sf(y)

    def logpdf(self, y: Any) -> Array:
        # a nearly Poisson variance: differences of huge log gammas would be rounded away
        near = self.std**2 < (1 + 1e-4) * self.prediction
        return np.where(near, stats.poisson(self.prediction).logpmf(y), self._known.logpmf(y))

    def _quantile(self, q: Array) -> Array:
        return self._known.ppf(q)

    def crps(self, y: Any) -> Array:
        """By a sum over counts; y may lie between them. Means above 1,000 count as continuous."""
        y = np.broadcast_to(np.asarray(y, np.float64), self.prediction.shape)
        last = float(np.max(self._quantile(np.array([[1 - _REST]]))))
        if last > _MOST_COUNTS:
            return GammaDistribution(self.prediction, self.std).crps(y)
        total = np.abs(y - np.clip(y, 0.0, last + 1))
        for count in range(int(last) + 1):
            share, below = self._known.cdf(count), np.clip(y - count, 0.0, 1.0)
            total = total + below * share**2 + (1 - below) * (1 - share) ** 2
        return total


@final
@dataclass(frozen=True, repr=False)
class SumDistribution(Positive):
    """Zeros and positive numbers: nearly a compound Poisson-gamma (Tweedie) distribution.

    Mean, variance and the probability of zero are those of a sum of gamma variables, whose number
    is a Poisson variable. Positive sums have a single gamma distribution instead, which is faster.

    Attributes
    ----------
    power : float
        Between 1 and 2. A larger power means fewer and more variable summands.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.distributions import SumDistribution
    >>> found = SumDistribution(np.array([1.0]), np.array([2.0]))
    >>> found.cdf(0.0).round(3).tolist(), found.quantile([0.3, 0.9]).round(1).tolist()
    ([0.607], [[0.0, 3.5]])
    """

    power: float = 1.5

    @property
    def _parts(self) -> tuple[Array, GammaDistribution]:
        """The probability of more than zero, and the distribution of what is."""
        summands = self._inverse_square / (2 - self.power)
        some = -np.expm1(-summands)
        mean = self.prediction / some
        square = self.deviation**2 / some - (1 - some) * mean**2
        return some, GammaDistribution(mean, np.sqrt(square))

    def _survival(self, y: Array) -> Array:
        some, positive = self._parts
        return some * positive._survival(y)

    def logpdf(self, y: Any) -> Array:
        some, positive = self._parts
        y = np.broadcast_to(np.asarray(y, np.float64), self.prediction.shape)
        with np.errstate(divide="ignore"):
            at_zero = np.where(y < 0, -np.inf, np.log1p(-some))
            density = np.log(some) + positive.logpdf(np.where(y > 0, y, 1.0))
        return np.where(y > 0, density, at_zero)

    def _quantile(self, q: Array) -> Array:
        some, positive = self._parts
        return positive._quantile(np.maximum(q - (1 - some), 0.0) / some)
