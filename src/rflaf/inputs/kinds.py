"""What kind of values a column holds, and the values as those of a kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.inputs.column import Column, column_of, is_id_name, levels_of
from rflaf.inputs.dates import parse_dates

Array = NDArray[Any]

FEW_LEVELS = 20  # that a category of numbers and something else may have
_ALL_DIFFERENT = 0.95  # of the rows, for numbers that are called an id
TRUTH = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}

USED = ("number", "boolean", "category", "date", "almost number")
LEFT_OUT = ("id", "text", "other")


def column_kind(values: Any) -> str:
    """The kind of a column: of a Series, or an array of one dimension.

    Returns
    -------
    str
        "number", "boolean", "category", "date" or "almost number" (numbers with a few
        non-numeric entries), of which an encoder makes numbers; "id", "text" or "other", which it
        leaves out; "empty".

    Notes
    -----
    Strings are dates where all of them are; else a category where each occurs twice or more on
    average, and free text where they do not; so names and identifiers are free text. A type for
    categories is always a category. More than 20 values that are numbers in nine rows of ten, but
    not in all, are not a category but "almost number". Whole numbers are an id if nearly all are
    different and the column's name says so: "id", "customer_id", "userId", "Unnamed: 0".

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
    """The kind of a column that has been read."""
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
    if parse_dates(levels) is not None:
        return "date"
    if set(levels) <= set(TRUTH):
        return "boolean"
    numeric = ~np.isnan(_parsed(levels))
    share = counts[used][numeric].sum() / rows
    if len(levels) <= rows / 2:
        # many numbers and a "?" are no category, but few ones with a letter may be
        return "almost number" if len(levels) > FEW_LEVELS and share >= 0.9 else "category"
    return "almost number" if share >= 0.5 else "text"


def _kind_of_numbers(column: Column, numbers: Array) -> str:
    there = numbers[~np.isnan(numbers)]
    if there.size == 0:
        return "empty"
    if column.boolean:
        return "boolean"
    if is_id_name(column.name) and len(there) > FEW_LEVELS:
        with np.errstate(invalid="ignore"):  # of infinity
            whole = bool(np.all(there == np.round(there)))
        if whole and len(np.unique(there)) >= _ALL_DIFFERENT * len(there):
            return "id"
    return "number"


def as_numbers(column: Column, odd_are_missing: bool = False) -> Array:
    """A column that was numeric in the fit, as floats with NaN."""
    if column.numbers is not None:
        return column.numbers
    if column.codes is None:
        raise ValueError(f"Column {column.name!r} was numeric in the fit. Got {_what(column)}.")
    found = _parsed(column.levels)
    used = np.unique(column.codes[column.codes >= 0])
    odd = used[np.isnan(found[used])]
    if len(odd) and not odd_are_missing:
        raise ValueError(
            f"Column {column.name!r} was numeric in the fit. Got {column.levels[odd[0]]!r}."
        )
    return np.append(found, np.nan)[column.codes]


def as_levels(column: Column) -> tuple[Array, list[str]]:
    """A column as a category: the code of each row, -1 where it is missing, and the levels."""
    if column.codes is not None:
        return column.codes, list(column.levels)
    values = column.numbers if column.numbers is not None else column.times
    if values is None:
        raise ValueError(f"Column {column.name!r} was a category in the fit. Got {_what(column)}.")
    if column.boolean:
        codes = np.where(np.isnan(values), -1, values).astype(np.intp)
        return codes, ["False", "True"]
    different, codes = np.unique(values, return_inverse=True)
    codes = np.where(np.isnan(values), -1, codes)
    different = different[~np.isnan(different)]
    return levels_of(different.tolist(), codes)


def as_times(column: Column, day_first: bool | None = None) -> Array:
    """A column of dates as seconds since 1970, with NaN."""
    if column.times is not None:
        return column.times
    if column.numbers is not None and np.isnan(column.numbers).all():
        return column.numbers
    if column.codes is not None:
        used = np.unique(column.codes[column.codes >= 0])
        parsed = parse_dates([column.levels[k] for k in used], day_first)
        if not len(used):
            return np.full(len(column.codes), np.nan)
        if parsed is not None:
            found = np.full(len(column.levels) + 1, np.nan)
            found[used] = parsed[0]
            return found[column.codes]
        texts = [column.levels[k] for k in used]
        odd = next((text for text in texts if parse_dates([text], day_first) is None), texts[0])
        raise ValueError(f"Column {column.name!r} held dates in the fit. Got {odd!r}.")
    raise ValueError(f"Column {column.name!r} held dates in the fit. Got {_what(column)}.")


def explain(column: Column, kind: str) -> str:
    """A few words on what is unusual about a column of this kind."""
    if kind == "date":
        return f"Column {column.name!r} holds dates."
    if kind in ("id", "text"):
        values = as_levels(column)[0]
        there = values[values >= 0]
        what = "free text" if kind == "text" else "an identifier"
        return (
            f"Column {column.name!r} holds {what} ({len(np.unique(there)):,} values in "
            f"{len(there):,} rows)."
        )
    if kind == "almost number":
        odd = odd_entries(column)
        if not len(odd):
            return f"Column {column.name!r} holds numbers that are written as text."
        rows = int((np.asarray(column.codes) >= 0).sum())
        return (
            f"Column {column.name!r} has {len(odd):,} non-numeric entries in {rows:,} rows, such "
            f"as {column.levels[odd[0]]!r} (does it stand for a missing value?)."
        )
    return f"Column {column.name!r} holds {_what(column)}, which are neither numbers nor strings."


def odd_entries(column: Column) -> Array:
    """The codes of those rows of a column with levels whose level is no number."""
    codes = np.asarray(column.codes)
    there = codes[codes >= 0]
    return there[np.isnan(_parsed(column.levels))[there]]


def _what(column: Column) -> str:
    if column.other:
        return f"values of type {column.other}"
    if column.times is not None:
        return "dates"
    if column.numbers is not None:
        return "numbers"
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
