"""Norms and angles of pairs of points, tile by tile and without cancellation.

Every kernel of the package is a function of |x|, |x'| and the angle between them. The product
x·x' alone will not do: for long, nearly parallel vectors |x|²|x'|² - (x·x')² is the difference of
two large numbers. Here the angle is kept as 1 - cos and 1 + cos, both right to their last digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rflaf.theory._checks import FloatArray

# Pairs in a tile: the dozen temporary arrays of a kernel's formula stay in the processor's cache.
TILE_ROWS, TILE_COLUMNS = 64, 256
NEARLY_PARALLEL = 0.99


@dataclass(frozen=True)
class Pairs:
    """The geometry of a tile of pairs."""

    first: FloatArray  # |x| as a column,
    second: FloatArray  # and |x'| as a row
    minus: FloatArray  # 1 - cos
    plus: FloatArray  # and 1 + cos of the angle between x and x'

    @property
    def cosine(self) -> FloatArray:
        """The cosine of the angle: exactly ±1 for parallel vectors."""
        return np.where(self.minus < 1, 1 - self.minus, self.plus - 1)

    @property
    def product(self) -> FloatArray:
        """x·x'."""
        return self.first * self.second * self.cosine


def norms_and_directions(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """|x| and x / |x| of every row; the direction of the origin is 0."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    largest[largest == 0] = 1.0
    scaled = X / largest
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    directions = scaled / np.where(norms > 0, norms, 1.0)[:, None]
    return norms * largest[:, 0], directions


def tiles(
    X: FloatArray, Y: FloatArray, *, smallest_width: float
) -> Iterator[tuple[slice, slice, Pairs]]:
    """The pairs of X and Y in tiles; where Y is X, only those on and above the diagonal.

    `smallest_width` is the shortest length that matters. The angles of nearly parallel pairs are
    computed again from their difference where the points are much longer than that.
    """
    same = X is Y
    x_norms, x_directions = norms_and_directions(X)
    y_norms, y_directions = (x_norms, x_directions) if same else norms_and_directions(Y)
    # below ten widths the rounding of the cosine moves a kernel by 1e-14 at most
    careful = min(x_norms.max(), y_norms.max()) > 10 * smallest_width
    for i in range(0, len(X), TILE_ROWS):
        rows = slice(i, i + TILE_ROWS)
        for j in range(i if same else 0, len(Y), TILE_COLUMNS):
            columns = slice(j, j + TILE_COLUMNS)
            cosine = x_directions[rows] @ y_directions[columns].T
            np.clip(cosine, -1.0, 1.0, out=cosine)
            plus = 1.0 + cosine
            minus = np.subtract(1.0, cosine, out=cosine)
            if careful:
                _refine(minus, plus, x_directions[rows], y_directions[columns])
            yield rows, columns, Pairs(x_norms[rows, None], y_norms[None, columns], minus, plus)


def mirror(K: FloatArray) -> None:
    """Copy what is above the diagonal of a square array below it, by blocks of a tile's height."""
    for i in range(0, len(K), TILE_ROWS):
        rows = slice(i, i + TILE_ROWS)
        K[i + TILE_ROWS :, rows] = K[rows, i + TILE_ROWS :].T
        block = K[rows, rows]
        block[...] = np.triu(block) + np.triu(block, 1).T


def _refine(minus: FloatArray, plus: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """Of nearly parallel directions 1 - cos = |a - b|²/2, of opposite ones 1 + cos = |a + b|²/2."""
    for gap, other, sign in ((minus, plus, 1.0), (plus, minus, -1.0)):
        close = gap < 1 - NEARLY_PARALLEL
        for i in np.flatnonzero(close.any(axis=1)):
            here = close[i]
            difference = b[here] - sign * a[i]
            gap[i, here] = 0.5 * np.einsum("ij,ij->i", difference, difference)
            other[i, here] = 2.0 - gap[i, here]
