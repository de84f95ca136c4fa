"""The features of many rows as a linear operator, computed when needed and never held whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rflaf import fused
from rflaf.arrays import Array, Float64
from rflaf.rows import Block
from rflaf.runtime.threads import parallel
from rflaf.solvers.features import KeptBlocks, check_finite, project
from rflaf.solvers.parts import RowPart, add_results

Right = Callable[[Block, slice, Array], Array]

_PIECE = 1 << 20  # features that are computed and used at once: they stay in the cache
_STRIP = 1 << 24  # features whose sums one thread takes, in an order that depends on sizes alone
_GROUP = 16  # strips at once, each with sums of its own


class Sums(NamedTuple):
    """What one pass over the rows says of features phi, targets y and weights."""

    weight: float
    rows: int
    mean: Float64  # of phi, M
    y_mean: Float64  # C
    y_square: Float64  # the targets' mean squares about their means, C
    moment: Float64  # mean of (phi - its mean) (y - its mean)', M × C


class Layer:
    """sigma(X W) for the rows of `parts`, one behind the other, as a matrix to multiply with."""

    def __init__(self, sigma: fused.Sigma, w: Array, parts: list[RowPart]) -> None:
        self.sigma, self.w, self.parts = sigma, w, parts

    def sums(self) -> Sums:
        total = None
        for part in self.parts:
            total = add_results(total, part.reduce(SumMoments(self._strips(part))))
        assert total is not None
        check_finite(float(total.phi.sum()))
        return total.sums()

    def targets(self) -> tuple[Array, Array]:
        found = [block for part in self.parts for block in part.reduce(collect_targets)]
        return np.concatenate([y for y, _ in found]), np.concatenate([w for _, w in found])

    def forward(self, p: Array) -> Array:
        """Phi p, for all rows."""
        task = Forward(self.sigma, self.w, p.astype(self.w.dtype))
        return np.concatenate([row for part in self.parts for row in part.reduce(task)])

    def normal(self, p: Array, shift: Array) -> Float64:
        """Phi' D (Phi p - shift), D being the diagonal matrix of the rows' weights."""
        right = Normal(p.astype(self.w.dtype), shift.astype(self.w.dtype))
        total = None
        for part in self.parts:
            total = add_results(total, part.reduce(Adjoint(self._strips(part), right)))
        return np.asarray(total)

    def _strips(self, part: RowPart) -> Strips:
        return Strips(self.sigma, self.w, part.kept)


class KeptStrip:
    """Room for the features of a strip, and whether they are in it."""

    def __init__(self, shape: tuple[int, int], dtype: Any) -> None:
        self.array, self.filled = np.empty(shape, dtype), False


@dataclass(frozen=True)
class Strips:
    """Phi' times something, strip of rows by strip of rows, on all threads."""

    sigma: fused.Sigma
    w: Array
    kept: KeptBlocks

    def adjoint(self, block: Block, first: int, right: Right) -> tuple[Float64, int]:
        """Phi' right for a block whose first strip has the number `first`; and the next number.

        `right` of some rows may depend on their features.
        """
        n, step = block.x.shape[0], max(1, _STRIP // self.w.shape[1])
        starts = range(0, n, step)
        total = np.zeros(())
        for group in (starts[k : k + _GROUP] for k in range(0, len(starts), _GROUP)):
            sums: list[Any] = [None] * len(group)

            def task(k: int, group: Any = group, sums: Any = sums) -> None:
                rows = slice(group[k], min(group[k] + step, n))
                sums[k] = self._strip(block, first + group[k] // step, rows, right)

            parallel(task, len(group))
            total = total + sum(sums)
        return np.asarray(total), first + len(starts)

    def _strip(self, block: Block, number: int, rows: slice, right: Right) -> Float64:
        """Phi' right for the rows of one strip, piece by piece."""
        n, m = rows.stop - rows.start, self.w.shape[1]
        size = n * m * self.w.itemsize
        store = self.kept.get(number, size, lambda: KeptStrip((n, m), self.w.dtype))
        kept = store is not None and store.filled
        piece = n if kept else max(8, _PIECE // m)
        total = np.zeros(())
        for start in range(0, n, piece):
            local = slice(start, min(start + piece, n))
            at = slice(rows.start + local.start, rows.start + local.stop)
            out = None if store is None else store.array[local]
            phi = out if kept and out is not None else self.features(block.x[at], out)
            with np.errstate(over="ignore", invalid="ignore"):  # `sums` looks at what comes out
                total = total + (phi.T @ right(block, at, phi)).astype(np.float64)
        if store is not None:
            store.filled = True
        return np.asarray(total)

    def features(self, x: Any, out: Array | None) -> Array:
        z = project(x, self.w)
        return fused.apply(self.sigma, z, out=z if out is None else out)


@dataclass(frozen=True)
class Totals:
    """Sums over rows of the products that `Sums` has the means of."""

    weight: float
    rows: int
    phi: Float64  # M × 1
    y: Float64
    square: Float64
    moment: Float64

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(a + b for a, b in zip(vars(self).values(), vars(other).values())))

    def sums(self) -> Sums:
        weight = max(self.weight, 1e-300)
        mean, y_mean = self.phi[:, 0] / weight, self.y / weight
        moment = self.moment / weight - np.outer(mean, y_mean)
        return Sums(weight, self.rows, mean, y_mean, self.square / weight - y_mean**2, moment)


@dataclass(frozen=True)
class SumMoments:
    """The totals of some blocks."""

    strips: Strips

    def __call__(self, blocks: Iterable[Block]) -> Totals | None:
        total, number = None, 0
        for block in blocks:
            weighted = block.weights[:, None] * block.y
            right = np.column_stack([block.weights, weighted]).astype(self.strips.w.dtype)

            def pick(block: Block, rows: slice, phi: Array, right: Array = right) -> Array:
                return right[rows]

            both, number = self.strips.adjoint(block, number, pick)
            part = Totals(
                float(block.weights.sum()),
                int(np.count_nonzero(block.weights)),
                both[:, :1],
                weighted.sum(axis=0),
                np.sum(weighted * block.y, axis=0),
                both[:, 1:],
            )
            total = part if total is None else total + part
        return total


@dataclass(frozen=True)
class Normal:
    """D (Phi p - shift) for some rows."""

    p: Array
    shift: Array

    def __call__(self, block: Block, rows: slice, phi: Array) -> Array:
        t = phi @ self.p - self.shift
        return (t * block.weights[rows, None]).astype(t.dtype)


@dataclass(frozen=True)
class Adjoint:
    """Phi' right, summed over blocks."""

    strips: Strips
    right: Right

    def __call__(self, blocks: Iterable[Block]) -> Float64 | None:
        total, number = None, 0
        for block in blocks:
            part, number = self.strips.adjoint(block, number, self.right)
            total = part if total is None else total + part
        return total


@dataclass(frozen=True)
class Forward:
    """Phi p of each block, in a list."""

    sigma: fused.Sigma
    w: Array
    p: Array

    def __call__(self, blocks: Iterable[Block]) -> list[Array]:
        readout = fused.Readout(self.sigma, self.w, self.p)  # of inputs in bins, too
        return [readout(block.x) for block in blocks]


def collect_targets(blocks: Iterable[Block]) -> list[tuple[Array, Array]]:
    """Targets and weights of each block, in a list."""
    return [(block.y, block.weights) for block in blocks]
