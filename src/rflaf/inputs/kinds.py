"""The kind of a column, and its values converted to that kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.inputs.column import Column, column_of, is_id_name, levels_column, levels_of
from rflaf.inputs.dates import learn_orders, on_clock, read_dates
from rflaf.runtime.callers import warn

FEW_LEVELS = 20  # at most, in a category that consists mostly of numbers
_ALL_DIFFERENT = 0.95  # share of distinct integers from which on a column called an id is one
TRUTH = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}

SAME = {"True": "1", "False": "0"}  # levels of the same meaning

LEFT_OUT = ("id", "other")
KEEP = "To use a column, name it in 'categorical_features' or make it a category."


def column_kind(values: Any) -> str:
    """The kind of a column: of a Series, or an array of one dimension.

    Returns
    -------
    str
        "number", "boolean", "category", "date", "text" or "almost number" (numbers with a few
        non-numeric entries), which an encoder turns into numbers; "id", "other" or "empty", which
        it ignores.

    Notes
    -----
    Strings are dates if all of them are dates; otherwise a category if each value occurs twice or
    more on average, and free text if not, as names are. A categorical type is always a category.
    Strings with more than 20 values, numbers in nine rows of ten but not in all, are "almost
    number". Integers are an id if nearly all are different and the column has a name like "id",
    "customer_id", "userId" or "Unnamed: 0".

    Examples
    --------
    >>> import pandas as pd
    >>> from rflaf.inputs import column_kind
    >>> column_kind(pd.Series(["a", "b", "a", "a"])), column_kind(pd.Series(["Ann", "Bo"]))
    ('category', 'text')
    >>> column_kind(pd.Series(["2024-05-01", "2024-05-02"]))
    'date'
    """
    return kind_of(values if isinstance(values, Column) else column_of(values))


def kind_of(column: Column) -> str:
    if column.other:
        return "other"
    if column.times is not None:
        return "empty" if np.isnan(column.times).all() else "date"
    if column.numbers is not None:
        return _kind_of_numbers(column, column.numbers)
    codes = np.asarray(column.codes)
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    rows, used = counts.sum(), np.flatnonzero(counts).tolist()
    if rows == 0:
        return "empty"
    if column.declared:
        return "category"
    levels = [column.levels[k] for k in used]
    if learn_orders(levels) is not None:
        return "date"
    if set(levels) <= set(TRUTH):
        return "boolean"
    numeric = ~np.isnan(_parsed(levels))
    share = counts[used][numeric].sum() / rows
    if len(levels) <= rows / 2:
        # many numbers and a "?" are no category, but few ones with a letter may be
        return "almost number" if len(levels) > FEW_LEVELS and share >= 0.9 else "category"
    return "almost number" if share >= 0.5 else "text"


def kinds_of(columns: Sequence[Column], named: Iterable[int], refuse: bool) -> list[str]:
    """The kinds; columns in `named` are categories. With `refuse`, categories and text raise."""
    kinds = [kind_of(column) for column in columns]
    for k in named:
        if kinds[k] not in ("empty", "other"):
            kinds[k] = "category"
    for column, kind in zip(columns, kinds):
        if refuse and kind in ("category", "text"):
            raise ValueError(
                f"Column {column.name!r} is a {kind}, and 'categorical_features' is None. Expected "
                "'from_dtype', or columns of numbers and dates only."
            )
    return kinds


def _kind_of_numbers(column: Column, numbers: Array) -> str:
    there = numbers[~np.isnan(numbers)]
    if there.size == 0:
        return "empty"
    if column.boolean:
        return "boolean"
    if is_id_name(column.name) and len(there) > FEW_LEVELS:
        with np.errstate(invalid="ignore"):  # of infinity
            whole = bool(np.all(there == np.round(there)))
        values = there if column.exact is None else column.exact[~np.isnan(numbers)]
        different = set(values.tolist())
        if whole and len(different) >= _ALL_DIFFERENT * len(there):
            return "id"
    return "number"


def as_numbers(column: Column, odd_are_missing: bool = False, duration: bool = False) -> Array:
    """A column that was numeric in the fit, or held durations, as floats with NaN."""
    was = "held durations" if duration else "was numeric"
    if column.numbers is not None:
        if column.duration == duration or np.isnan(column.numbers).all():
            return column.numbers
    elif column.codes is not None:
        found = _parsed(column.levels)
        used = np.unique(column.codes[column.codes >= 0])
        odd = used if duration else used[np.isnan(found[used])]
        if not len(odd) or odd_are_missing:
            return np.append(found, np.nan)[column.codes]
        raise ValueError(f"Column {column.name!r} {was} in the fit. Got {column.levels[odd[0]]!r}.")
    raise ValueError(f"Column {column.name!r} {was} in the fit. Got {_what(column)}.")


def as_levels(column: Column) -> tuple[Array, list[str]]:
    """Codes (-1: missing) and levels of a column as a category; True is 1, and False is 0."""
    if column.exact is not None:
        column = levels_column(column.name, column.exact.tolist())
    values = column.numbers if column.numbers is not None else column.times
    if column.codes is not None:
        codes, levels = column.codes, [SAME.get(level, level) for level in column.levels]
        return (codes, levels) if levels == list(column.levels) else levels_of(levels, codes)
    if values is None:
        raise ValueError(f"Column {column.name!r} was a category in the fit. Got {_what(column)}.")
    different, codes = np.unique(values, return_inverse=True)
    codes = np.where(np.isnan(values), -1, codes)
    different = different[~np.isnan(different)]
    return levels_of(different.tolist(), codes)


def date_reading(column: Column) -> tuple[dict[str, str], str, list[str]]:
    """How the dates of a fit are read: the orders of their forms, the time zone, and notes."""
    if column.codes is None:
        return {}, column.zone, []
    texts = [column.levels[k] for k in np.unique(column.codes[column.codes >= 0])]
    return learn_orders(texts) or ({}, "", [])


def as_times(column: Column, orders: Mapping[str, str], zone: str) -> Array:
    """Seconds since 1970 on the clock of the fit's `zone` ("": none); `orders` are for texts."""
    if column.numbers is not None and np.isnan(column.numbers).all():
        return column.numbers
    if column.times is not None:
        times = column.times
        utc = np.full(len(times), np.nan) if column.utc is None else column.utc
    elif column.codes is not None:
        times, utc = _read_levels(column, orders)
    else:
        raise ValueError(f"Column {column.name!r} held dates in the fit. Got {_what(column)}.")
    aware = ~np.isnan(utc)
    if aware.any() if not zone else (np.isnan(utc) & ~np.isnan(times)).any():
        warn(
            f"Column {column.name!r} has times with a time zone and times without one, here or in "
            "the fit. Local times are used as they are."
        )
    if not zone or not aware.any() or column.zone == zone:
        return times
    try:
        return np.where(aware, on_clock(utc, zone), times)
    except (KeyError, ValueError, OverflowError) as error:
        raise ValueError(
            f"Column {column.name!r} cannot be converted to {zone!r}, the time zone of the fit: "
            f"{error}."
        ) from error


def _read_levels(column: Column, orders: Mapping[str, str]) -> tuple[Array, Array]:
    """The times of text, as they are written and in UTC."""
    codes = np.asarray(column.codes)
    used = np.unique(codes[codes >= 0])
    clock, utc = np.full((2, len(column.levels) + 1), np.nan)
    try:
        clock[used], offsets = read_dates([column.levels[k] for k in used], orders)
    except ValueError as error:
        expected = "dates as in the fit, or with the year first, such as '2024-05-31'"
        raise ValueError(
            f"Column {column.name!r} held dates in the fit. Expected {expected}. Got {error}."
        ) from None
    utc[used] = clock[used] - offsets
    return clock[codes], utc[codes]


def explain(column: Column, kind: str) -> str:
    """What is unusual about a column of this kind, as a sentence."""
    if kind == "date":
        return f"Column {column.name!r} contains dates."
    if kind in ("id", "text"):
        values = as_levels(column)[0]
        there = values[values >= 0]
        what = "is free text" if kind == "text" else "looks like an identifier"
        return (
            f"Column {column.name!r} {what} ({len(np.unique(there)):,} distinct values in "
            f"{len(there):,} rows)."
        )
    if kind == "almost number":
        odd = odd_entries(column)
        if not len(odd):
            return f"Column {column.name!r} contains numbers written as text."
        rows = int((np.asarray(column.codes) >= 0).sum())
        return (
            f"Column {column.name!r} has {len(odd):,} non-numeric entries in {rows:,} rows, such "
            f"as {column.levels[odd[0]]!r} (does it stand for a missing value?)."
        )
    return f"Column {column.name!r} contains {_what(column)}, neither numbers nor strings."


def warn_of(columns: Sequence[Column], kinds: Sequence[str], unsure: list[str]) -> None:
    """Warn once of all columns that are ignored, or used with doubt."""
    gone = [explain(c, kind) for c, kind in zip(columns, kinds) if kind in LEFT_OUT]
    lenient = [
        explain(column, kind)
        for column, kind in zip(columns, kinds)
        if kind == "almost number" and len(odd_entries(column))
    ]
    said = []
    if gone:
        said.append(f"{' '.join(gone)} {'They are' if len(gone) > 1 else 'It is'} ignored. {KEEP}")
    if lenient:
        said.append(f"{' '.join(lenient)} Non-numeric entries count as missing.")
    merged = [repr(c.name) for c, kind in zip(columns, kinds) if kind == "number" and _merges(c)]
    if merged:
        said.append(
            f"Integers above 2**53 are rounded, and some become equal, in column "
            f"{', '.join(merged)}. Subtract a constant first, or pass text if they are names."
        )
    if unsure:
        said.append(f"Ambiguous dates are read as follows: {' '.join(unsure)}")
    if said:
        warn(" ".join(said))


def _merges(column: Column) -> bool:
    """Whether different integers of a column are the same float."""
    if column.exact is None or column.numbers is None:
        return False
    there = ~np.isnan(column.numbers)
    return len(np.unique(column.numbers[there])) < len({*column.exact[there].tolist()})


def odd_entries(column: Column) -> Array:
    """The codes of rows whose level is no number."""
    codes = np.asarray(column.codes)
    there = codes[codes >= 0]
    return there[np.isnan(_parsed(column.levels))[there]]


def _what(column: Column) -> str:
    if column.other:
        return f"values of type {column.other}"
    if column.times is not None:
        return "dates"
    if column.numbers is not None:
        return "durations" if column.duration else "numbers"
    codes = np.asarray(column.codes)
    first = codes[codes >= 0][:1]
    return repr(column.levels[first[0]]) if len(first) else "nothing"


def _parsed(levels: Any) -> Array:
    """Texts as numbers; NaN for what is none."""
    found = np.full(len(levels), np.nan)
    for k, level in enumerate(levels):
        if level in TRUTH:
            found[k] = TRUTH[level]
            continue
        try:
            found[k] = np.nan if "_" in level else float(level)
        except ValueError:
            continue
    found[np.isinf(found)] = np.nan
    return found
