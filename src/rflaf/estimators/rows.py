"""Rows of arrays and of sources, checked, in blocks of a size of our choosing.

Sums over rows are rounded as the blocks fall. Whatever the blocks of a source are, they are cut and
joined here to blocks of a fixed number of rows, so that the reader's choice changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.data import Source

Array = NDArray[Any]


class Block(NamedTuple):
    """Rows from number `start` on."""

    start: int
    x: Any
    y: Array
    weights: Array


class ArrayRows:
    """Rows that are in memory and have been checked; the first has the number `first`."""

    def __init__(self, x: Any, y: Array, weights: Array, first: int = 0) -> None:
        self.x, self.y, self.weights, self.first = x, y, weights, first
        self.count = x.shape[0]

    def blocks(self, size: int) -> Iterator[Block]:
        """All rows, in blocks of `size`."""
        for start in range(0, self.count, size):
            rows = slice(start, start + size)
            yield Block(self.first + start, self.x[rows], self.y[rows], self.weights[rows])


class CheckedRows:
    """Rows of a source, checked as they come.

    Parameters
    ----------
    source : Source
    check_x : callable
        Makes an array of a block's X; is told whether it is the first of a fit.
    check_y : callable, optional
        Makes an array of a block's y. Without it the blocks' y and weights are not looked at.
    first : bool
        Whether the first block decides on the columns, as in a fit.
    start : int
        The number of the first row.
    """

    def __init__(
        self,
        source: Source,
        check_x: Callable[[Any, bool], Array],
        check_y: Callable[[Any], Array] | None = None,
        first: bool = True,
        start: int = 0,
    ) -> None:
        self._source, self._check_x, self._check_y = source, check_x, check_y
        self._start = start
        self._first = first  # whether the next block decides what the columns are
        self._dtype: Any = None
        self._y_shape: tuple[int, ...] | None = None
        self.count: int | None = None  # after the first pass

    def blocks(self, size: int | Callable[[Array], int]) -> Iterator[Block]:
        """All rows, in blocks of `size`, or of what it says for the first X; the last has fewer."""
        pending: list[tuple[Any, ...]] = []
        waiting, start = 0, self._start
        for block in self._checked():
            size = size(block[0]) if callable(size) else size
            rows = len(block[0])
            at = 0
            while at < rows:
                taken = min(size - waiting, rows - at)
                pending.append(tuple(part[at : at + taken] for part in block))
                at, waiting = at + taken, waiting + taken
                if waiting == size:
                    yield Block(start, *join(pending))
                    pending, start, waiting = [], start + size, 0
        if pending:
            yield Block(start, *join(pending))
        self._check_count(start + waiting - self._start)

    def _check_count(self, count: int) -> None:
        if self.count not in (None, count):
            raise ValueError(
                f"The source gave {self.count} rows in the first pass and {count} in a later one. "
                "Expected the same rows in every pass."
            )
        self.count = count

    def _checked(self) -> Iterator[tuple[Array, Array, Array]]:
        start = self._start
        for raw in self._source:
            X, y, weight = _parts(raw)
            rows = X.shape[0] if hasattr(X, "shape") else len(X)
            if rows == 0:
                continue
            where = f"rows {start} to {start + rows - 1} of the source"
            yield self._check(X, y, weight, rows, start, where)
            start += rows

    def _check(
        self, X: Any, y: Any, weight: Any, rows: int, start: int, where: str
    ) -> tuple[Array, Array, Array]:
        if sparse.issparse(X):
            raise TypeError(
                f"Blocks of a source must be dense. Got a sparse matrix in {where}; sparse "
                "matrices are taken whole."
            )
        names = getattr(X, "column_names", getattr(X, "columns", []))
        x = self._check_x(X, self._first)
        self._first = False
        self._dtype = self._dtype or x.dtype
        x = x.astype(self._dtype, copy=False)
        _check_finite(x, "X", start, where, names)
        if self._check_y is None:
            return x, np.zeros(rows), np.ones(rows)
        if y is None:
            raise ValueError(f"A fit needs blocks (X, y). Got X alone in {where}.")
        target = self._check_y(y)
        self._y_shape = self._y_shape or (-1, *target.shape[1:])
        weights = np.ones(rows) if weight is None else np.asarray(weight, np.float64)
        for name, part, shape in (("y", target, self._y_shape), ("weight", weights, (-1,))):
            if part.shape != (rows, *shape[1:]):
                expected = (rows, *shape[1:])
                raise ValueError(
                    f"'{name}' must have the shape {expected} in {where}. Got {part.shape}."
                )
            _check_finite(part, name, start, where, [])
        if weights.min() < 0:
            raise ValueError(f"'weight' must not be negative. Got {weights.min()} in {where}.")
        return x, target, weights


def join(pieces: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Pieces of several arrays, each put together."""
    if len(pieces) == 1:
        return pieces[0]
    stacked = (sparse.vstack(part, "csr") if sparse.issparse(part[0]) else np.concatenate(part)
               for part in zip(*pieces))  # fmt: skip
    return tuple(stacked)


def _parts(block: Any) -> tuple[Any, Any, Any]:
    if not isinstance(block, tuple):
        return block, None, None
    if len(block) not in (1, 2, 3):
        raise ValueError(
            "A block must be X, (X, y) or (X, y, weight). "
            f"Got a tuple of {len(block)} parts instead."
        )
    X, y, weight = (*block, None, None)[:3]
    return X, y, weight


def _check_finite(x: Array, name: str, start: int, where: str, names: Iterable[str]) -> None:
    if x.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(x.sum()):
            return
    finite = np.isfinite(x)
    if finite.all():
        return  # only their sum is infinite
    place = np.argwhere(~finite)[0]
    value = "NaN" if np.isnan(x[tuple(place)]) else "infinity"
    column = ""
    if x.ndim == 2:
        known = list(names)
        column = f", column {known[place[1]]!r}" if known else f", column {place[1]}"
    raise ValueError(
        f"Input {name} contains {value} in row {start + place[0]}{column} (among {where})."
    )
