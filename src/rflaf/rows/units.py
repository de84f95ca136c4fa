"""Rows whose weights are measured in the largest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rflaf.rows.protocol import Block, MakeTally, Result, Rows
from rflaf.rows.sample import Sample


@dataclass(frozen=True)
class InUnits(Rows):
    """The same rows with weights over `unit`, so that equal weights are exactly 1."""

    rows: Rows
    unit: float

    def sample(
        self, size: Callable[[Any], int], seed: int, tally: MakeTally | None = None
    ) -> Sample:
        raise TypeError("The sample is drawn before the largest weight is known.")

    def reduce(
        self,
        task: Callable[[Iterable[Block]], Result],
        combine: Callable[[Result, Result], Result],
        size: int,
    ) -> Result:
        return self.rows.reduce(_InUnits(task, self.unit), combine, size)

    def held(self, room: int) -> Rows:
        return InUnits(self.rows.held(room), self.unit)


@dataclass(frozen=True)
class _InUnits:
    """A task that sees weights in a unit; it may be sent to another process."""

    task: Callable[[Iterable[Block]], Any]
    unit: float

    def __call__(self, blocks: Iterable[Block]) -> Any:
        return self.task(each._replace(weights=each.weights / self.unit) for each in blocks)
