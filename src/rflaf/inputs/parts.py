"""Parts of an encoder: each turns some of the columns into numbers.

`origin` of a part is the column that each of its results comes from, `names` gives the results'
names for those of the columns, and `encode` their values, n × width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.arrays import Array
from rflaf.inputs.column import DAY, Column
from rflaf.inputs.kinds import as_levels, as_numbers, as_times
from rflaf.inputs.text import TextPart

YEAR = 365.2425  # days
CIRCLES = ("year", "week", "day")
DIGITS = 9  # decimals of sines and cosines: those of 30° and 150° must be equal


@dataclass(frozen=True)
class NumberPart:
    """Numbers, with the fit's median for missing ones, and columns that say which were missing."""

    at: Array  # the columns
    medians: Array  # of each of them
    flagged: Array  # those among them that had missing values in the fit
    lenient: Array  # columns whose non-numeric entries count as missing
    durations: Array  # columns that held durations, in seconds

    @property
    def origin(self) -> Array:
        return np.concatenate([self.at, self.at[self.flagged]])

    def names(self, names: Sequence[str]) -> list[str]:
        missing = [f"{names[k]}_missing" for k in self.at[self.flagged]]
        return [*(names[k] for k in self.at), *missing]

    def encode(self, columns: Sequence[Column]) -> Array:
        lenient, durations = set(self.lenient.tolist()), set(self.durations.tolist())
        found = [as_numbers(columns[k], k in lenient, k in durations) for k in self.at.tolist()]
        return self.filled(np.column_stack(found))

    def filled(self, x: Array) -> Array:
        """Columns with their medians in place of NaN, and the indicators; x if it needs nothing."""
        flags = np.isnan(x[:, self.flagged]).astype(x.dtype)
        spoilt = columns_with_missing(x)
        if len(spoilt):
            x = x.copy()
            some, medians = x[:, spoilt], self.medians[spoilt].astype(x.dtype)
            x[:, spoilt] = np.where(np.isnan(some), medians, some)
        return np.hstack([x, flags]) if flags.shape[1] else x

    def export(self, graph: Any, x: str) -> str:
        graph.refuse_infinite(x)
        missing = graph.add("IsNaN", x)
        filled = graph.add("Where", missing, self.medians.astype(np.float64), x)
        if not len(self.flagged):
            return str(filled)
        flags = graph.cast(graph.columns(missing, self.flagged), np.float64)
        return str(graph.joined([filled, flags]))


def columns_with_missing(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        likely = np.flatnonzero(np.isnan(x.sum(axis=0)))  # one pass, and no matrix of flags
    return likely[np.isnan(x[:, likely]).any(axis=0)]


@dataclass(frozen=True)
class LevelPart:
    """A category: a row of numbers for each level, for what is missing, and for the unknown."""

    column: int
    levels: list[str]
    values: Array  # (levels + 2) × width; the last rows are for missing values and unknown levels
    made: tuple[str, ...]  # what each of the results is: the name of a level, "missing" or "rare"
    rare: list[str]  # levels of the fit that have no row of their own and count as unknown ones

    @property
    def known(self) -> list[str]:
        return [*self.levels, *self.rare]

    @property
    def origin(self) -> Array:
        return np.full(self.values.shape[1], self.column)

    def names(self, names: Sequence[str]) -> list[str]:
        return [f"{names[self.column]}_{made}" for made in self.made]

    def encode(self, columns: Sequence[Column]) -> Array:
        return self.values[level_codes(columns[self.column], self.levels)]


@dataclass(frozen=True)
class CodePart:
    """A category of many levels as floats 0, 1, …; missing and unknown levels have the next two."""

    column: int
    levels: list[str]

    @property
    def known(self) -> list[str]:
        return self.levels

    @property
    def origin(self) -> Array:
        return np.array([self.column])

    @property
    def size(self) -> int:
        return len(self.levels) + 2

    def names(self, names: Sequence[str]) -> list[str]:
        return [f"{names[self.column]}_level"]

    def encode(self, columns: Sequence[Column]) -> Array:
        return level_codes(columns[self.column], self.levels).astype(np.float64)[:, None]


def level_codes(column: Column, levels: Sequence[str]) -> NDArray[np.intp]:
    """The place of each row's level among `levels`; after the last: missing, then unknown."""
    codes, given = as_levels(column)
    known = {level: k for k, level in enumerate(levels)}
    missing, unknown = len(levels), len(levels) + 1
    at = np.array([*(known.get(level, unknown) for level in given), missing], np.intp)
    return at[codes]


@dataclass(frozen=True)
class DatePart:
    """Dates: days since the first, and points on circles for the year, the week and the day."""

    column: int
    first: float  # the earliest of the fit, in seconds since 1970
    median: float  # days since the first, for what is missing; its point is the circles' centre
    circles: tuple[str, ...]  # those that vary, of "year", "week" and "day"
    flagged: bool  # whether dates were missing in the fit
    orders: dict[str, str]  # of day, month and year, for each form of text that the fit has seen
    zone: str  # the time zone of the fit, whose clock counts; "": none
    since: DatePart | None = None  # that of another column, to which the days are given too
    since_median: float = 0.0  # for a distance that is missing

    @property
    def origin(self) -> Array:
        width = 1 + 2 * len(self.circles) + (self.since is not None) + self.flagged
        return np.full(width, self.column)

    def names(self, names: Sequence[str]) -> list[str]:
        name = names[self.column]
        found = [f"{name}_days"]
        found += [f"{name}_{circle}_{axis}" for circle in self.circles for axis in ("sin", "cos")]
        if self.since is not None:
            found.append(f"{name}_since_{names[self.since.column]}")
        return found + [f"{name}_missing"] * self.flagged

    def times(self, columns: Sequence[Column]) -> Array:
        """Seconds since 1970 on the clock of the fit."""
        return as_times(columns[self.column], self.orders, self.zone)

    def encode(self, columns: Sequence[Column]) -> Array:
        times = self.times(columns)
        missing = np.isnan(times)
        found = [np.where(missing, self.median, (times - self.first) / DAY)]
        for circle in self.circles:
            angle = 2 * np.pi * phase(times, circle)
            points = [np.round(axis(angle), DIGITS) for axis in (np.sin, np.cos)]
            found += [np.where(missing, 0.0, point) for point in points]
        if self.since is not None:
            apart = (times - self.since.times(columns)) / DAY
            found.append(np.where(np.isnan(apart), self.since_median, apart))
        if self.flagged:
            found.append(missing.astype(np.float64))
        return np.column_stack(found)


def phase(times: Array, circle: str) -> Array:
    """The place of moments on a circle, 0 to 1; that in the year is off by a day at most."""
    days = times / DAY
    if circle == "year":
        return np.mod(days, YEAR) / YEAR
    if circle == "week":
        return np.mod(np.floor(days), 7) / 7
    return days - np.floor(days)


Part = NumberPart | LevelPart | CodePart | DatePart | TextPart
