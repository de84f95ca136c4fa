"""Fixed activations: bases of one function, with nothing to learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import ClassVar, final

import numpy as np
from scipy.special import expit, ndtr
from sklearn.utils._param_validation import Interval, StrOptions

from rflaf.bases.base import Array, Basis, check_grid, check_parameters


def _vanish_at_minus_inf(z: Array, values: Array) -> Array:
    """z times something that tends to 0 faster; at -inf the product is NaN, its limit 0."""
    return np.where(np.isneginf(z), z.dtype.type(0), values)


def _relu_slope(z: Array) -> Array:
    return np.where(np.isnan(z), z, (z > 0).astype(z.dtype))


def _silu_slope(z: Array) -> Array:
    s = expit(z)
    return np.where(np.isinf(z), s, s + z * s * (1 - s))


def _gaussian(z: Array) -> Array:
    return np.exp(-0.5 * z * z)


def _gelu_slope(z: Array) -> Array:
    return np.where(np.isinf(z), ndtr(z), ndtr(z) + z * _gaussian(z) / np.sqrt(2 * np.pi))


# NumPy and SciPy ufuncs over a float array
FIXED_ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "relu": (lambda z: np.maximum(z, z.dtype.type(0)), _relu_slope),
    "cos": (np.cos, lambda z: -np.sin(z)),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "sigmoid": (expit, lambda z: expit(z) * expit(-z)),
    "silu": (lambda z: _vanish_at_minus_inf(z, z * expit(z)), _silu_slope),
    "gelu": (lambda z: _vanish_at_minus_inf(z, z * ndtr(z)), _gelu_slope),
    "softplus": (lambda z: np.logaddexp(z, z.dtype.type(0)), expit),
    "elu": (
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, z.dtype.type(0)))),
        lambda z: np.exp(np.minimum(z, z.dtype.type(0))),
    ),
    "gaussian": (_gaussian, lambda z: np.where(np.isinf(z), 0 * _gaussian(z), -z * _gaussian(z))),
}
"""Name of each fixed activation, with its function and derivative."""

# Phases that `with_phase` gives to even functions: with an even sigma every model is even in X W,
# and learns nothing of odd functions. A quarter of pi makes (cos z + sin z) / sqrt(2), whose random
# features have the Gaussian kernel.
EVEN_PHASES = {"cos": -np.pi / 4, "gaussian": -1.0}


@final
class Fixed(Basis):
    """One of the usual activations, by name, as a basis of a single function.

    Parameters
    ----------
    name : str
        relu, cos, tanh, sigmoid, silu, gelu (exact), softplus, elu or gaussian (exp(-z²/2)).
    low, high : float
        The range shown in plots. They do not change the function.
    phase : float
        The function is taken at z + phase.

    Examples
    --------
    >>> Fixed("relu")([-1.0, 2.0])
    array([[0.],
           [2.]])
    """

    learnable: ClassVar[bool] = False
    tail = "direct"
    n = 1

    def __init__(self, name: str, low: float = -2.0, high: float = 2.0, phase: float = 0.0) -> None:
        constraints = {
            "name": [StrOptions(set(FIXED_ACTIVATIONS))],
            "phase": [Interval(Real, None, None, closed="neither")],
        }
        check_parameters("Fixed", constraints, locals())
        self.name, self.phase = name, float(phase)
        self.low, self.high = check_grid("Fixed", low, high)

    @classmethod
    def with_phase(cls, name: str, low: float = -2.0, high: float = 2.0) -> Fixed:
        """The activation `name` for random features: even functions get a phase.

        `low` and `high` are as for the class.
        """
        return cls(name, low, high, EVEN_PHASES.get(name, 0.0))

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        if self.phase:
            z = z + z.dtype.type(self.phase)
        with np.errstate(invalid="ignore"):
            yield FIXED_ACTIVATIONS[self.name][order](z).astype(z.dtype, copy=False)

    def combine(self, coefficients: Array, z: Array, order: int = 0) -> Array:
        value = next(self.functions(z, order))
        scale = float(coefficients[0])
        return value if scale == 1 else value * z.dtype.type(scale)

    def __repr__(self) -> str:
        phase = f", phase={self.phase:.4g}" if self.phase else ""
        return f"Fixed({self.name!r}{phase})"
