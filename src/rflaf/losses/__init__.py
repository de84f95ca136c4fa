"""Losses, one per file: which targets they take, how far scores are from them, what is predicted.

>>> from rflaf.losses import LOSSES
>>> sorted(LOSSES)
['absolute_error', 'gamma', 'huber', 'poisson', 'quantile', 'squared_error', 'tweedie']
"""

from rflaf.losses.absolute import AbsoluteError
from rflaf.losses.base import Loss, Quadratic
from rflaf.losses.classes import class_metrics
from rflaf.losses.deviance import Gamma, Poisson, Tweedie
from rflaf.losses.huber import Huber
from rflaf.losses.logistic import Logistic
from rflaf.losses.quantile import Quantile
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
