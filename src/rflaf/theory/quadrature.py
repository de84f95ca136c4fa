"""Kernels without a closed form, by Gauss-Hermite quadrature in one dimension.

With g_n(s) = E[sigma(s z) He_n(z)] / √n! for a standard normal z, Mehler's formula is
E[sigma(w·x) sigma(w·x')] = sum_n g_n(|x|) g_n(|x'|) cos^n. Quadrature is needed per point,
not per pair, and the result is positive semidefinite for any error. One more term has what the
omitted terms would add to the diagonal, so that the diagonal is exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import roots_hermitenorm
from sklearn.exceptions import ConvergenceWarning

from rflaf.activation import Activation
from rflaf.theory._checks import FloatArray
from rflaf.theory._pairs import mirror, norms_and_directions, tiles
from rflaf.theory.hermite import hermite_terms

NODES_PER_TERM = 16
ROWS_AT_ONCE = 256
LARGEST_REST = 0.05


class HermiteSeries:
    """The kernel of any activation, by a series of `n_terms` terms."""

    def __init__(self, activation: Activation, n_terms: int) -> None:
        self.activation, self.n_terms = activation, n_terms

    def matrix(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        features = self._features(X)
        self._warn_of_a_large_rest(X, features)
        return self._pair(X, Y, features, features if Y is X else self._features(Y), Y is X)

    def diagonal(self, X: FloatArray) -> FloatArray:
        return np.square(self._features(X)).sum(axis=1)

    def derivatives(self, X: FloatArray) -> FloatArray:
        basis, features = self.activation.basis, self._features(X)
        changes: list[Callable[[FloatArray], FloatArray]] = [
            Activation(basis, unit) for unit in np.eye(basis.n)
        ]
        changes.append(lambda z: z * self.activation.derivative(z))
        out = np.empty((len(X), len(X), basis.n + 1))
        for i, change in enumerate(changes):
            half = self._pair(X, X, self._directional(X, features, change), features, False)
            out[:, :, i] = half + half.T
        return out

    def _warn_of_a_large_rest(self, X: FloatArray, features: FloatArray) -> None:
        """Only the last feature is inexact; it matters for nearly parallel points only."""
        squares = np.square(features)
        share = squares[:, -1] / np.maximum(squares.sum(axis=1), np.finfo(float).tiny)
        worst = int(np.argmax(share))
        if share[worst] > LARGEST_REST:
            warnings.warn(
                f"n_hermite={self.n_terms} terms leave {share[worst]:.0%} of the kernel's diagonal "
                f"at an input of norm {np.linalg.norm(X[worst]):.3g}, so that nearly parallel "
                "points may be off by as much. Expected smaller inputs or more terms.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _features(self, X: FloatArray) -> FloatArray:
        """g_n(|x|) for every row, and the root of what is left of E[sigma²]."""
        norms = norms_and_directions(X)[0]

        def one_block(rows: slice) -> FloatArray:
            values = _evaluate(self.activation, norms[rows], self.n_terms)
            g = values @ _weighted_hermite(self.n_terms)
            rest = np.square(values) @ _nodes(self.n_terms)[1] - np.square(g).sum(axis=1)
            return np.column_stack([g, np.sqrt(np.maximum(rest, 0.0))])

        return _by_blocks(one_block, len(X))

    def _directional(
        self, X: FloatArray, features: FloatArray, change: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """The derivative of the features when sigma moves along the function `change`."""
        norms = norms_and_directions(X)[0]

        def one_block(rows: slice) -> FloatArray:
            here = features[rows]
            values = _evaluate(self.activation, norms[rows], self.n_terms)
            moved = _evaluate(change, norms[rows], self.n_terms)
            slope = moved @ _weighted_hermite(self.n_terms)
            rest = (values * moved) @ _nodes(self.n_terms)[1]
            rest -= np.einsum("ij,ij->i", slope, here[:, :-1])
            tail = here[:, -1]
            # a tail of rounding errors alone has no direction
            known = tail > 1e-7 * np.sqrt(np.square(here).sum(axis=1))
            return np.column_stack([slope, np.where(known, rest / np.where(known, tail, 1.0), 0.0)])

        return _by_blocks(one_block, len(X))

    def _pair(
        self, X: FloatArray, Y: FloatArray, left: FloatArray, right: FloatArray, same: bool
    ) -> FloatArray:
        """sum_n left_n(x) right_n(x') cos^n, by Horner from the last term."""
        K = np.empty((len(X), len(Y)))
        for rows, columns, pairs in tiles(X, X if same else Y.view(), smallest_width=np.inf):
            cosine = pairs.cosine
            total = np.zeros_like(cosine)
            a, b = left[rows].T[:, :, None], right[columns].T[:, None, :]
            for n in range(self.n_terms, -1, -1):
                total *= cosine
                total += a[n] * b[n]
            K[rows, columns] = total
        if same:
            mirror(K)
        return K


def _by_blocks(function: Callable[[slice], FloatArray], n: int) -> FloatArray:
    return np.vstack([function(slice(i, i + ROWS_AT_ONCE)) for i in range(0, n, ROWS_AT_ONCE)])


def _evaluate(
    function: Callable[[FloatArray], FloatArray], norms: FloatArray, n_terms: int
) -> FloatArray:
    """The function at |x| times every node."""
    values = function(norms[:, None] * _nodes(n_terms)[0])
    if not np.isfinite(values).all():
        raise ValueError(
            "The activation overflows at inputs of the size of 'X'. Expected smaller inputs, or a "
            "smaller 'input_scale'."
        )
    return values


@lru_cache(maxsize=8)
def _nodes(n_terms: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Hermite nodes and weights for a standard normal, without those of no weight."""
    z, weights = roots_hermitenorm(NODES_PER_TERM * n_terms)
    weights = weights / weights.sum()
    keep = weights > 1e-80
    return z[keep], weights[keep]


@lru_cache(maxsize=8)
def _weighted_hermite(n_terms: int) -> FloatArray:
    """w_k He_n(z_k)/√n!, one row per node."""
    z, weights = _nodes(n_terms)
    columns = [np.ldexp(m, e.astype(int)) for m, e in hermite_terms(n_terms, z)]
    return np.column_stack(columns) * weights[:, None]
