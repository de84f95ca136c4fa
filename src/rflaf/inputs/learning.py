"""The parts of an encoder, learned from columns; and targets as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.inputs.column import DAY, Column
from rflaf.inputs.kinds import as_levels, as_numbers, as_times, date_reading
from rflaf.inputs.parts import (
    CIRCLES,
    CodePart,
    DatePart,
    LevelPart,
    NumberPart,
    Part,
    columns_with_missing,
    phase,
)
from rflaf.inputs.text import text_part

_MOST_MEASURED = 10_000  # rows used for a median
_LEAST_ROWS = 5  # of a level with a column of its own; fewer in small tables
_MOST_LOST = 0.2  # of the rows in rare levels, where codes are possible
_MONTHS = 3  # from which on the place in the year tells more than the days do


def matrix_parts(x: Array) -> tuple[list[Part], list[str]]:
    """The part for a matrix, and the kinds of its columns."""
    empty = np.zeros(x.shape[1], bool)
    spoilt = columns_with_missing(x)
    empty[spoilt] = np.isnan(x[:, spoilt]).all(axis=0)
    at = np.flatnonzero(~empty)
    kinds = ["empty" if gone else "number" for gone in empty]
    if not len(at):
        return [], kinds
    given = x if len(at) == x.shape[1] else x[:, at]
    return [learn_numbers(given, at)], kinds


def column_parts(
    columns: list[Column], kinds: Sequence[str], one_hot_levels: int, codes: bool
) -> tuple[list[Part], list[str]]:
    """The parts for the columns, and notes on ambiguous dates."""

    def of_kind(*wanted: str) -> list[int]:
        return [k for k, kind in enumerate(kinds) if kind in wanted]

    numbers, dates = of_kind("number", "boolean", "almost number"), of_kind("date")
    parts: list[Part] = []
    if numbers:
        lenient, durations = of_kind("almost number"), [k for k in numbers if columns[k].duration]
        x = [as_numbers(columns[k], k in lenient, k in durations) for k in numbers]
        parts.append(learn_numbers(np.column_stack(x), np.array(numbers), lenient, durations))
    parts += [level_part(k, columns[k], one_hot_levels, codes) for k in of_kind("category")]
    found, unsure = date_parts(columns, dates)
    texts = [text_part(k, columns[k], many=codes) for k in of_kind("text")]
    return [*parts, *found, *(part for part in texts if len(part.origin))], unsure


def learn_numbers(
    x: Array, at: Array, lenient: Sequence[int] = (), durations: Sequence[int] = ()
) -> NumberPart:
    """Medians and indicators of the columns `at`, which are those of the matrix x."""
    medians = np.zeros(x.shape[1])
    spoilt = columns_with_missing(x)
    whole = np.setdiff1d(np.arange(x.shape[1]), spoilt)
    some = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_MEASURED)).astype(np.intp))]
    medians[whole] = np.median(some[:, whole], axis=0)
    for k in spoilt:
        there = x[~np.isnan(x[:, k]), k]
        medians[k] = np.median(there[:: max(1, len(there) // _MOST_MEASURED)])
    return NumberPart(at, medians, spoilt, *(np.array(k, np.intp) for k in (lenient, durations)))


def date_parts(columns: list[Column], at: list[int]) -> tuple[list[DatePart], list[str]]:
    """Parts of date columns, later ones with the days to the first; notes on ambiguous dates."""
    found: list[DatePart] = []
    first_times: Array = np.zeros(0)
    said = []
    for column in at:
        orders, zone, notes = date_reading(columns[column])
        said += [f"Column {columns[column].name!r}: {note}." for note in notes]
        moments = as_times(columns[column], orders, zone)
        there = moments[~np.isnan(moments)]
        first = float(there.min())
        part = DatePart(
            column,
            first,
            median=float(np.median((there - first) / DAY)),
            circles=tuple(circle for circle in CIRCLES if _varies(there, circle)),
            flagged=len(there) < len(moments),
            orders=orders,
            zone=zone,
        )
        first_times = moments if not found else first_times
        apart = (moments - first_times) / DAY
        apart = apart[~np.isnan(apart)]
        if len(np.unique(apart)) > 1:
            part = replace(part, since=found[0], since_median=float(np.median(apart)))
        found.append(part)
    return found, said


def _varies(times: Array, circle: str) -> bool:
    if circle == "year":
        moments = (times * 1e6).astype("datetime64[us]")
        return len(np.unique(moments.astype("datetime64[M]"))) >= _MONTHS
    return bool(np.ptp(phase(times, circle)) > 0)


def level_part(column: int, values: Column, one_hot_levels: int, codes: bool) -> Part:
    """One-hot columns for a category; with `codes`, level codes where levels are many or rare."""
    given, names = as_levels(values)
    given = np.where(given < 0, len(names), given)  # missing is a level of its own
    counts = np.bincount(given, minlength=len(names) + 1)
    used = np.flatnonzero(counts[:-1]).tolist()
    least = min(_LEAST_ROWS, max(1, len(given) // 40))
    kept = np.flatnonzero(counts >= least)
    lost = 1 - counts[kept].sum() / len(given)  # share of rows in rare levels
    many = len(kept) > one_hot_levels or (len(used) > one_hot_levels and lost > _MOST_LOST)
    if many and codes:
        return CodePart(column, sorted(names[k] for k in used))
    # by name, so that the order of the rows does not matter; what is missing comes last
    kept = np.array(sorted(kept, key=lambda k: (k == len(names), [*names, ""][k])), np.intp)
    frequent = kept[np.argsort(-counts[kept], kind="stable")][:one_hot_levels]
    return _one_hot(column, kept[np.isin(kept, frequent)], counts, names)


def _one_hot(column: int, kept: Array, counts: Array, levels: list[str]) -> LevelPart:
    """A column for each level that is kept, and one for all others if there are any."""
    rare = int(counts.sum() > counts[kept].sum())
    named = [levels[k] for k in kept if k < len(levels)]
    missing = len(named) < len(kept)  # it is the last of those kept
    rows = np.eye(len(named) + 2, len(kept) + rare)
    rows[-2:] = 0
    rows[-2:, len(kept) :] = 1  # unknown levels, and missing ones if there are few, are rare ones
    if missing:
        rows[-2] = np.arange(rows.shape[1]) == len(named)
    others = sorted(levels[k] for k in np.setdiff1d(np.flatnonzero(counts[:-1]), kept))
    made = (*named, *["missing"] * missing, *["rare"] * rare)
    return LevelPart(column, named, rows, made, others)


def target_matrix(y: Any, classes: bool) -> Array:
    """Targets n × C: numbers, or whether a row is of a class; of two classes one column."""
    if not classes:
        y = np.asarray(y, np.float64)
        return y[:, None] if y.ndim == 1 else y
    names, codes = np.unique(np.asarray(y), return_inverse=True)
    codes = codes.ravel()
    if len(names) <= 2:
        return (codes == len(names) - 1).astype(np.float64)[:, None]
    return np.eye(len(names))[codes]
