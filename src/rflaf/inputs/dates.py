"""Dates that are written as text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.inputs.column import DAY

Array = NDArray[Any]

_ZONE = r"(?:Z|UTC|[+-]\d\d:?\d\d)?"
_CLOCK = r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp][Mm])?\s*" + _ZONE + ")?"
_YEAR_FIRST = re.compile(r"\s*(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _CLOCK + r"\s*")
_YEAR_LAST = re.compile(r"\s*(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})" + _CLOCK + r"\s*")
_PLAIN_LENGTHS = {10, 16, 19, 23, 26}  # of what NumPy reads: 2024-05-01 and so on
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def parse_dates(texts: Sequence[str], day_first: bool | None = None) -> tuple[Array, bool] | None:
    """Seconds since 1970 for dates as text, and whether a day comes before its month.

    None where a text is no date. Offsets from UTC are not applied: the clock is the column's own.
    In 1/2/2024 the day comes first if some text of the column has no other reading; if all have
    both, after dots and dashes, and not after slashes.

    Examples
    --------
    >>> from rflaf.inputs.dates import parse_dates
    >>> parse_dates(["1970-01-02", "1970-1-1 12:30"])[0].tolist()
    [86400.0, 45000.0]
    >>> parse_dates(["3/1/1970", "31/1/1970"])[1], parse_dates(["3/1/1970", "a"])
    (True, None)
    """
    quick = _parse_plain(texts)
    if quick is not None:
        return quick, bool(day_first)
    found = [_YEAR_FIRST.fullmatch(text) or _YEAR_LAST.fullmatch(text) for text in texts]
    if not texts or not all(found):
        return None
    parts = [match.groups() for match in found if match]
    late = [part for part in parts if len(part[0]) <= 2]
    if day_first is None:
        day_first = _day_comes_first(late)
    try:
        return np.array([_moment_of(part, day_first) for part in parts]), day_first
    except ValueError:  # a month 13, a 31st of April
        return None


def _parse_plain(texts: Sequence[str]) -> Array | None:
    """What NumPy reads itself, and fast."""
    if not texts or not all(
        len(text) in _PLAIN_LENGTHS and text[4] == text[7] == "-" for text in texts
    ):
        return None
    try:
        return np.array(texts, "datetime64[us]").astype(np.int64) / 1e6
    except ValueError:
        return None


def _day_comes_first(parts: Sequence[Sequence[Any]]) -> bool:
    if any(int(part[0]) > 12 for part in parts):
        return True
    if any(int(part[2]) > 12 for part in parts):
        return False
    return not all(part[1] == "/" for part in parts)


def _moment_of(part: Sequence[Any], day_first: bool) -> float:
    first, _, second, third, hour, minute, second_of_minute, half = part
    if len(first) == 4:
        year, month, day = int(first), int(second), int(third)
    else:
        day, month = (first, second) if day_first else (second, first)
        year, month, day = int(third), int(month), int(day)
        if len(third) == 2:  # as POSIX reads them
            year += 2000 if year < 69 else 1900
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + 12 * (half.lower() == "pm")
    seconds = 3600 * hours + 60 * int(minute or 0) + float(second_of_minute or 0)
    if seconds > DAY:
        raise ValueError("a day has 24 hours")
    return (datetime.date(year, month, day).toordinal() - _EPOCH) * DAY + seconds
