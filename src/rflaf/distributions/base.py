"""What every predictive distribution offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rflaf.arrays import Array


class Distribution(ABC):
    """The distribution of a new observation at each of some rows.

    Arrays have the shape of the predictions: n, or n × C for several targets, each with its own
    marginal distribution. Immutable.
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
        """Probability of an observation of at most y, which is broadcast to the rows."""

    @abstractmethod
    def logpdf(self, y: Any) -> Array:
        """Logarithm of the density at y, or of the probability where y has a positive one."""

    @abstractmethod
    def crps(self, y: Any) -> Array:
        """The continuous ranked probability score of observations y; lower is better.

        It has the unit of y, and equals the absolute error for a distribution without width.
        """

    @abstractmethod
    def _quantile(self, q: Array) -> Array:
        """Quantiles for levels that are broadcast against the rows, in the last dimensions."""

    def quantile(self, q: Any) -> Array:
        """Quantiles of one level, or of several levels in the last axis.

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
        """Ends of intervals with probability `coverage`, and equal probability below and above."""
        if np.asarray(coverage).dtype.kind != "f" or not 0 < coverage < 1:
            raise ValueError(f"'coverage' must lie between 0 and 1. Got {coverage!r}.")
        return self.quantile((1 - coverage) / 2), self.quantile((1 + coverage) / 2)

    def sample(self, size: int = 1, rng: Any = None) -> Array:
        """Random observations, `size` for each row, in the first axis.

        Parameters
        ----------
        size : int
        rng : numpy Generator, int or None
            Random generator, or a seed.
        """
        rng = np.random.default_rng(rng)
        return self._quantile(1 - rng.random((size, *self.mean.shape)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {' × '.join(map(str, self.mean.shape))} observations>"
