"""Tables as the training kernels take them: for one activation, or for one per channel.

A table has a row for either tail, so that straight lines outside the grid cost nothing. The sums
over cells, which give the gradient for the coefficients, have the same rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rflaf.fused.table import Array, table_frame

_FARTHEST = {"f": 1e30, "d": 1e290}  # where straight tails end, so that nothing overflows


class Tables(NamedTuple):
    """The cubics of C channels on one layout, in the precision of z.

    `cells`, C × (n_cells + 2) × 4, begins and ends with the tails. `frame` says where they lie, as
    that of `rflaf.fused.Table` does.
    """

    cells: Array
    frame: Array


def tables_frame(low: float, cell: float, n_cells: int, straight: bool, dtype: Any) -> Array:
    """The frame of `Tables` of `n_cells` cells, `cell` wide, from `low` on.

    Without `straight` tails z is held in the rows of the tails.
    """
    frame = table_frame(low - cell, cell, n_cells + 1, np.zeros(2))  # the first row is a tail's
    far = _FARTHEST[np.dtype(dtype).char]
    frame[:2] = (-far, far) if straight else (low - cell / 2, low + (n_cells + 0.5) * cell)
    return frame.astype(dtype)
