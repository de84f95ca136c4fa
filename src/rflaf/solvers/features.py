"""The features of a random layer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf import fused

Array = NDArray[Any]


class FeatureOverflow(ValueError):
    """Features, or sums of their products, are not finite."""


def check_finite(number: float) -> None:
    """Raise where features have overflowed on the way into a sum."""
    if not np.isfinite(number):
        raise FeatureOverflow(
            "The features overflow: the activation is too large on some rows, as high powers are. "
            "Take another basis, such as Chebyshev polynomials, or fewer powers."
        )


def apply_metric(metric: Array, projection: Array) -> Array:
    """L W for a full, diagonal or scalar L."""
    if np.ndim(metric) == 2:
        return np.asarray(metric @ projection)
    return np.asarray(np.reshape(metric, (-1, 1)) * projection)


def project(x: Any, w: Array) -> Array:
    """Z = X W for dense or sparse X."""
    return np.asarray(x @ w)


def features(sigma: fused.Sigma, z: Array, constant: float = 1.0) -> Array:
    """sigma(Z), and behind it a column of `constant`: ones for an intercept, zeros for none."""
    phi = np.empty((z.shape[0], z.shape[1] + 1), z.dtype)
    phi[:, -1] = constant
    fused.apply(sigma, z, out=phi[:, :-1])
    return phi


class KeptBlocks:
    """What was made of blocks of rows, kept from the first time on while there is room.

    In another process nothing is kept: it would be kept for one call only.
    """

    def __init__(self, room: int) -> None:
        self._room = max(room, 0)
        self._found: dict[int, Any] = {}
        self._lock = threading.Lock()

    def get(self, number: int, size: int, make: Callable[[], Any]) -> Any:
        """What `make` has made of the block with this number, or None where there is no room.

        `size` says how many bytes it takes.
        """
        with self._lock:
            if number not in self._found:
                if size > self._room:
                    return None
                self._found[number] = make()
                self._room -= size
            return self._found[number]

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptBlocks, (0,)
