"""Observations as a prediction plus errors, whose distribution is known up to a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from rflaf.arrays import Array
from rflaf.distributions.base import Distribution
from rflaf.distributions.shape import ErrorShape


@final
@dataclass(frozen=True, repr=False)
class ErrorDistribution(Distribution):
    """The distribution of prediction + scale × error.

    Attributes
    ----------
    prediction, scale : array, n × C
    shapes : list of C ErrorShape
        The distributions of errors divided by their scale.
    single : bool
        Whether arrays have one number per row.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.distributions import ErrorDistribution, ErrorShape
    >>> found = ErrorDistribution(np.array([[3.0]]), np.array([[2.0]]), [ErrorShape.normal()])
    >>> found.std.round(3).tolist(), found.cdf(3.0).tolist(), found.crps(3.0).round(3).tolist()
    ([2.0], [0.5], [0.467])
    """

    prediction: Array
    scale: Array
    shapes: Sequence[ErrorShape]
    single: bool = True

    @property
    def mean(self) -> Array:
        middle = np.array([shape.mean for shape in self.shapes])
        return self._shaped(self.prediction + self.scale * middle)

    @property
    def std(self) -> Array:
        return self._shaped(self.scale * np.array([shape.std for shape in self.shapes]))

    def cdf(self, y: Any) -> Array:
        return self._shaped(self._of_errors("cdf", self._errors(y)))

    def logpdf(self, y: Any) -> Array:
        known = np.log(np.where(self.scale > 0, self.scale, 1.0))
        found = self._of_errors("logpdf", self._errors(y, none=0.0)) - known
        # without width all of the probability is at the prediction
        sure = np.where(self._columns(y) == self.prediction, np.inf, -np.inf)
        return self._shaped(np.where(self.scale > 0, found, sure))

    def crps(self, y: Any) -> Array:
        found = self.scale * self._of_errors("crps", self._errors(y, none=0.0))
        return self._shaped(
            np.where(self.scale > 0, found, np.abs(self._columns(y) - self.prediction))
        )

    def _quantile(self, q: Array) -> Array:
        q = q[..., None] if self.single else q
        found = self._of_errors("quantile", np.broadcast_to(q, (len(q), *self.scale.shape)))
        return self._shaped(self.prediction + self.scale * found)

    def _errors(self, y: Any, none: float = np.inf) -> Array:
        """Errors over their scale; without a scale, `none` with their sign."""
        apart = self._columns(y) - self.prediction
        sure = np.where(apart < 0, -none, none)
        return np.divide(apart, self.scale, out=sure, where=self.scale > 0)

    def _columns(self, y: Any) -> Array:
        y = np.asarray(y, np.float64)
        y = y[..., None] if self.single and y.ndim else y
        return np.broadcast_to(y, self.scale.shape)

    def _of_errors(self, method: str, given: Array) -> Array:
        """The method of each target's shape, applied to its column."""
        columns = [getattr(s, method)(given[..., c]) for c, s in enumerate(self.shapes)]
        return np.stack(columns, axis=-1)

    def _shaped(self, values: Array) -> Array:
        return values[..., 0] if self.single else values
