"""What a solver for the output weights gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Solution:
    """Output weights.

    Attributes
    ----------
    coef : array, M × C
    intercept : array, C
    alpha : float
        The penalty used.
    path : list of dict
        What was tried on the way there: "alpha" and "loss" of each, and what the solver adds.
    scale : float
        What W is to be multiplied by, where the solver was asked to choose that.
    honest : array, M + 1 × C, optional
        Weights, intercept last, that the rows which chose the penalty have no part in.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    alpha: float
    path: list[dict[str, Any]] = field(default_factory=list)
    scale: float = 1.0
    honest: NDArray[np.float64] | None = None
