"""Distributions of new observations, as `RFLAFRegressor.predict_dist` returns them.

>>> import numpy as np
>>> from rflaf.distributions import ErrorDistribution, ErrorShape
>>> found = ErrorDistribution(np.zeros((2, 1)), np.array([[1.0], [2.0]]), [ErrorShape.normal()])
>>> found.quantile([0.05, 0.5, 0.95]).round(2).tolist()
[[-1.64, 0.0, 1.64], [-3.29, 0.0, 3.29]]
"""

from rflaf.distributions.base import Distribution
from rflaf.distributions.errors import ErrorDistribution
from rflaf.distributions.positive import CountDistribution, GammaDistribution, SumDistribution
from rflaf.distributions.shape import ErrorShape

__all__ = [
    "CountDistribution",
    "Distribution",
    "ErrorDistribution",
    "ErrorShape",
    "GammaDistribution",
    "SumDistribution",
]
