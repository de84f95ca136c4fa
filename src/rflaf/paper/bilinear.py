"""Find sigma of f(x) = E[v(w) sigma(w·x)] with a standard normal w, for a smooth unknown v.

The weight function is v(w) = sum_k u_k |w·d_k| + p·w for given directions d_k. Given w·x = z, w·d_k
is normal, so that its mean and that of its modulus are formulas, and

    f(x) = sum_ki u_k a_i G_ki(x) + sum_ji p_j a_i H_ji(x)

with integrals G and H over z alone: no w is drawn. The even part of sigma meets |w·d_k| alone, the
odd part w alone. f is bilinear: the products u_k a_i solve a linear problem with a strong penalty,
the matrix nearest to them of rank one is where alternating least squares start, and the penalty on
sigma'' then falls step by step, each solution being the next start.

Neighbouring rows share most of what is wrong with f where its mean over w was taken from samples,
so rows held out at random do not show that a penalty is too weak. Whole cones of directions
are held out, and the strongest penalty wins that is about as good as the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from rflaf.activation import Activation
from rflaf.arrays import Float64
from rflaf.datasets.synthetic import folded_mean

PENALTIES = 10.0 ** np.arange(-3.0, -11.5, -0.5)
N_FOLDS = 5
_CELLS_PER_FOLD = 4
_SLACK = 1.01  # held-out errors so near the least count as equal
_SWEEPS = 25
_SETTLED = 1e-5  # relative change of the products that ends the sweeps
_ROWS_AT_ONCE = 512
_TINY = 1e-12


@dataclass(frozen=True)
class Factors:
    """The even or the odd part: f's share is sum_ki u_k a_i G_ki with a = fold · half."""

    u: Float64
    half: Float64


@dataclass(frozen=True)
class Recovery:
    """What `rflaf.paper.recovery.recover_activation` found.

    f fixes the even and the odd part of sigma up to a factor each. They are given as if both parts
    of v had E[v²] = 1 and v's largest weight in each were positive.

    Attributes
    ----------
    activation : Activation
        sigma.
    directions : array, K × d
        The d_k of v(w) = sum_k even_weights_k |w·d_k| + odd_weights·w.
    even_weights, odd_weights : arrays of K and d
    shares : (float, float)
        Mean squares of what the even and the odd part of sigma contribute to f, over that of y.
        A part whose share is at the level of the error is not known.
    penalty : float
        On sigma''.
    history : list of dict
        The penalties tried, and their held-out loss: mean squared error over the mean of y².
    """

    activation: Activation
    directions: Float64
    even_weights: Float64
    odd_weights: Float64
    shares: tuple[float, float]
    penalty: float
    history: list[dict[str, float]] = field(default_factory=list, repr=False)

    def v(self, w: ArrayLike) -> Float64:
        """The weight function at the rows of w, n × d."""
        w = np.asarray(w, dtype=np.float64)
        return np.abs(w @ self.directions.T) @ self.even_weights + w @ self.odd_weights

    def predict(self, X: ArrayLike) -> Float64:
        """E[v(w) sigma(w·x)] at the rows of X, by quadrature."""
        x = np.asarray(X, dtype=np.float64)
        basis, a = self.activation.basis, self.activation.coefficients
        design = Design(x, basis, self.directions)
        # a fold of an even function has each pair of coefficients once: halving a gives its start
        even, odd = (a + a[::-1]) / 2, (a - a[::-1]) / 2
        out = np.empty(len(x))
        for rows, by_even, by_odd in design.blocks():
            out[rows] = self.even_weights @ (by_even @ even[: (basis.n + 1) // 2]).T
            out[rows] += self.odd_weights @ (by_odd @ odd[: basis.n // 2]).T
        return out


def spread_directions(n: int, d: int, rng: np.random.Generator) -> Float64:
    """n lines through the origin of d dimensions, far apart: unit vectors, one per row."""
    if d == 1:
        return np.ones((1, 1))
    if d == 2:
        angle = np.arange(n) * np.pi / n
        return np.column_stack([np.cos(angle), np.sin(angle)])
    trial = rng.standard_normal((50 * n, d))
    trial /= np.linalg.norm(trial, axis=1, keepdims=True)
    chosen = [0]
    nearest = np.abs(trial @ trial[0])
    for _ in range(n - 1):
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, np.abs(trial @ trial[chosen[-1]]))
    return np.asarray(trial[chosen])


class Design:
    """The integrals G and H for the rows of X, a block of rows at a time.

    Nodes are uniform in log z, because f depends on sigma by z/|x|: they suit short and long rows.
    Below the first there is one more, for the interval down to zero. A row shorter than a
    hundredth of the median is taken to have that length.
    """

    def __init__(self, x: Float64, basis: Any, directions: Float64) -> None:
        self.x, self.directions = x, directions
        norms = np.linalg.norm(x, axis=1)
        self.floor = max(float(np.median(norms)) / 100, _TINY)
        reach = float(np.max(np.abs(basis.reach(1e-9))))
        lowest = self.floor / 20
        step = min(0.1, basis.spacing / basis.high)
        log_z = np.linspace(np.log(lowest), np.log(reach), int(np.log(reach / lowest) / step) + 2)
        width = np.gradient(log_z)
        width[[0, -1]] /= 2
        self.z = np.append(lowest / 2, np.exp(log_z))
        self.weights = np.append(lowest, np.exp(log_z) * width) * np.sqrt(2 / np.pi)
        self.folds = fold_matrices(basis)
        values = np.asarray(basis(self.z))
        self.halves = [values @ fold for fold in self.folds]

    def blocks(self) -> Iterator[tuple[slice, Float64, Float64]]:
        """Rows, and their G (rows × K × half of N) and H (rows × d × half of N)."""
        for start in range(0, len(self.x), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            norms = np.linalg.norm(self.x[rows], axis=1, keepdims=True)
            along = self.x[rows] / np.maximum(norms, _TINY)
            norms = np.maximum(norms, self.floor)
            t = self.z / norms
            density = self.weights * np.exp(-0.5 * t**2) / norms
            even = np.empty((len(t), len(self.directions), self.halves[0].shape[1]))
            for k, direction in enumerate(self.directions):
                cosine = (along @ direction)[:, None]
                spread = np.sqrt(np.clip(1 - cosine**2, 0, None))
                even[:, k] = (density * folded_mean(t * cosine, spread)) @ self.halves[0]
            odd = ((density * t) @ self.halves[1])[:, None, :] * along[:, :, None]
            yield rows, even, odd


def fold_matrices(basis: Any) -> tuple[Float64, Float64]:
    """Maps from the free coefficients of an even and of an odd function to all N.

    They exist where the basis is its own mirror image, B_i(-z) = B_{N+1-i}(z).
    """
    n, at = basis.n, np.linspace(0, basis.high, 4 * basis.n + 1)
    if (
        n < 3
        or basis.tail != "zero"
        or not np.allclose(basis(-at), np.asarray(basis(at))[:, ::-1], atol=1e-9)
    ):
        raise ValueError(
            "The 'basis' parameter must have three functions or more that vanish outside the grid, "
            "and be its own mirror image, as RBF(n) and BSpline(n) are on a grid from -L to L. "
            f"Got {basis!r} instead."
        )
    unit = np.eye(n)
    even = (unit + unit[::-1])[:, : (n + 1) // 2]
    even[n // 2 :, -1] = np.minimum(even[n // 2 :, -1], 1)  # the middle function, once
    odd = (unit - unit[::-1])[:, : n // 2]
    return even, odd


def roughness(basis: Any) -> Float64:
    """The matrix of ∫ sigma''², by differences of sigma'."""
    low, high = basis.reach(1e-6)
    at = np.linspace(low, high, int(np.ceil((high - low) / basis.spacing)) * 4 + 1)
    bends = np.diff(np.asarray(basis.derivative(at)), axis=0)
    return np.asarray(bends.T @ bends / (at[1] - at[0]))


class _Bilinear:
    """Bilinear least squares for both parts together.

    The `sums` of a set of rows are [G y]'[G y], where G has a column for each product u_k a_i: the
    normal equations of these, with y'y in the last corner.
    """

    def __init__(self, design: Design, basis: Any) -> None:
        rough = roughness(basis)
        self.rough = [fold.T @ rough @ fold for fold in design.folds]
        self.counts = [len(design.directions), design.x.shape[1]]
        self.sizes = [half.shape[1] for half in design.halves]
        split = self.counts[0] * self.sizes[0]
        self.size = split + self.counts[1] * self.sizes[1]
        self.slices = [slice(split), slice(split, self.size)]

    def start(self, sums: Float64, penalty: float) -> list[Factors]:
        """The linear problem for all products, and the nearest matrix of rank one."""
        blocks = [np.kron(np.eye(k), rough) for k, rough in zip(self.counts, self.rough)]
        matrix = sums[:-1, :-1] + penalty * sums[-1, -1] * linalg.block_diag(*blocks)
        products = _solve(matrix, sums[:-1, -1])
        parts = []
        for at, k, n in zip(self.slices, self.counts, self.sizes):
            left, values, right = np.linalg.svd(products[at].reshape(k, n), full_matrices=False)
            parts.append(_unit(left[:, 0] * values[0], right[0]))
        return parts

    def improve(self, parts: list[Factors], sums: Float64, penalty: float) -> list[Factors]:
        """One sweep: all halves for the given u, and then all u."""
        matrix, right = self._reduced(sums, parts, "u")
        matrix += penalty * sums[-1, -1] * linalg.block_diag(*self.rough)
        halves = np.split(_solve(matrix, right), [self.sizes[0]])
        units = [_unit(p.u, half) for p, half in zip(parts, halves)]
        us = np.split(_solve(*self._reduced(sums, units, "half")), [self.counts[0]])
        return [Factors(u, p.half) for u, p in zip(us, units)]

    def _reduced(
        self, sums: Float64, parts: list[Factors], given: Literal["u", "half"]
    ) -> tuple[Float64, Float64]:
        """The normal equations for the one factor where the other is given."""

        def contract(array: Float64) -> Float64:
            found = []
            for at, k, n, p in zip(self.slices, self.counts, self.sizes, parts):
                block = array[at].reshape(k, n, -1)
                found.append(np.tensordot(p.u, block, 1) if given == "u" else p.half @ block)
            return np.vstack(found)

        return contract(contract(sums[:-1, :-1]).T), contract(sums[:-1, -1])[:, 0]

    def path(self, sums: Float64, penalties: Float64) -> Iterator[list[Factors]]:
        """Solutions for falling penalties."""
        parts = self.start(sums, float(penalties[0]))
        for penalty in penalties:
            for _ in range(_SWEEPS):
                before = _products(parts)
                parts = self.improve(parts, sums, float(penalty))
                moved = np.linalg.norm(_products(parts) - before)
                if moved < _SETTLED * np.linalg.norm(before):
                    break
            yield parts


def _products(parts: list[Factors]) -> Float64:
    return np.concatenate([np.outer(p.u, p.half).ravel() for p in parts])


def _unit(u: Float64, half: Float64) -> Factors:
    size = float(np.sqrt(np.mean(half**2))) + 1e-300
    return Factors(u * size, half / size)


def _solve(matrix: Float64, right: Float64) -> Float64:
    """With a ridge at the level of rounding, for a part that is missing has no solution."""
    ridge = 1e-11 * np.trace(matrix) / len(matrix) + 1e-300
    matrix = matrix + ridge * np.eye(len(matrix))
    return np.asarray(linalg.solve(matrix, right, assume_a="pos", check_finite=False))


def recover(
    x: Float64,
    y: Float64,
    basis: Any,
    directions: Float64,
    *,
    penalty: float | None = None,
    rng: np.random.Generator,
) -> Recovery:
    """sigma in `basis`, and the weights of v for the unit vectors `directions`.

    The penalty is that of `rflaf.paper.recovery.recover_activation`; without one, held-out cones of
    directions, drawn by `rng`, choose it.
    """
    design = Design(x, basis, directions)
    problem = _Bilinear(design, basis)
    fold = np.zeros(len(x), np.intp) if penalty is not None else _cones(x, N_FOLDS, rng)
    folds = np.zeros((fold.max() + 1, problem.size + 1, problem.size + 1))
    for rows, even, odd in design.blocks():
        n = len(even)
        g = np.hstack([even.reshape(n, -1), odd.reshape(n, -1), y[rows, None]])
        for j in range(len(folds)):
            mine = g[fold[rows] == j]
            folds[j] += mine.T @ mine
    total = folds.sum(axis=0)
    history: list[dict[str, float]] = []
    if penalty is None:
        losses = _held_out(problem, folds, total)
        history = [{"penalty": float(p), "loss": float(v)} for p, v in zip(PENALTIES, losses)]
        penalty = float(PENALTIES[np.argmax(losses <= _SLACK * losses.min())])
    penalties = np.append(PENALTIES[penalty * 1.001 < PENALTIES], penalty)
    *_, parts = problem.path(total, penalties)
    coefficients, (even, odd), shares = _finish(problem, design, parts, total)
    sigma = Activation(basis, coefficients)
    return Recovery(sigma, directions, even, odd, shares, penalty, history)


def _held_out(problem: _Bilinear, folds: Float64, total: Float64) -> Float64:
    """The mean squared error on held-out rows over the mean square of y, for every penalty."""
    losses = np.zeros(len(PENALTIES))
    for held in folds[folds[:, -1, -1] > 0]:
        for k, parts in enumerate(problem.path(total - held, PENALTIES)):
            error = np.append(_products(parts), -1.0)
            losses[k] += error @ held @ error
    return losses / total[-1, -1]


def _finish(
    problem: _Bilinear, design: Design, parts: list[Factors], total: Float64
) -> tuple[Float64, list[Float64], tuple[float, float]]:
    """Move the size of v into sigma, and count what each part contributes."""
    cosine = np.clip(design.directions @ design.directions.T, -1, 1)
    pairs = np.sqrt(1 - cosine**2) + cosine * np.arcsin(cosine)
    squares = [2 / np.pi * pairs, np.eye(problem.counts[1])]  # of E[v²], for the parts of v
    coefficients = np.zeros(len(design.folds[0]))
    weights, shares = [], []
    for part, at, square, fold in zip(parts, problem.slices, squares, design.folds):
        product = np.outer(part.u, part.half).ravel()
        shares.append(float(product @ total[at, at] @ product / total[-1, -1]))
        size = np.sqrt(float(part.u @ square @ part.u) + 1e-300)
        # f gives no sign either: v's largest weight is taken to be positive
        size *= np.sign(part.u[np.argmax(np.abs(part.u))]) or 1.0
        coefficients += fold @ part.half * size
        weights.append(part.u / size)
    return coefficients, weights, (shares[0], shares[1])


def _cones(x: Float64, n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A fold for every row, the same for rows of nearly one direction or opposite ones."""
    if x.shape[1] == 1:
        raise ValueError(
            "The 'penalty' parameter must be a number where X has one column, because no "
            "directions can be held out to choose it. Got 'auto' instead."
        )
    axes = rng.standard_normal((n_folds * _CELLS_PER_FOLD, x.shape[1]))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.asarray(np.argmax(np.abs(x @ axes.T), axis=1) % n_folds)
