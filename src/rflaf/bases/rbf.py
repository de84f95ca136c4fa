"""Gaussian radial basis functions exp(-(z - c_i)² / (2 h_i²))."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from rflaf.bases.base import AT_LEAST_ONE, Array, Basis, check_grid, check_parameters


@final
class RBF(Basis):
    """N Gaussians with given centres and widths.

    Parameters
    ----------
    n : int, optional
        Number of centres; optional if `centers` is given.
    low, high : float
        First and last of the equally spaced centres; ignored if `centers` is given.
    width : float or array of n, optional
        The h in exp(-(z-c)²/(2h²)). Default: the spacing of the centres (for given centres, the
        mean spacing; for a single one, the length of the grid).
    centers : array of n, optional
        Centres in any position, in increasing order.

    Examples
    --------
    >>> RBF.paper(16)
    RBF(17 on [-2, 2])
    >>> RBF(centers=[-1.0, 0.0, 0.3], width=[0.5, 0.2, 0.2])(0.0).shape
    (3,)
    """

    tail = "zero"

    def __init__(
        self,
        n: int | None = None,
        low: float = -2.0,
        high: float = 2.0,
        width: float | ArrayLike | None = None,
        centers: ArrayLike | None = None,
    ) -> None:
        check_parameters(
            "RBF",
            {
                "n": [AT_LEAST_ONE, None],
                "low": [Real],
                "high": [Real],
                "width": [Interval(Real, 0, None, closed="neither"), "array-like", None],
                "centers": ["array-like", None],
            },
            locals(),
        )
        if centers is None:
            if n is None:
                raise ValueError("RBF needs 'n', the number of centres, or 'centers'. Got neither.")
            low, high = check_grid("RBF", low, high)
            at = np.linspace(low, high, n) if n > 1 else np.array([(low + high) / 2])
        else:
            at = _check_vector("centers", centers, n)
            if (np.diff(at) <= 0).any():
                raise ValueError("The 'centers' parameter of RBF must be in increasing order.")
            low, high = (at[0], at[-1]) if at.size > 1 else check_grid("RBF", low, high)
        self._given_centers = centers is not None
        self.n, self.low, self.high, self.centers = at.size, float(low), float(high), at
        usual = (self.high - self.low) / max(self.n - 1, 1)
        width = usual if width is None else width
        if np.ndim(width):
            self.width: float | Array = _check_vector("width", width, self.n)
            if (self.width <= 0).any():
                raise ValueError("The 'width' parameter of RBF must be positive.")
        else:
            self.width = float(width)  # type: ignore[arg-type]
        self._default_width = not np.ndim(width) and self.width == usual
        self.centers.setflags(write=False)

    @classmethod
    def paper(cls, intervals: int) -> RBF:
        """What the paper calls RBF-16 for 16 intervals: 17 Gaussians on [-2, 2], h = 4/16.

        Parameters
        ----------
        intervals : int
            The number in the paper's name, one less than that of the functions.

        Examples
        --------
        >>> from rflaf.bases import RBF
        >>> RBF.paper(16).n, RBF.paper(16).width
        (17, 0.25)
        """
        if intervals < 1:
            raise ValueError(f"'intervals' must be at least 1. Got {intervals}.")
        return cls(intervals + 1)

    @property
    def spacing(self) -> float:
        return float(np.min(self.width))

    def reach(self, tol: float) -> tuple[float, float]:
        radius = self.width * np.sqrt(2 * np.log(1 / min(tol, 0.5)))
        return float(np.min(self.centers - radius)), float(np.max(self.centers + radius))

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        for c, h in zip(self.centers.tolist(), np.broadcast_to(self.width, self.n).tolist()):
            # 39 widths away the value underflows; the clip keeps inf * 0 out of the derivative
            u = np.clip((z - c) / h, -40.0, 40.0)
            value = np.exp(-0.5 * u * u)
            yield -u / h * value if order else value

    def parameters(self) -> dict[str, Any]:
        if self._given_centers:
            return {"centers": self.centers, "width": self.width}
        given = {"n": self.n, "low": self.low, "high": self.high}
        return given if self._default_width else {**given, "width": self.width}


def _check_vector(name: str, given: Any, n: int | None) -> Array:
    vector = np.array(given, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0 or n not in (None, vector.size):
        raise ValueError(
            f"The {name!r} parameter of RBF must be a vector of {n or 'one or more'} numbers. "
            f"Got shape {vector.shape}."
        )
    if not np.isfinite(vector).all():
        raise ValueError(f"The {name!r} parameter of RBF must be finite. Got NaN or infinity.")
    return vector
