"""Huber's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rflaf.losses.robust import Robust


@final
@dataclass(frozen=True)
class Huber(Robust):
    """Squared error up to 0.3 of the targets' spread, then absolute error.

    The prediction is a mean that outliers hardly move.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import Huber
    >>> scores, target = np.array([[0.15], [2.0]]), np.zeros((2, 1))
    >>> Huber().slopes(scores, target)[1].tolist()
    [[0.5], [1.0]]
    """

    name = "huber"
    width = 0.3
