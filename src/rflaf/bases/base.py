"""What a basis is: N functions of one variable on a grid, and how they continue outside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import (
    Interval,
    validate_parameter_constraints,
    validate_params,
)

Array = NDArray[Any]
Tail = Literal["zero", "constant", "linear", "direct"]
Function = TypeVar("Function", bound=Callable[..., Any])


AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")


class Basis(ABC):
    """N functions B_i of one variable.

    A subclass defines `functions` and `tail`, and keeps the constructor's arguments under their
    names; everything else follows.

    Attributes
    ----------
    n : int
        Number of functions.
    low, high : float
        The grid: the interval that the basis is meant to resolve.
    tail : {"zero", "constant", "linear", "direct"}
        What the functions do outside `reach()`: vanish, keep the value at the edge, or keep the
        slope there as well. "direct": the formula itself is evaluated everywhere (powers, a
        cosine).
    learnable : bool
        False for a fixed activation.
    """

    learnable: ClassVar[bool] = True
    tail: Tail
    n: int
    low: float
    high: float

    @abstractmethod
    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        """Yield B_1(z), ..., B_N(z), or their first derivatives (order=1), one at a time.

        `z` is a float array. It lies inside `reach()` where `tail` is "constant" or "linear".
        """

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments that make an equal basis."""
        return {name: getattr(self, name) for name in _arguments(type(self))}

    @property
    def grid(self) -> tuple[float, float]:
        """The interval (low, high)."""
        return self.low, self.high

    @property
    def spacing(self) -> float:
        """The length on which the functions vary; a table's cells are a whole fraction of it."""
        return (self.high - self.low) / max(self.n - 1, 1)

    def reach(self, tol: float) -> tuple[float, float]:
        """The interval outside which `tail` holds, up to `tol` in each function."""
        return self.low, self.high

    def __call__(self, z: ArrayLike) -> Array:
        """The values B_i(z), with the shape of z and a last axis of N."""
        return self._stack(as_float(z), 0)

    def derivative(self, z: ArrayLike) -> Array:
        """The derivatives B_i'(z), with the shape of z and a last axis of N."""
        return self._stack(as_float(z), 1)

    def combine(self, coefficients: Array, z: Array, order: int = 0) -> Array:
        """sum_i a_i B_i(z), or with order=1 its derivative, in memory that does not grow with N."""
        flat = z.reshape(-1)
        total = np.zeros_like(flat)
        with np.errstate(invalid="ignore", over="ignore"):
            for a, values in zip(coefficients, self.functions(self._inside(flat), order)):
                if a != 0:
                    total += z.dtype.type(a) * values
        if self.tail in ("constant", "linear"):
            slopes = np.stack(list(self.functions(np.asarray(self.grid), 1)), -1) @ coefficients
            self._add_tails(total, flat, slopes, order)
        return total.reshape(z.shape)

    def fit(
        self,
        target: Callable[[Array], ArrayLike] | ArrayLike,
        z: ArrayLike | None = None,
        *,
        ridge: float = 0.0,
    ) -> NDArray[np.float64]:
        """Coefficients of the least-squares fit to a function, or to samples of one.

        Parameters
        ----------
        target : callable or array
            A function of z, or its values at the given `z`.
        z : array, optional
            Where to sample. By default max(512, 16 N) points, equally spaced over the grid.
        ridge : float
            Penalty on the squared coefficients, for functions that are nearly dependent.

        Examples
        --------
        >>> import numpy as np
        >>> from rflaf.bases import BSpline
        >>> basis = BSpline(16, degree=3)
        >>> a = basis.fit(np.sin)
        >>> bool(abs(basis(1.0) @ a - np.sin(1.0)) < 1e-3)
        True
        """
        if z is None:
            if not callable(target):
                raise ValueError(
                    "fit got samples as 'target' but no 'z'. Expected the points they belong to."
                )
            z = np.linspace(self.low, self.high, max(512, 16 * self.n))
        points = np.asarray(z, dtype=np.float64).ravel()
        values = np.asarray(target(points) if callable(target) else target, dtype=np.float64)
        values = values.ravel()
        if values.shape != points.shape:
            raise ValueError(
                f"'target' has {values.size} values for {points.size} points 'z'. They must match."
            )
        if not (np.isfinite(points).all() and np.isfinite(values).all()):
            raise ValueError("'z' and 'target' must be finite. Got NaN or infinity.")
        design = self(points)
        if ridge:
            design = np.vstack([design, np.sqrt(ridge * points.size) * np.eye(self.n)])
            values = np.concatenate([values, np.zeros(self.n)])
        return np.linalg.lstsq(design, values, rcond=None)[0].astype(np.float64)

    def _inside(self, z: Array) -> Array:
        if self.tail in ("constant", "linear"):
            return np.clip(z, self.low, self.high)
        return z

    def _stack(self, z: Array, order: int) -> Array:
        flat = z.reshape(-1)
        out = np.empty((flat.size, self.n), dtype=z.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            for i, values in enumerate(self.functions(self._inside(flat), order)):
                out[:, i] = values
        if self.tail in ("constant", "linear"):
            for i, slopes in enumerate(self.functions(np.asarray(self.grid), 1)):
                self._add_tails(out[:, i], flat, slopes, order)
        return out.reshape(*z.shape, self.n)

    def _add_tails(self, out: Array, z: Array, slopes: Any, order: int) -> None:
        """Turn values taken at the clipped z into those of the tail, in place."""
        linear = self.tail == "linear"
        for edge, slope, beyond in zip(self.grid, slopes, (z < self.low, z > self.high)):
            if order == 1:
                out[beyond] = slope if linear else 0.0
            elif linear and slope != 0:  # 0 times infinity must stay 0
                out[beyond] += slope * (z[beyond] - edge)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _hashable(self.parameters()) == _hashable(other.parameters())

    def __hash__(self) -> int:
        return hash((type(self).__name__, _hashable(self.parameters())))

    def __repr__(self) -> str:
        """The number of functions, the grid, and what differs from its default."""
        known = signature(type(self)).parameters
        more = [
            f", {name}={_brief(value)}"
            for name, value in self.parameters().items()
            if name not in ("n", "low", "high")
            and (np.ndim(value) or name not in known or known[name].default != value)
        ]
        size = f"{self.n} on [{self.low:g}, {self.high:g}]"
        return f"{type(self).__name__}({size}{''.join(more)})"


class GridBasis(Basis):
    """A basis whose only parameters are the number of functions and the grid."""

    least: ClassVar[int] = 1  # functions

    def __init__(self, n: int, low: float = -2.0, high: float = 2.0) -> None:
        caller = type(self).__name__
        count = [Interval(Integral, self.least, None, closed="left")]
        constraints = {"n": count, "low": [Real], "high": [Real]}
        check_parameters(caller, constraints, locals())
        self.n = int(n)
        self.low, self.high = check_grid(caller, low, high)


def as_float(z: ArrayLike) -> Array:
    """`z` as an array of float32 or float64, whichever it is; anything else becomes float64."""
    array = np.asarray(z)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"'z' must be an array of real numbers. Got dtype {array.dtype}.")
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4  # of either byte order
    return array.astype(np.float32 if single else np.float64, copy=False)


def check_parameters(
    caller: str, constraints: dict[str, list[Any]], given: Mapping[str, Any]
) -> None:
    """Raise scikit-learn's error for the first bad parameter; `given` may have others as well."""
    wanted = {name: given[name] for name in constraints}
    validate_parameter_constraints(constraints, wanted, caller_name=caller)


def checked(**constraints: list[Any]) -> Callable[[Function], Function]:
    """A decorator that does the same for each call of a function."""
    return validate_params(constraints, prefer_skip_nested_validation=False)


def check_grid(caller: str, low: float, high: float) -> tuple[float, float]:
    """`low` and `high` as floats with low < high, both finite."""
    for name, value in (("low", low), ("high", high)):
        if not np.isfinite(value):
            raise ValueError(f"The {name!r} parameter of {caller} must be finite. Got {value!r}.")
    if not low < high:
        raise ValueError(
            f"The 'low' parameter of {caller} must be less than 'high'. "
            f"Got low={low!r}, high={high!r}."
        )
    return float(low), float(high)


@lru_cache
def _arguments(kind: type[Basis]) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


def _hashable(parameters: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        (name, tuple(value.tolist()) if isinstance(value, np.ndarray) else value)
        for name, value in parameters.items()
    )


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=6, precision=4, separator=", ")
    return f"{value:g}" if isinstance(value, float) else repr(value)
