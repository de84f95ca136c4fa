"""The distribution of errors over their scale, as a smooth function of normal quantiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from rflaf import rules
from rflaf.arrays import Array

_FAR = 12.0  # normal quantiles beyond which there is nothing
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class ErrorShape:
    """The distribution of h(Z), Z normal, for an increasing function h.

    h is a rational quadratic spline, which has an inverse in closed form and a continuous slope,
    and goes on as straight lines: quantiles never cross, and the density is positive everywhere.

    Attributes
    ----------
    z, values, slopes : array of k
        Knots, and h and its slope there.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.distributions import ErrorShape
    >>> shape = ErrorShape.of_errors(np.random.default_rng(0).exponential(size=2000))
    >>> shape.quantile(np.array([0.1, 0.5, 0.9])).round(1).tolist()
    [0.1, 0.7, 2.4]
    """

    z: Array
    values: Array
    slopes: Array

    @classmethod
    def normal(cls, std: float = 1.0) -> ErrorShape:
        """A normal distribution with mean 0 and standard deviation `std`."""
        z = np.linspace(-_FAR, _FAR, 25)  # no tails, which would be heavier
        return cls(z, std * z, np.full(len(z), float(std)))

    @classmethod
    def of_errors(cls, errors: Array, weights: Array | None = None) -> ErrorShape:
        """A smooth version of the distribution of some errors."""
        weights = np.ones(len(errors)) if weights is None else weights
        order = np.argsort(errors, kind="stable")
        r, share = errors[order], weights[order] / weights.sum()
        middle = float(share @ r)
        std = float(np.sqrt(share @ (r - middle) ** 2))
        if not std > 0:
            return cls.normal(0.0).moved(middle)
        count = 1 / float(share @ share)  # effective number of rows
        end = float(np.clip(-ndtri(min(rules.TAIL_ERRORS / count, 0.5)), 1.0, rules.LAST_KNOT))
        z = np.linspace(-end, end, 2 * max(round(end / rules.KNOT_STEP), 1) + 1)
        level = np.cumsum(share) - share / 2
        found = np.interp(ndtr(z), level, r)
        # mixed with a normal distribution, so that equal errors make no jump
        part = rules.NORMAL_PART
        values = (1 - part) * found + part * (middle + std * z)
        secants = np.diff(values) / np.diff(z)
        tails = [
            _tail_slope(sign * (r - edge), share * count, end, float(secant))
            for sign, edge, secant in ((-1, found[0], secants[0]), (1, found[-1], secants[-1]))
        ]
        slopes = np.concatenate([tails[:1], np.sqrt(secants[1:] * secants[:-1]), tails[1:]])
        return cls(z, values, slopes)

    def moved(self, by: float) -> ErrorShape:
        """The distribution of errors that are larger by a number."""
        return replace(self, values=self.values + by)

    def scaled(self, by: float) -> ErrorShape:
        """The distribution of errors times `by`, a positive number."""
        return replace(self, values=self.values * by, slopes=self.slopes * by)

    def quantile(self, q: Array) -> Array:
        """The errors that a share q does not exceed."""
        return self.value(ndtri(q))[0]

    def cdf(self, e: Array) -> Array:
        """The share of errors of at most e."""
        return ndtr(self.score(e))

    def logpdf(self, e: Array) -> Array:
        """The logarithm of the density at errors `e`."""
        z = self.score(e)
        with np.errstate(divide="ignore"):  # a distribution without width
            return -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(self.value(z)[1])

    def crps(self, e: Array) -> Array:
        """The continuous ranked probability score of an error: E|H - e| - E|H - H'| / 2."""
        z = self.score(e)
        edges, sums, spread = self._partial_sums()
        at = np.clip(z, -_FAR, _FAR)
        k = np.clip(np.searchsorted(edges, at) - 1, 0, len(edges) - 2)
        below = sums[k] + self._integral(edges[k], at)
        return e * (2 * ndtr(z) - 1) + sums[-1] - 2 * below - spread

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(self._partial_sums()[1][-1])

    @property
    def std(self) -> float:
        """The standard deviation of the errors."""
        edges, mean, unit = self._edges(), self.mean, self._unit
        parts = self._integral(edges[:-1], edges[1:], lambda h, _: ((h - mean) / unit) ** 2)
        return float(np.sqrt(parts.sum())) * unit

    def value(self, z: Array) -> tuple[Array, Array]:
        """h and its slope."""
        z = np.asarray(z, np.float64)
        k, width, rise, secant, first, last = self._segment(self.z, z)
        t = np.clip((z - self.z[k]) / width, 0.0, 1.0)
        both = t * (1 - t)
        under = secant + (first + last - 2 * secant) * both
        under = np.where(under > 0, under, 1.0)  # a distribution without width
        value = self.values[k] + rise * ((secant * t**2 + first * both) / under)
        bent = last * t**2 + 2 * secant * both + first * (1 - t) ** 2
        slope = (secant / under) ** 2 * bent
        for side, end in ((-1, 0), (1, -1)):
            far = np.maximum(side * (z - self.z[end]), 0.0) * rules.TAIL_BEND
            beyond = side * self.slopes[end] * np.expm1(far) / rules.TAIL_BEND
            value = np.where(far > 0, self.values[end] + beyond, value)
            slope = np.where(far > 0, self.slopes[end] * np.exp(far), slope)
        return value, slope

    def score(self, e: Array) -> Array:
        """The z with h(z) = e."""
        e = np.asarray(e, np.float64)
        k, width, *others = self._segment(self.values, e)
        rise, secant, first, last = (each / self._unit for each in others)
        up = np.clip((e - self.values[k]) / self._unit, 0.0, rise)
        bent = first + last - 2 * secant
        a, b, c = rise * (secant - first) + up * bent, rise * first - up * bent, -secant * up
        under = -b - np.sqrt(np.maximum(b**2 - 4 * a * c, 0))
        t = 2 * c / np.where(under < 0, under, 1.0)  # 0 for a distribution without width
        z = self.z[k] + width * t
        for side, end in ((-1, 0), (1, -1)):
            slope = self.slopes[end] if self.slopes[end] > 0 else 1e-300
            far = np.maximum(side * (e - self.values[end]), 0.0) / slope
            beyond = side * np.log1p(far * rules.TAIL_BEND) / rules.TAIL_BEND
            z = np.where(far > 0, self.z[end] + beyond, z)
        return z

    @property
    def _unit(self) -> float:
        """A unit for errors: squares of very large or small ones would be lost."""
        largest = float(np.abs(self.values).max())
        return largest if largest > 0 else 1.0

    def _segment(self, knots: Array, at: Array) -> tuple[Array, ...]:
        """For each number its segment between knots: place, width, rise, secant, two slopes."""
        k = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
        width, rise = np.diff(self.z), np.diff(self.values)
        return k, width[k], rise[k], (rise / width)[k], self.slopes[k], self.slopes[k + 1]

    def _edges(self) -> Array:
        """Points between which h φ is smooth."""
        out = np.array([0.5, 1, 2, 4, 8])
        low, high = self.z[0] - out[::-1], self.z[-1] + out
        return np.concatenate([[-_FAR], low[low > -_FAR], self.z, high[high < _FAR], [_FAR]])

    def _integral(self, low: Array, high: Array, of: Any = lambda h, _: h) -> Array:
        """The integral of a function of h(z) and z, times the normal density."""
        half = (high - low) / 2
        z = (low + half)[..., None] + half[..., None] * _NODES
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return (of(self.value(z)[0], z) * density) @ _WEIGHTS * half

    def _partial_sums(self) -> tuple[Array, Array, float]:
        """Edges, the integral of h φ up to each of them, and E|H - H'| / 2."""
        edges = self._edges()
        sums = np.concatenate([[0.0], np.cumsum(self._integral(edges[:-1], edges[1:]))])
        # E|H - H'| / 2 = E[H (2 Φ(Z) - 1)]
        spread = self._integral(edges[:-1], edges[1:], lambda h, z: h * (2 * ndtr(z) - 1)).sum()
        return edges, sums, float(spread)


def _tail_slope(beyond: Array, rows: Array, end: float, secant: float) -> float:
    """The slope of h beyond its last knot, for the mean error there.

    `beyond` is how far errors lie beyond the knot; some rows of the last segment's slope are added.
    """
    bend = rules.TAIL_BEND
    usual = np.expm1(bend**2 / 2 - bend * end + log_ndtr(bend - end) - log_ndtr(-end)) / bend
    there = beyond > 0
    known = rules.TAIL_PRIOR
    excess = float(rows[there] @ beyond[there]) / usual
    return (excess + known * secant) / (float(rows[there].sum()) + known)
