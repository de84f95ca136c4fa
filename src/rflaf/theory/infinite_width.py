"""The limit M -> infinity of an activation: E[sigma(w·x) sigma(w·x')], one class per form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from rflaf.theory._checks import FloatArray
from rflaf.theory._pairs import Pairs, mirror, norms_and_directions, tiles


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
