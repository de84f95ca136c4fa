"""The features of many rows as a linear operator, computed when needed and never held whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rflaf import fused
from rflaf.fused.threads import parallel
from rflaf.solvers.ridge import check_finite

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Block = tuple[Any, Array, Array | None]
Blocks = Callable[[], Iterable[Block]]
Strip = tuple[int, slice]  # its number among all, and its rows in the block
Right = Callable[[slice, Array], Array]

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
    """sigma(X W) for the rows of a source.

    Parameters
    ----------
    sigma : Table or Direct
    w : array, d × M
    blocks : callable
        Gives a fresh iterator over (x, y, weights or None); the same rows each time. x may be
        sparse, y is n × C.
    """

    def __init__(self, sigma: fused.Sigma, w: Array, blocks: Blocks) -> None:
        self.sigma, self.w = sigma, w
        self._sources = [blocks]
        self._room = 0
        self._kept: dict[int, Array] = {}

    def keep(self, room: int) -> None:
        """Keep features of so many bytes from the next pass on; others are computed each time."""
        self._room = max(room, 0)

    def add(self, blocks: Blocks) -> None:
        """Put more rows behind those that are there."""
        self._sources.append(blocks)

    def blocks(self) -> Iterator[Block]:
        for source in self._sources:
            yield from source()

    def sums(self) -> Sums:
        """The sums over all rows."""
        m, dtype = self.w.shape[1], self.w.dtype
        weight, rows, total, square = 0.0, 0, np.zeros(0), np.zeros(0)
        phi_sum, moment = np.zeros((m, 1)), np.zeros((m, 0))
        for x, y, weights, strips in self._strips():
            if not rows:
                total, square = np.zeros(y.shape[1]), np.zeros(y.shape[1])
                moment = np.zeros((m, y.shape[1]))
            share = np.ones(len(y)) if weights is None else weights
            weighted = share[:, None] * y
            right = np.column_stack([share, weighted]).astype(dtype)

            def pick(rows: slice, phi: Array, right: Array = right) -> Array:
                return right[rows]

            both = self._adjoint(x, strips, pick)
            phi_sum, moment = phi_sum + both[:, :1], moment + both[:, 1:]
            weight, rows = weight + float(share.sum()), rows + int(np.count_nonzero(share))
            total, square = total + weighted.sum(axis=0), square + np.sum(weighted * y, axis=0)
        check_finite(float(phi_sum.sum()))
        weight = max(weight, 1e-300)
        mean, y_mean = phi_sum[:, 0] / weight, total / weight
        moment = moment / weight - np.outer(mean, y_mean)
        return Sums(weight, rows, mean, y_mean, square / weight - y_mean**2, moment)

    def forward(self, p: Array) -> Array:
        """Phi p, for all rows."""
        single = p.astype(self.w.dtype)
        parts = [
            fused.predict_inputs(self.sigma, x, self.w, single) for x, _, _, _ in self._strips()
        ]
        return np.concatenate(parts)

    def normal(self, p: Array, shift: Array) -> Float64:
        """Phi' D (Phi p - shift), D being the diagonal matrix of the rows' weights."""
        single, shift = p.astype(self.w.dtype), shift.astype(self.w.dtype)
        total = np.zeros(p.shape)
        for x, _, weights, strips in self._strips():

            def right(rows: slice, phi: Array, weights: Array | None = weights) -> Array:
                t = phi @ single - shift
                return t if weights is None else (t * weights[rows, None]).astype(t.dtype)

            total += self._adjoint(x, strips, right)
        return total

    def _strips(self) -> Iterator[tuple[Any, Array, Array | None, list[Strip]]]:
        """The blocks, and each one's strips with the numbers they have among all."""
        step = max(1, _STRIP // self.w.shape[1])
        count = 0
        for x, y, weights in self.blocks():
            n = x.shape[0]
            starts = range(0, n, step)
            strips = [(count + k, slice(s, min(s + step, n))) for k, s in enumerate(starts)]
            yield x, y, weights, strips
            count += len(starts)

    def _adjoint(self, x: Any, strips: list[Strip], right: Right) -> Float64:
        """Phi' right, where `right` of some rows may depend on their features."""
        total = np.zeros(())
        for start in range(0, len(strips), _GROUP):
            group = strips[start : start + _GROUP]
            parts: list[Any] = [None] * len(group)
            keep = [self._has_room(*strip) for strip in group]

            def task(k: int, group: Any = group, parts: Any = parts, keep: Any = keep) -> None:
                number, rows = group[k]
                parts[k] = self._strip(x, number, rows, right, keep[k])

            with threadpool_limits(limits=1, user_api="blas"):  # the strips have a thread each
                parallel(task, len(group))
            total = total + sum(parts)
        return np.asarray(total)

    def _strip(self, x: Any, number: int, rows: slice, right: Right, keep: bool) -> Float64:
        """Phi' right for the rows of one strip, piece by piece."""
        m, n = self.w.shape[1], rows.stop - rows.start
        kept = self._kept.get(number)
        store = np.empty((n, m), self.w.dtype) if keep else None
        piece = n if kept is not None else max(8, _PIECE // m)
        total = np.zeros(())
        for start in range(0, n, piece):
            local = slice(start, min(start + piece, n))
            at = slice(rows.start + local.start, rows.start + local.stop)
            if kept is not None:
                phi = kept[local]
            else:
                out = None if store is None else store[local]
                phi = layer_features(self.sigma, x[at], self.w, out)
            with np.errstate(over="ignore", invalid="ignore"):  # `sums` looks at what comes out
                total = total + (phi.T @ right(at, phi)).astype(np.float64)
        if store is not None:
            self._kept[number] = store
        return np.asarray(total)

    def _has_room(self, number: int, rows: slice) -> bool:
        """Whether to keep the features of a strip that is not kept yet."""
        if number in self._kept:
            return False
        size = (rows.stop - rows.start) * self.w.shape[1] * self.w.itemsize
        if size > self._room:
            return False
        self._room -= size
        return True


def layer_features(sigma: fused.Sigma, x: Any, w: Array, out: Array | None = None) -> Array:
    """sigma(x w), into `out` where it is given."""
    z = np.asarray(x @ w)
    return fused.apply(sigma, z, out=z if out is None else out)
