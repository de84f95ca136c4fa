"""Rows drawn by their numbers, so that the blocks they come in do not matter.

Each row has random keys that depend on its number and the seed alone. Those with the smallest make
the sample that the activation is learned on; an interval of another key makes a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.arrays import Array

Keys = NDArray[np.uint64]
Piece = tuple[
    Any, ...
]  # of some rows: inputs, targets, weights, keys of folds, numbers, keys of the sample

SAMPLE, FOLD = 0, 1  # what a key decides
HEAVIEST, LIGHTEST = 1e20, 1e-20  # largest weights whose sums float32 can hold


def row_keys(seed: int, purpose: int, start: int, stop: int) -> Keys:
    """A random 64-bit number for each of the rows from `start` to `stop`."""
    generator = np.random.Philox(key=[seed, purpose])  # gives four numbers a step
    generator.advance(int(start) // 4)
    skipped = start % 4
    return generator.random_raw(stop - start + skipped)[skipped:]


def fold_keys(seed: int, start: int, stop: int) -> Keys:
    """The keys that decide on the folds of the rows from `start` to `stop`."""
    return row_keys(seed, FOLD, start, stop)


def some_of(count: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of all rows, or of `most` rows drawn at random, in order."""
    return np.sort(rng.choice(count, most, replace=False)) if count > most else np.arange(count)


def fold_cuts(keys: Keys, shares: Sequence[float]) -> Keys:
    """Where to cut the range of keys, so that these shares of them fall between the cuts.

    Of two parts the last has one key at least.
    """
    ends = np.round(np.cumsum(shares)[:-1] * len(keys)).astype(int)
    return np.sort(keys)[np.minimum(ends, len(keys) - 1)]


def fold_numbers(cuts: Keys, keys: Keys) -> NDArray[np.intp]:
    return np.searchsorted(cuts, keys, side="right")


@dataclass(frozen=True)
class Sample:
    """Rows of positive weight in the order of their numbers.

    Attributes
    ----------
    keys : array
        What decides on their folds.
    numbers : array of int
        Of the rows among all.
    heaviest : float
        The largest weight of all rows.
    seen, used : int
        Rows read, and those of them with a positive weight.
    whole : bool
        Whether these are all the rows used.
    tally
        What was counted over all rows, where that was asked for.
    """

    x: Any
    y: Array
    weights: Array
    keys: Keys
    numbers: NDArray[np.int64]
    seen: int
    used: int
    whole: bool
    tally: Any = None
    heaviest: float = 1.0

    @property
    def width(self) -> int:
        """How many numbers are in a row of inputs; 1 if rows are sparse."""
        return 1 if sparse.issparse(self.x) else int(self.x.shape[1])

    def where(self, kept: NDArray[np.bool_]) -> Sample:
        """The rows where the mask `kept` is true."""
        if kept.all():
            return self
        parts = ("x", "y", "weights", "keys", "numbers")
        return replace(self, **{name: getattr(self, name)[kept] for name in parts})


class SampleDraw:
    """Keeps the rows with the smallest keys, none of them above `limit`, in their order."""

    def __init__(
        self, size: int, seed: int, tally: Callable[[], Any] | None = None, limit: int = 2**64 - 1
    ) -> None:
        self.size, self.seed, self._new_tally = size, seed, tally
        self.tally = None if tally is None else tally()
        self.used = self.seen = 0
        self._heaviest = 0.0
        self._slack = size // 4  # more rows than that are thrown out together
        self._pieces: list[Piece] = []
        self.count = 0  # rows to draw from
        self._limit = np.uint64(limit)

    def add(self, block: Any) -> None:
        if self.tally is not None:
            self.tally.add(block.y, block.weights)
        stop = block.start + len(block.weights)
        keys = row_keys(self.seed, SAMPLE, block.start, stop)
        heavy = block.weights > 0
        kept = heavy & (keys <= self._limit)
        numbers = np.arange(block.start, stop)
        piece: Piece = (
            block.x, block.y, block.weights, block.fold_keys(self.seed), numbers, keys
        )  # fmt: skip
        if not kept.all():
            piece = tuple(part[kept] for part in piece)
        self.seen += len(keys)
        self._heaviest = max(self._heaviest, float(block.weights.max(initial=0.0)))
        self.used += int(np.count_nonzero(heavy))
        self.count += len(piece[-1])
        self._pieces.append(piece)
        if self.count > self.size + self._slack:
            self._limit = self.piece()[-1].max()

    def piece(self) -> Piece:
        """What is kept, in one piece: the rows with the smallest keys, in their order."""
        piece = join(self._pieces)
        if len(piece[-1]) > self.size:
            kept = np.sort(np.argpartition(piece[-1], self.size - 1)[: self.size])
            piece = tuple(part[kept] for part in piece)
        self._pieces, self.count = [piece], len(piece[-1])
        return piece

    def empty(self) -> SampleDraw:
        return SampleDraw(self.size, self.seed, self._new_tally)

    def merge(self, other: SampleDraw) -> None:
        """Add what was drawn of later rows."""
        self._pieces += other._pieces
        self.count += other.count
        self.seen, self.used = self.seen + other.seen, self.used + other.used
        self._heaviest = max(self._heaviest, other._heaviest)
        if self.count > self.size + self._slack:
            self.piece()
        if self.tally is not None:
            self.tally.merge(other.tally)

    def result(self) -> Sample:
        """The sample; an error if there are no rows."""
        if not self.seen:
            raise ValueError("Found no rows: a minimum of 1 is required.")
        if not self.used:
            raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")
        check_heaviest(self._heaviest, LIGHTEST)
        x, y, weights, keys, numbers, _ = self.piece()
        whole = len(keys) == self.used
        counts = self.seen, self.used, whole, self.tally, self._heaviest
        return Sample(x, y, weights, keys, numbers, *counts)


def check_heaviest(largest: float, least: float = 0.0) -> None:
    """Rows that come in parts cannot be divided by the largest weight of all."""
    if not least <= largest <= HEAVIEST:
        raise ValueError(
            f"The largest 'sample_weight' must lie between {LIGHTEST:g} and {HEAVIEST:g} where "
            f"rows come in parts. Got {largest:g}: divide all weights by it."
        )


def join(pieces: list[Piece]) -> Piece:
    """Pieces of several arrays, each put together."""
    if len(pieces) == 1:
        return pieces[0]
    stacked = (
        sparse.vstack(part, "csr") if sparse.issparse(part[0]) else np.concatenate(part)
        for part in zip(*pieces)
    )
    return tuple(stacked)
