"""Ridge regression from sums over rows.

The problem is min over V, b of  sum_i w_i h_i |y_i - V' phi_i - b|² / sum_i w_i + alpha |V|², with
weights w_i and bends h_i, which are 1 for squared error: any loss is such a quadratic near its
least, and sums of it are all that is kept of its rows. Sums over rows, taken block by block in
float64, are all that is needed of the data: streams, weights and clusters are the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rflaf import rules
from rflaf.arrays import Array, Float64
from rflaf.runtime.threads import nobody_helps, parallel
from rflaf.solvers.features import check_finite
from rflaf.solvers.gcv import gcv_losses, spectrum_of_sums
from rflaf.solvers.linalg import solve_positive
from rflaf.solvers.penalty import walk

_TILE = 768  # columns of a tile of a Gram matrix


@dataclass
class NormalEquations:
    """Sums over rows that determine the ridge solution for any penalty.

    Attributes
    ----------
    gram : array, (M + 1) × (M + 1)
        Sum of w phi phi'. The last row and column belong to the intercept.
    moment : array, (M + 1) × C
        Sum of w phi y'.
    square : array of C
        Sum of w y².
    weight : float
        Sum of w.
    rows : int
        Rows with a positive weight.
    single : bool
        Whether products were taken in float32.
    """

    gram: Float64
    moment: Float64
    square: Float64
    weight: float
    rows: int
    single: bool = False

    @classmethod
    def empty(cls, m: int, n_outputs: int) -> NormalEquations:
        """The sums over no rows, for `m` features and `n_outputs` targets."""
        shape = (m + 1, m + 1)
        return cls(np.zeros(shape), np.zeros((m + 1, n_outputs)), np.zeros(n_outputs), 0.0, 0)

    def add(
        self, phi: Array, y: Array, weights: Array | None = None, bend: Array | None = None
    ) -> None:
        """Add rows: `phi` is n × (M + 1) with ones in its last column, y is n × C.

        `bend` is what the squared error of a row is multiplied by besides its weight: the loss of
        a row is quadratic, and bends more or less. The products of a block are taken in the
        features' own precision.
        """
        self.weight += len(y) if weights is None else float(np.sum(weights, dtype=np.float64))
        of_rows = bend if weights is None else weights if bend is None else weights * bend
        if of_rows is None:
            left, weighted_y = phi, y
        else:
            root = np.sqrt(of_rows).astype(phi.dtype)[:, None]
            left, weighted_y = phi * root, y * of_rows[:, None]
        add_gram(self.gram, left)
        self.single |= phi.dtype == np.float32
        with np.errstate(over="ignore", invalid="ignore"):  # `solve` tells
            self.moment += phi.T @ weighted_y.astype(phi.dtype)
        self.square += np.einsum("nc,nc->c", y, weighted_y, dtype=np.float64)
        self.rows += len(y) if weights is None else int(np.count_nonzero(weights))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
            self.weight + other.weight,
            self.rows + other.rows,
            self.single or other.single,
        )

    def penalised(self, alpha: float, fit_intercept: bool = True) -> Float64:
        """gram / weight + alpha, but for the intercept."""
        m = len(self.gram) - 1
        matrix = self.gram / self.weight
        matrix[np.arange(m), np.arange(m)] += alpha
        if not fit_intercept:
            matrix[m, :] = matrix[:, m] = 0
            matrix[m, m] = 1
        return matrix

    def solve(
        self, alpha: float, fit_intercept: bool = True, moment: Float64 | None = None
    ) -> Float64:
        """The weights, (M + 1) × C, intercept last; or those for another `moment`."""
        check_finite(np.trace(self.gram))
        right = (self.moment if moment is None else moment) / self.weight
        if not fit_intercept:
            right[-1] = 0
        # rounding has made eigenvalues of this size negative; sooner known is faster solved
        floor = 1e-8 * float(np.trace(self.gram)) / self.weight / len(self.gram)
        return solve_positive(
            self.penalised(alpha, fit_intercept), right, floor if self.single else 0.0
        )

    def loss(self, weights: Float64) -> Float64:
        """The mean squared error of each output, for weights from anywhere."""
        cross = np.einsum("mc,mc->c", weights, self.moment)
        model = np.einsum("mc,mc->c", weights, self.gram @ weights)
        return np.maximum(self.square - 2 * cross + model, 0) / self.weight


def add_gram(gram: Float64, left: Array) -> None:
    """Add left' left, tile by tile, on all threads; the tiles depend on the width alone."""
    edges = [*range(0, left.shape[1], _TILE), left.shape[1]]
    columns = [slice(a, b) for a, b in pairwise(edges)]
    tiles = [(a, b) for k, a in enumerate(columns) for b in columns[k:]]

    def task(k: int) -> None:
        a, b = tiles[k]
        with np.errstate(over="ignore", invalid="ignore"):
            part = left[:, a].T @ left[:, b]
        gram[a, b] += part
        if a != b:
            gram[b, a] += part.T

    parallel(task, len(tiles))


class Chosen(NamedTuple):
    """The penalty with the least loss on held-out rows, and what was tried."""

    alpha: float
    path: list[dict[str, float]]


def choose_alpha(
    pairs: list[tuple[NormalEquations, NormalEquations]], start: float, fit_intercept: bool = True
) -> Chosen:
    """One penalty for several models, by the least mean loss on held-out rows.

    `pairs` has the sums of rows to fit to and of rows held out, for each model. Penalties are tried
    from `start` on. A trial costs one factorisation per model, and no pass over the rows.
    """
    step = rules.PENALTY_STEP
    shares = np.array([held_out.weight for _, held_out in pairs])
    shares = shares / shares.sum()

    def losses(steps: Sequence[int]) -> list[float]:
        tried = np.zeros((len(steps), len(pairs)))

        def task(i: int) -> None:
            k, model = divmod(i, len(pairs))
            fit, held_out = pairs[model]
            weights = fit.solve(start * step ** steps[k], fit_intercept)
            tried[k, model] = held_out.loss(weights).mean()

        parallel(task, tried.size)
        return [float(total) for total in tried @ shares]

    # below, rounding decides
    sizes = [np.trace(fit.gram) / fit.weight / len(fit.gram) for fit, _ in pairs]
    low = np.log(max(1e-10 * max(sizes), 1e-300) / start) / np.log(step)
    ahead = 2 if len(pairs) == 1 and not nobody_helps() else 1
    walked = walk(losses, low=min(low, 0), most=rules.MOST_PENALTIES, ahead=ahead)
    path = [{"alpha": start * step**k, "loss": walked.losses[k]} for k in sorted(walked.losses)]
    return Chosen(start * step**walked.middle, path)


def gcv_penalty(sums: NormalEquations, fit_intercept: bool) -> Chosen:
    """The penalty by generalised cross-validation, where no rows are held out."""
    m = len(sums.gram) - 1
    alphas = np.trace(sums.gram) / sums.weight / m * 10.0 ** np.arange(-6, 2.5, 0.5)
    losses = gcv_losses(spectrum_of_sums(sums, fit_intercept), alphas)
    path = [{"alpha": float(a), "loss": float(q)} for a, q in zip(alphas, losses)]
    return Chosen(float(alphas[losses.argmin()]), path)
