"""Losses: which targets they take, how far scores are from them, what is predicted.

>>> from rflaf.losses import LOSSES
>>> sorted(LOSSES)
['absolute_error', 'gamma', 'huber', 'poisson', 'quantile', 'squared_error', 'tweedie']
"""

from rflaf.losses.base import Loss, Quadratic
from rflaf.losses.deviance import Gamma, Poisson, Tweedie
from rflaf.losses.logistic import Logistic, class_metrics
from rflaf.losses.robust import AbsoluteError, Huber, Quantile
from rflaf.losses.squared import SquaredError

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (SquaredError, AbsoluteError, Huber, Quantile, Poisson, Gamma, Tweedie)
}
"""The losses that RFLAFRegressor takes by name."""

__all__ = [
    "LOSSES",
    "AbsoluteError",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quadratic",
    "Quantile",
    "SquaredError",
    "Tweedie",
    "class_metrics",
]
