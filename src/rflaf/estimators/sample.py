"""Rows drawn by their numbers, so that it does not matter in what blocks they come.

Each row has random keys that depend on its number and the seed alone. Those with the smallest make
the sample that the activation is learned on; an interval of another key makes a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.estimators.rows import ArrayRows, Block, CheckedRows, join

Array = NDArray[Any]
Keys = NDArray[np.uint64]
Piece = tuple[Any, ...]  # of some rows: inputs, targets, weights, keys of folds and of the sample

SAMPLE, FOLD = 0, 1  # what a key decides


def row_keys(seed: int, purpose: int, start: int, stop: int) -> Keys:
    """A random 64-bit number for each of the rows from `start` to `stop`."""
    generator = np.random.Philox(key=[seed, purpose])  # gives four numbers a step
    generator.advance(int(start) // 4)
    skipped = start % 4
    return generator.random_raw(stop - start + skipped)[skipped:]


def fold_cuts(keys: Keys, shares: Sequence[float]) -> Keys:
    """Where to cut the range of keys, so that these shares of them fall between the cuts.

    Of two parts the last has one key at least.
    """
    ends = np.round(np.cumsum(shares)[:-1] * len(keys)).astype(int)
    return np.sort(keys)[np.minimum(ends, len(keys) - 1)]


def fold_numbers(cuts: Keys, keys: Keys) -> NDArray[np.intp]:
    """The fold of each key."""
    return np.searchsorted(cuts, keys, side="right")


@dataclass
class Sample:
    """Rows of positive weight in the order of their numbers.

    Attributes
    ----------
    keys : array
        What decides on their folds.
    seen, used : int
        Rows read, and those of them with a positive weight.
    whole : bool
        Whether these are all the rows used.
    """

    x: Any
    y: Array
    weights: Array
    keys: Keys
    seen: int
    used: int
    whole: bool

    def where(self, kept: NDArray[np.bool_]) -> Sample:
        """Some of the rows."""
        if kept.all():
            return self
        return replace(
            self, x=self.x[kept], y=self.y[kept], weights=self.weights[kept], keys=self.keys[kept]
        )


def draw_sample(
    rows: ArrayRows | CheckedRows,
    size: Callable[[Any], int],
    at_once: Callable[[Any], int],
    seed: int,
    tally: Callable[[Block], None] | None = None,
) -> Sample:
    """One pass over the rows: a sample of as many as `size` says for the first block of them.

    Rows that are not in memory are read `at_once` by as many as that says.
    """
    draw: SampleDraw | None = None
    blocks = rows.blocks(rows.count) if isinstance(rows, ArrayRows) else rows.blocks(at_once)
    for block in blocks:
        if draw is None:
            draw = SampleDraw(size(block.x), seed)
        draw.add(block)
        if tally is not None:
            tally(block)
    if draw is None:
        raise ValueError("Found no rows: a minimum of 1 is required.")
    return draw.result()


def smallest(pieces: list[Piece], size: int) -> Piece:
    """The rows with the smallest keys of all pieces, in their order."""
    piece = join(pieces)
    if len(piece[-1]) > size:
        kept = np.sort(np.argpartition(piece[-1], size - 1)[:size])
        piece = tuple(part[kept] for part in piece)
    return piece


class SampleDraw:
    """Keeps the rows with the smallest keys of those it is given, in their order.

    No row with a key above `limit` is taken.
    """

    def __init__(self, size: int, seed: int, limit: int = 2**64 - 1) -> None:
        self.size, self.seed = size, seed
        self.used = self.seen = 0
        self._slack = size // 4  # more rows than that are thrown out together
        self._pieces: list[Piece] = []
        self._count = 0
        self._limit = np.uint64(limit)

    def add(self, block: Block) -> None:
        stop = block.start + len(block.weights)
        keys = row_keys(self.seed, SAMPLE, block.start, stop)
        heavy = block.weights > 0
        kept = heavy & (keys <= self._limit)
        piece: Piece = (*block[1:], row_keys(self.seed, FOLD, block.start, stop), keys)
        if not kept.all():
            piece = tuple(part[kept] for part in piece)
        self.seen += len(keys)
        self.used += int(np.count_nonzero(heavy))
        self._count += len(piece[-1])
        self._pieces.append(piece)
        if self._count > self.size + self._slack:
            self._limit = self.piece()[-1].max()

    def piece(self) -> Piece:
        """What is kept, in one piece."""
        piece = smallest(self._pieces, self.size)
        self._pieces, self._count = [piece], len(piece[-1])
        return piece

    def result(self) -> Sample:
        return as_sample(self.piece(), self.seen, self.used)


def as_sample(piece: Piece, seen: int, used: int) -> Sample:
    x, y, weights, keys, _ = piece
    return Sample(x, y, weights, keys, seen, used, len(keys) == used)
