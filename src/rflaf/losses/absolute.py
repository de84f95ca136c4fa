"""Absolute error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from rflaf.distributions import ErrorShape
from rflaf.losses.robust import Robust


@final
@dataclass(frozen=True)
class AbsoluteError(Robust):
    """|score - target|, whose least is at the median of the targets.

    Nearer than 0.15 of the targets' spread it is a parabola.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.losses import AbsoluteError
    >>> value, slope = AbsoluteError().slopes(np.array([[3.0]]), np.array([[1.0]]))
    >>> value.round(3).tolist(), slope.tolist()
    ([1.925], [[1.0]])
    """

    name = "absolute_error"
    width = 0.15

    def centred(self, shape: ErrorShape) -> ErrorShape:
        """Predictions are medians."""
        return shape.moved(-float(shape.quantile(np.array(0.5))))
