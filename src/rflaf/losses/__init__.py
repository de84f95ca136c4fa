"""Losses, one per file: which targets they take, how far scores are from them, what is predicted.

>>> from rflaf.losses import LOSSES
>>> sorted(LOSSES)
['squared_error']
"""

from rflaf.losses.base import Loss, Quadratic
from rflaf.losses.logistic import Logistic
from rflaf.losses.squared import SquaredError

LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (SquaredError,)}
"""The losses that RFLAFRegressor takes by name."""

__all__ = ["LOSSES", "Logistic", "Loss", "Quadratic", "SquaredError"]
