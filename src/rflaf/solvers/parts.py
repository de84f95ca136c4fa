"""Some of the rows of a fit, on their way to features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rflaf.rows import Block, Rows
from rflaf.solvers.features import KeptBlocks


@dataclass(frozen=True)
class RowPart:
    """Some rows, and what is kept of their features between passes.

    Attributes
    ----------
    rows : Rows
    size : int
        Rows of a block.
    kept : KeptBlocks
    prepare : callable, optional
        Makes of a block as it is read the rows that count, with inputs in their form and targets
        as the loss takes them. None where rows are all that already.
    """

    rows: Rows
    size: int
    kept: KeptBlocks
    prepare: Callable[[Block], Block] | None = None

    def reduce(self, task: Callable[[Iterable[Block]], Any]) -> Any:
        """What `task` makes of the blocks of a pass over these rows; results are added."""
        ready = task if self.prepare is None else Prepared(self.prepare, task)
        return self.rows.reduce(ready, add_results, self.size)


@dataclass(frozen=True)
class Prepared:
    """A task on blocks that have been prepared."""

    prepare: Callable[[Block], Block]
    task: Callable[[Iterable[Block]], Any]

    def __call__(self, blocks: Iterable[Block]) -> Any:
        ready = (self.prepare(block) for block in blocks)
        return self.task(block for block in ready if len(block.weights))


def add_results(one: Any, other: Any) -> Any:
    """Sums of numbers and arrays, lists one behind the other; None has nothing to add."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tuple):
        with np.errstate(invalid="ignore"):  # a step of a line search may go too far
            return tuple(a + b for a, b in zip(one, other))
    return one + other
