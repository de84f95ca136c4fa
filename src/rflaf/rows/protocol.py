"""What a fit needs of its rows, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from rflaf.rows.sample import Keys, Sample, fold_keys

Array = NDArray[Any]
Result = TypeVar("Result")


class Block(NamedTuple):
    """Rows from number `start` on.

    `keys` decide on their folds. Where they are None, they follow from the rows' numbers.
    """

    start: int
    x: Any
    y: Array
    weights: Array
    keys: Keys | None = None

    def at(self, rows: Any) -> Block:
        """Some of them, by number or mask; they keep their keys, not their numbers."""
        keys = None if self.keys is None else self.keys[rows]
        return Block(self.start, self.x[rows], self.y[rows], self.weights[rows], keys)

    def fold_keys(self, seed: int) -> Keys:
        """What decides on the folds of these rows."""
        if self.keys is not None:
            return self.keys
        return fold_keys(seed, self.start, self.start + len(self.weights))


class Tally(Protocol):
    """Counts something while the sample is drawn."""

    def add(self, y: Array, weights: Array) -> None:
        """Count rows."""

    def merge(self, other: Any) -> None:
        """Add what the `other` tally has counted."""


MakeTally = Callable[[], Tally | None]
SampleSize = Callable[[Any], int]  # of some inputs: how many rows to draw
BlockTask = Callable[[Iterable[Block]], Result]
Combine = Callable[[Result, Result], Result]


class Rows(ABC):
    """The rows of a fit: arrays, a source of blocks, or the partitions of a cluster."""

    @abstractmethod
    def sample(self, size: SampleSize, seed: int, tally: MakeTally | None = None) -> Sample:
        """Rows drawn at random, without replacement, among those of positive weight.

        Parameters
        ----------
        size : callable
            How many rows to draw: a function of some inputs.
        seed : int
            The same seed gives the same rows for any blocks.
        tally : callable, optional
            Makes a tally of all rows, which is `Sample.tally` in the end.
        """

    @abstractmethod
    def reduce(self, task: BlockTask[Result], combine: Combine[Result], size: int) -> Result:
        """A pass over all rows, in blocks of `size`.

        `task` makes a result of blocks in their order; if the rows are in several places, it
        runs in each, and `combine` joins the results. Both may be sent to another process.
        """

    @abstractmethod
    def held(self, room: int) -> Rows:
        """The same rows, at hand for many passes where they fit into `room` bytes."""


class BlockRows(Rows):
    """Rows that this process reads, block by block: a pass is one task."""

    @abstractmethod
    def blocks(self, size: int) -> Iterator[Block]:
        """All rows, in blocks of `size`."""

    def reduce(self, task: BlockTask[Result], combine: Combine[Result], size: int) -> Result:
        return task(self.blocks(size))


@dataclass(frozen=True)
class InUnits(Rows):
    """The same rows with weights over `unit`, so that equal weights are exactly 1."""

    rows: Rows
    unit: float

    def sample(self, size: SampleSize, seed: int, tally: MakeTally | None = None) -> Sample:
        raise TypeError("The sample is drawn before the largest weight is known.")

    def reduce(self, task: BlockTask[Result], combine: Combine[Result], size: int) -> Result:
        return self.rows.reduce(partial(_in_units, task, self.unit), combine, size)

    def held(self, room: int) -> Rows:
        return InUnits(self.rows.held(room), self.unit)


def _in_units(task: BlockTask[Result], unit: float, blocks: Iterable[Block]) -> Result:
    return task(each._replace(weights=each.weights / unit) for each in blocks)
