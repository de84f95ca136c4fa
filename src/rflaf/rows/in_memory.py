"""Rows that are in memory and have been checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rflaf.rows.protocol import Array, Block, BlockRows, MakeTally, Rows, SampleSize
from rflaf.rows.sample import Keys, Sample, SampleDraw


class ArrayRows(BlockRows):
    """Rows of arrays.

    Parameters
    ----------
    x : array or sparse matrix, n × d
    y : array, n or n × C
    weights : array, n
    first : int
        The number of the first row.
    keys : array of n, optional
        What decides on the folds, where it is not the rows' numbers.
    """

    def __init__(
        self, x: Any, y: Array, weights: Array, first: int = 0, keys: Keys | None = None
    ) -> None:
        self.x, self.y, self.weights, self.first, self.keys = x, y, weights, first, keys

    @classmethod
    def of_sample(cls, sample: Sample) -> ArrayRows:
        """The rows of a sample, with the folds they had among all."""
        return cls(sample.x, sample.y, sample.weights, keys=sample.keys)

    def blocks(self, size: int) -> Iterator[Block]:
        for start in range(0, len(self.weights), size):
            at = slice(start, start + size)
            keys = None if self.keys is None else self.keys[at]
            yield Block(self.first + start, self.x[at], self.y[at], self.weights[at], keys)

    def sample(self, size: SampleSize, seed: int, tally: MakeTally | None = None) -> Sample:
        draw = SampleDraw(size(self.x), seed, tally)
        draw.add(Block(self.first, self.x, self.y, self.weights, self.keys))
        return draw.result()

    def held(self, room: int) -> Rows:
        return self
