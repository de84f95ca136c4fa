"""A preconditioner from a sample of rows.

With the features B of s rows, centred and over the root of s, B'B is an estimate of the second
moments that decide how slowly conjugate gradients go, and (B'B + mu)^-1 costs two products with B
and one s × s Cholesky factor, by Woodbury's identity: no M × M matrix is made.
"""

from __future__ import annotations

import numpy as np

from rflaf.arrays import Array, Float64
from rflaf.solvers.features import check_finite
from rflaf.solvers.linalg import factorise, solve_factored


class SampledRows:
    """(B'B + mu)^-1 for the centred features of some rows, s × M, times the roots of weights."""

    def __init__(self, features: Array) -> None:
        self.rows = features
        self.gram = np.zeros((len(features), len(features)))
        step = max(1, (1 << 25) // max(len(features), 1))
        for start in range(0, features.shape[1], step):
            part = features[:, start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                self.gram += part @ part.T  # float32 will do: no more than a guess is needed
        self.gram /= max(len(features), 1)
        check_finite(float(np.sum(self.gram)))
        # The pivots of a Cholesky factorisation are the mean squares of each row outside the span
        # of the rows before it, over s. The later half estimates what the sample leaves out.
        pivots = np.diag(factorise(self.gram.copy())) ** 2
        self.rest = float(np.mean(pivots[len(pivots) // 2 :]))

    def damp(self, alpha: float) -> None:
        """Set mu: alpha, or, where that is more, what rows keep outside of the sample's span.

        A sample says nothing about directions outside of its span, and too much about its own last
        ones. With mu = alpha, a small alpha leaves the former far too large beside all others, and
        several times as many iterations are needed.
        """
        self.mu = max(alpha, self.rest)
        self.factor = factorise(self.gram.copy(), self.mu)

    def __call__(self, r: Float64) -> Float64:
        n = len(self.rows)
        step = max(1, (1 << 22) // self.rows.shape[1])
        parts = [slice(k, min(k + step, n)) for k in range(0, n, step)]
        inner = np.empty((n, r.shape[1]))
        for at in parts:
            inner[at] = self.rows[at].astype(np.float64) @ r
        inner = solve_factored(self.factor, inner)
        out = r.copy()
        for at in parts:
            out -= self.rows[at].astype(np.float64).T @ (inner[at] / n)
        return out / self.mu
