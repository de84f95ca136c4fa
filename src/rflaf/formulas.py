"""Formulas for a curve: a f(b z + c) + d, for named functions f, by least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit, ndtr

from rflaf.arrays import Array

_POINTS = 200
_REFINED = 16  # formulas that are refined after a search on a coarse grid of b and c
_ALIKE = 0.003  # errors below this share of the curve's spread justify no further parameter
_PRICE = 0.2  # of a parameter: it must lower the error by about so much


@dataclass(frozen=True)
class Named:
    """A function of the library; what is redundant in b and c is not searched."""

    text: str
    function: Callable[[Array], Array]
    scaled: bool = True
    shifted: bool = True
    mirrored: bool = True  # f(-u) is another function than f(u)


LIBRARY: dict[str, Named] = {
    "line": Named("{}", lambda u: u, scaled=False, shifted=False, mirrored=False),
    "square": Named("({})²", lambda u: u**2, scaled=False, mirrored=False),
    "cube": Named("({})³", lambda u: u**3, scaled=False, mirrored=False),
    "fourth power": Named("({})⁴", lambda u: u**4, scaled=False, mirrored=False),
    "absolute value": Named("|{}|", np.abs, scaled=False, mirrored=False),
    "ReLU": Named("relu({})", lambda u: np.maximum(u, 0), scaled=False),
    # with the default slope of PyTorch
    "leaky ReLU": Named("leaky_relu({})", lambda u: np.maximum(u, 0.01 * u), scaled=False),
    "softplus": Named("softplus({})", lambda u: np.logaddexp(u, 0)),
    "SiLU": Named("silu({})", lambda u: u * expit(u)),
    "GELU": Named("gelu({})", lambda u: u * ndtr(u)),
    "ELU": Named("elu({})", lambda u: np.where(u > 0, u, np.expm1(np.minimum(u, 0)))),
    "sine": Named("sin({})", np.sin, mirrored=False),
    "tanh": Named("tanh({})", np.tanh, mirrored=False),
    "logistic": Named("logistic({})", expit),
    "exponential": Named("exp({})", lambda u: np.exp(np.minimum(u, 50)), shifted=False),
    "Gaussian": Named("exp(-({})²)", lambda u: np.exp(-(u**2)), mirrored=False),
}


@dataclass(frozen=True)
class Formula:
    """a f(b z + c) + d, where f is `LIBRARY[name]`.

    `r2` is R² on the points of the fit. Of a, b, c, d, `n_parameters` were fitted; the others are 1
    or 0.
    """

    name: str
    a: float
    b: float
    c: float
    d: float
    r2: float
    n_parameters: int

    def __call__(self, z: Any) -> Array:
        """The formula's values at z."""
        u = self.b * np.asarray(z, dtype=np.float64) + self.c
        return np.asarray(self.a * LIBRARY[self.name].function(u) + self.d)

    def __str__(self) -> str:
        inner = f"{_factor(self.b)}z{_plus(self.c)}"
        text = LIBRARY[self.name].text
        if inner == "z" and text.startswith("("):
            text = text.replace("({})", "{}")
        return f"{_factor(self.a)}{text.format(inner)}{_plus(self.d)}"


def _factor(number: float) -> str:
    text = f"{number:.3g}"
    return {"1": "", "-1": "-"}.get(text, f"{text} ")


def _plus(number: float) -> str:
    return f" {'-' if number < 0 else '+'} {abs(number):.3g}" if number else ""


def describe(curve: Callable[[Array], Array], points: Array, top: int = 5) -> list[Formula]:
    """The `top` formulas for a curve at the given points, best first; one per function.

    They are ranked by the logarithm of their error, and a price for each parameter.

    Examples
    --------
    >>> import numpy as np
    >>> print(describe(lambda z: 2 * np.tanh(0.5 * z), np.linspace(-3, 3, 50), top=1)[0])
    2 tanh(0.5 z)
    """
    z = np.quantile(np.asarray(points, dtype=np.float64), np.linspace(0.005, 0.995, _POINTS))
    y = np.asarray(curve(z), dtype=np.float64)
    spread = float(np.sqrt(np.mean((y - y.mean()) ** 2)))
    if not spread > 1e-9 * np.abs(y).max(initial=0) or z[0] == z[-1]:
        return []  # a constant
    found = [each for name in LIBRARY for each in _coarse(name, z, y, spread)]
    found = sorted(found, key=_score)[:_REFINED]
    best: dict[str, Formula] = {}
    for each in sorted((_refined(each, z, y, spread) for each in found), key=_score):
        best.setdefault(each.name, each)
    return list(best.values())[:top]


def _score(formula: Formula) -> float:
    error = np.sqrt(max(1 - formula.r2, 0.0))
    return float(np.log(error + _ALIKE) + _PRICE * formula.n_parameters)


def _coarse(name: str, z: Array, y: Array, spread: float) -> list[Formula]:
    """With and without c and d, the best of a grid of b and c."""
    known = LIBRARY[name]
    half = (z[-1] - z[0]) / 2
    scales = np.geomspace(0.25, 16, 25) / half if known.scaled else np.ones(1)
    if known.mirrored:
        scales = np.concatenate([scales, -scales])
    centres = [np.linspace(z[0], z[-1], 21)] if known.shifted else []
    found = []
    for shifts in (np.zeros(1), *centres):
        b, c = np.broadcast_arrays(scales, -shifts[:, None] * scales)
        b, c = b.ravel(), c.ravel()
        values = known.function(b[:, None] * z + c[:, None])
        for constant in (False, True):
            a, d, error = _linear(values, y, constant)
            k = int(np.argmin(error))
            n = 1 + known.scaled + bool(shifts.any()) + constant
            r2 = 1 - float(error[k]) / spread**2
            found.append(Formula(name, a[k], b[k], c[k], d[k], r2, n))
    return found


def _linear(values: Array, y: Array, constant: bool) -> tuple[Array, Array, Array]:
    """a, d and the mean squared error of a f + d, for each row of values of f."""
    mean, level = (values.mean(1), y.mean()) if constant else (np.zeros(len(values)), 0.0)
    centred = values - mean[:, None]
    a = centred @ (y - level) / np.maximum((centred**2).sum(1), 1e-300)
    d = level - a * mean
    return a, d, np.mean((a[:, None] * values + d[:, None] - y) ** 2, axis=1)


def _refined(formula: Formula, z: Array, y: Array, spread: float) -> Formula:
    """The formula with b and c at a minimum of the error nearby; a and d follow from them."""
    known, constant = LIBRARY[formula.name], formula.d != 0
    free = np.array([known.scaled, formula.c != 0])
    start = np.array([formula.b, -formula.c / formula.b])  # scale and centre

    def at(inner: Array) -> tuple[Array, Formula]:
        both = start.copy()
        both[free] = inner
        b, centre = both
        values = known.function(b * (z - centre))
        (a,), (d,), (error,) = _linear(values[None], y, constant)
        c = -float(b * centre) if free[1] else 0.0
        r2 = 1 - float(error) / spread**2
        made = Formula(formula.name, float(a), float(b), c, float(d), r2, formula.n_parameters)
        return (a * values + d - y) / spread, made

    inner = start[free]
    if inner.size:
        room = np.array([0.75 * abs(formula.b), z[-1] - z[0]])[free]  # far off it is another curve
        bounds = (inner - room, inner + room)
        inner = least_squares(lambda p: at(p)[0], inner, bounds=bounds, x_scale=room, max_nfev=30).x
    return at(inner)[1]
