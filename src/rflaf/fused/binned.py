"""Columns in bins, as a matrix that is never made.

Bins below a value are full (1), and bins above it are empty (0). So a row times W needs only two
rows of sums per column: those over W's rows up to the two edges around the value. The matrix itself
has a number for every bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rflaf.arrays import Array
from rflaf.fused.chunks import Chunks, flat, for_all_rows, for_each

_SHARED = 1 << 22  # numbers that are added up; fewer are not worth waking a thread for
_LINE = 64  # bytes
CHUNK = 1 << 17  # elements of Z at once, which stay in the second-level cache


@dataclass(frozen=True)
class Bins:
    """Columns cut into bins: how far a value has come through each bin, standardised.

    A value is 1 in the bins below its own, 0 in those above, and rises from 0 to 1 within. Two
    values are then as far apart as the number of rows between them, and no farther than the
    square root of it: functions of bins may change fast in many places, as trees do. A scale for
    each bin, which a diagonal metric learns, is a learned warp of the column. Beyond the first and
    the last edge values are the same as there.

    Attributes
    ----------
    columns : array of int
        Those that are cut.
    starts : array of int
        Where the edges of each begin among all; behind the last, how many there are.
    edges : array
        Those of each column, increasing: a bin lies between two of them.
    mean, scale : array
        Of each bin: what is subtracted from the place in it, and what it is divided by.
    """

    columns: NDArray[np.int64]
    starts: NDArray[np.int64]
    edges: Array
    mean: Array
    scale: Array

    @property
    def column(self) -> NDArray[np.int64]:
        """The column that each bin is of."""
        return np.repeat(self.columns, np.diff(self.starts) - 1)

    @property
    def low(self) -> Array:
        """Where each bin starts."""
        return self.edges[self._lower]

    @property
    def width(self) -> Array:
        """How wide each bin is."""
        return self.edges[self._lower + 1] - self.edges[self._lower]

    @property
    def _lower(self) -> NDArray[np.int64]:
        """The number of the edge below each bin."""
        return np.delete(np.arange(self.starts[-1]), self.starts[1:] - 1)

    def __call__(self, x: Array, plain: Array) -> BinnedMatrix:
        """Rows in bins; `plain` are columns to stand before them."""
        return BinnedMatrix(plain, *self.locate(x, plain.dtype), self)

    def locate(self, x: Array, dtype: Any) -> tuple[NDArray[np.int32], Array]:
        """For each row and column the edge below the value, and how far it is to the next one."""
        from rflaf.fused import jit_bins

        x = np.ascontiguousarray(x, np.float64)
        place = np.empty((len(x), len(self.columns)), np.int32)
        part = np.empty(place.shape)

        def task(rows: slice) -> None:
            some = flat(x[rows]), x.shape[1], self.columns, self.starts, self.edges
            out = flat(place[rows], True), flat(part[rows], True)
            jit_bins.locate(*some, *out, rows.stop - rows.start)

        for_all_rows(task, place.shape, CHUNK)
        return place, part.astype(dtype, copy=False)

    def table(self, w: Array) -> Array:
        """Sums over the rows of W, one for each bin, up to each edge; columns of zeros behind."""
        from rflaf.fused import jit_bins

        width, padded = w.shape[1], _padded(w.shape[1])
        found = _zeros((int(self.starts[-1]), padded), w.dtype)
        rule = self.starts, self.mean.astype(w.dtype), self.scale.astype(w.dtype)
        jit_bins.add_up(flat(np.ascontiguousarray(w)), width, padded, *rule, flat(found, True))
        return found


class BinTables(NamedTuple):
    """W as a product with rows in bins takes it: flat, with rows of `padded` numbers.

    `table` has the sums of the rows of bins up to each edge, `w` the other rows.
    """

    w: Array
    table: Array
    width: int
    padded: int


def _padded(width: int) -> int:
    """A multiple of what the loops take at once."""
    from rflaf.fused.jit_bins import BLOCK

    return -(-width // BLOCK) * BLOCK


def _zeros(shape: tuple[int, int], dtype: Any) -> Array:
    """Memory that starts with a line of the cache: vectors lie in one line each then."""
    size = shape[0] * shape[1]
    memory = np.zeros(size * np.dtype(dtype).itemsize + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start:][: size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


@dataclass(frozen=True)
class BinnedMatrix:
    """Rows in bins: columns that are not cut, and where each value lies in the others.

    As a matrix it has the columns `plain` and, behind them, one for each bin.

    Attributes
    ----------
    plain : array, n × p
        Contiguous, in the precision of the matrix, like `part`.
    place, part : array of int and array, n × c
        The edge below each value, and how far the value has come to the next one.
    bins : Bins
    """

    plain: Array
    place: NDArray[np.int32]
    part: Array
    bins: Bins

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix: rows, and columns with one for each bin."""
        return len(self.place), self.plain.shape[1] + len(self.bins.mean)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the matrix and of its products."""
        return self.plain.dtype

    def __getitem__(self, rows: Any) -> BinnedMatrix:
        return BinnedMatrix(self.plain[rows], self.place[rows], self.part[rows], self.bins)

    def __matmul__(self, w: Array) -> Array:
        return self.project(self.tables(w))

    def tables(self, w: Array) -> BinTables:
        """All of a product with W that does not depend on the rows."""
        count, width = self.plain.shape[1], w.shape[1]
        w = np.asarray(w, self.dtype)
        of_plain = _zeros((count, _padded(width)), self.dtype)
        of_plain[:, :width] = w[:count]
        return BinTables(flat(of_plain), flat(self.bins.table(w[count:])), width, _padded(width))

    def project(self, tables: BinTables, out: Array | None = None) -> Array:
        """The product with the W of some tables, into `out` where it is given."""
        from rflaf.fused import jit_bins

        out = np.empty((len(self.place), tables.width), self.dtype) if out is None else out
        target = Chunks(out, writeable=True)

        def task(rows: slice) -> None:
            plain = flat(self.plain[rows]), self.plain.shape[1]
            cut = flat(self.place[rows]), flat(self.part[rows]), self.place.shape[1]
            jit_bins.project(*plain, *cut, *tables, *target[rows], rows.stop - rows.start)

        for_all_rows(task, out.shape, CHUNK)
        return out

    def pull_back(self, slopes: Array) -> Array:
        """The product of the transposed matrix with n × M slopes."""
        count, width = self.plain.shape[1], slopes.shape[1]
        out = np.empty((self.shape[1], width), self.dtype)
        np.matmul(self.plain.T, slopes, out=out[:count])

        def task(columns: slice) -> None:
            out[count:, columns] = self._pull_back_bins(slopes[:, columns])

        # Threads have columns, and sums, of their own.
        cut = _padded(width // 2) if slopes.size * self.place.shape[1] >= _SHARED else width
        for_each(task, [slice(0, cut), slice(cut, width)] if 0 < cut < width else [slice(0, width)])
        return out

    def _pull_back_bins(self, slopes: Array) -> Array:
        from rflaf.fused import jit_bins

        n, width, bins = len(slopes), slopes.shape[1], self.bins
        padded = _padded(width)
        sums = flat(_zeros((int(bins.starts[-1]), padded), self.dtype), True)
        where = flat(self.place), flat(self.part), self.place.shape[1]
        jit_bins.gather(*where, *Chunks(slopes)[0:n], width, padded, sums, n)
        found = np.empty((len(bins.mean), width), self.dtype)
        rule = bins.starts, bins.mean.astype(self.dtype), bins.scale.astype(self.dtype)
        jit_bins.take_apart(sums, width, padded, *rule, flat(found, True))
        return found

    def toarray(self) -> Array:
        """The matrix itself, for a few rows."""
        bins = self.bins
        of = np.repeat(np.arange(len(bins.columns)), np.diff(bins.starts) - 1)
        place, lower = self.place[:, of], bins._lower
        found = np.where(place == lower, self.part[:, of], (place > lower).astype(np.float64))
        found = (found - bins.mean) / bins.scale
        return np.hstack([self.plain, found.astype(self.dtype)])
