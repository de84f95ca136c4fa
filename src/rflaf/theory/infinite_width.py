"""The limit M -> infinity of an activation: E[sigma(w·x) sigma(w·x')], one class per form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rflaf.theory._checks import FloatArray
from rflaf.theory._pairs import Pairs, mirror, norms_and_directions, tiles
from rflaf.theory.kernel import cross_values, determinant, quadratic_form

# Multiplying stops after this many widths on either side of a middle centre: the factors stay
# within e^±320 and their rounding errors below 1e-14.
REACH = 8.0
LARGEST_EXPONENT = 320.0


class ClosedForm(ABC):
    """A kernel that is a formula of the norms and the angle.

    `rflaf.theory.quadrature.HermiteSeries` has the same matrix, diagonal and derivatives.
    """

    n_coefficients: int = 1
    smallest_width: float = 1.0

    @abstractmethod
    def values(self, pairs: Pairs) -> FloatArray:
        """K on a tile."""

    @abstractmethod
    def tile_derivatives(self, pairs: Pairs) -> tuple[list[FloatArray], FloatArray]:
        """G_i with dK/da_i = G_i(x, x') + G_i(x', x), and dK/d(log s)."""

    def matrix(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        K = np.empty((len(X), len(Y)))
        for rows, columns, pairs in tiles(X, Y, smallest_width=self.smallest_width):
            K[rows, columns] = self.values(pairs)
        if X is Y:
            mirror(K)
        return K

    def diagonal(self, X: FloatArray) -> FloatArray:
        norms = norms_and_directions(X)[0]
        return self.values(Pairs(norms, norms, np.zeros_like(norms), np.full_like(norms, 2.0)))

    def derivatives(self, X: FloatArray) -> FloatArray:
        """dK/da_i and, last, dK/d(log s) for inputs s·X: an array of shape (n, n, N + 1)."""
        out = np.empty((len(X), len(X), self.n_coefficients + 1))
        # a view of X, for the halves on either side of the diagonal differ
        for rows, columns, pairs in tiles(X, X.view(), smallest_width=self.smallest_width):
            halves, out[rows, columns, -1] = self.tile_derivatives(pairs)
            for i, half in enumerate(halves):
                out[rows, columns, i] = half
        for i in range(self.n_coefficients):
            out[:, :, i] += out[:, :, i].T.copy()
        return out


@dataclass(frozen=True)
class ArcCosine(ClosedForm):
    """a² times the kernel of ReLU, |x||x'|(sin t + (π - t) cos t)/(2π) with the angle t."""

    coefficient: float

    def _plain(self, pairs: Pairs) -> FloatArray:
        angle = 2 * np.arctan2(np.sqrt(pairs.minus), np.sqrt(pairs.plus))
        shape = np.sqrt(pairs.minus * pairs.plus) + (np.pi - angle) * pairs.cosine
        return pairs.first * pairs.second * shape / (2 * np.pi)

    def values(self, pairs: Pairs) -> FloatArray:
        return self.coefficient**2 * self._plain(pairs)

    def tile_derivatives(self, pairs: Pairs) -> tuple[list[FloatArray], FloatArray]:
        plain = self._plain(pairs)
        return [self.coefficient * plain], 2 * self.coefficient**2 * plain


@dataclass(frozen=True)
class Cosine(ClosedForm):
    """a² times the kernel of cos, (e^(-|x-x'|²/2) + e^(-|x+x'|²/2))/2."""

    coefficient: float

    def _squares(self, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """|x - x'|² and |x + x'|²."""
        twice = 2 * pairs.first * pairs.second
        between = np.square(pairs.first - pairs.second)
        return between + twice * pairs.minus, between + twice * pairs.plus

    def values(self, pairs: Pairs) -> FloatArray:
        near, far = self._squares(pairs)
        return 0.5 * self.coefficient**2 * (np.exp(-0.5 * near) + np.exp(-0.5 * far))

    def tile_derivatives(self, pairs: Pairs) -> tuple[list[FloatArray], FloatArray]:
        near, far = self._squares(pairs)
        at_near, at_far = np.exp(-0.5 * near), np.exp(-0.5 * far)
        by_scale = -0.5 * self.coefficient**2 * (near * at_near + far * at_far)
        return [0.5 * self.coefficient * (at_near + at_far)], by_scale


class Group(NamedTuple):
    """Neighbouring centres: `middle` + k times the spacing, for k from `low` on."""

    middle: float
    low: int
    coefficients: FloatArray


class GaussianMixture(ClosedForm):
    """The kernel of sum_i a_i exp(-(z - c_i)²/(2h_i²)): sum_ij a_i a_j E[B_i(w·x) B_j(w·x')].

    Equally spaced centres of one width, the usual case, need no exponential for every pair (i, j):
    the exponent is a quadratic form of two whole numbers, so that its values follow from their
    neighbours by multiplication. Any other centres and widths are summed term by term.
    """

    def __init__(self, centers: FloatArray, widths: FloatArray, coefficients: FloatArray) -> None:
        self.centers, self.widths, self.coefficients = centers, widths, coefficients
        self.n_coefficients = len(coefficients)
        self.smallest_width = float(np.min(widths))
        self.terms = list(zip(coefficients, centers, widths, strict=True))
        self.spacing = _common_spacing(centers, widths)
        self.groups = self._split() if self.spacing else []

    def values(self, pairs: Pairs) -> FloatArray:
        return self._multiply(pairs) if self.spacing else self.sum_of_terms(pairs)

    def sum_of_terms(self, pairs: Pairs) -> FloatArray:
        """The double sum, one closed form at a time."""
        total = np.zeros(np.broadcast_shapes(pairs.first.shape, pairs.second.shape))
        for a, c, h in self.terms:
            for b, d, g in self.terms:
                if a and b:
                    total += a * b * cross_values(pairs, (c, d), (h, g))
        return total

    def tile_derivatives(self, pairs: Pairs) -> tuple[list[FloatArray], FloatArray]:
        shape = np.broadcast_shapes(pairs.first.shape, pairs.second.shape)
        halves, by_scale = [], np.zeros(shape)
        for a, c, h in self.terms:
            half = np.zeros(shape)
            for b, d, g in self.terms:
                value = cross_values(pairs, (c, d), (h, g))
                half += b * value
                if a and b:
                    by_scale += a * b * value * _log_scale_slope(pairs, (c, d), (h, g))
            halves.append(half)
        return halves, by_scale

    def _split(self) -> list[Group]:
        """The centres in groups of nearly equal size that reach `REACH` widths at most."""
        half = int(REACH * self.smallest_width / self.spacing)
        n_groups = -(-len(self.centers) // (2 * half + 1))
        groups = []
        for part in np.array_split(np.arange(len(self.centers)), n_groups):
            at = len(part) // 2
            groups.append(Group(float(self.centers[part[at]]), -at, self.coefficients[part]))
        return groups

    def _multiply(self, pairs: Pairs) -> FloatArray:
        """The double sum by groups; (D + S)⁻¹ = [[alpha, -gamma], [-gamma, beta]]."""
        h, step = self.smallest_width, self.spacing
        det = determinant(pairs, (h, h))
        alpha = (h * h + np.square(pairs.second)) / det
        beta = (h * h + np.square(pairs.first)) / det
        gamma = pairs.product / det
        cross = gamma * (step * step)
        factors = [np.exp(-alpha * step * step), np.exp(-beta * step * step), np.exp(cross)]
        total = np.zeros_like(det)
        for rows in self.groups:
            for columns in self.groups:
                centers = rows.middle, columns.middle
                row_slope = step * (gamma * centers[1] - alpha * centers[0])
                column_slope = step * (gamma * centers[0] - beta * centers[1])
                # the polynomial in _double_sum starts at power 0 where the group starts at `low`
                row_slope += columns.low * cross
                first = np.exp(cross * rows.low)
                part = _double_sum(rows, columns, row_slope, column_slope, first, factors)
                part *= np.exp(-0.5 * quadratic_form(pairs, centers, (h, h)) / det)
                total += part
        total *= h * h / np.sqrt(det)
        return total


def _double_sum(
    rows: Group,
    columns: Group,
    row_slope: FloatArray,
    column_slope: FloatArray,
    first: FloatArray,
    factors: list[FloatArray],
) -> FloatArray:
    """sum_kl a_k a_l exp(...), for every row k a polynomial in exp(gamma step²)^k by Horner."""
    weights = _ladder(column_slope, factors[1], columns)
    for weight, a in zip(weights, columns.coefficients, strict=True):
        weight *= a
    ladder = _ladder(row_slope, factors[0], rows)
    power, total = first.copy(), np.zeros_like(first)
    inner = np.empty_like(first)
    for a, row in zip(rows.coefficients, ladder, strict=True):
        np.copyto(inner, weights[-1])
        for weight in weights[-2::-1]:
            inner *= power
            inner += weight
        row *= a
        inner *= row
        total += inner
        power *= factors[2]
    return total


def _ladder(slope: FloatArray, factor: FloatArray, group: Group) -> list[FloatArray]:
    """exp(slope k) factor^(k²/2) for the k of a group, outwards from k = 0."""
    n, at = len(group.coefficients), -group.low
    # where this clips, the whole group is below 1e-200 at that pair
    slope = np.clip(slope, -LARGEST_EXPONENT / max(at, 1), LARGEST_EXPONENT / max(at, 1))
    root = np.sqrt(factor)
    steps = [np.ones_like(slope)] * n
    for direction, count in ((1, n - 1 - at), (-1, at)):
        ratio = np.exp(direction * slope) * root
        for k in range(1, count + 1):
            steps[at + direction * k] = steps[at + direction * (k - 1)] * ratio
            ratio *= factor
    return steps


def _log_scale_slope(pairs: Pairs, c: tuple[float, float], h: tuple[float, float]) -> FloatArray:
    """d log E[B_1 B_2] / d log s for inputs s·x: -2 + tr(M⁻¹D) + c'u - u'Du, u = M⁻¹c."""
    det = determinant(pairs, h)
    alpha = (h[1] ** 2 + np.square(pairs.second)) / det
    beta = (h[0] ** 2 + np.square(pairs.first)) / det
    gamma = pairs.product / det
    u, v = alpha * c[0] - gamma * c[1], beta * c[1] - gamma * c[0]
    trace = h[0] ** 2 * alpha + h[1] ** 2 * beta
    return trace - 2 + c[0] * u + c[1] * v - (h[0] * u) ** 2 - (h[1] * v) ** 2


def _common_spacing(centers: FloatArray, widths: FloatArray) -> float:
    """The spacing of equally spaced centres of one width; 0 where they are not, or too sparse."""
    if len(centers) < 3 or np.ptp(widths) > 0:
        return 0.0
    spacing = float(centers[-1] - centers[0]) / (len(centers) - 1)
    even = np.abs(centers - np.linspace(centers[0], centers[-1], len(centers))).max()
    if even > 1e-12 * spacing or spacing > REACH * float(widths[0]):
        return 0.0
    return spacing
