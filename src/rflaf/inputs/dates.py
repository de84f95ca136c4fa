"""Dates that are written as text, and clocks of time zones."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from rflaf.arrays import Array

_SHIFT = r"Z|UTC|[+-]\d\d(?::?\d\d)?"
_TIME = r"(\d{1,2}):([0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?"
_CLOCK = rf"(?:[T ]\s*{_TIME}\s*([AaPp][Mm])?\s*({_SHIFT})?)?\s*"
_YEAR_FIRST = re.compile(r"\s*(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _CLOCK, re.ASCII)
_YEAR_LAST = re.compile(r"\s*(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})" + _CLOCK, re.ASCII)
# Forms that NumPy reads as we do, but faster; without offsets, which it would apply.
_PLAIN = re.compile(r"(?!0000)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_DAY = 86_400_000_000  # microseconds, which are exact
_WORDS = {"d": "day", "m": "month", "y": "year"}


class _Text(NamedTuple):
    """A date as it is written.

    `form` is the separator and the digits of the year, such as "/yyyy" or ".yy"; "" with a year of
    four digits first. `clock` is in microseconds, `offset` in seconds, NaN where there is none.
    """

    form: str
    fields: tuple[str, str, str]
    clock: int
    offset: float


def _orders(form: str) -> tuple[str, ...]:
    """The orders that a form may have, the likeliest first."""
    if not form:
        return ("ymd",)
    likely = ("mdy", "dmy") if form[0] == "/" else ("dmy", "mdy")
    return likely if form.endswith("yyyy") else (*likely, "ymd")


@lru_cache(maxsize=1 << 14)  # many moments have the same day
def _meanings(form: str, fields: tuple[str, str, str]) -> dict[str, int]:
    """The day since year 1 in each order in which there is such a day."""
    found = {}
    for order in _orders(form):
        year, month, day = (fields[order.index(letter)] for letter in "ymd")
        if len(year) == 1:
            continue
        century = 0 if len(year) == 4 else 2000 if int(year) < 69 else 1900  # as POSIX has it
        with suppress(ValueError):
            found[order] = datetime.date(century + int(year), int(month), int(day)).toordinal()
    return found


def learn_orders(texts: Sequence[str]) -> tuple[dict[str, str], str, list[str]] | None:
    """How texts write their dates; None if one of them is no date.

    The order of day, month and year of a form (separator and digits of the year) is one in which
    each of its texts has a day. If several are left, the month comes first after slashes, and the
    day after dots and dashes; if all mean the same, the form has none. Then come the offset from
    UTC ("" without any, "UTC" if there are several), and notes on orders that no text decides.

    Examples
    --------
    >>> from rflaf.inputs.dates import learn_orders
    >>> learn_orders(["3/1/1970", "31/1/1970", "1970-01-31 12:30+02:00"])
    ({'/yyyy': 'dmy'}, '+02:00', [])
    >>> learn_orders(["3/1/1970"])
    ({'/yyyy': 'mdy'}, '', ["'3/1/1970' as month/day/year"])
    >>> learn_orders(["3/1/1970", "a"])
    """
    if not texts:
        return None
    if _plain(texts) is not None:
        return {}, "", []
    days: dict[str, dict[tuple[str, str, str], dict[str, int]]] = {}
    offsets = set()
    for text in texts:
        found = _match(text)
        if found is None:
            return None
        days.setdefault(found.form, {})[found.fields] = _meanings(found.form, found.fields)
        offsets.add(found.offset)
    orders, notes = {}, []
    for form, meanings in days.items():
        possible = [o for o in _orders(form) if all(o in each for each in meanings.values())]
        if not possible:
            return None
        unsure = [f for f, each in meanings.items() if len({each[o] for o in possible}) > 1]
        if form and (len(possible) == 1 or unsure):
            orders[form] = possible[0]
        if unsure:
            notes.append(f"{form[0].join(unsure[0])!r} as {_in_words(form, possible[0])}")
    return orders, zone_of(offsets), notes


def read_dates(texts: Sequence[str], orders: Mapping[str, str]) -> tuple[Array, Array]:
    """Seconds since 1970 by the clock that each text shows, and its offset from UTC in seconds.

    The offset is NaN where there is none. Each text is read by itself: by the order of its form, or
    by its only meaning if the form has no order. Digits after microseconds are cut off. A text that
    is no date, or may be one of several, raises ValueError.

    Examples
    --------
    >>> from rflaf.inputs.dates import read_dates
    >>> read_dates(["1970-01-02", "1970-1-1 12:30+02:00", "13.1.1970"], {})
    (array([  86400.,   45000., 1036800.]), array([  nan, 7200.,   nan]))
    >>> read_dates(["4.3.2022"], {})
    Traceback (most recent call last):
    ValueError: '4.3.2022', which may be 2022-03-04 or 2022-04-03
    """
    quick = _plain(texts)
    if quick is not None:
        return quick, np.full(len(texts), np.nan)
    found = np.array([_read(text, orders) for text in texts], np.float64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _read(text: str, orders: Mapping[str, str]) -> tuple[float, float]:
    found = _match(text)
    if found is None:
        raise ValueError(repr(text))
    days = _meanings(found.form, found.fields)
    different = sorted(set(days.values()))
    if not different:
        raise ValueError(repr(text))
    if found.form in orders:
        order = orders[found.form]
        if order not in days:
            raise ValueError(f"{text!r}, where {_in_words(found.form, order)} was expected")
        different = [days[order]]
    if len(different) > 1:
        dates = map(str, map(datetime.date.fromordinal, different))
        raise ValueError(f"{text!r}, which may be {' or '.join(dates)}")
    return ((different[0] - _EPOCH.toordinal()) * _DAY + found.clock) / 1e6, found.offset


def _in_words(form: str, order: str) -> str:
    return form[0].join(_WORDS[letter] for letter in order)


def _plain(texts: Sequence[str]) -> Array | None:
    if not texts or not all(map(_PLAIN.fullmatch, texts)):
        return None
    try:
        return np.array(texts, "datetime64[us]").astype(np.int64) / 1e6
    except ValueError:
        return None


def _match(text: str) -> _Text | None:
    found = _YEAR_FIRST.fullmatch(text) or _YEAR_LAST.fullmatch(text)
    if found is None:
        return None
    first, between, second, third, hour, minute, seconds, fraction, half, shift = found.groups()
    hours = int(hour or 0)
    if half:
        after_noon = half.lower() == "pm"
        if hours > (23 if after_noon else 12):  # some write 13:00 PM
            return None
        hours = hours % 12 + 12 * after_noon
    clock = (3600 * hours + 60 * int(minute or 0) + int(seconds or 0)) * 1_000_000
    clock += int((fraction or "").ljust(6, "0")[:6])
    if clock > _DAY:
        return None
    form = "" if len(first) == 4 else between + "y" * len(third)
    return _Text(form, (first, second, third), clock, np.nan if shift is None else _offset(shift))


def _offset(shift: str) -> float:
    """Seconds of Z, UTC, +02, +0200 or +02:00."""
    if not shift[-1].isdigit():
        return 0.0
    digits = shift[1:].replace(":", "").ljust(4, "0")
    return (3600.0 * int(digits[:2]) + 60.0 * int(digits[2:])) * (-1 if shift[0] == "-" else 1)


def zone_of(offsets: Iterable[float]) -> str:
    """The time zone of dates with these offsets: "" without any; of several, UTC."""
    found = {offset for offset in offsets if offset == offset}
    if not found:
        return ""
    if found == {0.0} or len(found) > 1:
        return "UTC"
    minutes = int(abs(offset := found.pop())) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def on_clock(utc: Array, zone: str) -> Array:
    """Seconds since 1970 on the clock of a time zone, given those of UTC; NaN stays.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.inputs.dates import on_clock
    >>> on_clock(np.array([0.0, np.nan]), "+01:30")
    array([5400.,   nan])
    """
    fixed = re.fullmatch(rf"(?:UTC)?({_SHIFT})", zone)
    if fixed:
        return utc + _offset(fixed[1])
    place = ZoneInfo(zone)
    moments, back = np.unique(utc, return_inverse=True)
    shifts = [
        np.nan if second != second else _shift_at(place, second) for second in moments.tolist()
    ]
    return utc + np.array(shifts)[back]


def _shift_at(place: ZoneInfo, second: float) -> float:
    moment = _EPOCH + datetime.timedelta(seconds=second)
    shift = moment.astimezone(place).utcoffset()
    return 0.0 if shift is None else shift.total_seconds()
