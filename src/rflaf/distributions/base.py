"""What every predictive distribution offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Distribution(ABC):
    """The distribution of a new observation at each of some rows.

    Arrays have the shape of the predictions: n, or n × C for several targets. Distributions of
    several targets are those of each target alone. Nothing can be set.
    """

    @property
    @abstractmethod
    def mean(self) -> Array:
        """The mean of each row's distribution."""

    @property
    @abstractmethod
    def std(self) -> Array:
        """The standard deviation of each row's distribution."""

    @abstractmethod
    def cdf(self, y: Any) -> Array:
        """The probability of an observation of at most y, which is broadcast to the rows."""

    @abstractmethod
    def logpdf(self, y: Any) -> Array:
        """The logarithm of the density at y; where y has a probability of its own, of that."""

    @abstractmethod
    def crps(self, y: Any) -> Array:
        """The continuous ranked probability score of observations y; lower is better.

        It has the unit of y, and is the absolute error where a distribution has no width.
        """

    @abstractmethod
    def _quantile(self, q: Array) -> Array:
        """Quantiles for levels that are broadcast against the rows, in the last dimensions."""

    def quantile(self, q: Any) -> Array:
        """The quantiles of one level, or of several in a last dimension of their own.

        Parameters
        ----------
        q : float or array of k
            Levels between 0 and 1.

        Returns
        -------
        array, n or n × C; with k levels n × k or n × C × k
        """
        q = np.asarray(q, np.float64)
        if q.ndim > 1 or not ((q > 0) & (q < 1)).all():
            raise ValueError(f"'q' must be levels between 0 and 1. Got {q.tolist()}.")
        rows = self.mean.ndim
        found = self._quantile(q.reshape(-1, *[1] * rows))
        return found[0] if q.ndim == 0 else np.moveaxis(found, 0, -1)

    def interval(self, coverage: float = 0.9) -> tuple[Array, Array]:
        """The ends of intervals that hold a share `coverage`, with as much below as above."""
        if not 0 < coverage < 1:
            raise ValueError(f"'coverage' must lie between 0 and 1. Got {float(coverage)}.")
        ends = self._quantile(
            np.array([(1 - coverage) / 2, (1 + coverage) / 2]).reshape(2, *[1] * self.mean.ndim)
        )
        return ends[0], ends[1]

    def sample(self, size: int = 1, rng: Any = None) -> Array:
        """Random observations, `size` for each row, in a first dimension of their own.

        Parameters
        ----------
        size : int
        rng : numpy Generator, int or None
            Where the draws come from, or a seed.
        """
        rng = np.random.default_rng(rng)
        return self._quantile(1 - rng.random((size, *self.mean.shape)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {' × '.join(map(str, self.mean.shape))} observations>"
