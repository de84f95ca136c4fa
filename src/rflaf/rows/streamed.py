"""Rows of sources, checked, in blocks of a size of our choosing.

Sums over rows are rounded as the blocks fall. Whatever the blocks of a source are, they are cut and
joined here to blocks of a fixed number of rows, so that the reader's choice changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from rflaf.rows.in_memory import ArrayRows
from rflaf.rows.protocol import Array, Block, BlockRows, MakeTally, Rows, SampleSize
from rflaf.rows.sample import Sample, SampleDraw, join
from rflaf.rows.sources import Source

_READ_ROWS = 16384  # rows of a block while the sample is drawn,
_READ_NUMBERS = 1 << 23  # with at most this many numbers in them


class BlockCheck(Protocol):
    """Makes arrays of what a block of a source has."""

    def inputs(self, X: Any) -> Array:
        """X as an array of floats, with the columns of the first block. NaN may be in it."""

    def targets(self, y: Any, first: int = 0) -> Array:
        """y, of rows from number `first` on, as an array."""


class SourceRows(BlockRows):
    """Rows of a source, checked as they come.

    Parameters
    ----------
    source : Source
    check : BlockCheck
    max_bytes : int, optional
        What a block may take while the sample is drawn.
    labelled : bool
        Whether blocks have targets and weights. If not, these are not looked at.
    start : int
        The number of the first row.
    """

    def __init__(
        self,
        source: Source,
        check: BlockCheck,
        max_bytes: int | None = None,
        labelled: bool = True,
        start: int = 0,
    ) -> None:
        self._source, self._check_block, self._max_bytes = source, check, max_bytes
        self._labelled, self._start = labelled, start
        self._dtype: Any = None
        self._y_shape: tuple[int, ...] | None = None
        self.count: int | None = None  # after the first pass
        self._row_bytes = 0

    def sample(self, size: SampleSize, seed: int, tally: MakeTally | None = None) -> Sample:
        draw = SampleDraw(0, seed, tally)
        for block in self.blocks(lambda x: read_rows(x.shape[1], self._max_bytes)):
            if not draw.seen:
                draw = SampleDraw(size(block.x), seed, tally)
            draw.add(block)
        return draw.result()

    def held(self, room: int) -> Rows:
        # twice, while blocks are put together
        if self.count is None or 2 * self.count * self._row_bytes > room:
            return self
        x, y, weights = join([block[1:4] for block in self.blocks(_READ_ROWS)])
        return ArrayRows(x, y, weights, self._start)

    def blocks(self, size: int | Callable[[Array], int]) -> Iterator[Block]:
        """All rows in blocks of `size`, a number or a function of the first X."""
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
        count = start + waiting - self._start
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
            block = self._check(X, y, weight, rows, start, where)
            self._row_bytes = sum(part.nbytes for part in block) // rows
            yield block
            start += rows

    def _check(
        self, X: Any, y: Any, weight: Any, rows: int, start: int, where: str
    ) -> tuple[Array, Array, Array]:
        if sparse.issparse(X):
            raise TypeError(
                f"Blocks of a source must be dense. Got a sparse matrix in {where}: pass "
                "sparse matrices to fit directly."
            )
        names = getattr(X, "column_names", getattr(X, "columns", []))
        x = self._check_block.inputs(X)
        self._dtype = self._dtype or x.dtype
        x = x.astype(self._dtype, copy=False)
        _check_finite(x, "X", start, where, names)
        if not self._labelled:
            return x, np.zeros(rows), np.ones(rows)
        if y is None:
            raise ValueError(f"A fit needs blocks (X, y). Got X alone in {where}.")
        target = self._check_block.targets(y, start)
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


def read_rows(d: int, max_bytes: int | None) -> int:
    """Rows of a block of d inputs while the sample is drawn."""
    rows = min(_READ_ROWS, _READ_NUMBERS // max(d, 1))
    if max_bytes is not None:
        rows = min(rows, max_bytes // 8 // (16 * max(d, 1) + 16))
    return max(rows, 1)


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
